"""Power is lost at any moment: what was not synced is gone, in part or altogether.

A fix is recorded call by call. Then, for every moment, the disk is rebuilt as it may be after a
loss of power: of the changes of names in a folder, a disk keeps all up to some point, and at least
those before the folder was last synced; of the bytes written, it keeps those that were synced, and
of the others all or none. The next start must make of it the old draft or the new
one, and once the fix has returned, the new one.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any, Literal, NamedTuple

import pytest

from eagle3_lint.write import Disk, apply, recover, undo
from tests.unit.write.scenes import CALLS, EVERY_STEP, assert_readable, change, contents, draft

Keep = Literal["all", "blocks", "none"]


class Call(NamedTuple):
    """One call: a change of a name, of bytes, or a sync.

    Attributes:
        kind: ``name``, ``bytes`` or ``sync``.
        what: the file or folder that a sync makes last.
        redo: its method's name and arguments, files by number and paths by name.
    """

    kind: str
    what: object
    redo: tuple[Any, ...]

    @property
    def folders(self) -> frozenset[str]:
        """The folders whose names it changes."""
        if self.kind != "name":
            return frozenset()
        name, *paths = self.redo
        if name == "open":
            paths = paths[:1]
        if name == "link":
            paths = paths[1:]
        return frozenset(str(Path(path).parent) for path in paths)


class Recorder(Disk):
    """Carries everything out and remembers it. Files are numbered in the order of their opening."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.folder, self.calls, self._files, self._count = folder, list[Call](), {}, 0

    def __getattribute__(self, name: str) -> Any:
        found = super().__getattribute__(name)
        if name not in CALLS:
            return found

        def call(*arguments: Any) -> Any:
            return super(Recorder, self).__getattribute__("record")(name, found, arguments)

        return call

    def record(self, name: str, method: Any, arguments: tuple[Any, ...]) -> Any:
        there = name == "open" and arguments[0].exists()
        result = method(*arguments)
        shown = tuple(
            str(value.relative_to(self.folder)) if isinstance(value, Path) else value
            for value in arguments
        )
        if name == "open":
            self._count += 1
            self._files[result] = self._count
            kind = "bytes" if there else "name"
            self.calls.append(Call(kind, shown[0], (name, *shown, self._count)))
        elif name == "fsync":
            number, mtime_ns = self._files[arguments[0]], os.fstat(arguments[0]).st_mtime_ns
            self.calls.append(Call("sync", number, (name, number, mtime_ns)))
        elif name == "fsync_folder":
            self.calls.append(Call("sync", shown[0], (name,)))
        elif name in ("mkdir", "rmdir", "link", "unlink", "rename"):
            parent = str(Path(shown[-1]).parent)
            self.calls.append(Call("name", parent, (name, *shown)))
        elif name in ("copy_range", "clone_range"):
            _, target, _, at, count = arguments
            copied = os.pread(target, count if name == "clone_range" else result, at)
            redo = ("pwrite", self._files[target], copied, at)
            self.calls.append(Call("bytes", self._files[target], redo))
        elif name in ("pwrite", "insert_range", "collapse_range"):
            number = self._files[arguments[0]]
            self.calls.append(Call("bytes", number, (name, number, *arguments[1:])))
        return result


def after_power_loss(calls: list[Call], moment: int) -> Iterator[list[Call]]:
    """What a disk may have kept of the calls before a moment: call lists to carry out."""
    past = calls[:moment]
    folders = [call.folders for call in past]
    # For every folder, the last change of a name in it that must be there.
    least = {
        folder: max((i for i in range(at) if folder in folders[i]), default=-1)
        for at, call in enumerate(past)
        if call.redo[0] == "fsync_folder"
        for folder in [call.what]
    }
    loose = {
        i
        for i, call in enumerate(past)
        if call.kind == "bytes"
        and call.redo[0] != "open"
        and not any(c.kind == "sync" and c.what == call.what for c in past[i + 1 :])
    }
    keeps: tuple[Keep, ...] = ("all", "blocks", "none") if loose else ("all",)
    found: set[frozenset[int]] = set()
    for names in _names(folders, least):
        for keep in keeps:
            gone = {i for i in loose if not _kept(past[i], keep)}
            kept = frozenset(
                i for i, call in enumerate(past) if i not in gone and (not folders[i] or i in names)
            )
            if kept not in found:
                found.add(kept)
                yield [past[i] for i in sorted(kept)]


