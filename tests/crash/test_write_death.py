"""The process dies before, or in the middle of, every call that writes; the next start mends it.

Afterwards the draft is what it was before the fix, or what the fix made of it, to the last byte:
never something between, and with nothing left over. That holds for a death in a fix, in an undo, in
a recovery from either, and for one that follows another fix.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from eagle3_lint.write import FolderChange, TextChange, apply, pending, recover, undo
from eagle3_lint.write.workshop import NAME
from tests.unit.write.scenes import (
    CONFIG,
    EVERY_STEP,
    Died,
    DyingDisk,
    FakeDisk,
    assert_readable,
    change,
    contents,
    draft,
    failure,
    looked,
    picture,
)

THOROUGH = os.environ.get("EAGLE3_LINT_PROFILE") == "thorough"
TORN = pytest.mark.parametrize("torn", [False, True], ids=["before a call", "in a write"])


class Drafts:
    """The same draft again and again, and what it looks like before and after the fix."""

    def __init__(self, place: Path, kind: str, earlier: bool = False) -> None:
        self._place, self._kind, self._earlier, self._count = place, kind, earlier, 0
        folder = self.old()
        self.before, self.before_picture = contents(folder), picture(folder)
        disk = FakeDisk()
        apply(change(folder, kind), disk=disk)
        self.after, self.calls = contents(folder), len(disk.calls)
        disk = FakeDisk()
        undo(folder, disk=disk)
        self.undo_calls = len(disk.calls)

    def old(self) -> Path:
        self._count += 1
        folder = draft(self._place / str(self._count), self._kind)
        if self._earlier:
            first = TextChange(CONFIG, b'{"first": 1}')
            apply(FolderChange(folder, texts=(first,), seen=looked(folder, CONFIG)))
        return folder

    def new(self) -> Path:
        folder = self.old()
        apply(change(folder, self._kind))
        return folder

    def fix(self, folder: Path) -> Callable[[DyingDisk], object]:
        wanted = change(folder, self._kind)
        return lambda disk: apply(wanted, disk=disk)


def dies(act: Callable[[DyingDisk], object], disk: DyingDisk) -> bool:
    """Whether the process died before it was done."""
    try:
        act(disk)
    except Died:
        return True
    return False


@TORN
@EVERY_STEP
def test_in_a_fix(place: Path, kind: str, torn: bool) -> None:
    drafts = Drafts(place, kind)
    outcomes = set()
    for number in range(1, drafts.calls + 2):
        folder = drafts.old()
        before = picture(folder)
        died = dies(drafts.fix(folder), DyingDisk(number, torn))
        assert died == (number <= drafts.calls)
        was_pending = pending(folder)
        found = recover(folder)
        assert (found is not None) == was_pending
        assert not pending(folder)
        assert recover(folder) is None
        assert_readable(folder)
        if contents(folder) == drafts.after:
            outcomes.add("new")
            assert not was_pending
            assert all(name[:4] in ("jour", "done", "old-") for name in os.listdir(folder / NAME))
            undo(folder)
        else:
            outcomes.add("taken back" if was_pending else "not begun")
        assert picture(folder) == before
    assert outcomes == {"not begun", "taken back", "new"}


@TORN
@EVERY_STEP
def test_in_an_undo(place: Path, kind: str, torn: bool) -> None:
    drafts = Drafts(place, kind)
    outcomes = set()
    for number in range(1, drafts.undo_calls + 1):
        folder = drafts.new()
        assert dies(lambda disk, folder=folder: undo(folder, disk=disk), DyingDisk(number, torn))
        was_pending = pending(folder)
        recover(folder)
        assert recover(folder) is None
        assert_readable(folder)
        if contents(folder) == drafts.after:
            assert not was_pending
            outcomes.add("new")
            undo(folder)
        else:
            outcomes.add("old")
        assert contents(folder) == drafts.before
        assert not (folder / NAME).exists()
    assert outcomes <= {"old", "new"}
    assert "old" in outcomes


@EVERY_STEP
def test_in_a_recovery(place: Path, kind: str) -> None:
    """Dies in the fix, then at every call of the recovery, then no more."""
    drafts = Drafts(place, kind)
    tried = 0
    for first in range(1, drafts.calls + 1, 1 if THOROUGH else 4):
        second = 0
        while True:
            second += 1
            folder = drafts.old()
            before = picture(folder)
            dies(drafts.fix(folder), DyingDisk(first, torn=first % 2 == 0))
            disk = DyingDisk(second, torn=second % 2 == 0)
            died = dies(lambda disk, folder=folder: recover(folder, disk=disk), disk)
            recover(folder)
            assert not pending(folder)
            if contents(folder) != drafts.after:
                assert picture(folder) == before
            tried += 1
            if not died:
                break
    assert tried > drafts.calls / 2


@EVERY_STEP
def test_in_a_fix_after_another(place: Path, kind: str) -> None:
    """Dying in a second fix, the first one is still there to be undone."""
    drafts = Drafts(place, kind, earlier=True)
    for number in range(1, drafts.calls + 1):
        folder = drafts.old()
        dies(drafts.fix(folder), DyingDisk(number))
        recover(folder)
        new = contents(folder) == drafts.after
        undo(folder)
        if new:
            assert contents(folder) == drafts.before
        else:
            assert contents(folder) == {**drafts.before, CONFIG: (folder / CONFIG).read_bytes()}
            assert b"first" not in (folder / CONFIG).read_bytes()
        assert not (folder / NAME).exists()


@EVERY_STEP
def test_in_a_fix_that_keeps_no_journal(place: Path, kind: str) -> None:
    drafts = Drafts(place, kind)
    number = 0
    died = True
    while died:
        number += 1
        folder = drafts.old()
        wanted = change(folder, kind)
        died = dies(
            lambda disk, wanted=wanted: apply(wanted, journal=False, disk=disk), DyingDisk(number)
        )
        recover(folder)
        assert contents(folder) in (drafts.before, drafts.after)
        if not died:
            assert contents(folder) == drafts.after
            assert not (folder / NAME).exists()
        # Killed while it cleared away, the fix can still be undone, or not at all.
        if contents(folder) == drafts.after:
            refused = failure(lambda folder=folder: undo(folder))
            assert refused is None or "no fix to take back" in str(refused)
            assert contents(folder) == (drafts.before if refused is None else drafts.after)


@EVERY_STEP
def test_a_fix_takes_an_interrupted_one_back_first(place: Path, kind: str) -> None:
    """A command that forgot to recover finds files that it did not expect, and no mixture."""
    drafts = Drafts(place, kind)
    for number in range(1, drafts.calls + 1):
        folder = drafts.old()
        wanted = change(folder, kind)
        dies(drafts.fix(folder), DyingDisk(number))
        if not pending(folder):
            continue
        apply(wanted)
        assert contents(folder) == drafts.after
        undo(folder)
        assert contents(folder) == drafts.before


@EVERY_STEP
def test_an_undo_takes_an_interrupted_fix_back(place: Path, kind: str) -> None:
    drafts = Drafts(place, kind)
    for number in range(1, drafts.calls + 1):
        folder = drafts.old()
        before = picture(folder)
        dies(drafts.fix(folder), DyingDisk(number))
        if pending(folder):
            undo(folder)
            assert picture(folder) == before


def test_while_a_reader_keeps_the_file_open(place: Path) -> None:
    """Blocks cannot be taken out under a reader, so the old file is put together beside it."""
    drafts = Drafts(place, "grows")
    for number in range(1, drafts.calls + 1):
        folder = drafts.old()
        before = picture(folder)
        dies(drafts.fix(folder), DyingDisk(number, torn=True))
        with (folder / "model.safetensors").open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            for second in range(1, 40):
                disk = DyingDisk(second)
                if not dies(lambda disk, folder=folder: recover(folder, disk=disk), disk):
                    break
            assert os.fstat(file.fileno()).st_size == size
        assert not pending(folder)
        if contents(folder) != drafts.after:
            assert picture(folder) == before


class OneNameDisk(DyingDisk):
    """A file cannot have two names here, so its name is free for an instant."""

    def before(self, name: str, arguments: tuple[Any, ...]) -> None:
        super().before(name, arguments)
        if name == "link":
            raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))


@pytest.mark.parametrize("kind", ["fits", "moves"])
def test_where_a_file_has_one_name_only(place: Path, kind: str) -> None:
    drafts = Drafts(place, kind)
    died, number = True, 0
    while died:
        number += 1
        folder = drafts.old()
        before = picture(folder)
        died = dies(drafts.fix(folder), OneNameDisk(number))
        recover(folder)
        assert contents(folder) in (drafts.before, drafts.after)
        if contents(folder) == drafts.after:
            undo(folder)
        assert picture(folder) == before


def test_in_a_new_folder(place: Path) -> None:
    """A killed run leaves nothing half at the new folder, and the next one clears its rest away."""
    folder = draft(place / "draft")
    wanted, before = change(folder, "grows"), picture(folder)
    apply(wanted, output=place / "counted", disk=(disk := FakeDisk()))
    new = contents(place / "counted")
    for number in range(1, len(disk.calls) + 1):
        target = place / f"new {number}"
        dying = DyingDisk(number, torn=True)
        dies(lambda disk, target=target: apply(wanted, output=target, disk=disk), dying)
        assert picture(folder) == before
        if target.exists():
            assert contents(target) == new
        else:
            apply(wanted, output=target)
            assert contents(target) == new
            assert not (place / f".new {number}.eagle3-lint-partial").exists()


class ExitingDisk(DyingDisk):
    """As a real process dies: nothing is cleaned up, not even what `finally` would."""

    def die(self) -> None:
        os._exit(9)


@pytest.mark.parametrize("kind", ["grows", "moves"])
def test_in_a_process_of_its_own(place: Path, kind: str) -> None:
    drafts = Drafts(place, kind)
    for number in range(1, drafts.calls + 1):
        folder = drafts.old()
        before = picture(folder)
        act = drafts.fix(folder)
        child = os.fork()
        if child == 0:
            act(ExitingDisk(number, torn=True))
            os._exit(0)
        _, status = os.waitpid(child, 0)
        assert os.waitstatus_to_exitcode(status) == 9
        recover(folder)
        if contents(folder) != drafts.after:
            assert picture(folder) == before
