"""A JSON object with the place of everything in it, so that a finding can point at a line."""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from eagle3_lint.frozen import frozen
from eagle3_lint.load import bring

#: A config.json has a few kilobytes, the index of the largest models some megabytes.
MOST_BYTES = 64 * 2**20

_TOKEN = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[{}\[\],:]|[^\s{}\[\],:"]+', re.DOTALL)
_NOT_FINITE = ("NaN", "Infinity", "-Infinity")
_INDEX = re.compile(r"0|[1-9][0-9]*")
_NOTHING = object()
_BYTE_ORDER_MARKS = (
    (b"\xef\xbb\xbf", "it begins with a byte order mark, which JSON does not allow"),
    (b"\xff\xfe", "it is UTF-16, and JSON has to be UTF-8"),
    (b"\xfe\xff", "it is UTF-16, and JSON has to be UTF-8"),
)


class DocumentError(ValueError):
    """A JSON file that cannot be read.

    Attributes:
        message: what is wrong, as a clause.
        line, column: where, from 1, in characters; None when it concerns the whole file.
        file: the path as it was given; empty when the text came from elsewhere.
    """

    def __init__(
        self, message: str, line: int | None = None, column: int | None = None, file: str = ""
    ) -> None:
        super().__init__(message)
        self.message, self.line, self.column, self.file = message, line, column, file

    @property
    def where(self) -> str:
        """``file:line:column`` as editors and terminals link it."""
        return ":".join(str(part) for part in (self.file, self.line, self.column) if part)


@frozen
class Document:
    """A JSON object as every JSON reader has it, with its places.

    A pointer is RFC 6901's: ``/eagle_config/eagle_aux_hidden_state_layer_ids/0``; ``""`` is the
    whole. Of equal keys the last one counts, as for Python's json.

    Attributes:
        data: the object.
        text: what it was parsed from.
    """

    data: Mapping[str, Any]
    text: str

    @cached_property
    def _places(self) -> _Places:
        return _Places(self.text)

    @property
    def duplicates(self) -> tuple[str, ...]:
        """Pointers of the keys that an object has more than once."""
        return tuple(dict.fromkeys(self._places.duplicates))

    @property
    def not_finite(self) -> tuple[str, ...]:
        """Pointers of NaN, Infinity and -Infinity: Python reads them, JSON does not have them."""
        return tuple(self._places.not_finite)

    @property
    def lines(self) -> dict[str, int]:
        """Pointer → line of every key and every array element."""
        return {p: line_and_column(self.text, place.offset)[0] for p, place in self._places.all()}

    def get(self, pointer: str, default: Any = None) -> Any:
        """The value at ``pointer``, ``default`` when there is none.

        Raises:
            ValueError: it is no JSON pointer.
        """
        value: Any = self.data
        for step in steps(pointer):
            if isinstance(value, Mapping):
                value = value.get(step, _NOTHING)
            elif isinstance(value, list) and _INDEX.fullmatch(step) and int(step) < len(value):
                value = value[int(step)]
            else:
                return default
            if value is _NOTHING:
                return default
        return value

    def has(self, pointer: str) -> bool:
        """Whether there is a value at ``pointer``, null included."""
        return self.get(pointer, _NOTHING) is not _NOTHING

    def line(self, pointer: str) -> int | None:
        """The line of ``pointer``, from 1; None when there is nothing."""
        place = self.place(pointer)
        return None if place is None else place[0]

    def place(self, pointer: str) -> tuple[int, int] | None:
        """Line and column of the key or the array element, from 1; None when there is nothing."""
        offset = self.offset(pointer)
        return None if offset is None else line_and_column(self.text, offset)

    def offset(self, pointer: str) -> int | None:
        """Where in the text the key or the array element begins; None when there is nothing."""
        found: _Place | None = self._places.root
        for step in steps(pointer):
            if found is None:
                return None
            found = found.inner.get(step)
        return None if found is None else found.offset


def escape(key: str) -> str:
    """A key as a step of a JSON pointer."""
    return key.replace("~", "~0").replace("/", "~1")


def steps(pointer: str) -> list[str]:
    """The keys and indices along a JSON pointer.

    Raises:
        ValueError: it does not begin with a slash.
    """
    if pointer and not pointer.startswith("/"):
        raise ValueError(f"{pointer!r} is no JSON pointer")
    return [step.replace("~1", "/").replace("~0", "~") for step in pointer.split("/")[1:]]


def line_and_column(text: str, offset: int) -> tuple[int, int]:
    """A position in a text as an editor counts it, from 1."""
    return text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset)


