"""JSON with places: Python's data, RFC 6901's pointers, and an editor's lines and columns."""

from __future__ import annotations

import json
import math
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eagle3_lint.load.document import (
    MOST_BYTES,
    DocumentError,
    escape,
    load_document,
    parse_document,
)
from tests.unit.load.profile import PROFILE

TEXT = """{
  "architectures": ["A", "B"],
\t"a": {"b": [{}, [],
    [1, {"c": null}]], "": 0},
  "a/b": 1, "m~n": "\u00e9\u00e9", "x": 2,
  "q\\"\\u0041": [-0.5e1]
}
"""


@pytest.mark.parametrize(
    ("pointer", "place", "value"),
    [
        ("/architectures", (2, 3), ["A", "B"]),
        ("/architectures/1", (2, 26), "B"),
        ("/a", (3, 2), {"b": [{}, [], [1, {"c": None}]], "": 0}),
        ("/a/b/0", (3, 14), {}),
        ("/a/b/1", (3, 18), []),
        ("/a/b/2", (4, 5), [1, {"c": None}]),
        ("/a/b/2/1/c", (4, 10), None),
        ("/a/", (4, 24), 0),
        ("/a~1b", (5, 3), 1),
        ("/m~0n", (5, 13), "\u00e9\u00e9"),
        ("/x", (5, 26), 2),  # columns count characters, not bytes
        ('/q"A', (6, 3), [-5.0]),
        ('/q"A/0', (6, 17), -5.0),
    ],
)
def test_places_and_values(pointer: str, place: tuple[int, int], value: Any) -> None:
    document = parse_document(TEXT.encode())
    assert document.place(pointer) == place
    assert document.line(pointer) == place[0]
    assert document.has(pointer)
    assert document.get(pointer, "default") == value


@pytest.mark.parametrize(
    "pointer",
    ["/nothing", "/nothing/at/all", "/a/c", "/a/b/3", "/a/b/-", "/a/b/-1", "/a/b/00", "/a/b/0x0",
     "/a/b/\u0661", "/x/0", "/architectures/0/0", "/a~b", "/architectures/9999999999999999999999"],
)  # fmt: skip
def test_nothing_there(pointer: str) -> None:
    document = parse_document(TEXT.encode())
    assert document.place(pointer) is None
    assert document.line(pointer) is None
    assert not document.has(pointer)
    assert document.get(pointer, "default") == "default"
    assert document.get(pointer) is None


def test_the_whole() -> None:
    document = parse_document(b'\n\n {"a": 1}')
    assert document.get("") == {"a": 1}
    assert document.place("") == (3, 2)
    assert document.duplicates == document.not_finite == ()


def test_a_pointer_begins_with_a_slash() -> None:
    with pytest.raises(ValueError, match="JSON pointer"):
        parse_document(b"{}").get("a")


# The examples of RFC 6901, section 5.
@pytest.mark.parametrize(
    ("pointer", "value"),
    [("/foo", ["bar", "baz"]), ("/foo/0", "bar"), ("/", 0), ("/a~1b", 1), ("/c%d", 2), ("/e^f", 3),
     ("/g|h", 4), ("/i\\j", 5), ('/k"l', 6), ("/ ", 7), ("/m~0n", 8)],
)  # fmt: skip
def test_the_examples_of_the_rfc(pointer: str, value: Any) -> None:
    data = {"foo": ["bar", "baz"], "": 0, "a/b": 1, "c%d": 2, "e^f": 3, "g|h": 4, "i\\j": 5,
            'k"l': 6, " ": 7, "m~n": 8}  # fmt: skip
    assert parse_document(json.dumps(data).encode()).get(pointer) == value