def _names(folders: list[frozenset[str]], least: dict[object, int]) -> Iterator[set[int]]:
    """Sets of changes of names that can be there together.

    Each folder keeps its changes up to some point. One that concerns two folders, a rename, is in
    both or in none.
    """
    every = sorted(set().union(*folders))
    changes = {f: [i for i, those in enumerate(folders) if f in those] for f in every}
    choices = [[least.get(f, -1), *(i for i in changes[f] if i > least.get(f, -1))] for f in every]
    for ends in product(*choices):
        until = dict(zip(every, ends, strict=True))
        while True:
            kept = {i for f in every for i in changes[f] if i <= until[f]}
            raised = {f: max((i for i in kept if f in folders[i]), default=-1) for f in every}
            if all(raised[f] <= until[f] for f in every):
                break
            until = {f: max(raised[f], until[f]) for f in every}
        yield kept


def _kept(call: Call, keep: Keep) -> bool:
    """Whether bytes that were not synced are there; moved blocks are a record, like a name."""
    return keep == "all" or (keep == "blocks" and call.redo[0] != "pwrite")


def rebuild(calls: list[Call], folder: Path) -> None:
    """Carry calls out again in a copy of the folder from before them."""
    disk, files = Disk(), dict[int, int]()
    try:
        for call in calls:
            name, *arguments = call.redo
            if name == "fsync":
                number, mtime_ns = arguments
                if number in files:
                    os.utime(files[number], ns=(mtime_ns, mtime_ns))
                continue
            if name == "fsync_folder":
                continue
            if name == "open":
                path, flags, number = arguments
                # Not if its folder was lost, or the file that is only opened to be written.
                if (folder / path).exists() or (
                    call.kind == "name" and (folder / path).parent.exists()
                ):
                    files[number] = disk.open(folder / path, flags & ~os.O_TRUNC)
            elif call.kind == "bytes":
                if arguments[0] in files:
                    getattr(disk, name)(files[arguments[0]], *arguments[1:])
            elif all((folder / path).parent.exists() for path in arguments):
                getattr(disk, name)(*(folder / path for path in arguments))
    finally:
        for fd in files.values():
            os.close(fd)


@pytest.mark.parametrize("what", ["fix", "undo", "second fix"])
@EVERY_STEP
def test_power_is_lost(place: Path, kind: str, what: str) -> None:
    folder = draft(place / "draft", kind)
    if what == "second fix":
        apply(change(folder, "sharded" if kind == "sharded" else "fits", texts=False))
    original = contents(folder)
    if what == "undo":
        apply(change(folder, kind))
    fixed = contents(folder)
    start = place / "start"
    shutil.copytree(folder, start)
    recorder = Recorder(folder)
    if what == "undo":
        undo(folder, disk=recorder)
        states = {"old": original, "new": fixed}
        final = "old"
    else:
        apply(change(folder, kind), disk=recorder)
        states = {"old": original, "new": contents(folder)}
        final = "new"
    calls, outcomes = recorder.calls, list[str]()
    for moment in range(len(calls) + 1):
        for number, kept in enumerate(after_power_loss(calls, moment)):
            copy = place / f"{moment}-{number}"
            shutil.copytree(start, copy)
            rebuild(kept, copy)
            recover(copy)
            found = contents(copy)
            (outcome,) = {name for name, state in states.items() if state == found} or {"mixed"}
            assert outcome in states, f"after {len(kept)} of {moment} calls: {calls[:moment][-4:]}"
            assert_readable(copy)
            outcomes.append(outcome)
            if moment == len(calls):
                assert outcome == final, "it returned, and yet the result was lost"
            shutil.rmtree(copy)
    assert set(outcomes) == {"old", "new"}