class _Place:
    """Where a key or an element begins in the text, and the places inside its value."""

    __slots__ = ("inner", "offset")

    def __init__(self, offset: int) -> None:
        self.offset = offset
        self.inner: dict[str, _Place] = {}


class _Places:
    """The place of everything, found in one pass over the tokens of JSON known to be valid."""

    def __init__(self, text: str) -> None:
        self.root = _Place(text.find("{"))
        self.duplicates: list[str] = []
        self.not_finite: list[str] = []
        self._here = [self.root]  # from the root to the member that is being read
        self._path: list[str] = []  # its keys and indices
        self._arrays: list[bool] = []  # for each open container, whether it is an array
        key_next = False
        for match in _TOKEN.finditer(text):
            token = match[0]
            if token in "}]":
                # The last member is still open, unless the container is empty.
                if len(self._path) == len(self._arrays):
                    self._leave()
                self._arrays.pop()
            elif token == ",":
                self._leave()
                key_next = not self._arrays[-1]
            elif token == ":":
                key_next = False
            elif key_next:
                self._enter(json.loads(token) if "\\" in token else token[1:-1], match.start())
            else:
                if self._arrays and self._arrays[-1]:
                    self._enter(str(len(self._here[-1].inner)), match.start())
                if token in "{[":
                    self._arrays.append(token == "[")
                    key_next = token == "{"
                elif token in _NOT_FINITE:
                    self.not_finite.append(_pointer(self._path))

    def all(self) -> Iterator[tuple[str, _Place]]:
        """Every pointer below the root, in the order of the text."""
        open_places = [("", self.root)]
        while open_places:
            pointer, place = open_places.pop()
            if pointer:
                yield pointer, place
            inner = [(f"{pointer}/{escape(step)}", p) for step, p in place.inner.items()]
            open_places.extend(reversed(inner))

    def _enter(self, step: str, offset: int) -> None:
        self._path.append(step)
        siblings = self._here[-1].inner
        if step in siblings:
            self.duplicates.append(_pointer(self._path))
        siblings[step] = _Place(offset)
        self._here.append(siblings[step])

    def _leave(self) -> None:
        self._here.pop()
        self._path.pop()


def _pointer(path: list[str]) -> str:
    return "".join(f"/{escape(step)}" for step in path)


def parse_document(raw: bytes, file: str = "") -> Document:
    """Parse a JSON object.

    Raises:
        DocumentError: not UTF-8, not JSON, or not an object.
    """
    try:
        return _parse(raw)
    except DocumentError as error:
        error.file = file
        raise


def _parse(raw: bytes) -> Document:
    for mark, message in _BYTE_ORDER_MARKS:
        if raw.startswith(mark):
            raise DocumentError(message, 1, 1)
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        before = raw[: error.start].decode("utf-8")
        message = f"it is not UTF-8 (byte {error.start:,} is 0x{raw[error.start]:02x})"
        raise DocumentError(message, *line_and_column(before, len(before))) from None
    try:
        data = json.loads(text)
    except json.JSONDecodeError as error:
        raise DocumentError(_what_else(text, error.msg), error.lineno, error.colno) from None
    except RecursionError:
        raise DocumentError("it nests too deeply to be read") from None
    except ValueError as error:  # an integer of more digits than Python converts
        raise DocumentError(f"it holds a number that cannot be read: {error}") from None
    if not isinstance(data, dict):
        raise DocumentError("it is JSON, but no object", 1, 1)
    return Document(data, text)


def _what_else(text: str, complaint: str) -> str:
    """Why a text is not JSON, in the words that help most."""
    start = text[:200].lstrip()
    if not start:
        return "it is empty, not JSON"
    if start.startswith("version https://git-lfs"):
        return "it is a Git LFS pointer, not the file itself: run `git lfs pull`"
    if start.startswith("<"):
        return "it is a web page, such as a login or error page, not JSON"
    if not text.strip("\0"):
        return "it is not JSON but all zeros: a download that was never filled in"
    return f"it is not JSON: {complaint}"


def load_document(path: str | os.PathLike[str]) -> Document:
    """Read and parse a JSON object.

    Raises:
        DocumentError: as :func:`parse_document`; also no regular file, or far too large.
        OSError: it cannot be read.
    """
    file, shown = Path(path), os.fspath(path)
    bring(file, "whole")
    status = file.stat()
    if not stat.S_ISREG(status.st_mode):
        raise DocumentError("it is not a regular file", file=shown)  # a FIFO would block for ever
    if status.st_size > MOST_BYTES:
        message = f"it has {status.st_size:,} bytes, far too many for a configuration or an index"
        raise DocumentError(message, file=shown)
    return parse_document(file.read_bytes(), shown)
