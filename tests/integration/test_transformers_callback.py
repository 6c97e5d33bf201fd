"""The callback in transformers' own Trainer, which saves real checkpoints of a tiny draft."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.integration.training import ROOT, need, python

#: SGLang reads ``midlayer.`` in every release and ``layers.0.`` from 0.5.12 on.
OLD: dict[str, Any] = {"targets": ["sglang==0.5.9"]}
BROKEN = {"layer": "layers.0.", **OLD}
RUNS: dict[str, dict[str, Any]] = {
    "good": OLD,
    "broken": BROKEN,
    "broken, logged": {**BROKEN, "fail": False},
    "broken, at the end": {**BROKEN, "on": "end"},
    "broken, never": {**BROKEN, "fail_on": "never", "on": "save"},
    "exported": {**BROKEN, "exported": True, "on": "end"},
    "nothing saved": {**OLD, "save": "no"},
    "nothing saved, logged": {**OLD, "save": "no", "fail": False},
    "saved elsewhere": {**OLD, "save": "no", "before": True},
}


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Every training of :data:`RUNS`, in one process."""
    need("torch", "transformers", "accelerate")
    out = tmp_path_factory.mktemp("trainings")
    runs = json.dumps(list(RUNS.values()))
    ran = python("-m", "tests.integration.tiny_training", out, runs, cwd=ROOT)
    assert (out / "told-0.json").is_file(), ran.stderr
    told = json.loads((out / "told-0.json").read_text().replace(str(out), "OUT"))
    found = dict(zip(RUNS, told, strict=True))
    for number, name in enumerate(RUNS):
        found[name] = json.loads(json.dumps(found[name]).replace(f"OUT/{number}", "OUT"))
    return found


def test_a_good_draft_is_trained_to_the_end(outcomes: dict[str, Any]) -> None:
    told = outcomes["good"]
    assert (told["error"], told["step"]) == (None, 2)
    # Each checkpoint once, though the last is the end too.
    assert told["log"] == [
        f"INFO eagle3-lint: OUT/checkpoint-{step}\n  sglang 0.5.9: serves" for step in (1, 2)
    ]


def test_a_broken_draft_ends_the_training_at_the_first_checkpoint(outcomes: dict[str, Any]) -> None:
    kind, message = outcomes["broken"]["error"]
    assert kind == "GateError"
    assert message.startswith("OUT/checkpoint-1 does not pass\n  sglang 0.5.9: broken\n")
    assert outcomes["broken"]["step"] == 1


def test_or_only_at_its_end(outcomes: dict[str, Any]) -> None:
    told = outcomes["broken, at the end"]
    assert told["error"][0] == "GateError"
    assert told["error"][1].startswith("OUT/checkpoint-2 does not pass")
    assert told["step"] == 2


def test_or_is_logged_alone(outcomes: dict[str, Any]) -> None:
    told = outcomes["broken, logged"]
    assert (told["error"], told["step"]) == (None, 2)
    starts = [line.splitlines()[:2] for line in told["log"]]
    assert starts == [
        [f"WARNING eagle3-lint: OUT/checkpoint-{step} does not pass", "  sglang 0.5.9: broken"]
        for step in (1, 2)
    ]


def test_what_fails_is_up_to_the_caller(outcomes: dict[str, Any]) -> None:
    told = outcomes["broken, never"]
    assert (told["error"], told["step"]) == (None, 2)
    assert [line.splitlines()[1] for line in told["log"]] == ["  sglang 0.5.9: broken"] * 2


def test_the_exported_draft_counts(outcomes: dict[str, Any]) -> None:
    told = outcomes["exported"]
    assert (told["error"], told["exported"]) == (None, ["checkpoint-2"])
    assert told["log"] == ["INFO eagle3-lint: OUT/exported-1\n  sglang 0.5.9: serves"]


def test_a_training_that_saves_nothing(outcomes: dict[str, Any]) -> None:
    kind, message = outcomes["nothing saved"]["error"]
    assert kind == "InputError"
    assert "OUT" in message
    assert outcomes["nothing saved, logged"]["error"] is None
    assert outcomes["nothing saved, logged"]["log"] == [f"WARNING eagle3-lint: {message}"]


def test_a_draft_in_the_output_folder_itself(outcomes: dict[str, Any]) -> None:
    told = outcomes["saved elsewhere"]
    assert told["error"] is None
    assert told["log"] == ["INFO eagle3-lint: OUT\n  sglang 0.5.9: serves"]


@pytest.mark.parametrize("name", ["broken", "exported"])
def test_on_two_ranks(tmp_path: Path, name: str) -> None:
    need("torch", "transformers", "accelerate")
    ran = python(
        *("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"),
        *("-m", "tests.integration.tiny_training", tmp_path, json.dumps([RUNS[name]])),
        cwd=ROOT,
    )
    assert ran.returncode == (1 if name == "broken" else 0), ran.stderr
    [first], [second] = (json.loads((tmp_path / f"told-{n}.json").read_text()) for n in range(2))
    assert first["error"] == second["error"]
    assert (first["error"] is None) == (name == "exported")
    # Rank 0 exports and speaks for all.
    assert (len(first["exported"]), second["exported"]) == (int(name == "exported"), [])
    assert second["log"] == []


def test_without_transformers_it_says_what_to_do() -> None:
    code = (
        "import sys; sys.modules['transformers'] = None\n"
        "import eagle3_lint.integrations\n"
        "try:\n    import eagle3_lint.integrations.transformers\n"
        "except ImportError as error:\n    print(error)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "transformers cannot be imported" in ran.stdout
    assert "eagle3_lint.gate" in ran.stdout


def test_an_unknown_occasion(tmp_path: Path) -> None:
    need("torch", "transformers")
    code = (
        "import eagle3_lint\n"
        "from eagle3_lint.integrations.transformers import Eagle3LintCallback\n"
        "try:\n    Eagle3LintCallback(on='step')\n"
        "except eagle3_lint.InputError as error:\n    print(error)"
    )
    assert "'save', 'end', 'both'" in python("-c", code, cwd=tmp_path).stdout
