"""Two at once: the second waits, or gives up; a reader needs no guard."""

from __future__ import annotations

import fcntl
import json
import os
import threading
from pathlib import Path

import pytest

from eagle3_lint.write import (
    FolderChange,
    Refused,
    WeightsChange,
    apply,
    recover,
    seen,
    undo,
)
from eagle3_lint.write import lock as lock_module
from tests.unit.write.scenes import (
    CONFIG,
    WEIGHTS,
    change,
    draft,
    picture,
    refused,
)


def test_the_second_of_two_fixes_waits(place: Path) -> None:
    folder = draft(place / "draft")
    first, second = change(folder, "fits"), change(folder, "fits")
    results: list[object] = []

    def run(wanted: FolderChange) -> None:
        try:
            results.append(apply(wanted))
        except Refused as error:
            results.append(str(error))

    threads = [threading.Thread(target=run, args=(wanted,)) for wanted in (first, second)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    # One did it; the other saw the result instead of what it had read.
    complaints = [result for result in results if isinstance(result, str)]
    assert len(complaints) == 1
    assert "it changed" in complaints[0] or "it was not there" in complaints[0]


def test_the_second_gives_up_in_the_end(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = draft(place / "draft")
    monkeypatch.setattr(lock_module, "PATIENCE", 0.1)
    fd = os.open(folder, os.O_RDONLY)
    fcntl.flock(fd, fcntl.LOCK_EX)
    assert "another eagle3-lint is writing there" in refused(folder, change(folder))
    os.close(fd)
    apply(change(folder))


@pytest.mark.parametrize("number", [9, 37])  # EBADF, as NFS answers, and ENOLCK
def test_folders_that_cannot_be_locked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """A file beside the weights is locked instead, and is gone afterwards."""
    folder = draft(tmp_path / "draft")
    real, tried = fcntl.flock, []

    def flock(fd: int, operation: int) -> None:
        tried.append(os.path.basename(os.readlink(f"/proc/self/fd/{fd}")))
        if os.path.isdir(f"/proc/self/fd/{fd}"):
            raise OSError(number, os.strerror(number))
        real(fd, operation)

    monkeypatch.setattr(lock_module.fcntl, "flock", flock)
    before = picture(folder)
    apply(change(folder))
    undo(folder)
    assert picture(folder) == before
    assert tried == ["draft", ".eagle3-lint-lock"] * 2


def test_a_recovery_leaves_a_fix_alone_that_is_being_prepared(place: Path) -> None:
    """A check that starts while a large file is copied neither waits nor sweeps."""
    folder = draft(place / "draft")
    results: list[object] = []

    def progress(done: int, total: int) -> None:
        results.append(recover(folder))

    apply(change(folder, "moves"), progress=progress)
    assert results
    assert set(results) == {None}


def test_a_reader_of_json_needs_no_guard(tmp_path: Path) -> None:
    """A text is replaced as a whole: who has it open goes on reading the old one."""
    folder = draft(tmp_path / "draft")
    with (folder / CONFIG).open() as file:
        apply(change(folder))
        assert json.load(file)["model_type"] == "llama"
    assert isinstance(seen(folder, CONFIG).size, int)
    assert WeightsChange(WEIGHTS, b"{}").data is None
