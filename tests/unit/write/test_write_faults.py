"""Every call that writes fails in turn, once or for good: no folder is ever left between."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from eagle3_lint.write import FolderChange, TextChange, WriteFailed, apply, pending, recover, undo
from eagle3_lint.write.workshop import NAME, read_state
from tests.unit.write.scenes import (
    CONFIG,
    EVERY_STEP,
    WEIGHTS,
    FailingDisk,
    FakeDisk,
    assert_readable,
    change,
    contents,
    draft,
    failure,
    looked,
    picture,
)

ERRORS = [errno.ENOSPC, errno.EIO, errno.EACCES]  # taken in turn


class Scene:
    """A draft before a fix, the same draft after it, and how many calls each way takes."""

    def __init__(self, place: Path, kind: str, earlier: bool = False) -> None:
        self.place, self.kind, self.earlier, self.count = place, kind, earlier, 0
        folder = self.fresh()
        self.old, self.old_picture = contents(folder), picture(folder)
        fixing, undoing = FakeDisk(), FakeDisk()
        apply(change(folder, kind), disk=fixing)
        self.new = contents(folder)
        undo(folder, disk=undoing)
        self.fixing, self.undoing = len(fixing.calls), len(undoing.calls)

    def fresh(self) -> Path:
        """The draft anew, with a fix behind it if ``earlier``."""
        self.count += 1
        folder = draft(self.place / f"draft {self.count}", self.kind)
        if self.earlier:
            first = TextChange(CONFIG, b'{"first": 1}')
            apply(FolderChange(folder, texts=(first,), seen=looked(folder, CONFIG), title="first"))
        return folder


@EVERY_STEP
def test_a_fix_with_one_failure(place: Path, kind: str) -> None:
    scene = Scene(place, kind)
    failures = 0
    for number in range(1, scene.fixing + 1):
        folder, error = scene.fresh(), ERRORS[number % len(ERRORS)]
        before = picture(folder)
        disk = FailingDisk(number, error)
        failed = failure(lambda folder=folder, disk=disk: apply(change(folder, kind), disk=disk))
        if failed is not None:
            failures += 1
            assert isinstance(failed, WriteFailed)
            assert os.strerror(error) in str(failed)
            assert "every file is as it was before" in str(failed)
            assert picture(folder) == before
        else:  # only clearing away can fail without harm
            assert contents(folder) == scene.new
        assert_readable(folder)
        assert not pending(folder)
        assert recover(folder) is None
    assert failures > scene.fixing * 2 / 3


@EVERY_STEP
def test_a_fix_on_a_disk_that_fails_for_good(place: Path, kind: str) -> None:
    """What cannot be taken back at once is taken back when the disk works again."""
    scene = Scene(place, kind)
    left_pending = 0
    for number in range(1, scene.fixing + 1):
        folder, error = scene.fresh(), ERRORS[number % len(ERRORS)]
        before = picture(folder)
        disk = FailingDisk(number, error, for_good=True)
        failed = failure(lambda folder=folder, disk=disk: apply(change(folder, kind), disk=disk))
        committed = failed is None or "the fix is complete" in str(failed)
        if pending(folder):
            left_pending += 1
            assert "any eagle3-lint command on the folder takes it back" in str(failed)
        else:
            assert contents(folder) == (scene.new if committed else scene.old)
        found = recover(folder)
        assert (found is not None) <= (not committed)
        if committed:
            assert contents(folder) == scene.new
            undo(folder)
        assert picture(folder) == before
    assert left_pending > 3


@EVERY_STEP
@pytest.mark.parametrize("error", [errno.EOPNOTSUPP, errno.EPERM])
def test_a_call_that_is_not_supported(place: Path, kind: str, error: int) -> None:
    """There is another way, or everything is taken back."""
    scene = Scene(place, kind)
    succeeded = 0
    for number in range(1, scene.fixing + 1):
        folder = scene.fresh()
        before = picture(folder)
        disk = FailingDisk(number, error)
        if (
            failure(lambda folder=folder, disk=disk: apply(change(folder, kind), disk=disk))
            is not None
        ):
            assert picture(folder) == before
        else:
            succeeded += 1
            assert contents(folder) == scene.new
            undo(folder)
            assert picture(folder) == before
    assert succeeded


@EVERY_STEP
def test_an_undo_with_one_failure(place: Path, kind: str) -> None:
    """Before it begins, the fix stays whole; after that, it is finished at the second try."""
    scene = Scene(place, kind)
    for number in range(1, scene.undoing + 1):
        folder, error = scene.fresh(), ERRORS[number % len(ERRORS)]
        before = picture(folder)
        apply(change(folder, kind))
        disk = FailingDisk(number, error)
        failed = failure(lambda folder=folder, disk=disk: undo(folder, disk=disk))
        if failed is not None:
            assert "as the fix left it" in str(failed)
            assert contents(folder) == scene.new
            assert_readable(folder)
            undo(folder)
        assert not pending(folder)
        recover(folder)
        assert picture(folder) == before


@EVERY_STEP
def test_an_undo_on_a_disk_that_fails_for_good(place: Path, kind: str) -> None:
    scene = Scene(place, kind)
    for number in range(1, scene.undoing + 1):
        folder, error = scene.fresh(), ERRORS[number % len(ERRORS)]
        before = picture(folder)
        apply(change(folder, kind))
        disk = FailingDisk(number, error, for_good=True)
        if failure(lambda folder=folder, disk=disk: undo(folder, disk=disk)) is not None:
            if pending(folder):
                recover(folder)
            elif read_state(folder).done:
                assert contents(folder) == scene.new
                undo(folder)
        recover(folder)
        assert picture(folder) == before


@EVERY_STEP
def test_a_failed_fix_leaves_the_one_before_it_whole(place: Path, kind: str) -> None:
    scene = Scene(place, kind, earlier=True)
    for number in range(1, scene.fixing + 1):
        folder = scene.fresh()
        disk = FailingDisk(number, errno.EIO)
        if (
            failure(lambda folder=folder, disk=disk: apply(change(folder, kind), disk=disk))
            is not None
        ):
            assert undo(folder).title == "first"
            assert contents(folder) == {**scene.old, CONFIG: (folder / CONFIG).read_bytes()}
            assert b"first" not in (folder / CONFIG).read_bytes()
        else:
            undo(folder)
            assert contents(folder) == scene.old
            assert not (folder / NAME).exists()


def test_a_recovery_on_a_disk_that_fails(place: Path) -> None:
    folder = draft(place / "draft")
    before = picture(folder)
    with pytest.raises(WriteFailed):
        apply(change(folder), disk=FailingDisk(20, errno.EIO, for_good=True))
    assert pending(folder)
    with pytest.raises(WriteFailed, match="tries again"):
        recover(folder, disk=FailingDisk(1, errno.EIO, for_good=True))
    assert recover(folder) is not None
    assert picture(folder) == before
    assert (folder / WEIGHTS).exists()
