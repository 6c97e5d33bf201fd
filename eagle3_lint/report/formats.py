"""``--format``: a report in the form that a name stands for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from eagle3_lint.frozen import frozen
from eagle3_lint.report.model import Report

if TYPE_CHECKING:
    from eagle3_lint.settings import FailOn


@frozen
class Setting:
    """What a form takes from the command line.

    Attributes:
        rules: another folder of rules than the built-in one.
    """

    fail_on: FailOn = "error"
    rules: Path | None = None


def _json(report: Report, setting: Setting) -> str:
    import json

    return json.dumps(report.to_json(), indent=2, ensure_ascii=False) + "\n"


def _sarif(report: Report, setting: Setting) -> str:
    from eagle3_lint.catalogue import Catalogue
    from eagle3_lint.report.places import repository
    from eagle3_lint.report.sarif import render

    return render(report, Catalogue(setting.rules), repository(), _configs(report))


def _configs(report: Report) -> dict[str, str]:
    """The texts that fixes change, as far as they can still be read."""
    from eagle3_lint.load import folder_shown_as
    from eagle3_lint.load.document import DocumentError, load_document

    found = {}
    for checkpoint in report.checkpoints:
        try:
            config = folder_shown_as(checkpoint.path) / "config.json"
            found[checkpoint.path] = load_document(config).text
        except (OSError, DocumentError):
            continue
    return found


def _github(report: Report, setting: Setting) -> str:
    from eagle3_lint.report.github import render
    from eagle3_lint.report.places import repository

    return render(report, repository())


def _gitlab(report: Report, setting: Setting) -> str:
    from eagle3_lint.report.gitlab import render
    from eagle3_lint.report.places import repository

    return render(report, repository())


def _junit(report: Report, setting: Setting) -> str:
    from eagle3_lint.report.junit import render

    return render(report, setting.fail_on)


#: Name → what renders it; each imports what it needs when it is called.
FORMATS: dict[str, Callable[[Report, Setting], str]] = {
    "json": _json,
    "sarif": _sarif,
    "github": _github,
    "gitlab": _gitlab,
    "junit": _junit,
}


def render_as(form: str, report: Report, setting: Setting) -> str:
    """The report in one of :data:`FORMATS`, ending in a newline."""
    return FORMATS[form](report, setting)
