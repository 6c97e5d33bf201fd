"""Applies a change to a folder: prepare beside it, write the journal, swap, mark as complete.

Whatever takes long or needs space happens first, where no reader sees it. Then the journal is
written, and the files change within milliseconds of each other, weights first and config.json last.
The mark that follows is the point of no return: before it, any failure takes everything back.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import nullcontext, suppress
from dataclasses import replace
from pathlib import Path

from eagle3_lint.errors import InputError
from eagle3_lint.frozen import frozen
from eagle3_lint.write import guards
from eagle3_lint.write.back import take_back
from eagle3_lint.write.change import FolderChange, Seen, TextChange, WeightsChange
from eagle3_lint.write.compose import Copying, compose, require_space
from eagle3_lint.write.disk import Disk, opened
from eagle3_lint.write.errors import WriteFailed, reason
from eagle3_lint.write.forward import CannotInsert, carry_out, changed
from eagle3_lint.write.journal import Entry, Journal
from eagle3_lint.write.ladder import Layout, Part, Span, lay_out, size_of
from eagle3_lint.write.lock import locked
from eagle3_lint.write.look import digest, read_head
from eagle3_lint.write.result import FileWritten, Step, Written
from eagle3_lint.write.users import block_size, can_shift, sole_user
from eagle3_lint.write.workshop import NAME, Workshop, read_state, sweep

Progress = Callable[[int, int], None] | None
_CONFIG = "config.json"


@frozen
class _Job:
    """One file that changes: its journal entry, how that is called, and the new file's parts.

    Attributes:
        parts: what a new file is composed of; None when no new file is needed.
    """

    entry: Entry
    step: Step
    parts: tuple[Part, ...] | None

    @property
    def copies(self) -> int:
        """Bytes of the old file that the new one needs."""
        return size_of(tuple(part for part in self.parts or () if isinstance(part, Span)))


def apply_in_place(
    change: FolderChange, *, keep_journal: bool, progress: Progress, disk: Disk
) -> Written:
    """Carry out a change in its own folder.

    Raises:
        Refused: nothing was changed, and the line says why.
        WriteFailed: the system failed; the line says whether the old state is back.
    """
    folder = change.folder
    guards.check_change(change)
    guards.check_folder(folder)
    with locked(folder):
        settle_or_fail(disk, folder)
        not_inserted: set[str] = set()
        while True:
            try:
                return _attempt(change, not_inserted, keep_journal, progress, disk)
            except CannotInsert as error:
                # Found out too late to choose otherwise; everything is as before.
                not_inserted.add(error.file)


def settle(disk: Disk, folder: Path) -> Journal | None:
    """Take back what was interrupted and clear away what is left over; the lock must be held.

    Returns:
        The journal of what was taken back, if anything was.

    Raises:
        Refused, OSError: as :func:`take_back`.
    """
    state = read_state(folder)
    journal = None
    if state.pending is not None:
        shop = Workshop(disk, folder, state.pending)
        journal = shop.read()
        take_back(disk, folder, shop, journal)
    sweep(disk, folder)
    return journal


def settle_or_fail(disk: Disk, folder: Path) -> Journal | None:
    """As :func:`settle`, with WriteFailed in place of an OSError."""
    try:
        return settle(disk, folder)
    except OSError as error:
        raise still_pending(folder, error) from error


def still_pending(folder: Path, error: OSError) -> WriteFailed:
    return WriteFailed(
        f"{folder}: an interrupted fix cannot be taken back: {reason(error)}; any eagle3-lint"
        " command on the folder tries again"
    )


# -- one attempt -----------------------------------------------------------------------------------


def _attempt(
    change: FolderChange,
    not_inserted: set[str],
    keep_journal: bool,
    progress: Progress,
    disk: Disk,
) -> Written:
    folder, begun = change.folder, disk.written
    jobs = _plan(change, not_inserted)
    state = read_state(folder)
    shop = Workshop(disk, folder, state.last + 1)
    done: list[FileWritten] = []
    try:
        if jobs:
            done = _write(disk, folder, shop, jobs, change.title, progress)
    except BaseException as error:
        _return_to_old(disk, folder, shop, error)
        if isinstance(error, OSError):
            raise WriteFailed(_failure(folder, error)) from error
        raise
    # The fix is complete; what cannot be cleared away now will be by the next command.
    with suppress(OSError):
        if jobs:
            _clear(disk, folder, shop, keep_journal)
    return Written(
        folder=folder,
        files=tuple(done),
        bytes=disk.written - begun,
        can_undo=keep_journal and bool(jobs),
        lines=tuple(_lines(jobs, done, disk.written - begun, keep_journal)),
    )


def _write(
    disk: Disk, folder: Path, shop: Workshop, jobs: list[_Job], title: str, progress: Progress
) -> list[FileWritten]:
    shop.open()
    copying = Copying(sum(job.copies for job in jobs), progress)
    written: dict[str, tuple[Step, int]] = {}
    entries: list[Entry] = []
    for job in jobs:
        before = disk.written
        step = _prepare(disk, folder, shop, job, copying)
        written[job.entry.file] = (step, disk.written - before)
        new = shop.slot("new", job.entry.slot)
        mtime_ns = None if job.parts is None else new.stat().st_mtime_ns
        entries.append(replace(job.entry, new_mtime_ns=mtime_ns))
    shop.begin(Journal(title, tuple(entries)))
    for entry in entries:
        before = disk.written
        carry_out(disk, folder, shop, entry)
        step, count = written[entry.file]
        written[entry.file] = (step, count + disk.written - before)
    disk.fsync_folder(folder)
    shop.sync()
    shop.complete(
        {
            job.entry.file: (folder / job.entry.file).stat().st_mtime_ns
            for job in jobs
            if job.entry.way != "remove"
        }
    )
    return [FileWritten(file, step, count) for file, (step, count) in written.items()]


def _prepare(disk: Disk, folder: Path, shop: Workshop, job: _Job, copying: Copying) -> Step:
    """Compose the new file of a job, if it needs one; returns what the step turned out to be."""
    if job.parts is None:
        return job.step
    target, file = shop.slot("new", job.entry.slot), job.entry.file
    old = nullcontext() if job.entry.old is None else opened(folder / file)
    with old as source:
        composed = compose(disk, target, job.parts, source, copying, name=file)
    return "cloned" if composed.cloned else job.step


def _return_to_old(disk: Disk, folder: Path, shop: Workshop, error: BaseException) -> None:
    """After a failure: take back what was done, or say that it could not be."""
    try:
        shop.reopen()
        settle(disk, folder)
    except (InputError, OSError) as second:
        state = read_state(folder)
        if state.pending is None and state.done != shop.number:
            return  # only something useless is left over, which the next command removes
        why = reason(error) if isinstance(error, OSError) else str(error) or type(error).__name__
        then = reason(second) if isinstance(second, OSError) else str(second)
        if state.pending is None:
            message = f"the fix is complete, but the disk failed ({why}); compare it with a copy"
        else:
            message = (
                f"the fix stopped half way ({why}) and cannot be taken back yet ({then}); any"
                " eagle3-lint command on the folder takes it back once that is mended"
            )
        raise WriteFailed(f"{folder}: {message}") from error


def _failure(folder: Path, error: OSError) -> str:
    return f"{folder}: cannot be written: {reason(error)}; every file is as it was before"


def _clear(disk: Disk, folder: Path, shop: Workshop, keep_journal: bool) -> None:
    """Remove older fixes and what this one needs no more; everything when it stays for good."""
    sweep(disk, folder)
    if not keep_journal:
        shop.discard()
        shop.close()


# -- planning --------------------------------------------------------------------------------------


def _plan(change: FolderChange, not_inserted: set[str]) -> list[_Job]:
    """Look at every file once more, refuse what must be, and choose each one's step."""
    folder = change.folder
    known = {seen.file: seen for seen in change.seen}
    for file in change.files:
        if file in known:
            guards.check_file(folder, file)
        else:
            guards.check_absent(folder, file)
    guards.check_seen(folder, change.seen)
    jobs: list[_Job] = []
    for weights in change.weights:
        may_insert = weights.file not in not_inserted
        job = _weights(folder, weights, known[weights.file], len(jobs), may_insert)
        if job is not None:
            jobs.append(job)
    # The configuration is what a reader opens first, so it changes last.
    for text in sorted(change.texts, key=lambda text: text.file == _CONFIG):
        jobs.append(_text(text, known.get(text.file), len(jobs)))
    require_space(folder, sum(_needs(job) for job in jobs))
    return jobs


