"""What the checks of a command share: a finding with the command's place and a release's words."""

from __future__ import annotations

from collections.abc import Mapping

from eagle3_lint.checks.subject import Subject
from eagle3_lint.diagnostic import Effect, Finding, Fix, Severity
from eagle3_lint.launch.parse import Launch
from eagle3_lint.launch.statements import LaunchRelease, Statement


def finding(
    subject: Subject,
    launch: Launch,
    rule: str,
    variant: str,
    values: Mapping[str, object],
    *,
    word: str | None = None,
    statement: Statement | None = None,
    fix: str | None = None,
    effect: Effect | None = None,
    severity: Severity | None = None,
) -> Finding:
    """A finding about the command.

    Args:
        word: what to point at in a script.
        statement: what says so, with its source.
        fix: what the user could write instead.
    """
    return Finding(
        rule,
        {"target": str(subject.target), **values},
        launch.where(word),
        subject.cite(statement["source"]) if statement is not None else None,
        Fix(fix, "manual") if fix is not None else None,
        variant=variant,
        effect=effect,
        severity=severity,
    )


def written(release: LaunchRelease, meaning: str) -> str:
    """How a release writes the option that means something."""
    option = release.first("option", **{"is": meaning})
    return str(option["names"][0]) if option is not None else meaning
