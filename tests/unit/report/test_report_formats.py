"""``--format`` from the command line: every form, its exit code, and what it imports."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
from click import Choice
from click.testing import CliRunner, Result

from eagle3_lint.cli import main
from eagle3_lint.commands.check import check
from eagle3_lint.contract.rules_folder import rules_folder
from eagle3_lint.report.formats import FORMATS, Setting, render_as
from tests.unit.report.samples import ODD, TARGETS, checked, draft

#: What `check --format text` has no use for.
OTHERS = {f"eagle3_lint.report.{name}" for name in ("formats", "places", *FORMATS)}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("GITHUB_WORKSPACE", "CI_PROJECT_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(form: str, *arguments: str, command: str = "check") -> Result:
    asked = [part for target in TARGETS for part in ("-t", target)]
    return CliRunner().invoke(main, [command, *asked, "-m", "target", "--format", form, *arguments])


def test_the_option_knows_every_form() -> None:
    [option] = [p for p in check.params if p.name == "form"]
    assert isinstance(option.type, Choice)
    assert set(option.type.choices) == {"text", "html", *FORMATS}


def count(form: str, text: str) -> int:
    """How many findings a report tells, or failures in JUnit's case."""
    if form == "github":
        return text.count("\n")
    if form == "junit":
        return int(ElementTree.fromstring(text.encode()).get("failures", ""))
    found = json.loads(text)
    if form == "sarif":
        return len(found["runs"][0]["results"])
    if form == "json":
        return sum(len(r["diagnostics"]) for c in found["checkpoints"] for r in c["results"])
    return len(found)


@pytest.mark.parametrize("form", FORMATS)
def test_a_draft_that_is_served(folder: Path, form: str) -> None:
    draft(folder, "good")
    result = run(form, "good")
    assert result.exit_code == 0, result.output
    assert count(form, result.stdout) == 0


@pytest.mark.parametrize("form", FORMATS)
def test_a_draft_that_is_not(folder: Path, form: str) -> None:
    draft(folder, "broken")
    # SGLang 0.5.9 drops the layer, in one finding; vLLM 0.33.0 reads it.
    result = run(form, "broken")
    assert result.exit_code == 1
    assert count(form, result.stdout) == 1
    never = run(form, "broken", "--fail-on", "never")
    assert never.exit_code == 0
    assert count(form, never.stdout) == (0 if form == "junit" else 1)


@pytest.mark.parametrize("form", FORMATS)
def test_to_a_file(folder: Path, form: str) -> None:
    draft(folder, "odd")
    shown = run(form, "odd").stdout
    result = run(form, "odd", "--output", "report")
    assert result.stdout == ""
    assert (folder / "report").read_text(encoding="utf-8") == shown
    assert count(form, shown) > 0


@pytest.mark.parametrize("form", FORMATS)
def test_the_matrix_too(folder: Path, form: str) -> None:
    draft(folder, "broken")
    result = run(form, "broken", command="matrix")
    assert result.exit_code == 1
    assert count(form, result.stdout) == 1


@pytest.mark.parametrize("form", sorted(set(FORMATS) - {"json"}))
def test_files_are_told_from_the_checkout(
    folder: Path, form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    draft(folder, "positions")
    (folder / "ci").mkdir()
    monkeypatch.chdir(folder / "ci")
    asked = ["check", "../positions", "-t", "sglang==0.5.9", "-m", "../target", "--format", form]
    if form != "junit":
        assert f"{folder}/positions/config.json" in CliRunner().invoke(main, asked).stdout
    monkeypatch.setenv("GITHUB_WORKSPACE", str(folder))
    told = CliRunner().invoke(main, asked).stdout
    assert str(folder) not in told
    assert "positions/config.json" in told or form == "junit"


def test_a_fix_is_of_the_text_on_disk(folder: Path) -> None:
    path = draft(folder, "positions")
    told = json.loads(run("sarif", "positions").stdout)["runs"][0]["results"]
    fixes = [fix for result in told for fix in result.get("fixes", ())]
    assert fixes
    region = fixes[0]["artifactChanges"][0]["replacements"][0]["deletedRegion"]
    lines = (path / "config.json").read_text().splitlines()
    assert '"max_position_embeddings": 512' in lines[region["startLine"] - 1]


def test_other_rules_word_the_finding(folder: Path) -> None:
    report = checked(draft(folder, "broken"), folder)
    rules = folder / "rules"
    (rules / "catalog").mkdir(parents=True)
    name = "E3L201-tensor-dropped.toml"
    text = (rules_folder() / "catalog" / name).read_text(encoding="utf-8")
    own = text.replace('title = "A trained tensor', 'title = "Our own tensor')
    (rules / "catalog" / name).write_text(own)
    log = json.loads(render_as("sarif", report, Setting(rules=rules)))
    [rule] = log["runs"][0]["tool"]["driver"]["rules"]
    assert rule["shortDescription"]["text"].startswith("Our own tensor")


def test_text_imports_none_of_the_others(folder: Path) -> None:
    draft(folder, "broken")
    code = (
        "import sys\n"
        "from eagle3_lint.cli import main\n"
        "try:\n"
        "    main(['check', 'broken', '-t', 'sglang==0.5.9'])\n"
        "except SystemExit:\n"
        "    print('\\n' + '\\n'.join(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    modules = set(done.stdout.splitlines())
    assert "eagle3_lint.report.text" in modules
    assert modules & {*OTHERS, "xml.etree.ElementTree", "hashlib"} == set()


def test_a_name_with_odd_characters_is_told_in_every_form(folder: Path) -> None:
    draft(folder, "odd")
    for form in sorted(set(FORMATS) - {"json"}):
        told = run(form, "odd").stdout
        assert "\x1b" not in told
        assert "31m" in told
    assert "\x1b" in ODD
