"""Writes the changed draft to a new folder; the source is only read.

Everything is written into a hidden folder beside the new one, whose name it gets at the very end.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import nullcontext, suppress
from pathlib import Path

from eagle3_lint.frozen import frozen
from eagle3_lint.write import guards
from eagle3_lint.write.back import Progress
from eagle3_lint.write.change import FolderChange
from eagle3_lint.write.compose import Copying, compose
from eagle3_lint.write.disk import Disk, opened
from eagle3_lint.write.errors import Refused, WriteFailed, reason
from eagle3_lint.write.ladder import Part, Span, lay_out, size_of
from eagle3_lint.write.lock import Busy, locked
from eagle3_lint.write.look import read_head
from eagle3_lint.write.result import FileWritten, Step, Written
from eagle3_lint.write.users import block_size
from eagle3_lint.write.workshop import read_state


@frozen
class _File:
    """A file of the new folder: where it goes, where from (None: new bytes alone), its parts."""

    name: str
    source: Path | None
    parts: tuple[Part, ...]
    changed: bool


def write_output(change: FolderChange, output: Path, *, progress: Progress, disk: Disk) -> Written:
    """Write the draft of ``change.folder``, changed, to the folder ``output``.

    Raises:
        Refused: nothing was written, and the line says why.
        WriteFailed: the system failed; nothing is at ``output``.
    """
    guards.check_change(change)
    source, target = Path(os.path.abspath(change.folder)), Path(os.path.abspath(output))
    _check_folders(source, target)
    partial = target.parent / f".{target.name}.eagle3-lint-partial"
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        if not partial.exists():
            disk.mkdir(partial)
        with locked(partial, 0.0):
            written = _write(change, source, partial, target, progress, disk)
        if partial.exists():
            disk.rmdir(partial)
    except Busy:
        raise Refused(f"{target}: another eagle3-lint is writing it; wait until it is done") from (
            None
        )
    except BaseException as error:
        with suppress(OSError):
            _remove_tree(disk, partial)
        if isinstance(error, OSError):
            raise WriteFailed(
                f"{target}: cannot be written: {reason(error)}; nothing is there, and"
                f" {source} was only read"
            ) from error
        raise
    return written


def _check_folders(source: Path, target: Path) -> None:
    try:
        if read_state(source).pending is not None:
            raise Refused(
                f"{source}: a fix was interrupted there; any eagle3-lint command on it takes that"
                " back"
            )
    except OSError as error:
        raise Refused(f"{source}: cannot be read: {reason(error)}") from error
    inner, outer = target.resolve(), source.resolve()
    if inner == outer or outer in inner.parents or inner in outer.parents:
        raise Refused(f"{target}: the new folder must be outside the draft's; give another DIR")
    if not os.path.lexists(target):
        return
    if target.is_symlink() or not target.is_dir():
        raise Refused(f"{target}: it exists and is no folder; give another DIR")
    if os.listdir(target):
        raise Refused(f"{target}: it exists and is not empty; give another DIR")


def _write(
    change: FolderChange,
    source: Path,
    partial: Path,
    target: Path,
    progress: Progress,
    disk: Disk,
) -> Written:
    begun, draft = disk.written, partial / "draft"
    _remove_tree(disk, draft)  # of an earlier run that was killed
    guards.check_seen(source, change.seen)
    left_out: list[str] = []
    files = list(_files(change, source, left_out))
    copying = Copying(sum(_copies(file) for file in files), progress)
    folders = [draft]
    disk.mkdir(draft)
    done: list[FileWritten] = []
    for file in files:
        path = draft / file.name
        for folder in reversed(path.relative_to(draft).parents):
            if draft / folder not in folders:
                disk.mkdir(draft / folder)
                folders.append(draft / folder)
        before = disk.written
        step = _compose(disk, path, file, copying)
        done.append(FileWritten(file.name, step, disk.written - before))
    guards.check_seen(source, change.seen)  # nobody changed them while they were copied
    for folder in reversed(folders):
        disk.fsync_folder(folder)
    if target.exists() and os.name == "nt":  # elsewhere an empty folder gives way by itself
        disk.rmdir(target)
    disk.rename(draft, target)
    disk.fsync_folder(target.parent)
    total = disk.written - begun
    return Written(target, tuple(done), total, False, tuple(_lines(target, done, left_out, total)))


def _files(change: FolderChange, source: Path, left_out: list[str]) -> Iterator[_File]:
    """Every file of the new folder, the unchanged ones first."""
    weights = {item.file: item for item in change.weights}
    texts = {item.file: item for item in change.texts}
    known = {seen.file for seen in change.seen}
    for name in sorted(_walk(source, "", (), left_out)):
        if name not in weights and name not in texts:
            size = (source / name).stat().st_size
            yield _File(name, source / name, (Span(0, size),), False)
    for item in weights.values():
        yield _File(item.file, source / item.file, _parts(source, change, item.file), True)
    for text in texts.values():
        path = source / text.file
        if text.file not in known:
            guards.check_absent(source, text.file)
        if text.content is not None:
            yield _File(text.file, path if text.file in known else None, (text.content,), True)


def _walk(folder: Path, prefix: str, above: tuple[Path, ...], left_out: list[str]) -> Iterator[str]:
    """Names of all files, links resolved. Hidden folders (.git, .cache) are not part of a draft."""
    here = folder.resolve()
    with os.scandir(folder) as entries:
        for entry in entries:
            name = prefix + entry.name
            if entry.is_file():
                yield name
            elif not entry.is_dir() or entry.name.startswith(".") or here in above:
                left_out.append(name)
            else:
                yield from _walk(folder / entry.name, f"{name}/", (*above, here), left_out)


def _parts(source: Path, change: FolderChange, name: str) -> tuple[Part, ...]:
    (item,) = (item for item in change.weights if item.file == name)
    with opened(source / name) as fd:
        head, size = read_head(fd, name), os.fstat(fd).st_size
        return lay_out(item, head, size, block=block_size(fd), may_insert=False).parts


def _copies(file: _File) -> int:
    return size_of(tuple(part for part in file.parts if isinstance(part, Span)))


def _compose(disk: Disk, path: Path, file: _File, copying: Copying) -> Step:
    with nullcontext() if file.source is None else opened(file.source) as source:
        composed = compose(disk, path, file.parts, source, copying, name=file.name, own=True)
    if composed.cloned:
        return "cloned"
    if _copies(file):
        return "copied"
    return "text created" if file.source is None else "text replaced"


def _remove_tree(disk: Disk, path: Path) -> None:
    if not path.exists():
        return
    with os.scandir(path) as entries:
        for entry in list(entries):
            if entry.is_dir(follow_symlinks=False):
                _remove_tree(disk, Path(entry.path))
            else:
                disk.unlink(Path(entry.path))
    disk.rmdir(path)


def _lines(target: Path, done: list[FileWritten], left_out: list[str], total: int) -> Iterator[str]:
    for file in done:
        yield f"{file.file}: {file.step} ({file.bytes:,} bytes)"
    if left_out:
        yield f"left out: {', '.join(sorted(left_out))}"
    yield f"{total:,} bytes written to {target}"
