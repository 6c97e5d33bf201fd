"""JSON with places: the same data as Python's reader, and every line where a text editor has it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eagle3_lint.load.document import DocumentError, escape, parse_document

TEXT = b"""{
  "architectures": ["A"],
  "eagle_config": {
    "ids": [
      2,
      30
    ],
    "a/b~c": null
  },
  "hidden_size": 1, "hidden_size": 2
}
"""


@pytest.mark.parametrize(
    ("pointer", "line"),
    [
        ("/architectures", 2),
        ("/architectures/0", 2),
        ("/eagle_config", 3),
        ("/eagle_config/ids", 4),
        ("/eagle_config/ids/0", 5),
        ("/eagle_config/ids/1", 6),
        ("/eagle_config/a~1b~0c", 8),
        ("/hidden_size", 10),
        ("/nothing", None),
    ],
)
def test_lines(pointer: str, line: int | None) -> None:
    document = parse_document(TEXT)
    assert document.line(pointer) == line
    assert document.has(pointer) is (line is not None)


def test_a_key_twice_is_kept_in_mind_and_the_last_one_counts() -> None:
    document = parse_document(TEXT)
    assert document.duplicates == ("/hidden_size",)
    assert document.data["hidden_size"] == 2


@pytest.mark.parametrize(
    ("raw", "line", "column"),
    [(b'{"a": }', 1, 7), (b'{\n"a": 1\n', 3, 1), (b"[]", 1, 1), (b"\xef\xbb\xbf{}", 1, 1)],
)
def test_errors_have_places(raw: bytes, line: int, column: int) -> None:
    with pytest.raises(DocumentError) as caught:
        parse_document(raw)
    assert (caught.value.line, caught.value.column) == (line, column)


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


def pointers(value: Any, at: str = "") -> set[str]:
    """Every pointer of a value, worked out from the parsed value alone."""
    if isinstance(value, dict):
        inner = {f"{at}/{escape(k)}": v for k, v in value.items()}
    elif isinstance(value, list):
        inner = {f"{at}/{i}": v for i, v in enumerate(value)}
    else:
        return set()
    return set(inner).union(*(pointers(v, p) for p, v in inner.items()))


@settings(max_examples=300, deadline=None)
@given(st.dictionaries(st.text(), values, max_size=6), st.sampled_from([None, 0, 2]), st.booleans())
def test_any_object(data: dict[str, Any], indent: int | None, ascii_only: bool) -> None:
    text = json.dumps(data, indent=indent, ensure_ascii=ascii_only)
    if any("\ud800" <= c <= "\udfff" for c in text):
        text = json.dumps(data, indent=indent)
    document = parse_document(text.encode())
    assert document.data == json.loads(text)
    assert set(document.lines) == pointers(document.data)
    assert document.duplicates == ()
    assert all(1 <= line <= text.count("\n") + 1 for line in document.lines.values())
