"""The report as GitHub Actions' workflow commands: an annotation for every finding.

https://docs.github.com/en/actions/reference/workflow-commands-for-github-actions; what is escaped
is what actions/runner src/Runner.Common/ActionCommand.cs takes back. GitHub shows ten annotations
of a kind for a step; the log has all of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from eagle3_lint.diagnostic import Severity
from eagle3_lint.report.model import Report
from eagle3_lint.report.places import Found, findings, located, visible

_COMMANDS: dict[Severity, str] = {"error": "error", "warning": "warning", "info": "notice"}


def render(report: Report, root: Path) -> str:
    """One line a finding, and one a draft that could not be read; nothing when there is none.

    Args:
        root: the repository's folder, which GitHub tells files from.
    """
    return "".join(f"{line}\n" for line in _lines(report, root))


def _lines(report: Report, root: Path) -> Iterator[str]:
    for checkpoint in report.checkpoints:
        if checkpoint.error is not None:
            file = _property(located(checkpoint.path, "", root))
            yield f"::error file={file},title=unreadable draft::{_data(checkpoint.error)}"
    for found in findings(report, root):
        diagnostic = found.diagnostic
        properties = {"file": located(found.checkpoint.path, found.place.file, root)}
        if found.place.line is not None:
            properties["line"] = str(found.place.line)
        properties["title"] = f"{diagnostic.rule} {diagnostic.name} ({found.result.target})"
        told = ",".join(f"{name}={_property(value)}" for name, value in properties.items())
        yield f"::{_COMMANDS[diagnostic.severity]} {told}::{_data(_message(found))}"


def _message(found: Found) -> str:
    message, fix = found.diagnostic.message, found.diagnostic.fix
    return message if fix is None else f"{message}\n{fix.applicability} fix: {fix.title}"


def _data(text: str) -> str:
    return visible(text).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
