"""Whether anybody else has a file open or mapped, so that its data can be moved in place."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

#: File systems that move data by whole blocks and whose leases see every reader. Others answer the
#: call too (SMB), but their readers may sit on another machine, and an overlay hides mappings.
_LOCAL = ("ext4", "xfs", "f2fs")
_PAGE, _LARGEST_BLOCK = 4096, 65536
_MOUNTS = "/proc/self/mountinfo"


def can_shift(fd: int) -> bool:
    """Whether an open file is on a file system that can insert blocks into it."""
    return _file_system(os.fstat(fd).st_dev) in _LOCAL


def block_size(fd: int) -> int:
    """Bytes by which data can move on the file's file system, a page at least."""
    size = os.fstatvfs(fd).f_bsize if hasattr(os, "fstatvfs") else _PAGE
    # Network file systems call their transfer size so, which would pad a header with megabytes.
    return size if _PAGE <= size <= _LARGEST_BLOCK else _PAGE


@contextmanager
def sole_user(fd: int) -> Iterator[bool]:
    """Whether nobody else has the file open or mapped, as far as the system can say.

    Inside, the answer stays true: a write lease makes whoever opens the file wait for us. ``fd``
    must be the process's only descriptor of the file.
    """
    if not _lease(fd):
        yield False
        return
    try:
        yield True
    finally:
        with suppress(OSError):
            fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_UNLCK)


def _lease(fd: int) -> bool:
    # The kernel tells the holder of a lease by SIGIO that somebody waits, which would kill us;
    # SIGURG says the same and is ignored unless asked for.
    if fcntl is None or not hasattr(fcntl, "F_SETLEASE") or not hasattr(fcntl, "F_SETSIG"):
        return False
    try:
        fcntl.fcntl(fd, fcntl.F_SETSIG, signal.SIGURG)
        fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_WRLCK)
    except OSError:  # in use, not our file, or a file system without leases
        return False
    return True


def _file_system(device: int) -> str:
    """The type of a mounted file system; empty when the system does not tell."""
    wanted = f"{os.major(device)}:{os.minor(device)}"
    try:
        with open(_MOUNTS, encoding="utf-8", errors="replace") as mounts:
            for line in mounts:
                mount, _, rest = line.partition(" - ")
                if mount.split(" ")[2] == wanted:
                    return rest.split(" ")[0]
    except (OSError, IndexError):
        pass
    return ""
