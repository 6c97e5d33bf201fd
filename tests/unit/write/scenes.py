"""A draft, changes to it that take each step, and disks on which calls fail or power is lost."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import struct
import tempfile
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import safetensors

from eagle3_lint.errors import InputError
from eagle3_lint.write import Disk, FolderChange, Kept, Seen, TextChange, WeightsChange, apply, seen
from eagle3_lint.write.disk import opened
from eagle3_lint.write.users import can_shift, sole_user
from tests.drafts import Shapes, llama_config, llama_tensors, shard, write_draft

WEIGHTS, CONFIG, SIDE, STALE = "model.safetensors", "config.json", "generation.json", "stale.txt"
INDEX = "model.safetensors.index.json"
MEMORY = Path("/dev/shm")

#: What a change is called after: the step that its weights take where files can be shifted.
KINDS = ("fits", "grows", "moves", "sharded")
STEPS = {"fits": "in place", "grows": "block inserted", "moves": "streamed"}


def draft(folder: Path, kind: str = "fits") -> Path:
    """A small draft with values that are not all zero, and a file that a fix will remove."""
    folder.mkdir(parents=True)
    for name, raw in _files(kind == "sharded").items():
        (folder / name).write_bytes(raw)
    return folder


@cache
def _files(sharded: bool) -> dict[str, bytes]:
    # Four times narrower than the smallest draft: some tests write it thousands of times.
    tensors: Shapes = {
        name: (dtype, tuple(max(1, size // 4) for size in shape))
        for name, (dtype, shape) in llama_tensors("layers.0.").items()
    }
    with tempfile.TemporaryDirectory() as temporary:
        folder = write_draft(Path(temporary), llama_config(), tensors)
        if sharded:
            shard(folder, tensors)
        found = {path.name: path.read_bytes() for path in folder.iterdir()}
    for name, raw in found.items():
        if name.endswith(".safetensors"):
            start = 8 + struct.unpack_from("<Q", raw)[0]
            values = bytes((7 * i + i // 251) % 256 for i in range(len(raw) - start))
            found[name] = raw[:start] + values
    return {**found, STALE: b"old\n"}


def header_of(path: Path) -> dict[str, Any]:
    with path.open("rb") as file:
        found: dict[str, Any] = json.loads(file.read(int.from_bytes(file.read(8), "little")))
    return found


def encoded(header: dict[str, Any]) -> bytes:
    return json.dumps(header, separators=(",", ":")).encode()


def renamed(header: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """``layers.0.`` → ``midlayer.``, which is as long, and a prefix for every tensor."""
    return {
        name if name == "__metadata__" else prefix + name.replace("layers.0.", "midlayer."): entry
        for name, entry in header.items()
    }


def without(
    header: dict[str, Any], name: str, size: int
) -> tuple[dict[str, Any], tuple[Kept, ...]]:
    """A header without one tensor, and the data of ``size`` bytes without its bytes."""
    begin, end = header[name]["data_offsets"]
    left = {key: dict(entry) for key, entry in header.items() if key != name}
    for key, entry in left.items():
        if key != "__metadata__" and entry["data_offsets"][0] >= end:
            entry["data_offsets"] = [offset - (end - begin) for offset in entry["data_offsets"]]
    return left, (Kept(0, begin), Kept(end, size))


def weights_change(folder: Path, file: str, kind: str) -> WeightsChange:
    path = folder / file
    header = header_of(path)
    if kind == "moves":
        size = max(e["data_offsets"][1] for k, e in header.items() if k != "__metadata__")
        left, data = without(header, "t2d", size)
        return WeightsChange(file, encoded(renamed(left)), data)
    return WeightsChange(file, encoded(renamed(header, "model." if kind == "grows" else "")))


def change(folder: Path, kind: str = "fits", texts: bool = True) -> FolderChange:
    """A change of a draft: its weights, and texts that are replaced, created and removed."""
    if kind == "sharded":
        weights = (
            weights_change(folder, "model-1.safetensors", "fits"),
            weights_change(folder, "model-2.safetensors", "grows"),
        )
    else:
        weights = (weights_change(folder, WEIGHTS, kind),)
    files = [item.file for item in weights]
    changes: list[TextChange] = []
    if texts:
        changes.append(TextChange(CONFIG, b'{"architectures": ["Other"]}\n'))
        changes.append(TextChange(SIDE, b"{}"))
        changes.append(TextChange(STALE, None))
        if kind == "sharded":
            names = {n: item.file for item in weights for n in json.loads(item.header)}
            names.pop("__metadata__")
            changes.append(TextChange(INDEX, json.dumps({"weight_map": names}).encode()))
        files += [text.file for text in changes if text.file != SIDE]
    return FolderChange(folder, weights, tuple(changes), looked(folder, *files), f"{kind} fix")


def looked(folder: Path, *files: str) -> tuple[Seen, ...]:
    return tuple(seen(folder, file) for file in files)


# -- what is there ---------------------------------------------------------------------------------

Picture = dict[str, tuple[str, int, int, int, int]]


def picture(folder: Path) -> Picture:
    """Every file: sum, size, mode, owner and time of the last change. Our own folder counts too."""
    found: Picture = {}
    for path in sorted(folder.rglob("*")):
        status = path.lstat()
        sha256 = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
        size = status.st_size if path.is_file() else 0
        times = status.st_mtime_ns if path.is_file() else 0
        name = str(path.relative_to(folder))
        found[name] = (sha256, size, status.st_mode, status.st_uid, times)
    return found


def contents(folder: Path) -> dict[str, bytes]:
    """The draft's own files."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and ".eagle3-lint" not in path.parts
    }


