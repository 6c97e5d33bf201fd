"""Neighbouring releases of which the same can be said."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import groupby

from eagle3_lint.diagnostic import Fix
from eagle3_lint.frozen import frozen
from eagle3_lint.report.model import Result, TargetReport

_FEW = 3


def unnamed(message: str, target: TargetReport) -> str:
    """A message that speaks of the runtime where it spoke of the release."""
    named = re.escape(f"{target.runtime} {target.release}")
    # 0.5.1 is no part of 0.5.12 or 0.5.1.post1, but it may end a sentence.
    return re.sub(rf"\b{named}(?!\.?[0-9A-Za-z])", target.runtime, message)


def span(releases: Sequence[str]) -> str:
    """``0.5.9``, or ``0.5.9 – 0.5.12`` for several."""
    return releases[0] if len(releases) == 1 else f"{releases[0]} – {releases[-1]}"


@frozen
class Group:
    """Results of neighbouring releases of one runtime that differ in nothing but the release."""

    results: tuple[Result, ...]

    @property
    def first(self) -> Result:
        return self.results[0]

    @property
    def label(self) -> str:
        """Runtime, releases, and the sources where those were asked for."""
        target = self.first.target
        names = [r.target.release for r in self.results]
        # Few may be asked for one by one, with others between them.
        few = len(names) <= _FEW
        releases = ", ".join(names) if few else f"{span(names)} ({len(names)} releases)"
        where = "installed" if target.sources == target.runtime else target.sources
        return f"{target.runtime} {releases}" + (f" ({where})" if where is not None else "")

    def says(self, message: str) -> str:
        """A message of the first result, as it holds for all of them."""
        return message if len(self.results) == 1 else unnamed(message, self.first.target)


def grouped(results: Iterable[Result]) -> tuple[Group, ...]:
    """Results as they come, those together that can be told once."""
    return tuple(Group(tuple(found)) for _, found in groupby(results, key=_told))


def _told(result: Result) -> tuple[object, ...]:
    """What is said of a result, but for its release. Sources are not touched: they name one too."""
    target = result.target
    findings = tuple(
        (d.rule, d.severity, unnamed(d.message, target), d.where, d.source, _mended(d.fix, target))
        for d in result.diagnostics
    )
    whose = (target.runtime, target.model, target.sources)
    return (*whose, result.verdict, result.load, result.aux, result.loads_in, findings)


def _mended(fix: Fix | None, target: TargetReport) -> tuple[object, ...] | None:
    # An edit's value may be a list, which has no hash but an equal.
    return None if fix is None else (unnamed(fix.title, target), fix.applicability, fix.edits)
