"""Settings in pyproject.toml or eagle3-lint.toml, and what the command line does to them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from eagle3_lint.cli import main
from tests.drafts import llama_config, llama_tensors, write_draft

SCHEMA = Path(__file__).resolve().parents[2] / "docs" / "settings.schema.json"
TABLE = """
targets = ["sglang==0.5.9"]
target-model = "llama-3.1-8b"
fail-on = "never"

[{prefix}ignore]
E3L6 = "the draft is a toy of another width"
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    write_draft(tmp_path / "draft", llama_config(), llama_tensors("layers.0."))
    (tmp_path / "below").mkdir()
    monkeypatch.chdir(tmp_path / "below")
    return tmp_path


def run(project: Path, *arguments: str) -> Result:
    return CliRunner().invoke(main, ["check", str(project / "draft"), *arguments])


def results(result: Result) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(result.stdout)["checkpoints"][0]["results"]
    return found


@pytest.mark.parametrize("name", ["pyproject.toml", "eagle3-lint.toml"])
def test_the_nearest_file_counts(project: Path, name: str) -> None:
    head, prefix = ("[tool.eagle3-lint]", "tool.eagle3-lint.") if "py" in name else ("", "")
    (project / name).write_text(head + TABLE.format(prefix=prefix))
    result = run(project, "--format", "json")
    assert result.exit_code == 0
    [found] = results(result)
    assert found["target"] == {"runtime": "sglang", "release": "0.5.9", "model": "llama-3.1-8b"}
    # The draft of the tests has fewer positions than Llama 3.1.
    assert {d["rule"] for d in found["diagnostics"]} == {"E3L201", "E3L501"}


def test_the_command_line_wins(project: Path) -> None:
    (project / "eagle3-lint.toml").write_text(TABLE.format(prefix=""))
    result = run(project, "-t", "sglang==0.5.12", "--fail-on", "error", "--format", "json")
    [found] = results(result)
    assert found["target"]["release"] == "0.5.12"


def test_a_project_without_us_is_no_settings(project: Path) -> None:
    (project / "pyproject.toml").write_text("[project]\nname = 'x'\n")
    assert run(project, "-t", "sglang==0.5.12").exit_code == 0


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("target = 'sglang'", ("unknown key 'target'", "did you mean 'targets'")),
        ("nonsense = 1", ("unknown key 'nonsense'", "known are")),
        ("fail-on = 'sometimes'", ("fail-on",)),
        ("targets = 'sglang'", ("targets",)),
        ("[ignore]\nE3L6 = ' '", ("ignore.E3L6", "say why")),
        ("targets = [", ("cannot be read",)),
    ],
)
def test_mistakes_are_said(project: Path, text: str, words: tuple[str, ...]) -> None:
    path = project / "eagle3-lint.toml"
    path.write_text(text)
    result = run(project)
    assert result.exit_code == 2
    [line] = result.stderr.splitlines()
    assert str(path) in line
    for word in words:
        assert word in line


def test_a_named_file_must_be_there(project: Path) -> None:
    result = run(project, "--config", "nothing.toml")
    assert result.exit_code == 2
    assert "no such file" in result.stderr


def test_the_published_schema_takes_what_the_program_takes(project: Path) -> None:
    tomllib = pytest.importorskip("tomllib")
    from jsonschema import Draft202012Validator

    schema = json.loads(SCHEMA.read_text())
    Draft202012Validator.check_schema(schema)
    accepted = Draft202012Validator(schema)
    assert accepted.is_valid(tomllib.loads(TABLE.format(prefix="")))
    for wrong in (
        {"target": ["sglang"]},
        {"fail-on": "always"},
        {"ignore": {"E3L6": ""}},
        {"targets": "sglang"},
    ):
        assert not accepted.is_valid(wrong), wrong
        lines = [f"{key} = {json.dumps(value)}" for key, value in wrong.items()]
        text = "\n".join(lines).replace('{"E3L6": ""}', '{ E3L6 = "" }')
        (project / "eagle3-lint.toml").write_text(text)
        assert run(project).exit_code == 2, wrong
