"""Carries out one entry of a journal."""

from __future__ import annotations

import os
from pathlib import Path

from eagle3_lint.write.change import Seen
from eagle3_lint.write.disk import UNSUPPORTED, Disk
from eagle3_lint.write.errors import Refused
from eagle3_lint.write.journal import Entry
from eagle3_lint.write.look import seen_open
from eagle3_lint.write.users import sole_user
from eagle3_lint.write.workshop import Workshop


class CannotInsert(Exception):
    """The data cannot be moved in place after all; the file must be streamed."""

    def __init__(self, file: str) -> None:
        super().__init__(file)
        self.file = file


def carry_out(disk: Disk, folder: Path, shop: Workshop, entry: Entry) -> None:
    """Bring one file from its old state to its new one.

    Raises:
        Refused: it is no longer as it was read.
        CannotInsert: as it says; the file is as before.
        OSError: anything else, with the file in any state between.
    """
    path = folder / entry.file
    if entry.way == "header":
        _rewrite_header(disk, path, entry)
        return
    if entry.way == "create":
        if os.path.lexists(path):
            raise changed(entry.file)
        disk.rename(shop.slot("new", entry.slot), path)
        return
    _require_unchanged(path, entry)
    aside = shop.slot("old" if entry.keeps_old else "was", entry.slot)
    if entry.way == "remove":
        disk.rename(path, aside)
        return
    _put_aside(disk, path, aside)
    disk.rename(shop.slot("new", entry.slot), path)


def changed(file: str) -> Refused:
    return Refused(
        f"{file}: it changed after it was read, and it was not written to; run the fix again"
    )


def _require_unchanged(path: Path, entry: Entry) -> None:
    """The last look before a name goes to another file: size, time and inode, in no time."""
    try:
        now = path.lstat()
    except FileNotFoundError:
        raise changed(entry.file) from None
    old = entry.old
    assert old is not None
    if (now.st_size, now.st_mtime_ns, now.st_ino) != (old.size, old.mtime_ns, old.inode):
        raise changed(entry.file)


def _put_aside(disk: Disk, path: Path, aside: Path) -> None:
    """Give the old file a second name, so that the first never stands for nothing."""
    try:
        disk.link(path, aside)
    except OSError as error:
        if error.errno not in UNSUPPORTED:
            raise
        # No hard links here: a reader may miss the file for an instant.
        disk.rename(path, aside)


def _rewrite_header(disk: Disk, path: Path, entry: Entry) -> None:
    fd = disk.open(path, os.O_RDWR)
    try:
        # Alone, we keep others from reading a header that is half written. A reader that is there
        # already has parsed it, and its data do not move when the header keeps its length.
        with sole_user(fd) as alone:
            _require_same(seen_open(fd, entry.file), entry)
            if entry.grows:
                _insert(disk, fd, entry, alone)
            disk.pwrite(fd, entry.new_header, 0)
            disk.fsync(fd)
    finally:
        os.close(fd)


def _require_same(now: Seen, entry: Entry) -> None:
    if now != entry.old:
        raise changed(entry.file)


def _insert(disk: Disk, fd: int, entry: Entry, alone: bool) -> None:
    if not alone:
        raise CannotInsert(entry.file)
    try:
        disk.insert_range(fd, entry.grows)
    except OSError as error:
        if error.errno in UNSUPPORTED:
            raise CannotInsert(entry.file) from None
        raise
