"""Many drafts: which ones, which of them here, and all of them checked side by side.

A check holds the interpreter nearly all the time, so threads would wait for each other: the
workers are processes. They are started anew (``spawn``), which every system has and which takes
nothing along from a process that may have threads; so what they run has to be picklable.
"""

from __future__ import annotations

import os
import re
import signal
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from eagle3_lint.errors import InputError
from eagle3_lint.frozen import frozen
from eagle3_lint.report.model import CheckpointReport, ProducerReport, Report

if TYPE_CHECKING:
    from concurrent.futures import Future, ProcessPoolExecutor

    from eagle3_lint.settings import FailOn

Answer = TypeVar("Answer")
Entry = TypeVar("Entry")

#: Started by themselves, no more than this: disks and login nodes have other users.
MOST_JOBS = 8
#: A process needs about as long to start as it needs for this many drafts (docs/fleets.md).
WORTH_A_PROCESS = 64
#: Drafts handed out ahead of the one whose report is next, for each process: enough that a slow
#: draft stops nobody, few enough that nothing piles up.
_AHEAD = 4

_SHARD = re.compile(r"\s*(\d{1,9})\s*/\s*(\d{1,9})\s*")


# -- which drafts -------------------------------------------------------------------------------


def read_list(given: str) -> tuple[str, ...]:
    """The paths that a text file names, one a line; ``-`` is standard input.

    White space around a path, empty lines, and lines that begin with ``#`` are nothing. A path is
    taken as it stands, from the working directory and not from the list's folder.

    Raises:
        InputError: it cannot be read, or is not UTF-8.
    """
    shown = "standard input" if given == "-" else given
    try:
        raw = sys.stdin.buffer.read() if given == "-" else Path(given).read_bytes()
    except (OSError, ValueError) as error:  # ValueError: a null byte in the path
        reason = getattr(error, "strerror", None) or error
        raise InputError(
            f"{shown}: the list cannot be read: {reason}; give a text file with one path a line"
        ) from None
    try:
        lines = [line.strip() for line in raw.decode("utf-8-sig").split("\n")]
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise InputError(
            f"{shown}:{line}: the list is not UTF-8; write one path a line in UTF-8"
        ) from None
    return tuple(line for line in lines if line and not line.startswith("#"))


@frozen
class Shard:
    """One of ``of`` parts of a list, counted from 1."""

    index: int
    of: int

    def __str__(self) -> str:
        return f"{self.index}/{self.of}"

    def part(self, entries: Sequence[Entry]) -> tuple[Entry, ...]:
        """Every ``of``-th entry: entry k, counted from 0, where k mod ``of`` is ``index`` - 1.

        Neighbours in a list are often alike, so this spreads the slow ones.
        """
        return tuple(entries[self.index - 1 :: self.of])


def parse_shard(text: str) -> Shard:
    """``3/8``: the third of eight parts.

    Raises:
        InputError: it is not of that form, or there is no such part.
    """
    match = _SHARD.fullmatch(text)
    if match is None:
        raise InputError(f"shard {text!r}: write I/N, such as 3/8 for the third of eight parts")
    index, of = int(match[1]), int(match[2])
    if not 1 <= index <= of:
        parts = f"parts are counted from 1/{of} to {of}/{of}" if of else "there are no parts"
        zero = "; add 1 to an index that is counted from 0" if of and not index else ""
        raise InputError(f"shard {text!r}: {parts}{zero}")
    return Shard(index, of)


# -- one draft ----------------------------------------------------------------------------------


def check_one(
    path: str | Path, targets: Iterable[str] = (), target_model: str | None = None, **question: Any
) -> CheckpointReport:
    """The report on one draft, whatever is in it: for pools, clusters and queues.

    It reads the draft and nothing else depends on it: no state, no output, and what goes in and
    comes out is picklable. A draft that cannot be read is a report whose ``error`` says why. So is
    a question that cannot be answered (a runtime that does not exist):
    :func:`check_question` asks about that beforehand.

    Args:
        question: as :func:`eagle3_lint.check` takes it.
    """
    return _told(partial(_check, tuple(targets), target_model, question), str(path))


