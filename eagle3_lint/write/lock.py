"""One writer at a time: an advisory lock on the folder, gone with the process that holds it."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from eagle3_lint.write.errors import Refused

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

#: Seconds to wait for another fix, which takes longer only when it copies a large file.
PATIENCE = 5.0
_PAUSE = 0.05
_LOCK_FILE = ".eagle3-lint-lock"


class Busy(Refused):
    """Another process is at work in the folder."""


@contextmanager
def locked(folder: Path, patience: float | None = None) -> Iterator[None]:
    """Hold the folder's lock. Where the system knows no such locks, hold nothing.

    Args:
        patience: seconds to wait for another; None: the usual.

    Raises:
        Busy: another holds it, and still does then.
        OSError: the folder cannot be opened.
    """
    if fcntl is None:
        yield
        return
    patience = PATIENCE if patience is None else patience
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    lock_file: Path | None = None
    try:
        try:
            _take(fd, folder, patience)
        except OSError as error:
            # NFS turns the lock into one on byte ranges, which needs a file open for writing.
            if error.errno not in (errno.EBADF, errno.ENOLCK, errno.EOPNOTSUPP, errno.EINVAL):
                raise
            os.close(fd)
            lock_file = folder / _LOCK_FILE
            fd = _lock_file(lock_file, folder, patience)
        yield
    finally:
        if lock_file is not None:
            with suppress(OSError):
                os.unlink(lock_file)
        os.close(fd)


def _take(fd: int, folder: Path, patience: float) -> None:
    deadline = time.monotonic() + patience
    while True:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() >= deadline:
                raise Busy(
                    f"{folder}: another eagle3-lint is writing there; wait until it is done"
                ) from None
            time.sleep(_PAUSE)


def _lock_file(path: Path, folder: Path, patience: float) -> int:
    """Take the lock on a file, which its holder deletes: what is locked must still be there."""
    while True:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o666)
        try:
            _take(fd, folder, patience)
            with suppress(FileNotFoundError):
                if os.stat(path).st_ino == os.fstat(fd).st_ino:
                    return fd
        except BaseException:
            os.close(fd)
            raise
        os.close(fd)
