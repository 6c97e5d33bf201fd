"""A header under other names: order, metadata and padding-free JSON; data that move together."""

from __future__ import annotations

import json

import pytest
from safetensors import deserialize

from eagle3_lint.plan.header_text import renamed
from eagle3_lint.write.change import Kept

TEXT = (
    '{"__metadata__":{"format":"pt","é":"ü"},'
    '"b":{"dtype":"U8","shape":[2],"data_offsets":[3,5],"more":[1,{"x":null}]},'
    '"a":{"dtype":"U8","shape":[3],"data_offsets":[0,3]},'
    '"c":{"dtype":"U8","shape":[1],"data_offsets":[5,6]}}'
)
DATA = b"aaabbc"


def file_of(header: bytes, data: bytes) -> bytes:
    return len(header).to_bytes(8, "little") + header + data


def values(raw: bytes) -> dict[str, bytes]:
    return {name: bytes(entry["data"]) for name, entry in deserialize(raw)}


def test_a_rename_touches_nothing_else() -> None:
    header, pieces = renamed(TEXT, {"a": "A", "b": "b", "c": "c"})
    assert pieces is None
    assert header.decode() == TEXT.replace('"a":', '"A":')
    assert values(file_of(header, DATA)) == {"A": b"aaa", "b": b"bb", "c": b"c"}


def test_names_can_be_swapped() -> None:
    header, pieces = renamed(TEXT, {"a": "b", "b": "a", "c": "c"})
    assert pieces is None
    assert values(file_of(header, DATA)) == {"b": b"aaa", "a": b"bb", "c": b"c"}


def test_what_is_dropped_leaves_no_hole() -> None:
    header, pieces = renamed(TEXT, {"b": "b", "c": "c"})
    assert pieces == (Kept(3, 5), Kept(5, 6))
    data = b"".join(DATA[p.begin : p.end] for p in pieces if isinstance(p, Kept))
    assert values(file_of(header, data)) == {"b": b"bb", "c": b"c"}
    assert json.loads(header)["b"]["more"] == [1, {"x": None}]
    assert json.loads(header)["__metadata__"] == {"format": "pt", "é": "ü"}


@pytest.mark.parametrize("padding", ["", "   ", "\n"])
def test_padding_is_left_to_the_writer(padding: str) -> None:
    header, _ = renamed(TEXT + padding, {"a": "a", "b": "b", "c": "c"})
    assert header.decode() == TEXT


def test_of_equal_names_the_last_counts() -> None:
    # The library takes the last entry of a name; an earlier one shares its bytes or has none.
    text = '{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},' + TEXT[1:].replace(
        '"__metadata__":{"format":"pt","é":"ü"},', ""
    )
    header, pieces = renamed(text, {"a": "z", "b": "b", "c": "c"})
    assert pieces is None
    assert values(file_of(header, DATA)) == {"z": b"aaa", "b": b"bb", "c": b"c"}


def test_rows_become_tensors_where_they_are() -> None:
    header, pieces = renamed(TEXT, {"b": "b", "c": "c"}, parts={"a": [("x", 1), ("y", 2)]})
    assert pieces is None
    assert list(json.loads(header)) == ["__metadata__", "b", "x", "y", "c"]
    assert values(file_of(header, b"123bbc")) == {"x": b"1", "y": b"23", "b": b"bb", "c": b"c"}


def test_rows_of_what_moves() -> None:
    header, pieces = renamed(TEXT, {"c": "c"}, parts={"b": [("x", 1), ("y", 1)]})
    assert pieces == (Kept(3, 5), Kept(5, 6))
    assert values(file_of(header, b"bBc")) == {"x": b"b", "y": b"B", "c": b"c"}


def test_rows_of_a_positional_entry() -> None:
    header, _ = renamed('{"a":["F32",[2,3],[0,24]]}', {}, parts={"a": [("x", 1), ("y", 1)]})
    assert json.loads(header) == {"x": ["F32", [1, 3], [0, 12]], "y": ["F32", [1, 3], [12, 24]]}


@pytest.mark.parametrize("parts", [[("x", 1), ("y", 1)], [("x", 2), ("y", 2)]])
def test_rows_that_are_not_all(parts: list[tuple[str, int]]) -> None:
    with pytest.raises(ValueError, match=r"no \d rows"):
        renamed(TEXT, {}, parts={"a": parts})
