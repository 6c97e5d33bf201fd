"""What is refused, with the folder untouched and a line that says what to do."""

from __future__ import annotations

import os
import re
import shutil
import struct
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from eagle3_lint.write import (
    FolderChange,
    apply,
    undo,
)
from eagle3_lint.write import compose as compose_module
from eagle3_lint.write.workshop import NAME
from tests.unit.write.scenes import (
    CONFIG,
    STALE,
    WEIGHTS,
    change,
    draft,
    header_of,
    picture,
    refusal,
    refused,
)


def hub_cache(root: Path) -> Path:
    """A draft as huggingface_hub lays it out: names are links to files called by their sum."""
    snapshot = draft(root / "models--org--draft" / "snapshots" / "abc123")
    blobs = root / "models--org--draft" / "blobs"
    blobs.mkdir()
    for path in list(snapshot.iterdir()):
        blob = blobs / f"{path.name}-etag"
        path.rename(blob)
        path.symlink_to(Path("../../blobs") / blob.name)
    return snapshot


# -- links -----------------------------------------------------------------------------------------


def test_a_hub_cache(tmp_path: Path) -> None:
    folder = hub_cache(tmp_path)
    before = picture(tmp_path)
    line = refused(folder, change(folder))
    assert re.search(r"model\.safetensors: a link into a Hub cache .*--output DIR", line)
    assert picture(tmp_path) == before


def test_a_hub_cache_can_be_read_for_a_new_folder(tmp_path: Path) -> None:
    folder = hub_cache(tmp_path / "cache")
    before = picture(tmp_path / "cache")
    written = apply(change(folder), output=tmp_path / "new")
    assert picture(tmp_path / "cache") == before
    assert all(not path.is_symlink() for path in written.folder.iterdir())
    assert any(name.startswith("midlayer.") for name in header_of(written.folder / WEIGHTS))


@pytest.mark.parametrize("file", [WEIGHTS, CONFIG, STALE])
def test_a_link(tmp_path: Path, file: str) -> None:
    folder = draft(tmp_path / "draft")
    (folder / file).rename(tmp_path / "elsewhere")
    (folder / file).symlink_to(tmp_path / "elsewhere")
    if file == WEIGHTS:
        (folder / file).unlink()
        (tmp_path / "elsewhere").rename(tmp_path / "other.safetensors")
        (folder / file).symlink_to(tmp_path / "other.safetensors")
    assert re.search(rf"{re.escape(file)}: a link .*--output DIR", refused(folder, change(folder)))


@pytest.mark.parametrize("file", [WEIGHTS, CONFIG, STALE])
def test_a_file_with_two_names(tmp_path: Path, file: str) -> None:
    folder = draft(tmp_path / "draft")
    os.link(folder / file, tmp_path / "second")
    assert re.search(rf"{re.escape(file)}: it has 2 names", refused(folder, change(folder)))


def test_a_link_in_the_journal_s_place(tmp_path: Path) -> None:
    folder = draft(tmp_path / "draft")
    (tmp_path / "away").mkdir()
    (folder / NAME).symlink_to(tmp_path / "away")
    assert "a link stands where the journal goes" in refused(folder, change(folder))


def test_a_file_in_the_journal_s_place(tmp_path: Path) -> None:
    folder = draft(tmp_path / "draft")
    (folder / NAME).write_bytes(b"mine")
    assert "a file stands where the journal goes" in refused(folder, change(folder))


# -- what cannot be written ------------------------------------------------------------------------


