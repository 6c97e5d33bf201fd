"""Every system call that changes a disk, in one object: tests let each of them fail in turn."""

from __future__ import annotations

import errno
import os
import struct
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

_INSERT_RANGE, _COLLAPSE_RANGE = 0x20, 0x08  # linux/falloc.h
_FICLONERANGE = 0x4020940D  # linux/fs.h
_CHUNK = 8 << 20
#: Windows translates line ends otherwise.
_BINARY: int = getattr(os, "O_BINARY", 0)

#: What a file system answers when it does not know a call, or not for this file or alignment.
UNSUPPORTED = frozenset(
    getattr(errno, name)
    for name in (
        "EOPNOTSUPP", "ENOTSUP", "EINVAL", "ENOSYS", "EXDEV", "ENOTTY", "EPERM", "ETXTBSY",
    )
    if hasattr(errno, name)
)  # fmt: skip


class Disk:
    """The disk as it is. All methods raise OSError.

    Attributes:
        written: bytes of content written so far. Clones and inserted blocks count nothing: they
            change the file system's records, not data.
    """

    def __init__(self) -> None:
        self.written = 0

    # -- content -----------------------------------------------------------------------------------

    def open(self, path: Path, flags: int) -> int:
        """Open for writing; a symbolic link in the last place is an error where the system can."""
        return os.open(path, flags | _BINARY | getattr(os, "O_NOFOLLOW", 0), 0o666)

    def pwrite(self, fd: int, data: bytes, offset: int) -> None:
        """Write all of ``data`` at ``offset``."""
        rest = memoryview(data)
        while rest:
            count = _pwrite(fd, rest, offset)
            self.written += count
            offset += count
            rest = rest[count:]

    def copy_range(self, source: int, target: int, begin: int, at: int, count: int) -> int:
        """Copy up to ``count`` bytes from ``begin`` to ``at``; returns how many, 0 at the end."""
        copied = None
        if hasattr(os, "copy_file_range"):
            try:
                copied = os.copy_file_range(source, target, count, begin, at)
            except OSError as error:
                if error.errno not in UNSUPPORTED:
                    raise
        if copied is None:
            copied = _pwrite(target, pread(source, min(count, _CHUNK), begin), at)
        self.written += copied
        return copied

    def clone_range(self, source: int, target: int, begin: int, at: int, count: int) -> None:
        """Let ``target`` share blocks with ``source``; offsets are multiples of the block size."""
        if fcntl is None or not sys.platform.startswith("linux"):
            raise OSError(errno.ENOSYS, "no clones here")
        fcntl.ioctl(target, _FICLONERANGE, struct.pack("=qQQQ", source, begin, count, at))

    def insert_range(self, fd: int, count: int) -> None:
        """Move the whole file ``count`` bytes up without copying; zeros take the place."""
        _fallocate(fd, _INSERT_RANGE, count)

    def collapse_range(self, fd: int, count: int) -> None:
        """Cut the first ``count`` bytes off without copying the rest."""
        _fallocate(fd, _COLLAPSE_RANGE, count)

    def fsync(self, fd: int) -> None:
        os.fsync(fd)

    # -- names -------------------------------------------------------------------------------------

    def rename(self, source: Path, target: Path) -> None:
        os.replace(source, target)

    def link(self, source: Path, target: Path) -> None:
        os.link(source, target)

    def unlink(self, path: Path) -> None:
        os.unlink(path)

    def mkdir(self, path: Path) -> None:
        os.mkdir(path)

    def rmdir(self, path: Path) -> None:
        os.rmdir(path)

    def fsync_folder(self, path: Path) -> None:
        """Make names that were added to or taken from a folder last."""
        if not hasattr(os, "O_DIRECTORY"):
            return  # Windows cannot, and needs not
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)

    # -- what else a file has ----------------------------------------------------------------------

    def chmod(self, fd: int, mode: int) -> None:
        os.fchmod(fd, mode)

    def chown(self, fd: int, uid: int, gid: int) -> None:
        os.fchown(fd, uid, gid)

    def setxattr(self, fd: int, name: str, value: bytes) -> None:
        os.setxattr(fd, name, value)

    def removexattr(self, fd: int, name: str) -> None:
        os.removexattr(fd, name)

    def utime(self, path: Path, mtime_ns: int) -> None:
        """Set the time of the last change; the time of access stays."""
        os.utime(path, ns=(os.stat(path).st_atime_ns, mtime_ns))


@contextmanager
def opened(path: Path, flags: int = os.O_RDONLY) -> Iterator[int]:
    """A descriptor of a file that is only read, closed at the end of the block."""
    fd = os.open(path, flags | _BINARY)
    try:
        yield fd
    finally:
        os.close(fd)


def pread(fd: int, count: int, offset: int) -> bytes:
    """Up to ``count`` bytes at ``offset``; fewer only at the end of the file."""
    pieces: list[bytes] = []
    while count > 0:
        if hasattr(os, "pread"):
            piece = os.pread(fd, count, offset)
        else:
            os.lseek(fd, offset, os.SEEK_SET)
            piece = os.read(fd, count)
        if not piece:
            break
        pieces.append(piece)
        offset += len(piece)
        count -= len(piece)
    return b"".join(pieces)


def _pwrite(fd: int, data: bytes | memoryview, offset: int) -> int:
    if hasattr(os, "pwrite"):
        return os.pwrite(fd, data, offset)
    os.lseek(fd, offset, os.SEEK_SET)
    return os.write(fd, data)


def _fallocate(fd: int, mode: int, count: int) -> None:
    """``fallocate(fd, mode, 0, count)``, which Python's os module does not have."""
    if not sys.platform.startswith("linux"):
        raise OSError(errno.ENOSYS, "no fallocate here")
    import ctypes  # costs milliseconds, and few fixes need it

    libc: Any = ctypes.CDLL(None, use_errno=True)
    # musl has only the plain name, whose offsets are 64 bits wide; glibc's are not everywhere.
    call = getattr(libc, "fallocate64", None) or getattr(libc, "fallocate", None)
    if call is None:
        raise OSError(errno.ENOSYS, "no fallocate here")
    call.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64]
    while call(fd, mode, 0, count) != 0:
        number = ctypes.get_errno()
        if number != errno.EINTR:
            raise OSError(number, os.strerror(number))
