"""The header reader and the safetensors library accept and refuse the same files, always.

Every file goes through ``safetensors.deserialize`` and through our reader, some through
``safe_open`` too. Where both accept, names, dtypes and shapes agree. No expectation is ours.
EAGLE3_LINT_PROFILE=thorough tries 20,000 files of each kind.
"""

from __future__ import annotations

import json
import re
import struct
from pathlib import Path
from typing import Any

import pytest
from hypothesis import event, example, given, settings
from hypothesis import strategies as st

from eagle3_lint.load.header import DTYPE_BITS, Header, HeaderError, parse_header, read_header
from tests.unit.load.containers import ACCEPTED, REFUSED, entry, file_of, header, many, one
from tests.unit.load.profile import PROFILE

safetensors = pytest.importorskip("safetensors")

Content = dict[str, tuple[str, tuple[int, ...]]]
CRAFTED = {**ACCEPTED, **{name: raw for name, (_, raw) in REFUSED.items()}}


def library(raw: bytes) -> Content | str:
    """The tensors that the library finds, or the text of its refusal."""
    try:
        found = safetensors.deserialize(raw)
    except safetensors.SafetensorError as error:
        return str(error)
    return {name: (view["dtype"], tuple(view["shape"])) for name, view in found}


#: An older library knows fewer dtypes, which is a difference we want.
COMMON = sorted(
    name
    for name, bits in DTYPE_BITS.items()
    if not isinstance(
        library(one(bits, dtype=f'"{name}"', shape="[8]", offsets=f"[0,{bits}]")), str
    )
)


def content(found: Header) -> Content:
    return {t.name: (t.dtype, t.shape) for t in found.tensors}


def assert_agreement(raw: bytes) -> str:
    """Compare both readers; returns what came out, for hypothesis' statistics."""
    theirs = library(raw)
    try:
        ours: Header | HeaderError = parse_header(raw, len(raw))
    except HeaderError as error:
        ours = error
    if isinstance(theirs, str):
        assert isinstance(ours, HeaderError), f"accepted what the library refuses: {theirs}"
        return ours.kind
    assert isinstance(ours, Header), f"refused what the library accepts: {ours.message}"
    assert content(ours) == theirs
    return "accepted"


#: The crafted files whose dtypes the installed library knows.
COMPARED = sorted(
    name
    for name, raw in CRAFTED.items()
    if all(dtype in COMMON for dtype in DTYPE_BITS if f'"{dtype}"'.encode() in raw)
)


@pytest.mark.parametrize("name", COMPARED)
def test_crafted(name: str) -> None:
    assert_agreement(CRAFTED[name])