def test_of_equal_keys_the_last_one_counts_with_its_place() -> None:
    document = parse_document(
        b'{"a": {"old": 1, "b": 1, "b": 2},\n "a": [3],\n "a": {"new": 1},\n'
        b' "k": {"a/": 1, "a/": 2}}'
    )
    assert document.duplicates == ("/a/b", "/a", "/k/a~1")
    assert document.data == {"a": {"new": 1}, "k": {"a/": 2}}
    assert document.line("/a") == 3
    assert document.line("/a/new") == 3
    assert not document.has("/a/old")
    assert document.place("/a/old") is None
    assert document.place("/a/0") is None


def test_keys_are_equal_whatever_their_spelling() -> None:
    assert parse_document(b'{"a": 1, "\\u0061": 2}').duplicates == ("/a",)


def test_numbers_that_json_does_not_have_are_read_and_remembered() -> None:
    document = parse_document(b'{"a": NaN, "b": [1, -Infinity, "NaN"], "NaN": {"c": Infinity}}')
    assert document.not_finite == ("/a", "/b/1", "/NaN/c")
    assert math.isnan(document.get("/a"))
    assert document.get("/b/1") == -math.inf


@pytest.mark.parametrize(
    ("raw", "line", "column", "words"),
    [
        (b"", 1, 1, ["empty"]),
        (b" \n", 2, 1, ["empty"]),
        (b'{"a": 1,\n "b": }', 2, 7, ["not JSON", "Expecting value"]),
        (b'{"a": 1\n "b": 2}', 2, 2, ["not JSON", "',' delimiter"]),
        (b"{'a': 1}", 1, 2, ["not JSON"]),
        (b'{"a": 1} {}', 1, 10, ["Extra data"]),
        (b'{"a": "\n"}', 1, 8, ["control character"]),
        (b"[1]", 1, 1, ["no object"]),
        (b"null", 1, 1, ["no object"]),
        (b"\xef\xbb\xbf{}", 1, 1, ["byte order mark"]),
        ('{"a": 1}'.encode("utf-16"), 1, 1, ["UTF-16"]),
        (b'{"a":\n "\xc3\xa9\xff"}', 2, 4, ["not UTF-8", "0xff", "byte 10"]),
        (b"<!DOCTYPE html><html>", 1, 1, ["web page"]),
        (b"version https://git-lfs.github.com/spec/v1\n", 1, 1, ["git lfs pull"]),
        (bytes(100), 1, 1, ["zeros"]),
        (b'{"a": ' + b"[" * 100_000, None, None, ["too deeply"]),
    ],
)
def test_what_is_wrong_and_where(
    raw: bytes, line: int | None, column: int | None, words: list[str]
) -> None:
    with pytest.raises(DocumentError) as caught:
        parse_document(raw, "config.json")
    error = caught.value
    assert (error.line, error.column) == (line, column)
    assert error.where == "config.json" + (f":{line}:{column}" if line else "")
    for word in words:
        assert word in error.message


def test_a_number_of_more_digits_than_python_converts() -> None:
    limit = getattr(sys, "get_int_max_str_digits", lambda: 0)()
    if not limit:
        pytest.skip("this Python has no limit")
    with pytest.raises(DocumentError, match="number"):
        parse_document(b'{"a": %s}' % (b"1" * (limit + 1)))


def test_a_file_gives_its_name(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_bytes(b'{"a": 1}')
    assert load_document(path).data == {"a": 1}
    path.write_bytes(b"{\n")
    with pytest.raises(DocumentError) as caught:
        load_document(path)
    assert caught.value.where == f"{path}:2:1"


def test_a_pipe_is_refused_without_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "config.json")
    with pytest.raises(DocumentError, match="not a regular file"):
        load_document(tmp_path / "config.json")


def test_a_huge_file_is_refused_unread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "config.json"
    path.touch()
    os.truncate(path, MOST_BYTES + 1)
    monkeypatch.setattr(Path, "read_bytes", lambda self: pytest.fail("it was read"))
    with pytest.raises(DocumentError, match="67,108,865 bytes"):
        load_document(path)


# -- against Python's json -------------------------------------------------------------------------

