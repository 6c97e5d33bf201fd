"""What a fix does to a folder, what it costs, and that undo gives every byte back."""

from __future__ import annotations

import mmap
import os
import stat
import struct
from pathlib import Path

import pytest

from eagle3_lint.write import (
    Disk,
    FolderChange,
    Kept,
    Made,
    Refused,
    TextChange,
    WeightsChange,
    apply,
    pending,
    recover,
    seen,
    undo,
)
from eagle3_lint.write.workshop import NAME
from tests.unit.write.scenes import (
    CONFIG,
    INDEX,
    KINDS,
    SIDE,
    STALE,
    STEPS,
    WEIGHTS,
    assert_readable,
    can_insert,
    change,
    draft,
    encoded,
    header_of,
    looked,
    picture,
    renamed,
    tensors_of,
    weights_change,
)


@pytest.mark.parametrize("kind", KINDS)
def test_a_fix_and_its_undo(place: Path, kind: str) -> None:
    folder = draft(place / "draft", kind)
    before, tensors = picture(folder), tensors_of(folder)
    wanted = change(folder, kind)
    written = apply(wanted)
    assert written.folder == folder
    assert written.can_undo
    for item in wanted.weights:
        assert encoded(header_of(folder / item.file)) == item.header
    for text in wanted.texts:
        path = folder / text.file
        assert (path.read_bytes() if path.exists() else None) == text.content
    assert_readable(folder)
    left = tensors_of(folder)
    assert left == {name: tensors[name] for name in left}
    assert tensors.keys() - left.keys() == ({"t2d"} if kind == "moves" else set())
    assert not pending(folder)
    assert recover(folder) is None

    undone = undo(folder)
    assert picture(folder) == before
    assert undone.title == f"{kind} fix"
    assert set(undone.files) == set(wanted.files)
    assert not (folder / NAME).exists()
    with pytest.raises(Refused, match="no fix to take back"):
        undo(folder)


@pytest.mark.parametrize("kind", STEPS)
def test_the_step_where_blocks_can_be_inserted(tmp_path: Path, kind: str) -> None:
    if not can_insert(tmp_path):
        pytest.skip("no blocks can be inserted into files here")
    folder = draft(tmp_path / "draft")
    inode = (folder / WEIGHTS).stat().st_ino
    written = apply(change(folder, kind))
    steps = {file.file: file.step for file in written.files}
    assert steps == {
        WEIGHTS: STEPS[kind],
        CONFIG: "text replaced",
        SIDE: "text created",
        STALE: "removed",
    }
    assert ((folder / WEIGHTS).stat().st_ino == inode) == (kind != "moves")
    assert list(steps)[-1] == CONFIG  # what a reader opens first changes last


def test_where_they_cannot_a_grown_header_is_streamed(place: Path) -> None:
    if can_insert(place):
        pytest.skip("blocks can be inserted into files here")
    folder = draft(place / "draft")
    assert apply(change(folder, "grows")).files[0].step in ("streamed", "cloned")
    # The old file is put together again for an undo, not kept.
    assert not [p for p in (folder / NAME).iterdir() if p.stat().st_size > 10_000]


def test_ext4_on_linux_inserts_blocks(tmp_path: Path) -> None:
    """So that the tests above are not skipped unnoticed where it must work."""
    mounts = Path("/proc/self/mountinfo")
    device = tmp_path.stat().st_dev
    here = f" {os.major(device)}:{os.minor(device)} "
    lines = mounts.read_text().splitlines() if mounts.exists() else []
    if not any(here in line and " - ext4 " in line for line in lines):
        pytest.skip("not on ext4")
    assert can_insert(tmp_path)


def test_bytes_written(place: Path) -> None:
    """A rename in place costs kilobytes whatever the weights' size, and the count is honest."""
    folder = draft(place / "draft")
    wanted = change(folder, "fits", texts=False)
    disk = CountingDisk()
    written = apply(wanted, disk=disk)
    head = 8 + struct.unpack_from("<Q", (folder / WEIGHTS).read_bytes())[0]
    assert [file.bytes for file in written.files] == [head]
    assert written.bytes == disk.counted
    journal = sum(path.stat().st_size for path in (folder / NAME).iterdir())
    assert written.bytes == head + journal
    assert written.bytes < 6000