@pytest.fixture
def public(tmp_path: Path) -> Iterator[Path]:
    """A folder that every user can reach, unlike pytest's own."""
    folder = Path(tempfile.mkdtemp(prefix="eagle3-lint-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


def as_nobody(wanted: FolderChange) -> str:
    """What a user without rights is told; root may do everything."""
    if os.geteuid() != 0:
        pytest.skip("only root can become somebody else")
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setgroups([])
            os.setgid(65534)
            os.setuid(65534)
            apply(wanted)
        except BaseException as error:
            os.write(writing, f"{type(error).__name__}: {error}".encode())
        os._exit(0)
    os.waitpid(child, 0)
    os.close(writing)
    with open(reading, "rb") as told:
        line = told.read().decode()
    assert line.startswith("Refused: ")
    return line


def test_a_folder_that_may_not_be_written(public: Path) -> None:
    folder = draft(public / "draft")
    folder.chmod(0o755)
    before = picture(folder)
    assert re.search(r"you may not write there; .*--output DIR", as_nobody(change(folder)))
    assert picture(folder) == before


def test_a_file_that_may_not_be_written(public: Path) -> None:
    folder = draft(public / "draft")
    folder.chmod(0o777)
    before = picture(folder)
    assert re.search(r"you may not write to it; .*--output DIR", as_nobody(change(folder)))
    assert picture(folder) == before


def test_a_file_whose_owner_cannot_be_kept(public: Path) -> None:
    """It could be rewritten in place, but no new file can take its place."""
    folder = draft(public / "draft")
    folder.chmod(0o777)
    for path in folder.iterdir():
        path.chmod(0o666)
    before = picture(folder)
    told = as_nobody(change(folder, "moves"))
    assert re.search(r"belongs to another user.*--output DIR", told)
    assert picture(folder) == before


def test_a_pipe(tmp_path: Path) -> None:
    folder = draft(tmp_path / "draft")
    wanted = change(folder)
    (folder / CONFIG).unlink()
    os.mkfifo(folder / CONFIG)
    assert "config.json: not a regular file" in refused(folder, wanted)


def test_no_folder(tmp_path: Path) -> None:
    folder = draft(tmp_path / "draft")
    wanted = change(folder)
    for path in (tmp_path / "absent", folder / CONFIG):
        moved = FolderChange(path, wanted.weights, wanted.texts, wanted.seen)
        assert "give the draft's folder" in refusal(lambda moved=moved: apply(moved))


@pytest.mark.parametrize("kind", ["fits", "moves"])
def test_not_enough_space(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    folder = draft(tmp_path / "draft")
    size = (folder / WEIGHTS).stat().st_size
    free = compose_module.SLACK + size // 2 if kind == "moves" else compose_module.SLACK
    monkeypatch.setattr(
        compose_module.shutil, "disk_usage", lambda path: type("Usage", (), {"free": free})
    )
    line = refused(folder, change(folder, kind))
    assert re.search(rf"not enough space: [\d,]+ bytes are needed and {free:,} free", line)
    line = refusal(lambda: apply(change(folder, "moves"), output=tmp_path / "new"))
    assert "not enough space" in line
    assert sorted(path.name for path in tmp_path.iterdir()) == ["draft"]


def test_space_for_an_undo(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An undo that must copy asks for space before it touches anything, and can be tried again."""
    folder = draft(place / "draft")
    original = picture(folder)
    with (folder / WEIGHTS).open("rb"):  # so that it is streamed on every file system
        apply(change(folder, "grows"))
    before = picture(folder)
    with monkeypatch.context() as patch:
        patch.setattr(
            compose_module.shutil, "disk_usage", lambda path: type("Usage", (), {"free": 9})
        )
        assert "not enough space" in refusal(lambda: undo(folder))
        assert picture(folder) == before
    undo(folder)
    assert picture(folder) == original


def test_a_header_beyond_the_limit(tmp_path: Path) -> None:
    folder = draft(tmp_path / "draft")
    wanted = change(folder)
    with (folder / WEIGHTS).open("r+b") as file:
        file.write(struct.pack("<Q", 100_000_001))
    assert "would have 100,000,001 bytes" in refused(folder, wanted)
    with (folder / WEIGHTS).open("r+b") as file:
        file.write(struct.pack("<Q", 90_000_000))
    assert "no safetensors header" in refused(folder, wanted)
    (folder / WEIGHTS).write_bytes(b"short")
    assert "no safetensors header" in refused(folder, wanted)