def assert_readable(folder: Path) -> None:
    """The library takes every weights file."""
    for path in folder.glob("*.safetensors"):
        safetensors.deserialize(path.read_bytes())


def tensors_of(folder: Path) -> dict[str, bytes]:
    """Name without prefixes → bytes, as the library reads them."""
    found: dict[str, bytes] = {}
    for path in folder.glob("*.safetensors"):
        for name, view in safetensors.deserialize(path.read_bytes()):
            key = name.removeprefix("model.").replace("midlayer.", "layers.0.")
            found[key] = bytes(view["data"])
    return found


def can_insert(folder: Path) -> bool:
    """Whether this machine can insert blocks into files there; found out by doing it."""
    path = folder / "probe"
    path.write_bytes(b"x" * 8192)
    try:
        with opened(path, os.O_RDWR) as fd:
            if not can_shift(fd):
                return False
            with sole_user(fd) as alone:
                Disk().insert_range(fd, 4096)
                return alone
    except OSError:
        return False
    finally:
        path.unlink()


@pytest.fixture(params=["disk", "memory"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    """An empty folder: where tests usually are, or in memory, where blocks cannot be inserted."""
    if request.param == "disk" or not os.access(MEMORY, os.W_OK):
        yield tmp_path
        return
    folder = Path(tempfile.mkdtemp(prefix="eagle3-lint-", dir=MEMORY))
    yield folder
    shutil.rmtree(folder)


def failure(act: Callable[[], object]) -> InputError | None:
    """The error that an act ends with, None when it succeeds."""
    try:
        act()
    except InputError as error:
        return error
    return None


#: Every step once, for tests of thousands of calls: only growing depends on the place.
EVERY_STEP = pytest.mark.parametrize(
    ("place", "kind"),
    [("disk", "grows"), *(("memory", kind) for kind in KINDS)],
    indirect=["place"],
)

# -- disks with troubles ---------------------------------------------------------------------------

CALLS = tuple(name for name in vars(Disk) if not name.startswith("_"))


class Died(BaseException):
    """The process is gone; nothing may catch this and carry on."""


class FakeDisk(Disk):
    """Counts calls and lets a subclass do something before each. Syncing is only pretended: what
    these tests lose is a process, not power, and they make thousands of calls."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[str] = []

    def before(self, name: str, arguments: tuple[Any, ...]) -> None:
        """Called before each call is carried out."""

    def __getattribute__(self, name: str) -> Any:
        found = super().__getattribute__(name)
        if name not in CALLS:
            return found

        def call(*arguments: Any) -> Any:
            self.calls.append(name)
            self.before(name, arguments)
            return None if name.startswith("fsync") else found(*arguments)

        return call


class FailingDisk(FakeDisk):
    """The call number ``at`` fails, and with ``for_good`` all that follow."""

    def __init__(self, at: int, error: int, for_good: bool = False) -> None:
        super().__init__()
        self._at, self._error, self._for_good = at, error, for_good

    def before(self, name: str, arguments: tuple[Any, ...]) -> None:
        count = len(self.calls)
        if count == self._at or (self._for_good and count > self._at):
            raise OSError(self._error, os.strerror(self._error))


class DyingDisk(FakeDisk):
    """The process dies before the call number ``at``, or in the middle of it if it writes."""

    def __init__(self, at: int, torn: bool = False) -> None:
        super().__init__()
        self._at, self._torn = at, torn

    def before(self, name: str, arguments: tuple[Any, ...]) -> None:
        if len(self.calls) < self._at:
            return
        if len(self.calls) == self._at and self._torn and name == "pwrite":
            fd, data, offset = arguments
            os.pwrite(fd, data[: len(data) // 2], offset)
        self.die()

    def die(self) -> None:
        raise Died


class UnfinishedDisk(FakeDisk):
    """The process dies when all files are changed and only the mark is missing."""

    def before(self, name: str, arguments: tuple[Any, ...]) -> None:
        if self.dead or (name == "rename" and arguments[1].name.startswith("done-")):
            self.dead = True
            raise Died

    dead = False


def interrupted(wanted: FolderChange) -> None:
    """Carry out a change but for the last step."""
    with pytest.raises(Died):
        apply(wanted, disk=UnfinishedDisk())


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