class CountingDisk(Disk):
    """Adds up what the system says was written."""

    counted = 0

    def pwrite(self, fd: int, data: bytes, offset: int) -> None:
        super().pwrite(fd, data, offset)
        self.counted += len(data)

    def copy_range(self, source: int, target: int, begin: int, at: int, count: int) -> int:
        copied = super().copy_range(source, target, begin, at, count)
        self.counted += copied
        return copied


@pytest.mark.parametrize("kind", KINDS)
def test_bytes_of_every_step(place: Path, kind: str) -> None:
    folder = draft(place / "draft", kind)
    disk = CountingDisk()
    written = apply(change(folder, kind), disk=disk)
    assert written.bytes == disk.counted
    assert any(f"{written.bytes:,} bytes written in all" in line for line in written.lines)
    undone = undo(folder, disk=(again := CountingDisk()))
    assert undone.bytes == again.counted


def test_a_grown_header_leaves_room_for_the_next(tmp_path: Path) -> None:
    folder = draft(tmp_path / "draft")
    apply(change(folder, "grows"))
    again = WeightsChange(WEIGHTS, encoded(renamed(header_of(folder / WEIGHTS), "another.")))
    written = apply(FolderChange(folder, (again,), seen=looked(folder, WEIGHTS)))
    assert [file.step for file in written.files] == ["in place"]


def test_made_data(place: Path) -> None:
    folder = draft(place / "draft")
    header = header_of(folder / WEIGHTS)
    end = max(e["data_offsets"][1] for k, e in header.items() if k != "__metadata__")
    header["new"] = {"dtype": "U8", "shape": [3], "data_offsets": [end, end + 3]}
    data = (Kept(0, end), Made(b"new"))
    before, tensors = picture(folder), tensors_of(folder)
    apply(
        FolderChange(
            folder, (WeightsChange(WEIGHTS, encoded(header), data),), seen=looked(folder, WEIGHTS)
        )
    )
    assert tensors_of(folder) == {**tensors, "new": b"new"}
    undo(folder)
    assert picture(folder) == before


def test_nothing_to_do(tmp_path: Path) -> None:
    folder = draft(tmp_path / "draft")
    before = picture(folder)
    same = WeightsChange(WEIGHTS, encoded(header_of(folder / WEIGHTS)))
    written = apply(FolderChange(folder, (same,), seen=looked(folder, WEIGHTS)))
    assert (written.files, written.bytes, written.can_undo) == ((), 0, False)
    assert picture(folder) == before


@pytest.mark.parametrize("kind", KINDS)
def test_mode_owner_and_attributes_stay(place: Path, kind: str) -> None:
    folder = draft(place / "draft", kind)
    wanted = change(folder, kind)
    files = [file for file in wanted.files if file not in (SIDE, STALE)]
    for number, file in enumerate(files):
        os.chmod(folder / file, 0o640 + number)
        if os.geteuid() == 0:
            os.chown(folder / file, 12345, 23456)
        os.setxattr(folder / file, "user.origin", file.encode())
    wanted = change(folder, kind)
    before = picture(folder)
    for act in (lambda: apply(wanted), lambda: undo(folder)):
        act()
        for number, file in enumerate(files):
            status = (folder / file).stat()
            assert stat.S_IMODE(status.st_mode) == 0o640 + number
            assert os.getxattr(folder / file, "user.origin") == file.encode()
            if os.geteuid() == 0:
                assert (status.st_uid, status.st_gid) == (12345, 23456)
    assert picture(folder) == before


