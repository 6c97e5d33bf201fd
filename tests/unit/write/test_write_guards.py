"""What is refused, with the folder untouched and a line that says what to do."""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import struct
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from eagle3_lint.errors import InputError
from eagle3_lint.write import (
    Disk,
    FolderChange,
    Refused,
    TextChange,
    WeightsChange,
    apply,
    recover,
    seen,
    undo,
)
from eagle3_lint.write import compose as compose_module
from eagle3_lint.write import lock as lock_module
from eagle3_lint.write.workshop import NAME
from tests.unit.write.scenes import (
    CONFIG,
    SIDE,
    STALE,
    WEIGHTS,
    change,
    contents,
    draft,
    header_of,
    looked,
    picture,
)


def refusal(act: Callable[[], object]) -> str:
    """The line of a refusal, which must be one."""
    with pytest.raises(InputError) as caught:
        act()
    line = str(caught.value)
    assert line.isprintable()
    assert not line.endswith(".")
    return line


def refused(folder: Path, wanted: FolderChange) -> str:
    """The line with which a change is refused, nothing having been written."""
    before = picture(folder)
    line = refusal(lambda: apply(wanted))
    assert picture(folder) == before
    return line


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


# -- two at once -----------------------------------------------------------------------------------


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
