"""config.json with the line of everything in it, so that a finding can point at it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from eagle3_lint.frozen import frozen

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"]+', re.DOTALL)
_BOM = b"\xef\xbb\xbf"


class DocumentError(ValueError):
    """A JSON file that cannot be read; ``line`` and ``column`` count from 1, None when unknown."""

    def __init__(self, message: str, line: int | None = None, column: int | None = None) -> None:
        super().__init__(message)
        self.message, self.line, self.column = message, line, column


@frozen
class Document:
    """A JSON object with its places.

    Attributes:
        data: the object, as every JSON reader has it (of equal keys the last).
        lines: RFC 6901 pointer → line of the key or element, from 1.
        duplicates: pointers of keys that stand twice.
    """

    data: Mapping[str, Any]
    lines: Mapping[str, int]
    duplicates: tuple[str, ...] = ()

    def has(self, pointer: str) -> bool:
        """Whether the document has something at ``pointer``."""
        return pointer in self.lines

    def line(self, pointer: str) -> int | None:
        """The line of ``pointer``, from 1; None when there is nothing."""
        return self.lines.get(pointer)


def escape(key: str) -> str:
    """A key as a step of a JSON pointer."""
    return key.replace("~", "~0").replace("/", "~1")


def _places(text: str) -> tuple[dict[str, int], tuple[str, ...]]:
    """The line of every pointer, in one pass over the tokens of valid JSON."""
    lines: dict[str, int] = {}
    duplicates: list[str] = []
    stack: list[tuple[str, bool]] = []  # pointer of each open container; whether it is an object
    counts: list[int] = []
    line, position = 1, 0
    pointer, key_next = "", False
    for match in _TOKEN.finditer(text):
        line += text.count("\n", position, match.start())
        position = match.start()
        token = match[0]
        if token in ("{", "["):
            if stack and not stack[-1][1]:
                pointer = f"{stack[-1][0]}/{counts[-1]}"
                lines[pointer] = line
            stack.append((pointer, token == "{"))
            counts.append(0)
            key_next = token == "{"
        elif token in ("}", "]"):
            stack.pop()
            counts.pop()
            key_next = False
        elif token == ",":
            counts[-1] += 1
            key_next = stack[-1][1]
        elif token == ":":
            key_next = False
        elif key_next:
            pointer = f"{stack[-1][0]}/{escape(json.loads(token))}"
            if pointer in lines:
                duplicates.append(pointer)
            lines[pointer] = line
        elif stack and not stack[-1][1]:
            lines[f"{stack[-1][0]}/{counts[-1]}"] = line
    return lines, tuple(dict.fromkeys(duplicates))


def parse_document(raw: bytes) -> Document:
    """Parse a JSON object.

    Raises:
        DocumentError: not UTF-8, not JSON, or no object.
    """
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise DocumentError(f"not UTF-8 (byte {error.start})", line) from None
    if raw.startswith(_BOM):
        raise DocumentError("it begins with a byte order mark, which JSON does not allow", 1, 1)
    try:
        data = json.loads(text)
    except json.JSONDecodeError as error:
        raise DocumentError(f"not JSON: {error.msg}", error.lineno, error.colno) from None
    except RecursionError:
        raise DocumentError("not JSON that anyone wrote: it nests too deeply") from None
    except ValueError as error:  # an integer of thousands of digits
        raise DocumentError(f"not JSON that anyone wrote: {error}") from None
    if not isinstance(data, dict):
        raise DocumentError("JSON, but no object", 1, 1)
    lines, duplicates = _places(text)
    return Document(data, lines, duplicates)


def load_document(path: Path) -> Document:
    """Read and parse a JSON object.

    Raises:
        DocumentError: as :func:`parse_document`.
        OSError: it cannot be read.
    """
    return parse_document(path.read_bytes())
