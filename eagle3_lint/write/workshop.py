"""The folder ``.eagle3-lint`` beside the weights: what a fix needs while it runs and to be undone.

Fixes of a folder are numbered. In the names below N is a fix and K one of its files:

==============  ====================================================================================
``journal-N``   what the fix changes; there before the first byte changes
``done-N``      the fix is complete; without it, a journal is of an interrupted fix or undo
``old-N-K``     an old file whose bytes are not all in the new one; kept for undo
``was-N-K``     an old file that is only kept until the fix is complete
``new-N-K``     a new file that is not yet in its place
``back-N-K``    an old file put together again, for an undo
``tmp``         a journal or a mark that is being written
==============  ====================================================================================

So one look at the names says what is to be done, and everything else there is a left-over. A state
changes by one rename or one removal, never by rewriting a file.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

from eagle3_lint.frozen import frozen
from eagle3_lint.write.disk import Disk
from eagle3_lint.write.errors import Refused
from eagle3_lint.write.journal import Journal, dump, parse

NAME = ".eagle3-lint"
_OURS = re.compile(r"(journal|done)-(\d+)|(old|was|new|back)-(\d+)-\d+|tmp")


@frozen
class State:
    """What the names say.

    Attributes:
        names: ours, all of them.
        pending: the fix that was interrupted, or whose undo was.
        done: the last complete fix, which can be undone.
        last: the highest number in use, 0 when none.
    """

    names: frozenset[str]
    pending: int | None
    done: int | None
    last: int

    @property
    def left_over(self) -> tuple[str, ...]:
        """Names that nothing needs any more, in the order in which they can go."""
        found = [name for name in self.names if not self._needed(name)]
        # While a journal is there, its mark must be, or it would pass for an interrupted fix.
        return tuple(sorted(found, key=lambda name: (name.startswith("done-"), name)))

    def _needed(self, name: str) -> bool:
        kind, number = _parsed(name)
        if number is not None and number == self.pending:
            return True
        return number is not None and number == self.done and kind in ("journal", "done", "old")


def read_state(folder: Path) -> State:
    """Look at a draft's folder; costs one system call when nothing was ever written there.

    Raises:
        Refused: ``.eagle3-lint`` is something else than our folder.
        OSError: it cannot be listed.
    """
    path = folder / NAME
    try:
        names = frozenset(name for name in os.listdir(path) if _OURS.fullmatch(name))
    except FileNotFoundError:
        return State(frozenset(), None, None, 0)
    except NotADirectoryError:
        raise Refused(f"{path}: a file stands where the journal goes; move it away") from None
    if os.path.islink(path):
        raise Refused(f"{path}: a link stands where the journal goes; move it away")
    numbers: dict[str, set[int]] = {"journal": set(), "done": set()}
    for name in names:
        kind, number = _parsed(name)
        if number is not None:
            numbers.setdefault(kind, set()).add(number)
    last_done = max(numbers["done"], default=0)
    # Below the last mark, a journal without one is of an older fix that is being cleared away.
    pending = max((n for n in numbers["journal"] if n > last_done), default=None)
    done = last_done if last_done in numbers["journal"] else None
    return State(names, pending, done, max(set().union(*numbers.values()), default=0))


def _parsed(name: str) -> tuple[str, int | None]:
    match = _OURS.fullmatch(name)
    assert match is not None
    kind, number = (match[1], match[2]) if match[1] else (match[3], match[4])
    return ("tmp", None) if kind is None else (kind, int(number))


class Workshop:
    """The files of one fix in ``.eagle3-lint``.

    Attributes:
        number: which fix.
    """

    def __init__(self, disk: Disk, folder: Path, number: int) -> None:
        self.path = folder / NAME
        self.number = number
        self._disk, self._folder = disk, folder

    def open(self) -> None:
        """Make the folder if it is not there."""
        if not self.path.exists():
            self._disk.mkdir(self.path)
            self._disk.fsync_folder(self._folder)

    def slot(self, kind: str, slot: int) -> Path:
        return self.path / f"{kind}-{self.number}-{slot}"

    def set_aside(self, slot: int) -> Path | None:
        """Where the old file of an entry is, if it was put aside."""
        for kind in ("old", "was", "back"):
            path = self.slot(kind, slot)
            if path.exists():
                return path
        return None

    # -- the journal -------------------------------------------------------------------------------

    def begin(self, journal: Journal) -> None:
        """Write the journal; from here on, the fix is pending."""
        self._put(f"journal-{self.number}", dump(journal))

    def read(self) -> Journal:
        path = self.path / f"journal-{self.number}"
        return parse(path.read_bytes(), str(path))

    def complete(self, mtimes: dict[str, int]) -> None:
        """Mark the fix as complete, with the times by which a later change shows."""
        self._put(f"done-{self.number}", json.dumps(mtimes, separators=(",", ":")).encode())

    def mtimes(self) -> dict[str, int]:
        """The times that :meth:`complete` wrote: file → nanoseconds since 1970."""
        path = self.path / f"done-{self.number}"
        try:
            found: dict[str, int] = json.loads(path.read_bytes())
        except ValueError:
            raise Refused(f"{path}: damaged; no undo, restore the draft from a copy") from None
        return found

    def reopen(self) -> None:
        """Take the mark away, if it is there: the fix is pending again, to be taken back."""
        mark = self.path / f"done-{self.number}"
        if mark.exists():
            self._disk.unlink(mark)
            self._disk.fsync_folder(self.path)

    def discard(self) -> None:
        """Remove everything of this fix, in an order that means the same wherever it stops."""
        state = read_state(self._folder)
        mine = [name for name in state.names if _parsed(name)[1] in (None, self.number)]
        # A pending fix stays pending to the last. A complete one must not be undone any more once
        # its old files go, and must never look pending.
        order = ("done", "journal") if state.pending == self.number else ("journal", "", "done")
        ranks = {kind: rank for rank, kind in enumerate(order)}
        middle = ranks.get("", -1)
        for name in sorted(mine, key=lambda name: ranks.get(_parsed(name)[0], middle)):
            self._disk.unlink(self.path / name)
        self.sync()

    def sync(self) -> None:
        self._disk.fsync_folder(self.path)

    def close(self) -> None:
        """Remove the folder if nothing is in it."""
        if self.path.exists() and not os.listdir(self.path):
            self._disk.rmdir(self.path)
            self._disk.fsync_folder(self._folder)

    def _put(self, name: str, content: bytes) -> None:
        """Write a file so that it is there as a whole or not at all, and lasts."""
        temporary = self.path / "tmp"
        fd = self._disk.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        try:
            self._disk.pwrite(fd, content, 0)
            self._disk.fsync(fd)
        finally:
            os.close(fd)
        self._disk.rename(temporary, self.path / name)
        self._disk.fsync_folder(self.path)


def sweep(disk: Disk, folder: Path) -> None:
    """Remove what interrupted fixes left over, and our folder when it is empty."""
    state = read_state(folder)
    for name in state.left_over:
        disk.unlink(folder / NAME / name)
    Workshop(disk, folder, 0).close()
