"""Changes to a JSON text that leave everything else as its author wrote it.

Order of keys, indentation, spacing and line ends stay; only the member that is asked for changes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from json import JSONDecoder

from eagle3_lint.load.document import Document, escape, parse_document, steps

_SPACE = re.compile(r"\s*")
_STRING = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_DECODER = JSONDecoder()


def with_value(text: str, pointer: str, value: object) -> str:
    """The text with ``value`` at ``pointer``; objects on the way are made where they are missing.

    Raises:
        ValueError: the pointer leads through something that is no object, or is the whole text.
    """
    document = parse_document(text.encode("utf-8"))
    if not pointer:
        raise ValueError("the whole of a configuration cannot be set")
    if document.has(pointer):
        begin, end = _value_span(text, _offset(document, pointer))
        return text[:begin] + _dumped(value, text, begin) + text[end:]
    parent, _, last = pointer.rpartition("/")
    key = steps(f"/{last}")[0]
    if not document.has(parent):
        return with_value(text, parent, {key: value})
    if not isinstance(document.get(parent), Mapping):
        raise ValueError(f"{parent} is no object, so {pointer} cannot be set")
    return _inserted(text, document, parent, key, value)


def without(text: str, pointer: str) -> str:
    """The text without the member at ``pointer``, however often it stands there.

    Raises:
        ValueError: the pointer leads to an element of a list.
    """
    document = parse_document(text.encode("utf-8"))
    while document.has(pointer):
        if not isinstance(document.get(pointer.rpartition("/")[0]), Mapping):
            raise ValueError(f"{pointer} is no member of an object")
        text = _removed(text, _offset(document, pointer))
        document = parse_document(text.encode("utf-8"))
    return text


def with_keys(text: str, pointer: str, keys: Mapping[str, str]) -> str:
    """The text with other keys for members of the object at ``pointer``, all at once.

    Places and values stay, so that two members can change names. Keys that are not there are
    passed over.

    Args:
        keys: old key → new key.
    """
    document = parse_document(text.encode("utf-8"))
    found = {document.offset(f"{pointer}/{escape(old)}"): new for old, new in keys.items()}
    # From the end, so that the offsets before stay right.
    for offset in sorted((o for o in found if o is not None), reverse=True):
        match = _STRING.match(text, offset)
        assert match is not None
        text = text[:offset] + json.dumps(found[offset], ensure_ascii=False) + text[match.end() :]
    return text


def _offset(document: Document, pointer: str) -> int:
    offset = document.offset(pointer)
    assert offset is not None
    return offset


def _skip(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    assert match is not None
    return match.end()


def _value_span(text: str, offset: int) -> tuple[int, int]:
    """Begin and end of the value of the member whose key begins at ``offset``, or of an element."""
    begin = offset
    key = _STRING.match(text, offset)
    if key is not None:
        colon = _skip(text, key.end())
        if text[colon : colon + 1] == ":":
            begin = _skip(text, colon + 1)
    _, end = _DECODER.raw_decode(text, begin)
    return begin, end


def _inserted(text: str, document: Document, parent: str, key: str, value: object) -> str:
    """A new last member of the object at ``parent``."""
    siblings = document.get(parent)
    name = json.dumps(key, ensure_ascii=False)
    if not siblings:
        begin, end = (
            _value_span(text, _offset(document, parent))
            if parent
            else (text.index("{"), text.rindex("}") + 1)
        )
        return text[:begin] + _dumped({key: value}, text, begin) + text[end:]
    last = max(_offset(document, f"{parent}/{escape(k)}") for k in siblings)
    _, end = _value_span(text, last)
    line = text.rfind("\n", 0, last)
    before = text[line + 1 : last]
    if line >= 0 and not before.strip():
        separator, at = "," + _line_end(text) + before, end
    else:
        separator, at = ", ", end
    member = f"{name}: "
    new = text[:at] + separator + member
    return new + _dumped(value, new, len(new)) + text[at:]


def _removed(text: str, offset: int) -> str:
    _, end = _value_span(text, offset)
    after = _skip(text, end)
    if text[after : after + 1] == ",":
        # The next member moves to where this one was.
        return text[:offset] + text[_skip(text, after + 1) :]
    before = text[:offset].rstrip()
    return before.removesuffix(",") + text[end:]


def _line_end(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _unit(text: str) -> str | None:
    """One step of indentation, as the first indented line has it; None for a text of one line."""
    match = re.search(r"\n([ \t]+)\S", text)
    return None if match is None else match[1]


def _dumped(value: object, text: str, at: int) -> str:
    """A value in the manner of the text around it."""
    unit = _unit(text)
    if unit is None:
        return json.dumps(value, ensure_ascii=False)
    line = text.rfind("\n", 0, at) + 1
    indent = re.match(r"[ \t]*", text[line:])
    assert indent is not None
    dumped = json.dumps(value, ensure_ascii=False, indent=unit)
    return dumped.replace("\n", _line_end(text) + indent[0])
