"""What the page needs beside the report: every known release is played. No part of rendering."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from eagle3_lint.checking import check_facts
from eagle3_lint.contract.runtime import known_runtimes, runtime_file
from eagle3_lint.coverage import Coverage, coverage
from eagle3_lint.diagnostic import Diagnostic
from eagle3_lint.examine import Examiner, Question
from eagle3_lint.facts import Facts
from eagle3_lint.load.special_tokens import special_tokens
from eagle3_lint.releases import Target
from eagle3_lint.report.html.groups import unnamed
from eagle3_lint.report.html.input import HtmlInput, ReleaseVerdict, RuntimeVerdicts
from eagle3_lint.report.model import CheckpointReport, Report, Result

_EFFECTS = ("refused", "broken", "degraded")


def checked(
    prepared: Iterable[tuple[Facts, list[Target], Question]],
) -> tuple[Report, tuple[HtmlInput, ...]]:
    """The report on some drafts, and what the page shows beside it, in the same order.

    Args:
        prepared: what :func:`eagle3_lint.checking.prepare` gives for each.
    """
    reports, inputs = [], []
    for facts, targets, question in prepared:
        report = check_facts(facts, targets, question)
        reports.append(report)
        inputs.append(gather(facts, question, report))
    return Report(tuple(reports)), tuple(inputs)


def gather(facts: Facts, question: Question, report: CheckpointReport) -> HtmlInput:
    """What the page shows of one draft.

    Args:
        report: of the same draft and question; releases that it speaks of are not played again.
    """
    return HtmlInput(
        facts=facts,
        model=question.model,
        coverage=_coverage(facts, question),
        history=tuple(_history(facts, question, report)),
    )


def _coverage(facts: Facts, question: Question) -> Coverage | None:
    model = question.model
    size = model.vocab_size if model is not None and model.vocab_size else facts.stated.vocab_size
    if not size or size < 0:
        return None
    special = special_tokens(facts.config, model.folder if model is not None else None)
    return coverage(facts, size, special)


def _history(
    facts: Facts, question: Question, report: CheckpointReport
) -> Iterable[RuntimeVerdicts]:
    done = {
        (r.target.runtime, r.target.release): r for r in report.results if r.target.sources is None
    }
    examiner = Examiner(facts, question)
    launch = question.launch
    # A command that starts one runtime says nothing about another.
    bare = Examiner(facts, replace(question, launch=None), examiner) if launch else examiner
    for name in known_runtimes(question.rules):
        file = runtime_file(name, question.rules)
        asks = examiner if launch is None or launch.runtime == name else bare
        results = (
            done.get((name, release)) or asks.examine(Target(name, release), spans=False)
            for release in file.releases
        )
        yield RuntimeVerdicts(name, file.title, tuple(map(_verdict, results)))


def _verdict(result: Result) -> ReleaseVerdict:
    target, verdict = result.target, result.verdict
    found = _decisive(result) or next((d for d in result.diagnostics if d.severity != "info"), None)
    if found is not None:
        severity = found.severity if found.effect == "none" else None
        reason = unnamed(found.message, target)
        return ReleaseVerdict(target.release, verdict, found.rule, reason, severity)
    error = result.load.error if result.load is not None else None
    # A rule that was left out has no finding, but the runtime raises all the same.
    reason = f"{error.type}: {error.message}" if error is not None else ""
    return ReleaseVerdict(target.release, verdict, None, reason)


def _decisive(result: Result) -> Diagnostic | None:
    for effect in _EFFECTS:
        for diagnostic in result.diagnostics:
            if diagnostic.effect == effect:
                return diagnostic
    return None