def _check(
    targets: tuple[str, ...], target_model: str | None, question: dict[str, Any], path: str
) -> Report:
    from eagle3_lint.checking import check

    return check(path, targets, target_model, **question)


def _told(check: Callable[[str], Report], path: str) -> CheckpointReport:
    """What a check says of one draft, or why it says nothing."""
    try:
        [checkpoint] = check(path).checkpoints
    except InputError as error:
        return unreadable(path, str(error))
    except Exception as error:
        # A mistake of ours that one draft in a thousand shows must not cost the answers about the
        # others. The place is for whoever mends it.
        return unreadable(path, f"{path}: {_defect(error)}")
    return checkpoint


def _defect(error: Exception) -> str:
    at = error.__traceback__
    while at is not None and at.tb_next is not None:
        at = at.tb_next
    where = f" at {Path(at.tb_frame.f_code.co_filename).name}:{at.tb_lineno}" if at else ""
    what = " ".join(f"{type(error).__name__}: {error}".split())
    return f"a defect of eagle3-lint{where}: {what}; please report it, with config.json"


def unreadable(path: str, error: str) -> CheckpointReport:
    """The entry of a draft that nothing is known of."""
    return CheckpointReport(
        path, ProducerReport("unknown", None, "unknown"), "unknown", (), error=error
    )


def check_question(
    targets: Iterable[str] = (),
    target_model: str | None = None,
    *,
    rules: Path | None = None,
    launch: str | None = None,
    **others: Any,
) -> None:
    """What is wrong with a question whatever the draft, once instead of with every draft.

    Args:
        others: the rest of a question, which depends on the draft or cannot be wrong.

    Raises:
        InputError: no such runtime, release, target model or launch command.
    """
    from eagle3_lint.models import find_target_model
    from eagle3_lint.releases import parse_targets

    wanted = parse_targets(targets, rules)
    if target_model is not None:
        find_target_model(target_model, rules)
    if launch is not None:
        from eagle3_lint.launch.parse import read_launch

        read_launch(launch, None, rules).of_its_runtime(wanted)


# -- all of them --------------------------------------------------------------------------------


def check_many(
    paths: Iterable[str | Path],
    targets: Iterable[str] = (),
    target_model: str | None = None,
    *,
    jobs: int = 1,
    step: Callable[[], None] | None = None,
    **question: Any,
) -> Report:
    """One report on many drafts, in their order. A draft that cannot be read is an entry of it.

    Args:
        paths: draft folders or files in them; one that occurs again is checked once.
        jobs: processes to check them in; 1 starts none. A script that asks for more needs the
            usual ``if __name__ == "__main__"`` of :mod:`multiprocessing`.
        step: called after every draft, in this process.
        question: as :func:`eagle3_lint.check` takes it.

    Raises:
        InputError: the question itself is wrong, whatever the draft.
    """
    asked = tuple(targets)
    check_question(asked, target_model, **question)
    return check_all(map(str, paths), partial(_check, asked, target_model, question), jobs, step)


def check_all(
    paths: Iterable[str],
    check: Callable[[str], Report],
    jobs: int = 1,
    step: Callable[[], None] | None = None,
) -> Report:
    """The same with a check of one's own, picklable where there is more than one job."""
    found = []
    for told in side_by_side(partial(_told, check), once(paths), jobs, _died):
        found.append(told)
        if step is not None:
            step()
    return Report(tuple(found))


def once(paths: Iterable[str]) -> tuple[str, ...]:
    """Every path where it stands first."""
    return tuple(dict.fromkeys(paths))


