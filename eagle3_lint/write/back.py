"""Takes a fix back, from whatever state it or an earlier attempt to take it back was left in.

An interrupted fix, an interrupted undo and an undo are one and the same: a journal without its mark
and files that are each old, new or between. Every step looks at what is there before it acts, so
the whole can be interrupted and begun again any number of times. A file that is neither old, new
nor between was changed by somebody else, and is never touched.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

from eagle3_lint.write.change import Seen
from eagle3_lint.write.compose import Copying, compose
from eagle3_lint.write.disk import UNSUPPORTED, Disk, opened, pread
from eagle3_lint.write.errors import Refused
from eagle3_lint.write.journal import Entry, Journal
from eagle3_lint.write.ladder import Span
from eagle3_lint.write.look import seen_open
from eagle3_lint.write.users import can_shift, sole_user
from eagle3_lint.write.workshop import NAME, Workshop

_BY_HAND = f"delete the folder {NAME} to keep the draft as it is, or restore the file and try again"
Progress = Callable[[int, int], None] | None


def take_back(disk: Disk, folder: Path, shop: Workshop, journal: Journal) -> None:
    """Bring every file of a pending fix back to its old state, then forget the fix.

    Raises:
        Refused: somebody changed a file in between, or there is no space to put one together.
        OSError: anything else. The fix is still pending then.
    """
    for entry in reversed(journal.entries):
        if entry.way == "header":
            _restore_header(disk, folder, shop, entry)
        elif entry.way == "create":
            _remove_created(disk, folder, entry)
        else:
            _put_back(disk, folder, shop, entry)
    disk.fsync_folder(folder)
    shop.discard()
    shop.close()


def put_together(
    disk: Disk, folder: Path, shop: Workshop, entry: Entry, progress: Progress = None
) -> None:
    """Write the old file of an entry anew, from its old header and the data of the new file.

    Raises:
        Refused: not enough space.
        OSError: anything else.
    """
    target = shop.slot("back", entry.slot)
    temporary = shop.slot("new", entry.slot)
    if temporary.exists():
        disk.unlink(temporary)
    with opened(folder / entry.file) as source:
        size = os.fstat(source).st_size
        parts = (entry.old_header, Span(len(entry.new_header), size))
        copying = Copying(size - len(entry.new_header), progress)
        compose(disk, temporary, parts, source, copying, name=entry.file)
    disk.rename(temporary, target)


def _changed(file: str) -> Refused:
    return Refused(
        f"{file}: it was changed after a fix that did not come to its end, and was left alone;"
        f" {_BY_HAND}"
    )


# -- a header, rewritten in the file itself --------------------------------------------------------


def _restore_header(disk: Disk, folder: Path, shop: Workshop, entry: Entry) -> None:
    assert entry.old is not None
    path, old, new = folder / entry.file, entry.old_header, entry.new_header
    back = shop.slot("back", entry.slot)
    in_place = True
    try:
        fd = disk.open(path, os.O_RDWR)
    except FileNotFoundError:
        raise _changed(entry.file) from None
    try:
        size = os.fstat(fd).st_size
        with sole_user(fd) as alone:
            if entry.grows and size == entry.old.size + entry.grows:
                # The block is in; the new header may be there, in part or not at all.
                if not _between(pread(fd, len(new), 0), bytes(entry.grows) + old, new):
                    raise _changed(entry.file)
                in_place = alone and not back.exists() and _collapse(disk, fd, entry.grows)
            elif size != entry.old.size or not _between(
                pread(fd, len(old), 0), old, new[entry.grows :]
            ):
                raise _changed(entry.file)
            if in_place and pread(fd, len(old), 0) != old:
                disk.pwrite(fd, old, 0)
                disk.fsync(fd)
    finally:
        os.close(fd)
    if in_place:
        _restore_time(disk, path, entry.old)
        return
    if not back.exists():
        put_together(disk, folder, shop, entry)
    _restore_time(disk, back, entry.old)
    disk.rename(back, path)


def _between(found: bytes, *states: bytes) -> bool:
    """Whether every byte is one of what the states have there: a write may stop anywhere."""
    if found in states:
        return True
    return all(len(state) == len(found) for state in states) and all(
        byte in choice for byte, choice in zip(found, zip(*states, strict=True), strict=True)
    )


def _collapse(disk: Disk, fd: int, count: int) -> bool:
    if not can_shift(fd):
        return False
    try:
        disk.collapse_range(fd, count)
    except OSError as error:
        if error.errno in UNSUPPORTED:
            return False
        raise
    return True


# -- whole files -----------------------------------------------------------------------------------


def _put_back(disk: Disk, folder: Path, shop: Workshop, entry: Entry) -> None:
    """Give the name back to the old file, if that was put aside."""
    path, aside = folder / entry.file, shop.set_aside(entry.slot)
    if aside is None:
        if entry.way == "remove" or not is_new(path, entry) or _is_old(path, entry):
            return  # it never left its place, or is back already
        if not entry.old_header:
            raise Refused(f"{entry.file}: what the fix put aside of it is gone; {_BY_HAND}")
        put_together(disk, folder, shop, entry)
        aside = shop.slot("back", entry.slot)
    if os.path.lexists(path):
        if os.path.samefile(aside, path):
            disk.unlink(aside)  # it had only got its second name
            return
        if entry.way == "remove" or not is_new(path, entry):
            raise _changed(entry.file)
        if path.stat().st_mtime_ns != entry.new_mtime_ns:
            raise _changed(entry.file)  # perhaps in its data, of which nothing is hashed
    assert entry.old is not None
    _restore_time(disk, aside, entry.old)
    disk.rename(aside, path)


def _remove_created(disk: Disk, folder: Path, entry: Entry) -> None:
    path = folder / entry.file
    if not os.path.lexists(path):
        return
    if not is_new(path, entry):
        raise _changed(entry.file)
    disk.unlink(path)


def is_new(path: Path, entry: Entry) -> bool:
    """Whether a file is as the fix wrote it, as far as its size and what counts in it tell."""
    return _is(path, entry.file, entry.new_size, entry.new_sha256)


def _is_old(path: Path, entry: Entry) -> bool:
    assert entry.old is not None
    return _is(path, entry.file, entry.old.size, entry.old.sha256)


def _is(path: Path, file: str, size: int, sha256: str) -> bool:
    if path.is_symlink() or not path.is_file() or path.stat().st_size != size:
        return False
    with opened(path) as fd:
        try:
            return seen_open(fd, file).sha256 == sha256
        except Refused:
            return False


def _restore_time(disk: Disk, path: Path, old: Seen) -> None:
    if path.stat().st_mtime_ns != old.mtime_ns:
        try:
            disk.utime(path, old.mtime_ns)
        except OSError as error:
            if error.errno != errno.EPERM:  # only the owner may, and it is not content
                raise
