"""Takes the last complete fix back on request, or an interrupted one at the next start."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from eagle3_lint.write import guards
from eagle3_lint.write.back import Progress, is_new, put_together, take_back
from eagle3_lint.write.disk import Disk, opened
from eagle3_lint.write.errors import Refused, WriteFailed, reason
from eagle3_lint.write.fix import settle_or_fail
from eagle3_lint.write.journal import Entry, Journal
from eagle3_lint.write.lock import Busy, locked
from eagle3_lint.write.result import Recovered, Undone
from eagle3_lint.write.users import can_shift, sole_user
from eagle3_lint.write.workshop import NAME, Workshop, read_state, sweep

_BY_HAND = "restore the draft from a copy"


def undo_last(folder: Path, *, progress: Progress, disk: Disk) -> Undone:
    """Take the last fix of a folder back; an interrupted one counts as the last.

    Raises:
        Refused: there is none, or a file was changed since. Nothing was written.
        WriteFailed: the system failed; the line says in which state the folder is.
    """
    begun = disk.written
    if not read_state(folder).names:
        raise Refused(f"{folder}: no fix to take back here")
    guards.check_folder(folder, _BY_HAND)
    with locked(folder):
        state = read_state(folder)
        if state.pending is not None:
            settled = settle_or_fail(disk, folder)
            assert settled is not None
            return _undone(folder, settled, disk.written - begun)
        if state.done is None:
            raise Refused(f"{folder}: no fix to take back here")
        shop = Workshop(disk, folder, state.done)
        journal, mtimes = shop.read(), shop.mtimes()
        for entry in journal.entries:
            _check_untouched(folder, shop, entry, mtimes.get(entry.file))
        try:
            # What needs space or time comes first, while the fix is still whole.
            sweep(disk, folder)
            for entry in journal.entries:
                if _must_be_put_together(folder, shop, entry):
                    put_together(disk, folder, shop, entry, progress)
            shop.reopen()
            take_back(disk, folder, shop, journal)
        except OSError as error:
            _finish(disk, folder, error)
        except Refused:
            with suppress(OSError):
                sweep(disk, folder)
            raise
        return _undone(folder, journal, disk.written - begun)


def recover_pending(folder: Path, *, disk: Disk) -> Recovered | None:
    """Take an interrupted fix or undo back, and clear away what was left over.

    Raises:
        Refused: it cannot be taken back as things are.
        WriteFailed: the system failed; the fix is still pending.
    """
    state = read_state(folder)
    if state.pending is None and not state.left_over and (state.names or not _is_empty(folder)):
        return None
    try:
        with locked(folder, None if state.pending is not None else 0.0):
            if read_state(folder).pending is None:
                if os.access(folder, os.W_OK):
                    sweep(disk, folder)
                return None
            if not os.access(folder, os.W_OK | os.X_OK):
                raise Refused(
                    f"{folder}: an interrupted fix must be taken back, and you may not write there;"
                    " ask whoever may to run eagle3-lint on it"
                )
            journal = settle_or_fail(disk, folder)
    except Busy:
        if state.pending is None:
            return None  # not left over, then, but a fix that is being prepared
        raise
    except OSError:
        if state.pending is None:
            return None  # a left-over that stays harms nobody
        raise
    assert journal is not None
    files = tuple(entry.file for entry in journal.entries)
    line = f"{folder}: an interrupted fix was taken back: {', '.join(files)}"
    return Recovered(folder, journal.title, files, (line,))


def _is_empty(folder: Path) -> bool:
    """Whether our folder is there and has nothing in it."""
    path = folder / NAME
    return path.is_dir() and not os.listdir(path)


def _finish(disk: Disk, folder: Path, error: OSError) -> None:
    """After a failure in an undo: finish it if it had begun, or leave the fix as it is.

    Raises:
        WriteFailed: the fix is as it was, or still pending.
    """
    state = read_state(folder)
    if state.pending is not None:
        settle_or_fail(disk, folder)
        return
    with suppress(OSError):
        sweep(disk, folder)
    if state.done is not None:
        raise WriteFailed(
            f"{folder}: the fix cannot be taken back: {reason(error)}; every file is as the fix"
            " left it"
        ) from error


def _undone(folder: Path, journal: Journal, written: int) -> Undone:
    assert journal is not None
    files = tuple(entry.file for entry in journal.entries)
    lines = tuple(f"{file}: as before the fix" for file in files)
    return Undone(folder, journal.title, files, written, lines)


# -- before an undo --------------------------------------------------------------------------------


def _check_untouched(folder: Path, shop: Workshop, entry: Entry, mtime_ns: int | None) -> None:
    """An undo restores every byte, or does nothing.

    Raises:
        Refused: the file is not as the fix left it, or what was kept of it is gone.
    """
    path = folder / entry.file
    if entry.keeps_old and shop.set_aside(entry.slot) is None:
        raise Refused(f"{entry.file}: the old file that was kept in {NAME} is gone; no undo")
    if entry.way == "remove":
        if os.path.lexists(path):
            raise Refused(f"{entry.file}: it is there again since the fix removed it; no undo")
        return
    guards.check_file(folder, entry.file, _BY_HAND)
    if not is_new(path, entry):
        raise Refused(f"{entry.file}: it was changed after the fix; no undo; {_BY_HAND}")
    # The data of a large file are not read again; their time tells.
    status = path.stat()
    if entry.file.endswith(".safetensors") and status.st_mtime_ns != mtime_ns:
        raise Refused(
            f"{entry.file}: it was written to after the fix, or copied without its times (cp -a"
            " keeps them); no undo"
        )


def _must_be_put_together(folder: Path, shop: Workshop, entry: Entry) -> bool:
    """Whether the old file exists nowhere and cannot be made out of the new one in place."""
    if entry.way == "swap":
        return shop.set_aside(entry.slot) is None
    if entry.way != "header" or not entry.grows:
        return False
    with opened(folder / entry.file, os.O_RDWR) as fd, sole_user(fd) as alone:
        return not (alone and can_shift(fd))
