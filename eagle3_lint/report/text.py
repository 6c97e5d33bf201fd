"""The report for people: what and where first, then why and what mends it."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby

from eagle3_lint.diagnostic import Diagnostic, Place
from eagle3_lint.frozen import frozen
from eagle3_lint.report.model import CheckpointReport, Report, Result, Summary, Verdict

#: Paints a text; given a role such as ``error`` or ``serves``.
Paint = Callable[[str, str], str]
_PLACES = 3
_NARROWEST = 40


def plain(text: str, role: str) -> str:
    """No colours."""
    return text


@frozen
class Style:
    """How wide the terminal is, and how to colour."""

    width: int = 100
    paint: Paint = plain

    def wrap(self, text: str, first: str, then: str) -> list[str]:
        width = max(self.width, _NARROWEST)
        return textwrap.wrap(
            text,
            width,
            initial_indent=first,
            subsequent_indent=then,
            break_long_words=False,
            break_on_hyphens=False,
        )


def _lines(count: int, word: str) -> str:
    return f"{count} {word}" if count == 1 else f"{count} {word}s"


def render(report: Report, style: Style) -> str:
    """The whole report, ending in a newline."""
    lines: list[str] = []
    for checkpoint in report.checkpoints:
        lines.extend(_checkpoint(checkpoint, style))
    lines.append(_closing(report.summary, len(report.checkpoints)))
    return "\n".join(lines) + "\n"


def _checkpoint(checkpoint: CheckpointReport, style: Style) -> Iterator[str]:
    if checkpoint.error is not None:
        yield f"{printable(checkpoint.path)}: {style.paint('unreadable', 'error')}"
        yield from style.wrap(printable(checkpoint.error), "  ", "  ")
        yield ""
        return
    producer = checkpoint.producer
    by = "" if producer.name == "unknown" else f", written by {producer.name}"
    if by and producer.version:
        by += f" {producer.version}"
    if by and producer.confidence != "certain":
        by += " (likely)"
    yield f"{checkpoint.path} ({checkpoint.dialect} names{by})"
    for result in checkpoint.results:
        yield ""
        yield from _result(result, style)
    yield ""


def _result(result: Result, style: Style) -> Iterator[str]:
    target = result.target
    verdict = style.paint(result.verdict, result.verdict)
    yield f"{target}: {verdict}"
    if result.load is not None:
        yield from style.wrap(_load(result), "  ", "  ")
    if result.loads_in:
        text = f"{target.runtime} releases that load it as it is: {', '.join(result.loads_in)}"
        yield from style.wrap(text, "  ", "  ")
    for diagnostic in result.diagnostics:
        yield ""
        yield from diagnostic_lines(diagnostic, style)


def _load(result: Result) -> str:
    load = result.load
    assert load is not None
    if load.error is not None:
        message = f": {load.error.message}" if load.error.message else ""
        return f"it raises {load.error.type}{message}"
    counts = [
        _lines(len(names), word) + " " + what
        for names, word, what in (
            (load.dropped, "tensor", "dropped"),
            (load.unfilled, "parameter", "unfilled"),
            (load.altered, "tensor", "cut or padded"),
        )
        if names
    ]
    how = "loads whole" if not counts else f"starts without a word, with {', '.join(counts)}"
    return f"{load.draft_class} {how}"


def printable(text: str) -> str:
    """Text without what a terminal would act on: names in a file can hold anything."""
    if text.isprintable():
        return text
    from eagle3_lint.report.places import visible

    return visible(text.replace("\n", "\\n"))


def diagnostic_lines(diagnostic: Diagnostic, style: Style) -> Iterator[str]:
    """A diagnostic as lines of text."""
    label = style.paint(f"{diagnostic.severity}[{diagnostic.rule}]", diagnostic.severity)
    text = printable(f"{diagnostic.severity}[{diagnostic.rule}] {diagnostic.message}")
    first, *rest = style.wrap(text, "", "  ")
    # Painted after wrapping: escape codes have no width.
    yield first.replace(f"{diagnostic.severity}[{diagnostic.rule}]", label, 1)
    yield from rest
    for line in _places(diagnostic.where):
        yield f"  --> {printable(line)}"
    if diagnostic.source:
        yield from style.wrap(f"source: {diagnostic.source}", "    ", "      ")
    if diagnostic.fix is not None:
        text = printable(f"{diagnostic.fix.applicability} fix: {diagnostic.fix.title}")
        yield from style.wrap(text, "    ", "      ")


def _places(places: Sequence[Place]) -> Iterator[str]:
    """One line per file and pointer; many tensors of one file share a line."""
    for file, group in groupby(places, key=lambda p: p.file):
        here = list(group)
        for place in (p for p in here if p.tensor is None):
            line = f":{place.line}" if place.line is not None else ""
            yield f"{file}{line}" + (f" {place.pointer}" if place.pointer else "")
        tensors = [p.tensor for p in here if p.tensor is not None]
        for name in tensors[:_PLACES]:
            yield f"{file}: {name}"
        if len(tensors) > _PLACES:
            yield f"{file}: and {len(tensors) - _PLACES} more"


def _closing(summary: Summary, drafts: int) -> str:
    text = f"{_lines(summary.errors, 'error')}, {_lines(summary.warnings, 'warning')}"
    if not summary.errors and not summary.warnings:
        text = "No findings" if summary.unreadable else "No findings."
    text += f"; {summary.fixable} with a safe fix" if summary.fixable else ""
    if summary.unreadable:
        text += f"; {summary.unreadable} of {_lines(drafts, 'draft')} could not be read"
    return text


# -- the matrix ---------------------------------------------------------------------------------


def matrix(checkpoint: CheckpointReport, style: Style) -> str:
    """One line a release, neighbours with the same verdict and reason together."""
    lines = [checkpoint.path]
    for runtime, results in groupby(checkpoint.results, key=lambda r: r.target.runtime):
        rows = [
            (_span([r.target.release for r in group]), verdict, reason)
            for (verdict, reason), group in (
                (key, list(items)) for key, items in groupby(results, key=_verdict_and_reason)
            )
        ]
        widest = max(len(span) for span, _, _ in rows)
        lines += ["", runtime]
        for span, verdict, reason in rows:
            before = f"  {span:<{widest}}  "
            painted = style.paint(f"{verdict:<8}", verdict)
            wrapped = style.wrap(reason, before + f"{verdict:<8}  ", " " * (len(before) + 10))
            first = wrapped[0] if wrapped else before + f"{verdict:<8}"
            lines.append(first.replace(f"{verdict:<8}", painted, 1).rstrip())
            lines += wrapped[1:]
    return "\n".join(lines) + "\n"


def _span(releases: Sequence[str]) -> str:
    return releases[0] if len(releases) == 1 else f"{releases[0]} - {releases[-1]}"


def _verdict_and_reason(result: Result) -> tuple[Verdict, str]:
    effects = ("refused", "broken", "degraded")
    for effect in effects:
        for diagnostic in result.diagnostics:
            if diagnostic.effect == effect:
                # The release stands in the row already; without it neighbours can agree.
                release = f"{result.target.runtime} {result.target.release}"
                text = diagnostic.message.replace(release, "it")
                return result.verdict, f"{diagnostic.rule} {text}"
    return result.verdict, ""
