"""The story the tool was made for: a Kimi-K2.5 draft at its true shapes, from the command line."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from eagle3_lint.cli import main

FIXTURES = Path(__file__).parents[2] / "fixtures"
sys.path.insert(0, str(FIXTURES / "build"))

from materialise import materialise  # noqa: E402

LAYER = {
    "self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj",
    "mlp.gate_proj", "mlp.up_proj", "mlp.down_proj",
    "input_layernorm", "hidden_norm", "post_attention_layernorm",
}  # fmt: skip
#: Parameters of SGLang's one decoder layer (0.5.9 models/llama_eagle3.py, models/llama.py).
PARAMETERS = {
    "self_attn.qkv_proj", "self_attn.o_proj", "mlp.gate_up_proj", "mlp.down_proj",
    "input_layernorm", "hidden_norm", "post_attention_layernorm",
}  # fmt: skip


def draft(folder: Path, prefix: str = "layers.0.") -> Path:
    materialise(FIXTURES / "kimi-k2.5-layers0", folder, prefix=prefix)
    return folder


def check(path: Path, target: str) -> tuple[int, dict[str, Any]]:
    arguments = ["check", str(path), "-t", target, "-m", "kimi-k2.5", "--format", "json"]
    result = CliRunner().invoke(main, arguments)
    report = json.loads(result.stdout)
    assert report["schema"] == "eagle3-lint/report/1"
    [found] = report["checkpoints"][0]["results"]
    return result.exit_code, found


@pytest.mark.parametrize(
    ("target", "verdict", "outcome"),
    [
        # The hook comes with 0.5.10, the spelling layers.0 with 0.5.12.
        ("sglang==0.5.9", "refused", "silent"),
        ("sglang==0.5.10", "broken", "silent"),
        ("sglang==0.5.11", "broken", "silent"),
        # The list of model types lets Kimi in with 0.18 (config/speculative.py:780).
        ("vllm==0.17.0", "refused", "ok"),
        ("vllm==0.17.1", "refused", "ok"),
    ],
)
def test_what_fails(tmp_path: Path, target: str, verdict: str, outcome: str) -> None:
    code, found = check(draft(tmp_path), target)
    assert (code, found["verdict"], found["load"]["outcome"]) == (1, verdict, outcome)


@pytest.mark.parametrize("target", ["sglang==0.5.9", "sglang==0.5.10"])
def test_the_ten_dropped_tensors_and_the_empty_parameters_are_named(
    tmp_path: Path, target: str
) -> None:
    _, found = check(draft(tmp_path), target)
    assert set(found["load"]["dropped"]) == {f"layers.0.{name}.weight" for name in LAYER}
    wanted = {f"model.midlayer.{name}.weight" for name in PARAMETERS}
    assert set(found["load"]["unfilled"]) == wanted
    [dropped] = [d for d in found["diagnostics"] if d["rule"] == "E3L201"]
    assert len(dropped["where"]) == 10
    assert dropped["fix"]["applicability"] == "safe"
    renames = {e["tensor"]: e["to"] for e in dropped["fix"]["edits"]}
    assert renames == {f"layers.0.{n}.weight": f"midlayer.{n}.weight" for n in LAYER}


def test_the_missing_hook_is_said_with_the_exception_and_what_not_to_try(tmp_path: Path) -> None:
    _, found = check(draft(tmp_path), "sglang==0.5.9")
    [refused] = [d for d in found["diagnostics"] if d["rule"] == "E3L601"]
    for words in ("set_eagle3_layers_to_capture", "0.5.10", "7168", "21504", "skip the fc"):
        assert words in refused["message"]


@pytest.mark.parametrize("target", ["sglang==0.5.12", "sglang==0.5.23", "vllm==0.18.0"])
def test_what_loads(tmp_path: Path, target: str) -> None:
    _, found = check(draft(tmp_path), target)
    assert found["load"]["outcome"] == "ok"
    assert found["verdict"] != "refused"


@pytest.mark.parametrize("target", ["sglang==0.5.10", "sglang==0.5.23", "vllm==0.18.0"])
def test_the_portable_spelling_loads(tmp_path: Path, target: str) -> None:
    _, found = check(draft(tmp_path, "midlayer."), target)
    assert found["load"]["outcome"] == "ok"
    assert found["load"]["dropped"] == found["load"]["unfilled"] == []


def test_the_report_points_at_lines(tmp_path: Path) -> None:
    folder = draft(tmp_path)
    config = folder / "config.json"
    text = config.read_text().replace('"LlamaForCausalLMEagle3"', '"NoSuchModel"')
    config.write_text(text)
    _, found = check(folder, "sglang==0.5.9")
    [unknown] = [d for d in found["diagnostics"] if d["rule"] == "E3L101"]
    [place] = unknown["where"]
    lines = text.splitlines()
    assert '"architectures"' in lines[place["line"] - 1]
