"""A folder on this disk that looks like one elsewhere and fills as it is read.

Every file of the original has its name here and is empty. When a reader says which bytes it is
about to read, the file gets its true size and those bytes; the rest stays a hole. So the readers of
``load`` are the same for a local and a remote draft, and 4.7 GB cost what is read of them.

The names are all that is there without asking: a reader that does not ask finds an empty file and
says so, never zeros for numbers.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from threading import Lock
from typing import Protocol
from zipfile import BadZipFile, ZipFile

from eagle3_lint.errors import InputError
from eagle3_lint.load import Part
from eagle3_lint.load.document import MOST_BYTES
from eagle3_lint.load.header import LONGEST_HEADER
from eagle3_lint.load.remote.spans import Span, joined, missing

#: What is fetched of a file at first: the header of a draft has some 2 KB, that of a shard of a
#: large model some 200 KB.
_FIRST = 32 * 2**10
#: The library allows 100 MB; the longest header known has some 10.
_LONGEST = 25 * 10**6
#: A file of torch, or a tensor in one, is fetched whole up to this size: as a token list or d2t is.
_MOST_WHOLE = 4 * 2**20
#: What stands before a member of a zip; torch fills up to the next 64 bytes.
_MEMBER = 1024
_ZIP = b"PK\x03\x04"
#: Two stretches this close cost less as one than as two requests.
_GAP = 16 * 2**10
_AT_ONCE = 8


class Source(Protocol):
    """A folder elsewhere.

    Attributes:
        address: as reports call it.
        files: the names in it → bytes; None where the listing does not say.
        inner: paths of files further down.
    """

    address: str
    files: Mapping[str, int | None]
    inner: Sequence[str]

    def read(self, file: str, begin: int, end: int) -> tuple[bytes, int | None]:
        """Bytes of a file, as far as it has them, and its size where that was said. Thread-safe.

        Raises:
            InputError: they cannot be had.
        """


class Mirror:
    """The local side of a source; thread-safe.

    Attributes:
        address: what it mirrors, as reports call it. folder: where it is on this disk.
    """

    def __init__(self, source: Source, folder: Path) -> None:
        """Make the folder, with an empty file for every name.

        Raises:
            OSError: the disk does not take it.
        """
        self.address, self.folder = source.address, folder
        self._source = source
        self._files = {name: _File(folder / name, size) for name, size in source.files.items()}
        folder.mkdir(parents=True)
        for name in (*source.files, *source.inner):
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()

    def bring(self, file: str, part: Part) -> None:
        """Fetch a part of a file, unless it is there.

        Raises:
            InputError: it cannot be had.
        """
        known = self._files.get(file)
        if known is None:
            return  # whoever opens it is told so by the system
        with known.lock:
            if part == "whole":
                self._whole(known)
            elif part == "header":
                self._header(known)
            else:
                self._fetch(known, joined((begin, end) for begin, end in part))

    def _whole(self, file: _File) -> None:
        if file.size is None:
            self._fetch(file, [(0, _FIRST)])  # which says how large it is
        size = file.size or 0
        if file.path.suffix == ".json" and size > MOST_BYTES:
            file.resize(size)  # the reader refuses it for its size
            return
        if file.path.suffix == ".json" or size <= _MOST_WHOLE:
            self._fetch(file, [(0, size)])
            return
        self._fetch(file, [(0, _FIRST), (size - 2 * _FIRST, size)])
        with file.path.open("rb") as opened:
            start = opened.read(len(_ZIP))
        if start != _ZIP:
            raise InputError(
                f"{self.address}/{file.path.name}: a file of this kind is read whole, and has"
                f" {size:,} bytes: download the folder and give that"
            )
        self._archive(file)

    def _archive(self, file: _File) -> None:
        """What torch reads of a file whose tensors it maps: all but the values of large ones."""
        try:
            with ZipFile(_Filling(file, self._fetch)) as archive:
                members = archive.infolist()
        except BadZipFile:
            return  # torch says so
        small = [m.compress_size if m.compress_size <= _MOST_WHOLE else 0 for m in members]
        begins = [m.header_offset for m in members]
        self._fetch(file, [(b, b + _MEMBER + size) for b, size in zip(begins, small, strict=True)])

    def _header(self, file: _File) -> None:
        self._fetch(file, [(0, _FIRST)])
        with file.path.open("rb") as opened:
            start = opened.read(8)
        if len(start) < 8:
            return
        (length,) = struct.unpack("<Q", start)
        if length > LONGEST_HEADER or file.size is None or 8 + length > file.size:
            return  # the reader refuses it
        if length > _LONGEST:
            raise InputError(
                f"{self.address}/{file.path.name}: its header has {length:,} bytes, too many to"
                " read from afar: download the folder and give that"
            )
        self._fetch(file, [(0, 8 + length)])

    def _fetch(self, file: _File, wanted: Sequence[Span]) -> None:
        if file.size is not None:
            file.resize(file.size)
            wanted = [(begin, min(end, file.size)) for begin, end in wanted]
        spans = missing(joined(wanted, _GAP), file.have)
        for span, (body, size) in zip(spans, self._read(file.path.name, spans), strict=True):
            if size is not None and size != file.size:
                if file.have:
                    raise InputError(
                        f"{self.address}/{file.path.name}: it was changed while it was read; try"
                        " again"
                    )
                file.resize(size)
            due = min(span[1], file.size if file.size is not None else span[1])
            if len(body) < due - span[0] and file.size is not None:
                raise InputError(
                    f"{self.address}/{file.path.name}: bytes {span[0]:,} to {due:,} were asked for,"
                    f" and {len(body):,} came; try again"
                )
            file.write(span[0], body)
        if file.size is None and spans:
            file.resize(max(end for _, end in file.have) if file.have else 0)

    def _read(self, name: str, spans: Sequence[Span]) -> list[tuple[bytes, int | None]]:
        if len(spans) <= 1:
            return [self._source.read(name, *span) for span in spans]
        with ThreadPoolExecutor(min(len(spans), _AT_ONCE)) as pool:
            tasks: list[Future[tuple[bytes, int | None]]] = [
                pool.submit(self._source.read, name, *span) for span in spans
            ]
            try:
                return [task.result() for task in tasks]
            finally:
                for task in tasks:  # after a failure the others are of no use
                    task.cancel()


class _Filling(io.RawIOBase):
    """A mirrored file that is fetched as it is read, for a reader that does not say it before."""

    def __init__(self, file: _File, fetch: Callable[[_File, Sequence[Span]], None]) -> None:
        self._file, self._fetch = file, fetch
        self._opened = file.path.open("rb", buffering=0)

    def seekable(self) -> bool:
        return True

    def readable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = 0) -> int:
        return self._opened.seek(offset, whence)

    def read(self, size: int = -1) -> bytes:
        begin = self._opened.tell()
        end = self._file.size or 0
        self._fetch(self._file, [(begin, end if size < 0 else min(begin + size, end))])
        return self._opened.read(size)

    def close(self) -> None:
        self._opened.close()
        super().close()


class _File:
    """One file of a mirror; everything under its lock.

    Attributes:
        size: bytes of the original; None until an answer says so.
        have: stretches that are here.
    """

    def __init__(self, path: Path, size: int | None) -> None:
        self.path, self.size = path, size
        self.have: list[Span] = []
        self.lock = Lock()

    def resize(self, size: int) -> None:
        """Give the file the size of the original; what is added is a hole."""
        self.size = size
        try:
            if self.path.stat().st_size != size:
                with self.path.open("r+b") as file:
                    file.truncate(size)
        except OSError as error:
            raise _no_room(self.path, error) from None

    def write(self, begin: int, body: bytes) -> None:
        try:
            with self.path.open("r+b") as file:
                file.seek(begin)
                file.write(body)
        except OSError as error:
            raise _no_room(self.path, error) from None
        self.have = joined([*self.have, (begin, begin + len(body))])


def _no_room(path: Path, error: OSError) -> InputError:
    return InputError(
        f"{path}: what was read from afar cannot be kept here: {error.strerror}; TMPDIR names"
        " another folder"
    )