@pytest.mark.parametrize("name", COMPARED)
def test_crafted_as_files(name: str, tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    path.write_bytes(CRAFTED[name])
    try:
        ours: Header | HeaderError = read_header(path)
    except HeaderError as error:
        ours = error
    try:
        with safetensors.safe_open(path, framework="numpy") as file:
            names = list(file.keys())
            metadata = file.metadata()
    except (safetensors.SafetensorError, OSError, ValueError):  # an empty file cannot be mapped
        assert isinstance(ours, HeaderError)
        return
    assert isinstance(ours, Header)
    assert sorted(t.name for t in ours.tensors) == sorted(names)
    assert dict(ours.metadata) == (metadata or {})


def test_every_crafted_file_is_on_the_side_it_claims() -> None:
    claimed = {name: name in ACCEPTED for name in COMPARED}
    assert {n: not isinstance(library(CRAFTED[n]), str) for n in claimed} == claimed


def test_the_table_of_dtypes_is_the_library_s() -> None:
    if not safetensors.__version__.startswith("0.8."):
        pytest.skip("the table is that of 0.8")
    # It lists the names it knows when it refuses another.
    refusal = library(one(dtype='"?"'))
    assert isinstance(refusal, str)
    assert set(re.findall(r"`(\w+)`", refusal)) == set(DTYPE_BITS)


# -- whole files, and one thing moved --------------------------------------------------------------

names = st.sampled_from(["a", "b", "d2t", "layers.0.fc.weight", "", "\u00e9", "\U0001f600"]) | (
    st.text(st.characters(exclude_categories=["Cs"]), max_size=6).filter(
        lambda name: name != "__metadata__"
    )
)


@st.composite
def layouts(draw: st.DrawFn) -> list[tuple[str, str, list[int], int, int]]:
    """Tensors that follow each other without a gap: name, dtype, shape, begin, end."""
    found: list[tuple[str, str, list[int], int, int]] = []
    position = 0
    for name in draw(st.lists(names, max_size=5, unique=True)):
        dtype = draw(st.sampled_from(COMMON))
        shape = draw(st.lists(st.integers(0, 4), max_size=3))
        count = 1
        for size in shape:
            count *= size
        if count * DTYPE_BITS[dtype] % 8:
            shape, count = [*shape, 8], count * 8
        end = position + count * DTYPE_BITS[dtype] // 8
        found.append((name, dtype, shape, position, end))
        position = end
    return found


def write(layout: list[tuple[str, str, list[int], int, int]]) -> tuple[list[str], int]:
    members = [
        entry(name, json.dumps(dtype), json.dumps(shape), json.dumps([begin, end]))
        for name, dtype, shape, begin, end in layout
    ]
    return members, max((end for *_, end in layout), default=0)


metadata = st.sampled_from(["", '"__metadata__":null', '"__metadata__":{"format":"pt"}'])
white = st.text(" \t\r\n", max_size=2)


@settings(PROFILE)
@given(layouts(), metadata, st.tuples(white, white, white), st.randoms())
def test_whole_files(layout: Any, extra: str, spaces: tuple[str, str, str], random: Any) -> None:
    members, size = write(layout)
    members += [extra] if extra else []
    random.shuffle(members)
    before, between, after = spaces
    text = before + "{" + f"{between},".join(members) + "}" + after
    raw = file_of(text, bytes(size))
    assert not isinstance(library(raw), str)
    event(assert_agreement(raw))


sizes = st.integers(0, 9) | st.sampled_from([2**32, 2**60, 2**61, 2**63, 2**64 - 1, 2**64, -1])


@settings(PROFILE)
@given(layouts(), st.data())
def test_files_with_one_thing_moved(layout: Any, data: st.DataObject) -> None:
    if layout:
        at = data.draw(st.integers(0, len(layout) - 1), label="which tensor")
        name, dtype, shape, begin, end = layout[at]
        what = data.draw(st.sampled_from(["begin", "end", "shape", "dtype", "twin", "size"]))
        if what == "begin":
            layout[at] = (name, dtype, shape, begin + data.draw(st.integers(-2, 2)), end)
        elif what == "end":
            layout[at] = (name, dtype, shape, begin, end + data.draw(st.integers(-2, 2)))
        elif what == "shape":
            layout[at] = (name, dtype, data.draw(st.lists(sizes, max_size=4)), begin, end)
        elif what == "dtype":
            other = data.draw(st.sampled_from([*COMMON, "f32", "Q8", ""]))
            layout[at] = (name, other, shape, begin, end)
        elif what == "twin":  # the same name, or the same bytes, once more
            twin = (data.draw(st.sampled_from([name, "twin"])), dtype, shape, begin, end)
            layout.insert(data.draw(st.integers(0, len(layout))), twin)
    members, size = write(layout)
    size += data.draw(st.sampled_from([0, 0, 0, 1, -1]), label="bytes more")
    event(assert_agreement(many(members, max(0, size))))


# -- any JSON, and text that is nearly JSON --------------------------------------------------------

fields = st.sampled_from(["dtype", "shape", "data_offsets", "x", "F32", "__metadata__"])
json_values = st.recursive(
    st.none() | st.booleans() | sizes | st.floats() | st.text(max_size=4)
    | st.sampled_from(["F32", "U8", "dtype"]) | st.just([0, 4]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(fields, inner, max_size=4),
    max_leaves=8,
)  # fmt: skip


@settings(PROFILE)
@given(st.dictionaries(names | fields, json_values, max_size=3), st.integers(0, 9))
def test_any_json(value: dict[str, Any], size: int) -> None:
    event(assert_agreement(file_of(json.dumps(value), bytes(size))))


@settings(PROFILE)
@given(*[json_values | st.just(good) for good in ("F32", [1], [0, 4])], json_values)
def test_any_entry(dtype: Any, shape: Any, offsets: Any, more: Any) -> None:
    written = f'"dtype":{json.dumps(dtype)},"shape":{json.dumps(shape)}'
    written += f',"data_offsets":{json.dumps(offsets)},"x":{json.dumps(more)}'
    event(assert_agreement(file_of(f'{{"a":{{{written}}}}}', bytes(4))))


digits = st.text("0123456789", min_size=1, max_size=25)
#: Around the largest double, 1.7976931348623157e308, where rounding decides.
border = st.builds(
    lambda length, nudge, exponent: f"{int('17976931348623157081452742'[:length]) + nudge}"
    f"e{309 - length + exponent}",
    st.integers(1, 26), st.integers(-3, 3), st.integers(-1, 1),
)  # fmt: skip
numbers = border | st.builds(
    lambda sign, whole, zeros, fraction, exponent: f"{sign}{whole}{zeros}{fraction}{exponent}",
    st.sampled_from(["", "-"]),
    st.just("0") | digits,
    st.integers(0, 320).map(lambda n: "0" * n),
    st.just("") | digits.map(lambda d: f".{d}"),
    st.just("") | st.builds(
        lambda e, sign, size: f"{e}{sign}{size}",
        st.sampled_from("eE"), st.sampled_from(["", "+", "-"]),
        digits | st.integers(280, 320).map(str)),
)  # fmt: skip


@settings(PROFILE)
@given(numbers)
@example("17976931348623158e292")  # refused, though Python has it as a double
@example("179769313486231580793e288")
@example("18446744073709551615.5e289")
@example("1844674407370955161" + "65")
@example("2147483648e2147483648")
def test_numbers(text: str) -> None:
    event(assert_agreement(one(more=f',"x":{text}')))
    event(assert_agreement(one(0, shape=f"[0,{text}]", offsets="[0,0]")))


pieces = st.sampled_from(
    ["a", "\\u0061", "\\ud83d", "\\ude00", "\\uD83D\\uDE00", "\\n", "\\/", "\\\\", '\\"', "\\u",
     "\\x", "\u00e9", "\x7f", "\x1f", "[", "{", "\\u0000"]
)  # fmt: skip


@settings(PROFILE)
@given(st.lists(pieces, max_size=6).map("".join), st.sampled_from(["name", "field", "metadata"]))
def test_strings(text: str, where: str) -> None:
    member = {
        "name": entry().replace('"a"', f'"{text}"'),
        "field": entry(more=f',"x":"{text}"'),
        "metadata": f'"__metadata__":{{"{text}":"{text}"}},{entry()}',
    }[where]
    event(assert_agreement(file_of(header(member), bytes(4))))


@settings(PROFILE)
@given(st.integers(118, 132), st.text("[{", min_size=132, max_size=132), st.booleans())
def test_nesting(levels: int, kinds: str, beside: bool) -> None:
    opening, closing = "", ""
    for kind in kinds[:levels]:
        opening += '{"k":' if kind == "{" else "["
        closing = ("}" if kind == "{" else "]") + closing
    other = ',"y":[[],[{}]]' if beside else ""
    event(assert_agreement(one(more=f',"x":{opening}1{closing}{other}')))


TOKENS = [*'{}[]",:019.-eE \\\n\0\x7f', "null", "true", "NaN", '"x"', '"a"', "\\u", "\u00e9"]


@settings(PROFILE)
@given(
    base=st.sampled_from(COMPARED),
    edits=st.lists(
        st.tuples(st.integers(0, 160), st.integers(0, 3), st.sampled_from(TOKENS)), max_size=3
    ),
    honest=st.booleans(),
)
def test_edited_text(base: str, edits: list[tuple[int, int, str]], honest: bool) -> None:
    """Bytes deleted, replaced or put in; an honest length follows the change, another does not."""
    raw = bytearray(CRAFTED[base])
    growth = 0
    for position, deleted, token in edits:
        if 8 <= position < len(raw):
            raw[position : position + deleted] = token.encode()
            growth += len(token.encode()) - deleted
    if honest and len(raw) >= 8:
        (length,) = struct.unpack_from("<Q", raw)
        struct.pack_into("<Q", raw, 0, min(max(0, length + growth), 2**64 - 1))
    event(assert_agreement(bytes(raw)))


@settings(PROFILE)
@given(st.binary(max_size=100), st.integers(0, 110) | st.integers(0, 2**64 - 1))
def test_any_bytes(rest: bytes, length: int) -> None:
    event(assert_agreement(rest))
    event(assert_agreement(struct.pack("<Q", length) + rest))
