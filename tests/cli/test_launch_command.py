"""``launch`` and ``check --launch`` from the command line."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from eagle3_lint.cli import main
from tests.drafts import llama_config, llama_tensors, write_case, write_draft

FIXTURES = Path(__file__).parents[2] / "fixtures"
sys.path.insert(0, str(FIXTURES / "build"))

from materialise import materialise  # noqa: E402


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, list(arguments))


@pytest.fixture
def kimi(tmp_path: Path) -> Path:
    materialise(FIXTURES / "kimi-k2.5-layers0", tmp_path / "kimi draft")
    return tmp_path / "kimi draft"


def commands(result: Result) -> list[dict[str, Any]]:
    document = json.loads(result.stdout)
    assert document["schema"] == "eagle3-lint/launch/1"
    found: list[dict[str, Any]] = document["commands"]
    return found


def test_the_newest_release_of_both(kimi: Path) -> None:
    result = run("launch", str(kimi), "-m", "kimi-k2.5", "--format", "json")
    assert (result.exit_code, result.stderr) == (0, "")
    sglang, vllm = commands(result)
    assert sglang["target"]["runtime"] == "sglang"
    # 131072 positions to the target's 262144, and a quantised target.
    assert sglang["env"] == {"SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN": "1"}
    assert sglang["argv"][-2:] == ["--speculative-draft-model-quantization", "unquant"]
    assert str(kimi) in sglang["argv"]
    assert vllm["argv"][:3] == ["vllm", "serve", "moonshotai/Kimi-K2.5"]
    assert json.loads(vllm["argv"][4])["model"] == str(kimi)


def test_the_text_is_a_script(kimi: Path) -> None:
    arguments = (
        "launch",
        str(kimi),
        "-m",
        "kimi-k2.5",
        "-t",
        "sglang==0.5.12",
        "-t",
        "vllm==0.18.0",
    )
    text = run(*arguments).stdout
    wanted = [
        [*(f"{n}={v}" for n, v in c["env"].items()), *c["argv"]]
        for c in commands(run(*arguments, "--format", "json"))
    ]
    code = "\n".join(line for line in text.splitlines() if not line.startswith("#"))
    found = [shlex.split(block.replace("\\\n", "")) for block in code.split("\n\n")]
    assert found == wanted


def test_a_relative_path_becomes_absolute(kimi: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(kimi)
    for path in (".", "config.json"):
        [command] = commands(run("launch", path, "-t", "sglang", "--format", "json"))
        assert str(kimi) in command["argv"]


def test_a_target_that_refuses_it_is_printed_too(kimi: Path) -> None:
    result = run("launch", str(kimi), "-m", "kimi-k2.5", "-t", "sglang==0.5.9", "-t", "sglang")
    assert result.exit_code == 1
    assert result.stdout.count("python -m sglang.launch_server") == 2
    [line] = result.stderr.splitlines()
    for words in ("sglang 0.5.9 serving kimi-k2.5", "E3L601", "E3L201"):
        assert words in line


def test_the_target_model_may_be_missing(kimi: Path) -> None:
    result = run("launch", str(kimi), "-t", "vllm")
    assert result.exit_code == 0
    assert "vllm serve TARGET" in result.stdout
    assert "# TARGET: the target model's path" in result.stdout


@pytest.mark.parametrize(
    ("dtype", "weights", "added"),
    [
        # sglang 0.5.23 configs/model_config.py:2298: none is float32, and auto makes that float16.
        (None, "BF16", "bfloat16"),
        ("float32", "F16", "float16"),
        ("bfloat16", "BF16", None),
        (None, "F32", None),
    ],
)
def test_a_dtype_that_config_does_not_name(
    tmp_path: Path, dtype: str | None, weights: str, added: str | None
) -> None:
    tensors = {
        n: (weights if d == "BF16" else d, shape) for n, (d, shape) in llama_tensors().items()
    }
    draft = write_draft(tmp_path / "draft", {**llama_config(), "torch_dtype": dtype}, tensors)
    [command] = commands(run("launch", str(draft), "-t", "sglang", "--format", "json"))
    words = command["argv"]
    assert (words[words.index("--dtype") + 1] if "--dtype" in words else None) == added


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("-t", "trt"), "no such runtime"),
        (("-m", "./nowhere"), "no such folder"),
        (("--rules", "/nowhere"), "no rule folder"),
    ],
)
def test_bad_options(kimi: Path, arguments: tuple[str, ...], words: str) -> None:
    result = run("launch", str(kimi), *arguments)
    assert result.exit_code == 2
    [line] = result.stderr.splitlines()
    assert words in line


# -- check --launch --------------------------------------------------------------------------------

SCRIPT = """#!/bin/bash
# --speculative-algorithm EAGLE3 is what it should be
export CUDA_VISIBLE_DEVICES=0,1
DRAFT='{draft}'
python3 -m sglang.launch_server \\
  --model-path moonshotai/Kimi-K2.5 --tp-size 8 \\
  --speculative-algorithm EAGLE \\
  --speculative-draft-model-path "$DRAFT" > log.txt 2>&1 &