def _needs(job: _Job) -> int:
    """Bytes of space that a job needs at least; copies are checked when no clone spares them."""
    if job.parts is None:
        return 2 * len(job.entry.new_header)
    return size_of(job.parts) - job.copies


def _weights(
    folder: Path, change: WeightsChange, old: Seen, slot: int, may_insert: bool
) -> _Job | None:
    # Opened as for writing, which a lease asks for; nothing is written here.
    with opened(folder / change.file, os.O_RDWR) as fd:
        head = read_head(fd, change.file)
        if digest(head) != old.sha256:
            raise changed(change.file)
        if may_insert:
            with sole_user(fd) as alone:
                may_insert = alone and can_shift(fd)
        layout = lay_out(change, head, old.size, block=block_size(fd), may_insert=may_insert)
    if layout.header == head and not layout.moves_data:
        return None
    return _Job(_weights_entry(change.file, old, slot, head, layout), layout.step, _parts(layout))


def _parts(layout: Layout) -> tuple[Part, ...] | None:
    return layout.parts if layout.step == "streamed" else None


def _weights_entry(file: str, old: Seen, slot: int, head: bytes, layout: Layout) -> Entry:
    return Entry(
        file=file,
        slot=slot,
        way="swap" if layout.step == "streamed" else "header",
        old=old,
        new_size=layout.size,
        new_sha256=digest(layout.header),
        # Without them the old file cannot be put together; when its data move, it is kept.
        old_header=b"" if layout.moves_data else head,
        new_header=b"" if layout.moves_data else layout.header,
        keeps_old=layout.moves_data,
    )


