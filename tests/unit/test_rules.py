"""Every rule speaks in its bad cases and is silent in its good ones; its file fits the schema."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from eagle3_lint.catalogue import Catalogue, Rule
from eagle3_lint.checking import check
from eagle3_lint.contract.rules_folder import rules_folder
from eagle3_lint.diagnostic import Diagnostic
from eagle3_lint.rule_folder import complaints, rule_files
from tests.drafts import write_case
from tests.weights import give_weights, write_target

RULES = Catalogue().all()
CASES = [
    pytest.param(rule, case, id=f"{rule.id}-{kind}-{number}")
    for rule in RULES
    for kind in ("bad", "good")
    for number, case in enumerate(getattr(rule, kind))
]


@pytest.fixture
def no_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    """An environment without torch: importing it fails."""
    monkeypatch.setitem(sys.modules, "torch", None)


def findings(case: Mapping[str, Any], folder: Path) -> list[Diagnostic]:
    draft = write_case(case, folder / "draft")
    model = case.get("model")
    if "target_config" in case:
        path = folder / "target" / "config.json"
        path.parent.mkdir()
        path.write_text(json.dumps(case["target_config"]))
        model = str(path)
    if "weights" in case:
        give_weights(draft, case["weights"])
        model = str(write_target(folder / "target"))
    sources = folder / "sources"
    for name, text in case.get("sources", {}).items():
        (sources / name).parent.mkdir(parents=True, exist_ok=True)
        (sources / name).write_text(text)
    report = check(
        draft,
        [case["target"].replace("SOURCES", str(sources))],
        model,
        trained_on=case.get("trained_on"),
        runner=case.get("runner"),
        launch=case["launch"].replace("DRAFT", str(draft)) if "launch" in case else None,
    )
    return list(report.checkpoints[0].results[0].diagnostics)


@pytest.mark.parametrize(("rule", "case"), CASES)
def test_case(
    rule: Rule, case: Mapping[str, Any], tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    if case.get("container") == "no-torch":
        request.getfixturevalue("no_torch")
    elif case.get("container") == "bad-torch":
        pytest.importorskip("torch")
    found = [d for d in findings(case, tmp_path) if d.rule == rule.id]
    if case in rule.good:
        assert not found, found[0].message
        return
    assert len(found) == 1, "a bad case must give the finding once"
    assert found[0].effect == case.get("effect", rule.effect)
    assert "{" not in found[0].message, "a placeholder was not filled"


def test_every_rule_file_fits_its_schema() -> None:
    assert list(complaints(rules_folder())) == []


def test_a_bad_rule_file_is_complained_about(tmp_path: Path) -> None:
    (tmp_path / "contracts").mkdir()
    (tmp_path / "catalog").mkdir()
    original = next(p for p, kind in rule_files(rules_folder()) if kind == "rule").read_text()
    spoiled = original.replace('severity = "', 'severity = "very ', 1)
    (tmp_path / "catalog" / "E3L999-spoiled.toml").write_text(spoiled)
    [complaint] = complaints(tmp_path)
    assert "severity" in complaint


def test_file_names_agree_with_ids_and_names() -> None:
    for id, path in Catalogue().files.items():
        rule = Catalogue().rule(id)
        assert path.stem == f"{rule.id}-{rule.name}"


@pytest.mark.parametrize("rule", RULES, ids=[r.id for r in RULES])
def test_the_page_reads_well(rule: Rule) -> None:
    page = rule.to_markdown()
    assert page.startswith(f"# {rule.id} {rule.name}")
    assert rule.source in page
