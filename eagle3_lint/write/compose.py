"""Writes a new file out of new bytes and parts of an old one, sharing blocks where it can."""

from __future__ import annotations

import errno
import os
import shutil
import stat
from collections.abc import Callable
from pathlib import Path

from eagle3_lint.frozen import frozen
from eagle3_lint.write.disk import UNSUPPORTED, Disk
from eagle3_lint.write.errors import Refused
from eagle3_lint.write.ladder import Part, Span, rounded_up, size_of
from eagle3_lint.write.users import block_size

#: Bytes per call, so that progress shows and an interrupt is heard.
_CHUNK = 64 << 20
#: Free bytes to leave for the journal, small texts and the file system's own records.
SLACK = 1 << 20
_ACCESS = "system.posix_acl_access"
_NOT_OURS = "it belongs to another user, and a new file in its place would be yours"


@frozen
class Composed:
    """A new file, written and synced."""

    cloned: bool


class Copying:
    """Counts what is copied, over all files of a fix.

    Attributes:
        left: bytes still to be copied, this file's included; checked against the free space.
    """

    def __init__(self, total: int, progress: Callable[[int, int], None] | None) -> None:
        self.left = self._total = total
        self._progress = progress

    def done(self, count: int) -> None:
        self.left -= count
        if self._progress is not None and self._total:
            self._progress(self._total - self.left, self._total)


def compose(
    disk: Disk,
    target: Path,
    parts: tuple[Part, ...],
    source: int | None,
    copying: Copying,
    *,
    name: str,
    own: bool = False,
) -> Composed:
    """Write ``target`` anew, with the mode, owner and extended attributes of the open ``source``.

    Args:
        source: the old file, of which the spans in ``parts`` are; None when there is none.
        copying: the count that its spans belong to.
        name: what to call the file in a message.
        own: the new file belongs to whoever runs this, as a copy does.

    Raises:
        Refused: not enough space, or the owner cannot be kept.
        OSError: anything else.
    """
    fd = disk.open(target, os.O_RDWR | os.O_CREAT | os.O_EXCL)
    try:
        if source is not None:
            if not own:
                keep_owner(disk, source, fd, name)
            keep_attributes(disk, source, fd)
        cloned, at = False, 0
        for part in parts:
            if isinstance(part, Span):
                assert source is not None
                cloned |= _span(disk, source, fd, part, at, copying, target.parent, name)
            elif part:
                disk.pwrite(fd, part, at)
            at += size_of((part,))
        disk.fsync(fd)
    finally:
        os.close(fd)
    return Composed(cloned)


def keep_owner(disk: Disk, source: int, target: int, name: str) -> None:
    """Give ``target`` the owner and group of ``source``.

    Raises:
        Refused: only root could.
        OSError: anything else.
    """
    old, new = os.fstat(source), os.fstat(target)
    if not hasattr(os, "fchown") or (old.st_uid, old.st_gid) == (new.st_uid, new.st_gid):
        return
    try:
        disk.chown(target, old.st_uid, old.st_gid)
    except PermissionError:
        raise Refused(f"{name}: {_NOT_OURS}; write to a new folder with --output DIR") from None


def keep_attributes(disk: Disk, source: int, target: int) -> None:
    """Give ``target`` the mode and extended attributes, so also the access list, of ``source``."""
    if hasattr(os, "fchmod"):
        disk.chmod(target, stat.S_IMODE(os.fstat(source).st_mode))
    if not hasattr(os, "listxattr"):
        return
    old, new = _attributes(source), _attributes(target)
    for attribute in old:
        try:
            disk.setxattr(target, attribute, os.getxattr(source, attribute))
        except OSError as error:
            # The kernel labels files itself (security.*); only what users set must be kept.
            if attribute.startswith("user.") or error.errno not in UNSUPPORTED:
                raise
    if _ACCESS in new and _ACCESS not in old:
        disk.removexattr(target, _ACCESS)  # the folder's default, which the old file is without


def _attributes(fd: int) -> list[str]:
    try:
        return os.listxattr(fd)
    except OSError as error:
        if error.errno in UNSUPPORTED:
            return []
        raise


def _span(
    disk: Disk,
    source: int,
    target: int,
    span: Span,
    at: int,
    copying: Copying,
    folder: Path,
    name: str,
) -> bool:
    """Put a span of the old file at ``at``; whether most of it is shared, not copied."""
    block = block_size(source)
    first = rounded_up(span.begin, block)
    # A clone covers whole blocks, but for the file's last.
    last = span.end if span.end == os.fstat(source).st_size else span.end // block * block
    cloned = False
    if (span.begin - at) % block == 0 and last > first:
        try:
            disk.clone_range(source, target, first, at + first - span.begin, last - first)
            cloned = True
        except OSError as error:
            if error.errno not in UNSUPPORTED:
                raise
    if cloned:
        copying.done(last - first)
        pieces = [Span(span.begin, first), Span(last, span.end)]
    else:
        require_space(folder, copying.left)
        pieces = [span]
    for piece in pieces:
        _copy(disk, source, target, piece, at + piece.begin - span.begin, copying, name)
    return cloned


def _copy(
    disk: Disk, source: int, target: int, span: Span, at: int, copying: Copying, name: str
) -> None:
    position = span.begin
    while position < span.end:
        count = min(_CHUNK, span.end - position)
        copied = disk.copy_range(source, target, position, at + position - span.begin, count)
        if copied == 0:
            raise OSError(errno.EIO, f"{name} became shorter while it was copied")
        position += copied
        copying.done(copied)


def require_space(folder: Path, count: int) -> None:
    """Make sure that ``count`` more bytes fit on the folder's disk.

    Raises:
        Refused: they do not.
        OSError: the folder cannot be looked at.
    """
    free = shutil.disk_usage(folder).free
    if count + SLACK > free:
        raise Refused(
            f"{folder}: not enough space: {count + SLACK:,} bytes are needed and {free:,} free;"
            " make room, or write to another disk with --output DIR"
        )
