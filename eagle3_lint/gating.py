"""``gate``: a check that raises, for the end of a training."""

from __future__ import annotations

import pickle
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from pathlib import Path
from textwrap import shorten
from typing import Any

from eagle3_lint.checking import check
from eagle3_lint.diagnostic import SEVERITIES, Diagnostic
from eagle3_lint.errors import InputError
from eagle3_lint.report.model import CheckpointReport, Report, Result
from eagle3_lint.settings import FailOn

_FAIL_ON: tuple[FailOn, ...] = ("error", "warning", "never")
#: Findings that the message words, and the width it cuts them to: it ends up in the log of a job.
_FINDINGS, _WIDTH = 5, 240


class GateError(Exception):
    """A draft did not pass; as text, what each target makes of it and the findings, in few lines.

    Attributes:
        report: the whole report.
        fail_on: the least severity that did not pass.
    """

    def __init__(self, report: Report, fail_on: FailOn) -> None:
        super().__init__(report, fail_on)  # what pickle calls the class with
        self.report, self.fail_on = report, fail_on

    def __str__(self) -> str:
        return "\n".join(
            line for draft in self.report.checkpoints for line in _message(draft, self.fail_on)
        )


def gate(
    path: str | Path,
    targets: Iterable[str] = (),
    target_model: str | None = None,
    *,
    fail_on: FailOn = "error",
    **options: Any,
) -> Report:
    """Check a draft, and raise when there is a finding at or above ``fail_on``.

    Where torch.distributed has a process group, every rank has to call this: rank 0 alone reads the
    draft, and all of them return the same report or raise the same error. Nothing is imported for
    that, so a process without torch or without a group just checks.

    Args:
        path: a draft folder or a file inside one, as rank 0 sees it.
        fail_on: ``error``, ``warning`` or ``never``.
        targets, target_model, options: as for :func:`eagle3_lint.check`.

    Raises:
        GateError: there is such a finding; its ``report`` has them all.
        InputError: bad input of any kind.
        RuntimeError: on the other ranks, when what stopped rank 0 cannot be handed over.
    """
    return gate_found(
        lambda: path, targets=targets, target_model=target_model, fail_on=fail_on, **options
    )


def gate_found(find: Callable[[], str | Path], *, fail_on: FailOn, **how: Any) -> Report:
    """The same for a draft that rank 0 has to find, or to make, first."""
    if fail_on not in _FAIL_ON:
        raise InputError(f"fail_on={fail_on!r}: it is one of {', '.join(map(repr, _FAIL_ON))}")
    report = on_first_rank(lambda: check(find(), **how))
    if report.fails(fail_on):
        raise GateError(report, fail_on)
    return report


# -- ranks ----------------------------------------------------------------------------------------


def on_first_rank(ask: Callable[[], Report]) -> Report:
    """What ``ask`` returns or raises on rank 0, on every rank."""
    distributed = _process_group()
    if distributed is None:
        return ask()
    report, error = None, None
    if distributed.get_rank() == 0:
        try:
            report = ask()
        except BaseException as raised:  # whatever it is, the other ranks are waiting
            error = raised
    answer = [(report, None if error is None else _portable(error))]
    distributed.broadcast_object_list(answer, src=0)
    if error is None:
        report, error = answer[0]
    if error is not None:
        raise error
    assert report is not None
    return report


def _process_group() -> Any:
    """torch.distributed, if this process has imported it and is one of several ranks."""
    distributed: Any = sys.modules.get("torch.distributed")
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        return None
    return distributed if distributed.get_world_size() > 1 else None


def _portable(error: BaseException) -> Exception:
    """An error that other processes can raise: itself, if pickle brings it back as it was."""
    # An interrupt or an exit of rank 0 is not theirs.
    if isinstance(error, Exception):
        try:
            copy = pickle.loads(pickle.dumps(error))
            if type(copy) is type(error) and str(copy) == str(error):
                return error
        except Exception:  # an exception may define anything, and fail at it
            pass
    return RuntimeError(f"on rank 0, {traceback.format_exception_only(error)[-1].strip()}")


# -- the message ----------------------------------------------------------------------------------


def _message(draft: CheckpointReport, fail_on: FailOn) -> Iterator[str]:
    yield f"{draft.path} does not pass"
    yield from verdicts(draft)
    least = SEVERITIES.index(fail_on)
    by_rule: dict[str, list[Diagnostic]] = {}
    for result in draft.results:
        for d in result.diagnostics:
            if SEVERITIES.index(d.severity) >= least:
                by_rule.setdefault(d.rule, []).append(d)
    found = sorted(by_rule.values(), key=lambda of: -SEVERITIES.index(of[0].severity))
    for first, *others in found[:_FINDINGS]:
        more = f" (and {len(others)} more of this rule)" if others else ""
        text = shorten(first.message, _WIDTH, placeholder=" …")
        yield f"  {first.severity}[{first.rule}] {text}{more}"
    if len(found) > _FINDINGS:
        yield f"  and findings of {len(found) - _FINDINGS} more rules"
    yield f"  `eagle3-lint check {draft.path}` with these targets says where, and what mends it"


def verdicts(draft: CheckpointReport) -> Iterator[str]:
    """One line a target; neighbouring releases that agree share one."""
    for (runtime, model, verdict), group in groupby(draft.results, key=_kind):
        releases = [result.target.release for result in group]
        span = releases[0] if len(releases) == 1 else f"{releases[0]} - {releases[-1]}"
        serving = f" serving {model}" if model is not None else ""
        yield f"  {runtime} {span}{serving}: {verdict}"


def _kind(result: Result) -> tuple[str, str | None, str]:
    return result.target.runtime, result.target.model, result.verdict