def _died(path: str) -> CheckpointReport:
    return unreadable(
        path,
        f"{path}: the process that read it was ended from outside (too little memory, perhaps);"
        " check it alone, or all of them with fewer --jobs",
    )


def exit_code(report: Report, fail_on: FailOn) -> int:
    """The exit code for many drafts.

    Returns:
        2 when there are drafts and none could be read; 1 when one could not, whatever ``fail_on``
        is (nothing is known of it), or when a finding is at or above ``fail_on``; else 0.
    """
    unread = sum(checkpoint.error is not None for checkpoint in report.checkpoints)
    if unread and unread == len(report.checkpoints):
        return 2
    return 1 if unread or report.fails(fail_on) else 0


def usual_jobs(drafts: int) -> int:
    """How many processes so many drafts are worth on this machine."""
    # Not all of a machine's processors need be ours (a job scheduler's, taskset's).
    ours = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return max(1, min(ours or 1, MOST_JOBS, drafts // WORTH_A_PROCESS))


# -- processes ----------------------------------------------------------------------------------


def side_by_side(
    function: Callable[[str], Answer],
    entries: Iterable[str],
    jobs: int,
    lost: Callable[[str], Answer],
) -> Iterator[Answer]:
    """What a function makes of every entry, in their order, by several processes at once.

    A process that dies takes the pool with it, and which entry it died of is not told. Those that
    were under way are then done one by one, which tells.

    Args:
        function: picklable, as its answers are; it is to raise nothing.
        jobs: how many processes; 1 is this one.
        lost: stands in for an answer of a process that died.

    Raises:
        InputError: no process can be started.
    """
    todo = deque(entries)
    jobs = min(jobs, len(todo))
    if jobs <= 1:
        yield from map(function, todo)
        return
    from concurrent.futures.process import BrokenProcessPool

    suspects = 0
    while todo:
        batch = tuple(islice(todo, suspects or None))
        answers = _alone(function, batch) if suspects else _by_pool(function, batch, jobs)
        try:
            for answer in answers:
                todo.popleft()
                suspects = max(0, suspects - 1)
                yield answer
        except BrokenProcessPool:
            if suspects:
                suspects -= 1
                yield lost(todo.popleft())
            else:
                suspects = min(jobs * _AHEAD, len(todo))


def _by_pool(
    function: Callable[[str], Answer], entries: Iterable[str], jobs: int
) -> Iterator[Answer]:
    with _pool(jobs) as pool:
        waiting: deque[Future[Answer]] = deque()
        for entry in entries:
            waiting.append(pool.submit(function, entry))
            if len(waiting) == jobs * _AHEAD:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


def _alone(function: Callable[[str], Answer], entries: Iterable[str]) -> Iterator[Answer]:
    """One process, and one entry at a time."""
    from concurrent.futures.process import BrokenProcessPool

    with _pool(1) as pool:
        try:
            pool.submit(_begun).result()
        except BrokenProcessPool:
            raise InputError(
                "no process can be started to check drafts in; use one job (a script that asks for"
                ' more needs `if __name__ == "__main__":`)'
            ) from None
        for entry in entries:
            yield pool.submit(function, entry).result()


@contextmanager
def _pool(jobs: int) -> Iterator[ProcessPoolExecutor]:
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    pool = ProcessPoolExecutor(jobs, get_context("spawn"), _begin)
    try:
        yield pool
    finally:
        pool.shutdown(cancel_futures=True)


def _begin() -> None:
    """What a worker does first."""
    from multiprocessing import parent_process
    from threading import Thread

    # Ctrl-C reaches every process of a terminal; the parent's answer to it ends the workers.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = parent_process()
    if parent is not None:
        # The pool's own workers wait for ever when their parent is killed.
        Thread(target=_leave_with, args=(parent,), daemon=True).start()


def _begun() -> None:
    """Nothing; a worker that answers has started."""


def _leave_with(parent: Any) -> None:
    parent.join()
    os._exit(1)
