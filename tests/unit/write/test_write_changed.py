"""What changed since it was read, or since it was written, is left alone."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from eagle3_lint.write import (
    Disk,
    FolderChange,
    TextChange,
    apply,
    recover,
    undo,
)
from eagle3_lint.write.workshop import NAME
from tests.unit.write.scenes import (
    CONFIG,
    SIDE,
    STALE,
    WEIGHTS,
    change,
    contents,
    draft,
    looked,
    picture,
    refusal,
    refused,
)

# -- files that changed ----------------------------------------------------------------------------


def touch(path: Path) -> None:
    os.utime(path, ns=(0, path.stat().st_mtime_ns + 1))


def replace(path: Path) -> None:
    """Another file of the same content and time."""
    status = path.stat()
    copy = path.with_name("copy")
    copy.write_bytes(path.read_bytes())
    os.utime(copy, ns=(status.st_atime_ns, status.st_mtime_ns))
    copy.rename(path)


def overwrite(path: Path) -> None:
    """Other content of the same size and time."""
    status = path.stat()
    with path.open("r+b") as file:
        file.seek(8)
        file.write(b'{"A')
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def grow(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b"x")


@pytest.mark.parametrize("how", [touch, replace, overwrite, grow])
@pytest.mark.parametrize("file", [WEIGHTS, CONFIG])
def test_a_file_that_changed_since_it_was_read(
    tmp_path: Path, file: str, how: Callable[[Path], None]
) -> None:
    folder = draft(tmp_path / "draft")
    wanted = change(folder)
    how(folder / file)
    line = refused(folder, wanted)
    assert line.startswith(f"{file}: it changed after it was read")


def test_a_file_that_was_only_read_counts_too(tmp_path: Path) -> None:
    folder = draft(tmp_path / "draft")
    wanted = FolderChange(folder, texts=(TextChange(SIDE, b"{}"),), seen=looked(folder, CONFIG))
    grow(folder / CONFIG)
    assert "config.json: it changed" in refused(folder, wanted)


def test_a_file_that_is_gone(tmp_path: Path) -> None:
    folder = draft(tmp_path / "draft")
    wanted = change(folder)
    (folder / CONFIG).unlink()
    assert "config.json: cannot be opened: No such file" in refused(folder, wanted)


def test_a_file_that_came(tmp_path: Path) -> None:
    folder = draft(tmp_path / "draft")
    wanted = change(folder)
    (folder / SIDE).write_bytes(b"mine")
    assert f"{SIDE}: it was not there" in refused(folder, wanted)


@pytest.mark.parametrize("file", [WEIGHTS, CONFIG, SIDE, STALE])
@pytest.mark.parametrize("kind", ["fits", "grows", "moves"])
def test_a_file_that_changes_at_the_last_moment(tmp_path: Path, kind: str, file: str) -> None:
    """After the journal is written, before the file's turn comes: what others wrote stays."""
    folder = draft(tmp_path / "draft")
    wanted = change(folder, kind)
    old = contents(folder)

    class Interfering(Disk):
        def rename(self, source: Path, target: Path) -> None:
            super().rename(source, target)
            if target.name.startswith("journal-"):
                (folder / file).write_bytes(theirs)

    theirs = (
        b"other\n" if file != WEIGHTS else (folder / WEIGHTS).read_bytes().replace(b"fc.", b"FC.")
    )
    line = refusal(lambda: apply(wanted, disk=Interfering()))
    assert file in line
    assert contents(folder) == {**old, file: theirs} or recover_by_hand(folder)


def recover_by_hand(folder: Path) -> bool:
    """The way out that a refused recovery names: nothing of anybody's is lost either way."""
    return "delete the folder .eagle3-lint" in refusal(lambda: recover(folder))


# -- before an undo --------------------------------------------------------------------------------


@pytest.mark.parametrize("file", [WEIGHTS, CONFIG, SIDE])
@pytest.mark.parametrize("kind", ["fits", "grows", "moves"])
def test_an_undo_of_changed_files(place: Path, kind: str, file: str) -> None:
    folder = draft(place / "draft")
    apply(change(folder, kind))
    if file == WEIGHTS:  # the data, of which nothing is hashed
        with (folder / file).open("r+b") as opened:
            opened.seek(-1, os.SEEK_END)
            opened.write(b"?")
        touch(folder / file)
    else:
        (folder / file).write_bytes(b"[]")
    before = picture(folder)
    assert re.search(
        rf"{re.escape(file)}: it was (changed|written to)", refusal(lambda: undo(folder))
    )
    assert picture(folder) == before


def test_an_undo_when_a_removed_file_is_back(place: Path) -> None:
    folder = draft(place / "draft")
    apply(change(folder))
    (folder / STALE).write_bytes(b"new")
    before = picture(folder)
    assert f"{STALE}: it is there again" in refusal(lambda: undo(folder))
    assert picture(folder) == before


def test_an_undo_without_the_old_file(place: Path) -> None:
    folder = draft(place / "draft")
    apply(change(folder, "moves"))
    for path in (folder / NAME).glob("old-*"):
        path.unlink()
    before = picture(folder)
    assert "is gone; no undo" in refusal(lambda: undo(folder))
    assert picture(folder) == before


def test_an_undo_of_a_copied_folder(place: Path, tmp_path: Path) -> None:
    """A copy that keeps times, on whatever file system, can be undone like the original."""
    folder = draft(place / "draft")
    original = picture(folder)
    apply(change(folder, "grows"))
    copy = tmp_path / "copy"
    subprocess.run(["cp", "-a", str(folder), str(copy)], check=True)
    undo(copy)
    assert picture(copy) == original
    subprocess.run(["cp", "-r", str(folder), str(tmp_path / "without times")], check=True)
    assert "copied without its times" in refusal(lambda: undo(tmp_path / "without times"))
