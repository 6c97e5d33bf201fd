"""A new folder gets the whole draft, changed; the old one is only read."""

from __future__ import annotations

import fcntl
import os
import re
import stat
from pathlib import Path

import pytest

from eagle3_lint.write import FolderChange, Refused, WriteFailed, apply
from eagle3_lint.write.workshop import NAME
from tests.unit.write.scenes import (
    CONFIG,
    KINDS,
    SIDE,
    STALE,
    WEIGHTS,
    FailingDisk,
    FakeDisk,
    assert_readable,
    change,
    contents,
    draft,
    failure,
    picture,
    tensors_of,
)


@pytest.mark.parametrize("kind", KINDS)
def test_the_new_folder(place: Path, kind: str) -> None:
    folder = draft(place / "draft", kind)
    (folder / "tokenizer.json").write_bytes(b"x" * 9000)
    (folder / "original").mkdir()
    (folder / "original" / "params.json").write_bytes(b"{}")
    (folder / ".gitattributes").write_bytes(b"*")
    (folder / ".git").mkdir()
    (folder / ".git" / "HEAD").write_bytes(b"ref")
    os.chmod(folder / CONFIG, 0o640)
    before, tensors = picture(folder), tensors_of(folder)
    wanted = change(folder, kind)
    written = apply(wanted, output=place / "new")
    assert picture(folder) == before
    assert written.folder == place / "new"
    assert not written.can_undo
    assert "left out: .git" in written.lines

    # The same files as a fix in the folder itself gives.
    apply(wanted)
    expected = {n: raw for n, raw in contents(folder).items() if not n.startswith(".git/")}
    assert contents(place / "new") == expected
    assert_readable(place / "new")
    left = tensors_of(place / "new")
    assert left == {name: tensors[name] for name in left}
    assert stat.S_IMODE((place / "new" / CONFIG).stat().st_mode) == 0o640
    assert sorted(path.name for path in place.iterdir()) == ["draft", "new"]
    steps = {file.file: file.step for file in written.files}
    assert steps[CONFIG] == "text replaced"
    assert steps[SIDE] == "text created"
    assert STALE not in steps
    assert steps["tokenizer.json"] in ("copied", "cloned")


def test_no_journal_travels(place: Path) -> None:
    folder = draft(place / "draft")
    apply(change(folder))
    wanted = FolderChange(folder)
    apply(wanted, output=place / "new")
    assert not (place / "new" / NAME).exists()
    assert contents(place / "new") == contents(folder)


def test_links_become_files(place: Path) -> None:
    folder = draft(place / "draft")
    (place / "shared").mkdir()
    (place / "shared" / "vocab.json").write_bytes(b"v")
    (folder / "tokenizer").symlink_to(place / "shared")
    (place / "shared" / "loop").symlink_to(folder)
    (folder / "dangling").symlink_to("nowhere")
    os.mkfifo(folder / "pipe")
    written = apply(change(folder), output=place / "new")
    assert (place / "new" / "tokenizer" / "vocab.json").read_bytes() == b"v"
    assert not (place / "new" / "tokenizer").is_symlink()
    (line,) = (line for line in written.lines if line.startswith("left out"))
    assert re.search(r"\bdangling\b", line)
    assert re.search(r"\bpipe\b", line)
    assert not (place / "new" / "dangling").exists()


def test_an_empty_folder_is_taken(place: Path) -> None:
    folder = draft(place / "draft")
    (place / "new").mkdir()
    apply(change(folder), output=place / "new")
    assert (place / "new" / CONFIG).exists()


def test_parents_are_made(place: Path) -> None:
    folder = draft(place / "draft")
    apply(change(folder), output=place / "a" / "b" / "new")
    assert (place / "a" / "b" / "new" / CONFIG).exists()


@pytest.mark.parametrize(
    ("target", "reason"),
    [
        ("draft", "outside the draft's"),
        ("draft/inner", "outside the draft's"),
        ("link", "outside the draft's"),
        (".", "outside the draft's"),
        ("full", "not empty"),
        ("file", "no folder"),
        ("link to empty", "no folder"),
    ],
)
def test_folders_that_are_refused(tmp_path: Path, target: str, reason: str) -> None:
    folder = draft(tmp_path / "draft")
    (tmp_path / "link").symlink_to(folder)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "a").write_bytes(b"")
    (tmp_path / "file").write_bytes(b"")
    (tmp_path / "empty").mkdir()
    (tmp_path / "link to empty").symlink_to(tmp_path / "empty")
    before = picture(tmp_path)
    with pytest.raises(Refused, match=reason):
        apply(change(folder), output=tmp_path / target)
    assert picture(tmp_path) == before


def test_what_a_killed_run_left_is_cleared_away(place: Path) -> None:
    folder = draft(place / "draft")
    partial = place / ".new.eagle3-lint-partial"
    (partial / "draft" / "sub").mkdir(parents=True)
    (partial / "draft" / WEIGHTS).write_bytes(b"half")
    apply(change(folder), output=place / "new")
    assert sorted(path.name for path in place.iterdir()) == ["draft", "new"]
    assert not (place / "new" / "sub").exists()


def test_two_runs_for_one_folder(place: Path) -> None:
    folder = draft(place / "draft")
    partial = place / ".new.eagle3-lint-partial"
    partial.mkdir()
    fd = os.open(partial, os.O_RDONLY)
    fcntl.flock(fd, fcntl.LOCK_EX)
    with pytest.raises(Refused, match="another eagle3-lint is writing it"):
        apply(change(folder), output=place / "new")
    os.close(fd)
    assert not (place / "new").exists()


def test_a_source_that_changes_while_it_is_copied(place: Path) -> None:
    folder = draft(place / "draft")
    wanted = change(folder)

    def progress(done: int, total: int) -> None:
        (folder / CONFIG).write_bytes(b"{}")

    with pytest.raises(Refused, match=r"config\.json: it changed"):
        apply(wanted, output=place / "new", progress=progress)
    assert sorted(path.name for path in place.iterdir()) == ["draft"]


@pytest.mark.parametrize("error", [28, 5, 13])  # ENOSPC, EIO, EACCES
def test_every_call_fails_in_turn(place: Path, error: int) -> None:
    folder = draft(place / "draft")
    (folder / "inner").mkdir()
    (folder / "inner" / "a").write_bytes(b"a")
    wanted, before = change(folder, "moves"), picture(folder)
    counting = FakeDisk()
    apply(wanted, output=place / "counted", disk=counting)
    new = contents(place / "counted")
    for number in range(1, len(counting.calls) + 1):
        target = place / f"new {number}"
        disk = FailingDisk(number, error)
        failed = failure(lambda target=target, disk=disk: apply(wanted, output=target, disk=disk))
        if failed is not None:
            assert isinstance(failed, WriteFailed)
            assert os.strerror(error) in str(failed)
        assert picture(folder) == before
        assert not target.exists() or contents(target) == new
        assert not (place / f".new {number}.eagle3-lint-partial").exists()
