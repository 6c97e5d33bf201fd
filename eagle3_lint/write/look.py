"""What a file is now: enough to tell whether it is still the one that was read."""

from __future__ import annotations

import hashlib
import os
import struct
from pathlib import Path

from eagle3_lint.load.header import LONGEST_HEADER
from eagle3_lint.write.change import Seen
from eagle3_lint.write.disk import opened, pread
from eagle3_lint.write.errors import Refused

_WEIGHTS = ".safetensors"
_CHUNK = 1 << 20


def digest(raw: bytes) -> str:
    return hashlib.sha256(raw).hexdigest()


def seen(folder: Path, file: str) -> Seen:
    """A file as it is now, links followed; take it before the file is read and nothing slips by.

    Raises:
        Refused: a safetensors file without a header.
        OSError: it cannot be read.
    """
    with opened(folder / file) as fd:
        return seen_open(fd, file)


def seen_open(fd: int, file: str) -> Seen:
    """As :func:`seen`, of a file that is open."""
    status = os.fstat(fd)
    sha256 = digest(read_head(fd, file)) if file.endswith(_WEIGHTS) else _whole(fd)
    return Seen(file, status.st_size, status.st_mtime_ns, status.st_ino, sha256)


def read_head(fd: int, file: str) -> bytes:
    """The first 8 + N bytes of a safetensors file.

    Raises:
        Refused: there are none, or N is beyond the format's limit.
        OSError: it cannot be read.
    """
    size = os.fstat(fd).st_size
    start = pread(fd, 8, 0)
    if len(start) == 8:
        (length,) = struct.unpack("<Q", start)
        if length > LONGEST_HEADER:
            raise Refused(
                f"{file}: its header would have {length:,} bytes, and safetensors allows"
                f" {LONGEST_HEADER:,}; export the draft anew"
            )
        if 8 + length <= size:
            return start + pread(fd, length, 8)
    raise Refused(f"{file}: no safetensors header in its {size:,} bytes; export the draft anew")


def _whole(fd: int) -> str:
    found = hashlib.sha256()
    offset = 0
    while piece := pread(fd, _CHUNK, offset):
        found.update(piece)
        offset += len(piece)
    return found.hexdigest()
