"""Power is lost at any moment: what was not synced is gone, in part or altogether.

A fix is recorded call by call. Then, for every moment, the disk is rebuilt as it may be after a
loss of power: of the changes of names, a disk keeps all up to some point that lies after the last
synced one (file systems with a journal keep their order); of the bytes written, it keeps those that
were synced, and of the others all or none. The next start must make of it the old draft or the new
one, and once the fix has returned, the new one.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
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
            self.calls.append(Call("sync", self._files[arguments[0]], (name,)))
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

    def lasts(index: int) -> bool:
        call = past[index]
        what = str(Path(call.what).parent) if call.redo[0] == "open" else call.what
        if call.kind == "bytes":
            what = call.what
        return any(c.kind == "sync" and c.what == what for c in past[index + 1 :])

    names = [i for i, call in enumerate(past) if call.kind == "name"]
    lasting = max((i for i in names if lasts(i)), default=-1)
    loose = {i for i, call in enumerate(past) if call.kind == "bytes" and call.redo[0] != "open"}
    loose = {i for i in loose if not lasts(i)}
    keeps: tuple[Keep, ...] = ("all", "blocks", "none") if loose else ("all",)
    for end in [lasting, *(i for i in names if i > lasting)]:
        for keep in keeps:
            yield [
                call
                for i, call in enumerate(past)
                if not (call.kind == "name" and i > end)
                and not (i in loose and not _kept(call, keep))
            ]


def _kept(call: Call, keep: Keep) -> bool:
    """Whether bytes that were not synced are there; moved blocks are a record, like a name."""
    return keep == "all" or (keep == "blocks" and call.redo[0] != "pwrite")


def rebuild(calls: list[Call], folder: Path) -> None:
    """Carry calls out again in a copy of the folder from before them."""
    disk, files = Disk(), dict[int, int]()
    try:
        for call in calls:
            name, *arguments = call.redo
            if call.kind == "sync":
                continue
            if name == "open":
                path, flags, number = arguments
                # A file whose name was lost, or one that is only opened to be written.
                if call.kind == "name" or (folder / path).exists():
                    files[number] = disk.open(folder / path, flags & ~os.O_TRUNC)
            elif call.kind == "bytes":
                if arguments[0] in files:
                    getattr(disk, name)(files[arguments[0]], *arguments[1:])
            else:
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
