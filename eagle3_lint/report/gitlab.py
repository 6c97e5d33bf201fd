"""The report as GitLab's Code Quality artifact.

https://docs.gitlab.com/ci/testing/code_quality/#code-quality-report-format
"""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path

from eagle3_lint.diagnostic import Diagnostic, Effect
from eagle3_lint.report.model import Report
from eagle3_lint.report.places import Found, findings, located, visible

#: How bad an error is for serving → GitLab's severity.
_ERRORS: dict[Effect, str] = {
    "refused": "blocker", "broken": "critical", "degraded": "major", "none": "major",
}  # fmt: skip


def render(report: Report, root: Path) -> str:
    """A JSON list with an entry for every finding and for every draft that could not be read.

    Args:
        root: the repository's folder, which GitLab tells files from.
    """
    entries = [
        _unread(checkpoint.path, checkpoint.error, root)
        for checkpoint in report.checkpoints
        if checkpoint.error is not None
    ]
    entries += [_entry(found, root) for found in findings(report, root)]
    return json.dumps(entries, indent=2, ensure_ascii=False) + "\n"


def _entry(found: Found, root: Path) -> dict[str, object]:
    place = found.place
    return {
        "description": found.text,
        "check_name": found.diagnostic.rule,
        "fingerprint": found.fingerprint,
        "severity": _severity(found.diagnostic),
        "location": {
            "path": visible(located(found.checkpoint.path, place.file, root)),
            # The format knows no place without a line, which weights do not have.
            "lines": {"begin": place.line if place.line is not None else 1},
        },
    }


def _unread(draft: str, error: str, root: Path) -> dict[str, object]:
    path = visible(located(draft, "", root))
    return {
        "description": visible(error),
        "check_name": "unreadable",
        "fingerprint": sha256(f"unreadable {path}".encode()).hexdigest()[:32],
        "severity": "blocker",
        "location": {"path": path, "lines": {"begin": 1}},
    }


def _severity(diagnostic: Diagnostic) -> str:
    if diagnostic.severity == "error":
        return _ERRORS[diagnostic.effect]
    return "minor" if diagnostic.severity == "warning" else "info"