"""


def test_a_script_is_checked(kimi: Path, tmp_path: Path) -> None:
    script = tmp_path / "serve.sh"
    script.write_text(SCRIPT.format(draft=kimi))
    result = run("check", str(kimi), "--launch", str(script), "--format", "json")
    assert result.exit_code == 1
    # The command says which runtime and which target model.
    [found] = json.loads(result.stdout)["checkpoints"][0]["results"]
    assert found["target"] == {"runtime": "sglang", "release": "0.5.23", "model": "kimi-k2.5"}
    diagnostics = {d["rule"]: d for d in found["diagnostics"]}
    assert set(diagnostics) == {"E3L611", "E3L616"}
    assert diagnostics["E3L611"]["where"] == [{"file": str(script), "line": 7}]
    assert found["verdict"] == "refused"


def test_a_good_command_adds_nothing(kimi: Path) -> None:
    [command] = commands(
        run("launch", str(kimi), "-m", "kimi-k2.5", "-t", "sglang", "--format", "json")
    )
    env = [f"{name}={value}" for name, value in command["env"].items()]
    text = shlex.join([*env, *command["argv"]])
    result = run("check", str(kimi), "--launch", text)
    assert result.exit_code == 0, result.stdout
    assert "No findings." in result.stdout


def test_matrix_takes_a_command(kimi: Path) -> None:
    text = f"vllm serve m --speculative-config.model '{kimi}' --speculative-config.method eagle"
    result = run("matrix", str(kimi), "-m", "kimi-k2.5", "--launch", text)
    assert "vllm" in result.stdout
    assert "sglang" not in result.stdout


@pytest.mark.parametrize(
    ("launch", "words"),
    [
        ("nothing.sh", "neither a file nor a command"),
        ("echo hello", "no server is started there"),
        ("vllm serve 'm", "a quote has no end"),
        ("vllm serve m --speculative-config {method:eagle3}", "is no JSON"),
    ],
)
def test_bad_commands(kimi: Path, launch: str, words: str) -> None:
    result = run("check", str(kimi), "--launch", launch)
    assert result.exit_code == 2
    [line] = result.stderr.splitlines()
    assert line.startswith("eagle3-lint: ")
    assert words in line


def test_the_other_runtime_was_asked_for(kimi: Path) -> None:
    result = run("check", str(kimi), "-t", "sglang", "--launch", "vllm serve m")
    assert result.exit_code == 2
    assert "it starts vllm, and sglang 0.5.23 was asked for" in result.stderr


def test_layers_that_an_option_names_stand_in_a_file_beside_the_command(tmp_path: Path) -> None:
    target = tmp_path / "target" / "config.json"
    target.parent.mkdir()
    target.write_text(
        json.dumps(
            {
                "architectures": ["LlamaForCausalLM"],
                "model_type": "llama",
                "hidden_size": 64,
                "num_hidden_layers": 32,
                "vocab_size": 1000,
            }
        )
    )
    draft = write_case({"base": "llama"}, tmp_path / "draft")
    words = ["launch", str(draft), "-t", "tensorrt-llm", "-m", str(target)]
    ran = CliRunner().invoke(main, [*words, "--trained-on", "9,21,32", "--format", "json"])
    [command] = json.loads(ran.stdout)["commands"]
    held = json.loads(command["files"]["eagle3.yaml"])["speculative_config"]
    # Aux state k is the output of layer k - 1.
    assert held["eagle3_layers_to_capture"] == [8, 20, 31]
    assert held["speculative_model"] == str(draft)
    assert command["argv"][-1] == "eagle3.yaml"
    ran = CliRunner().invoke(main, [*words, "--format", "json"])
    [command] = json.loads(ran.stdout)["commands"]
    assert "eagle3_layers_to_capture" not in command["files"]["eagle3.yaml"], "the default"