def _text(change: TextChange, old: Seen | None, slot: int) -> _Job:
    content = change.content
    if content is None:
        return _Job(Entry(change.file, slot, "remove", old, 0, "", keeps_old=True), "removed", None)
    entry = Entry(
        file=change.file,
        slot=slot,
        way="create" if old is None else "swap",
        old=old,
        new_size=len(content),
        new_sha256=digest(content),
        keeps_old=old is not None,
    )
    return _Job(entry, "text created" if old is None else "text replaced", (content,))


# -- words -----------------------------------------------------------------------------------------

_WORDS: dict[Step, str] = {
    "in place": "header rewritten in place",
    "block inserted": "header grown in place, the data moved up without copying",
    "streamed": "written anew",
    "cloned": "written anew, sharing its data with the old file",
    "text replaced": "replaced",
    "text created": "created",
    "removed": "removed",
}


def _lines(jobs: list[_Job], done: list[FileWritten], total: int, keep_journal: bool) -> list[str]:
    if not jobs:
        return ["nothing to write: the files are already so"]
    lines = [f"{file.file}: {_WORDS[file.step]} ({file.bytes:,} bytes)" for file in done]
    lines.append(f"{total:,} bytes written in all, the journal included")
    if keep_journal:
        for job in jobs:
            old = job.entry.old
            if job.entry.keeps_old and job.entry.way == "swap" and job.step == "streamed" and old:
                lines.append(
                    f"the old {job.entry.file} ({old.size:,} bytes) is kept in {NAME} until the"
                    " next fix; --no-journal keeps nothing"
                )
    return lines