keys = st.sampled_from(["a", "b", "a/b", "~", "", "0", "1", '"', "\\", "\u00e9", "\n"]) | st.text(
    max_size=3
)
scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
white = st.text(" \t\r\n", max_size=3)


class Pairs(list[tuple[str, Any]]):
    """An object as pairs, equal keys included."""


values: st.SearchStrategy[Any] = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=4) | st.lists(st.tuples(keys, inner), max_size=4).map(Pairs)
    ),
    max_leaves=12,
)


class Writer:
    """Writes JSON with chosen white space and knows where it put everything."""

    def __init__(self, draw: Callable[[st.SearchStrategy[Any]], Any]) -> None:
        self.draw, self.text = draw, ""
        self.places: dict[str, int] = {}
        self.duplicates: set[str] = set()

    def space(self) -> None:
        self.text += self.draw(white)

    def forget(self, pointer: str) -> None:
        """What stood under an earlier key of the same name counts no more."""
        self.places = {p: o for p, o in self.places.items() if not p.startswith(f"{pointer}/")}

    def write(self, value: Any, at: str = "") -> None:
        if not isinstance(value, list):
            self.text += json.dumps(value, ensure_ascii=self.draw(st.booleans()))
            return
        is_object = isinstance(value, Pairs)
        self.text += "{" if is_object else "["
        seen: set[str] = set()
        for index, member in enumerate(value):
            self.text += "," if index else ""
            self.space()
            name = escape(member[0]) if is_object else str(index)
            pointer = f"{at}/{name}"
            if name in seen:
                self.duplicates.add(pointer)
                self.forget(pointer)
            seen.add(name)
            self.places[pointer] = len(self.text)
            if is_object:
                self.text += json.dumps(member[0])
                self.space()
                self.text += ":"
                self.space()
            self.write(member[1] if is_object else member, pointer)
            self.space()
        self.text += "}" if is_object else "]"


@settings(PROFILE)
@given(st.lists(st.tuples(keys, values), max_size=5).map(Pairs), st.data())
def test_any_text(pairs: Pairs, data: st.DataObject) -> None:
    writer = Writer(data.draw)
    writer.space()
    start = len(writer.text)
    writer.write(pairs)
    writer.space()
    text = writer.text.encode("utf-8", "replace").decode()
    document = parse_document(text.encode())
    assert repr(document.data) == repr(json.loads(text))  # repr: NaN is not equal to itself
    assert set(document.duplicates) == writer.duplicates
    lines = text.split("\n")
    offsets = {"": start, **writer.places}
    assert set(document.lines) == set(writer.places)
    for pointer, offset in offsets.items():
        place = document.place(pointer)
        assert place is not None
        line, column = place
        assert sum(len(earlier) + 1 for earlier in lines[: line - 1]) + column - 1 == offset
        assert document.has(pointer)


@settings(PROFILE)
@given(st.text('{}[]",: \n\\0123456789-+.eEaNtrufl', max_size=40))
def test_text_is_refused_exactly_when_python_refuses_it(text: str) -> None:
    for candidate in (text, "{" + text, '{"a":' + text + "}"):
        try:
            expected = json.loads(candidate)
        except ValueError:
            expected = None
        if isinstance(expected, dict):
            document = parse_document(candidate.encode())
            assert repr(document.data) == repr(expected)
            assert all(document.has(pointer) for pointer in document.lines)
        else:
            with pytest.raises(DocumentError):
                parse_document(candidate.encode())


def test_a_configuration_takes_no_time() -> None:
    """Five kilobytes, places included: below 2 ms (about 0.3 on an idle machine), best of ten."""
    raw = json.dumps({f"field_{i}": [i, "value"] for i in range(130)}, indent=2).encode()
    assert len(raw) > 5000
    best = 1.0
    for _ in range(10):
        start = time.perf_counter()
        assert parse_document(raw).line("/field_129/1") is not None
        best = min(best, time.perf_counter() - start)
    assert best < 0.002