def test_no_access_list_is_inherited(tmp_path: Path) -> None:
    """A folder's default list is for new files; the file that is replaced may be without."""
    folder = draft(tmp_path / "draft")
    wanted = change(folder, "moves")
    # Version 2; owner, user 12345, group, mask, others: tag, permissions, id.
    entries = [(1, 7, -1), (2, 7, 12345), (4, 5, -1), (16, 7, -1), (32, 5, -1)]
    raw = struct.pack("<I", 2) + b"".join(struct.pack("<HHi", *entry) for entry in entries)
    try:
        os.setxattr(folder, "system.posix_acl_default", raw)
    except OSError:
        pytest.skip("no access lists here")
    apply(wanted)
    assert "system.posix_acl_access" in os.listxattr(folder / SIDE)
    for file in (WEIGHTS, CONFIG):
        assert "system.posix_acl_access" not in os.listxattr(folder / file)


def test_only_the_last_fix_is_kept(place: Path) -> None:
    folder = draft(place / "draft")
    apply(change(folder, "moves"))
    between = {n: p for n, p in picture(folder).items() if not n.startswith(NAME)}
    second = FolderChange(
        folder, texts=(TextChange(CONFIG, b"{}"),), seen=looked(folder, CONFIG), title="second"
    )
    apply(second)
    assert undo(folder).title == "second"
    assert picture(folder) == between
    with pytest.raises(Refused, match="no fix to take back"):
        undo(folder)


@pytest.mark.parametrize("kind", KINDS)
def test_without_a_journal_nothing_stays(place: Path, kind: str) -> None:
    folder = draft(place / "draft", kind)
    apply(FolderChange(folder, texts=(TextChange("first", b"1"),)))
    written = apply(change(folder, kind), journal=False)
    assert not written.can_undo
    assert not (folder / NAME).exists()
    assert_readable(folder)
    with pytest.raises(Refused, match="no fix to take back"):
        undo(folder)


# -- others who use the files ----------------------------------------------------------------------


@pytest.mark.parametrize("way", ["open", "mapped"])
def test_a_reader_keeps_its_bytes(tmp_path: Path, way: str) -> None:
    """Blocks are not inserted under a reader: the file is written anew, and its old one lives."""
    folder = draft(tmp_path / "draft")
    raw, before = (folder / WEIGHTS).read_bytes(), picture(folder)
    with (folder / WEIGHTS).open("rb") as file:
        mapping = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if way == "mapped" else None
        reader = file if mapping is None else mapping
        if mapping is not None:
            file.close()
        assert apply(change(folder, "grows")).files[0].step in ("streamed", "cloned")
        assert reader.read() == raw
        reader.close()
    undo(folder)
    assert picture(folder) == before


@pytest.mark.parametrize("kind", ["fits", "grows"])
def test_an_undo_leaves_a_reader_its_data(tmp_path: Path, kind: str) -> None:
    folder = draft(tmp_path / "draft")
    before = picture(folder)
    apply(change(folder, kind))
    raw = (folder / WEIGHTS).read_bytes()
    start = 8 + struct.unpack_from("<Q", raw)[0]
    with (folder / WEIGHTS).open("rb") as file:
        mapping = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    undo(folder)
    assert mapping[start:] == raw[start:]
    mapping.close()
    assert picture(folder) == before


def test_whoever_opens_the_file_meanwhile_waits(tmp_path: Path) -> None:
    """Under the lease nobody gets to see a header of zeros."""
    if not can_insert(tmp_path):
        pytest.skip("no blocks can be inserted into files here")
    folder = draft(tmp_path / "draft")
    refused: list[bool] = []

    class Curious(Disk):
        def pwrite(self, fd: int, data: bytes, offset: int) -> None:
            if os.fstat(fd).st_ino == inode:
                with pytest.raises(BlockingIOError):
                    os.open(folder / WEIGHTS, os.O_RDONLY | os.O_NONBLOCK)
                refused.append(True)
            super().pwrite(fd, data, offset)

    inode = (folder / WEIGHTS).stat().st_ino
    apply(change(folder, "grows"), disk=Curious())
    assert refused == [True]
    os.close(os.open(folder / WEIGHTS, os.O_RDONLY | os.O_NONBLOCK))


