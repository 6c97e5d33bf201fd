"""GitLab's Code Quality artifact: what its documentation requires of an entry."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from eagle3_lint.diagnostic import Place
from eagle3_lint.report.gitlab import render
from eagle3_lint.report.model import Report
from tests.unit.report.samples import checked, diagnostic, draft, everything, one

ROOT = Path("/repository")
#: docs.gitlab.com/ci/testing/code_quality, "Code Quality report format".
SEVERITIES = {"info", "minor", "major", "critical", "blocker"}


def entries(report: Report, root: Path = ROOT) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(render(report, root).encode("utf-8"))
    return found


def test_an_entry() -> None:
    place = Place("config.json", pointer="/hidden_size", line=7)
    [entry] = entries(one(diagnostic("too wide", place), "/repository/a"))
    assert len(entry.pop("fingerprint")) == 32
    assert entry == {
        "description": "sglang 0.5.9 serving kimi-k2.5: too wide",
        "check_name": "E3L201",
        "severity": "critical",
        "location": {"path": "a/config.json", "lines": {"begin": 7}},
    }


@pytest.mark.parametrize(
    ("severity", "effect", "expected"),
    [
        # The worse for serving, the higher: the engine does not start, accepts nothing, less.
        ("error", "refused", "blocker"),
        ("error", "broken", "critical"),
        ("error", "degraded", "major"),
        ("error", "none", "major"),
        ("warning", "refused", "minor"),
        ("warning", "none", "minor"),
        ("info", "none", "info"),
    ],
)
def test_severity(severity: str, effect: str, expected: str) -> None:
    [entry] = entries(one(diagnostic(severity=severity, effect=effect)))
    assert entry["severity"] == expected


def test_an_empty_list_for_nothing(tmp_path: Path) -> None:
    assert render(checked(draft(tmp_path, "good"), tmp_path), tmp_path) == "[]\n"


def test_real_drafts(tmp_path: Path) -> None:
    report = everything(tmp_path)
    found = entries(report, tmp_path)
    assert len(found) == len(report.diagnostics()) > 0
    assert len({entry["fingerprint"] for entry in found}) == len(found)
    for entry in found:
        assert set(entry) == {"description", "check_name", "fingerprint", "severity", "location"}
        assert entry["severity"] in SEVERITIES
        path = entry["location"]["path"]
        assert not path.startswith(("/", "./", ".."))
        assert entry["location"]["lines"]["begin"] >= 1
        assert entry["description"].isprintable()
