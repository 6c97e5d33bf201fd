"""The aux hidden states of every unpacked vLLM release: its own code against our data.

Needs ``EAGLE3_LINT_ORACLE_PYTHON`` (see README.md) for what runs a release; the rest reads its
sources only.
"""

from __future__ import annotations

import ast
import os
from pathlib import Path

import pytest

from eagle3_lint.simulate.aux_states import aux_states
from tests.conformance import sources, vllm_aux, vllm_run, vllm_runtime
from tests.conformance.aux_cases import IDS
from tests.conformance.vllm_aux_cases import LAYERS, plain, questions, well_formed
from tests.conformance.vllm_aux_defaults import DELEGATED, defaults
from tests.conformance.vllm_aux_runner import ENABLED, SET_UP, deciding, methods, setting

PYTHON = os.environ.get("EAGLE3_LINT_ORACLE_PYTHON")
RELEASES = vllm_run.releases()

pytestmark = [
    pytest.mark.conformance,
    pytest.mark.skipif(not RELEASES, reason="no vLLM release is unpacked"),
]

def test_questions_are_named_once() -> None:
    names = [question.name for question in questions()]
    assert len(names) == len(set(names))


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        (plain(), True),
        (plain(**{IDS: [2, 12, 21]}), True),
        (plain(**{IDS: [2, 12, LAYERS]}), False),
        (plain(**{IDS: [12, 2, 21]}), False),
        (plain(**{IDS: ["2"]}), False),
        (plain(eagle_config=[]), False),
        (plain(eagle_config={"use_aux_hidden_state": None}), False),
        (plain(dflash_config={"target_layer_ids": [0, LAYERS - 2]}), True),
        (plain(dflash_config={"target_layer_ids": [LAYERS - 1]}), False),
    ],
)
def test_well_formed(config: dict[str, object], expected: bool) -> None:
    assert well_formed(config, LAYERS) is expected


@pytest.mark.parametrize("release", RELEASES)
def test_statements_are_found(release: str) -> None:
    """Each runner with EAGLE-3 has one statement that decides and one that sets the layers."""
    worker = sources.cache() / "vllm" / release / "vllm" / "v1" / "worker"
    second = worker / "gpu" / "spec_decode" / "eagle" / "eagle3_utils.py"
    files = [worker / "gpu_model_runner.py"]
    if second.is_file():
        files.append(worker / "gpu" / "model_runner.py")
    assert second.is_file() == (vllm_runtime.order(release) >= vllm_runtime.order("0.17.0"))
    for file in files:
        found = methods(ast.parse(Path(file).read_text(encoding="utf-8")))
        assert ENABLED in ast.unparse(deciding(found["__init__"]))
        if SET_UP not in found:
            assert "aux_hidden_state_layers" in ast.unparse(setting(found["load_model"]))


@pytest.mark.parametrize("layers", [24, 61])
@pytest.mark.parametrize("release", RELEASES)
def test_every_target_class_has_our_default(release: str, layers: int) -> None:
    found = dict(defaults(sources.cache() / "vllm" / release, layers))
    ours = aux_states(vllm_aux.statement(release, "v1"), None, {}, layers).states
    assert ours in found.values()
    assert {k: v for k, v in found.items() if v not in (ours, DELEGATED)} == {}


@pytest.mark.skipif(PYTHON is None, reason="EAGLE3_LINT_ORACLE_PYTHON is not set")
@pytest.mark.parametrize("release", RELEASES)
def test_release_and_data_agree(release: str) -> None:
    answers = vllm_aux.fed(Path(str(PYTHON)), release)
    assert answers
    found = [d for d in vllm_aux.differences(release, answers) if d.settled]
    assert found == []