def test_a_reader_who_comes_too_late_to_be_seen(tmp_path: Path) -> None:
    """The planned insertion is given up, everything is taken back, and the file is streamed."""
    if not can_insert(tmp_path):
        pytest.skip("no blocks can be inserted into files here")
    folder = draft(tmp_path / "draft")
    before, raw = picture(folder), (folder / WEIGHTS).read_bytes()
    readers: list[int] = []

    class Late(Disk):
        def rename(self, source: Path, target: Path) -> None:
            super().rename(source, target)
            if target.name.startswith("journal-") and not readers:
                readers.append(os.open(folder / WEIGHTS, os.O_RDONLY))

    written = apply(change(folder, "grows"), disk=Late())
    assert written.files[0].step in ("streamed", "cloned")
    assert os.pread(readers[0], len(raw) + 1, 0) == raw
    os.close(readers[0])
    undo(folder)
    assert picture(folder) == before


def test_no_hard_links(place: Path) -> None:
    """Where a file cannot have two names, the old one is moved aside."""

    class NoLinks(Disk):
        def link(self, source: Path, target: Path) -> None:
            raise PermissionError(1, "Operation not permitted")

    folder = draft(place / "draft")
    before = picture(folder)
    apply(change(folder, "moves"), disk=NoLinks())
    assert_readable(folder)
    undo(folder)
    assert picture(folder) == before


def test_progress(place: Path) -> None:
    folder = draft(place / "draft")
    reports: list[tuple[int, int]] = []
    apply(change(folder, "moves"), progress=lambda done, total: reports.append((done, total)))
    assert reports
    done, total = reports[-1]
    assert done == total > 15_000
    assert [d for d, _ in reports] == sorted(d for d, _ in reports)


def test_an_interrupt_by_the_user_takes_everything_back(place: Path) -> None:
    folder = draft(place / "draft")
    wanted, before = change(folder, "moves"), picture(folder)

    def stop(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        apply(wanted, progress=stop)
    assert picture(folder) == before


def test_names_that_are_not_text(tmp_path: Path) -> None:
    folder = draft(tmp_path / "draft")
    name = os.fsdecode(b"caf\xe9 \xff.json")
    (folder / name).write_bytes(b"1")
    before = picture(folder)
    apply(FolderChange(folder, texts=(TextChange(name, b"2"),), seen=looked(folder, name)))
    assert (folder / name).read_bytes() == b"2"
    undo(folder)
    assert picture(folder) == before


def test_sharded(place: Path) -> None:
    folder = draft(place / "draft", "sharded")
    written = apply(change(folder, "sharded"))
    assert [file.file for file in written.files][:2] == [
        "model-1.safetensors",
        "model-2.safetensors",
    ]
    names = {INDEX, CONFIG, SIDE, STALE}
    assert names <= {file.file for file in written.files}


@pytest.mark.parametrize(
    ("weights", "texts", "complaint"),
    [
        ("", ("a/b",), "no name of a file"),
        ("", ("..",), "no name of a file"),
        ("", (NAME,), "no name of a file"),
        ("", (SIDE, SIDE), "changed twice"),
        ("x.safetensors", (), "how the file was seen"),
    ],
)
def test_changes_that_contradict_themselves(
    tmp_path: Path, weights: str, texts: tuple[str, ...], complaint: str
) -> None:
    changes = (WeightsChange(weights, b"{}"),) if weights else ()
    wanted = FolderChange(tmp_path, changes, tuple(TextChange(name, b"") for name in texts))
    with pytest.raises(ValueError, match=complaint):
        apply(wanted)


def test_nothing_to_remove(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="nothing to remove"):
        apply(FolderChange(tmp_path, texts=(TextChange("x", None),)))


def test_seen_is_what_counts(tmp_path: Path) -> None:
    """Of weights the header, of a text all of it."""
    folder = draft(tmp_path / "draft")
    weights, config = looked(folder, WEIGHTS, CONFIG)
    with (folder / WEIGHTS).open("r+b") as file:
        file.seek(-1, os.SEEK_END)
        file.write(b"?")
    with (folder / CONFIG).open("ab") as file:
        file.write(b"\n")
    assert seen(folder, WEIGHTS).sha256 == weights.sha256
    assert seen(folder, CONFIG).sha256 != config.sha256
    assert weights_change(folder, WEIGHTS, "fits").data is None
