"""action.yml: its own scripts, run by bash as the runner runs them."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from tests.drafts import llama_config, llama_tensors, write_draft

ROOT = Path(__file__).parents[2]
ACTION: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
STEPS: list[dict[str, Any]] = ACTION["runs"]["steps"]
EXPRESSION = re.compile(r"\$\{\{\s*(.*?)\s*\}\}")
#: docs.github.com, "Workflow syntax": what `shell: bash` stands for.
BASH = ("bash", "--noprofile", "--norc", "-e", "-o", "pipefail")
#: Stands for python3 where -m venv, and in it -m pip, would fetch packages: the venv it makes has
#: the code under test, and a list of what pip was asked for.
PYTHON = """\
#!{python}
import os, pathlib, stat, sys
def script(path, text):
    path.write_text(text)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
venv = pathlib.Path(__file__).parent
if sys.argv[1:3] == ["-m", "venv"]:
    made = pathlib.Path(sys.argv[-1], "bin")
    made.mkdir(parents=True, exist_ok=True)
    script(made / "python", pathlib.Path(__file__).read_text())
elif sys.argv[1:4] == ["-m", "pip", "install"]:
    with open(venv / "asked", "a") as asked:
        print(*sys.argv[4:], file=asked)
    if "{satisfied}" == "" or "--force-reinstall" in sys.argv:
        script(venv / "eagle3-lint", '#!/bin/sh\\nexec {python} -m eagle3_lint.cli "$@"\\n')
else:
    os.execv("{python}", ["{python}", *sys.argv[1:]])
"""


class Ran(NamedTuple):
    code: int
    log: str
    outputs: dict[str, str]
    summary: str
    installed: list[str]


def expanded(text: str, values: Mapping[str, str]) -> str:
    return EXPRESSION.sub(lambda match: values[match[1]], text)


def act(folder: Path, satisfied: str = "", **inputs: str) -> Ran:
    """The action's steps, as the runner takes them: one after the other until one fails."""
    unknown = inputs.keys() - {name.replace("-", "_") for name in ACTION["inputs"]}
    assert not unknown
    given = {
        name: inputs.get(name.replace("-", "_"), str(told.get("default", "")))
        for name, told in ACTION["inputs"].items()
    }
    values = {f"inputs.{name}": value for name, value in given.items()}
    tools, temp, summary = folder / "tools", folder / "temp", folder / "summary"
    tools.mkdir()
    temp.mkdir()
    summary.touch()
    python = tools / "python3"
    python.write_text(PYTHON.format(python=sys.executable, satisfied=satisfied))
    python.chmod(0o755)
    log = ""
    code = 0
    for number, step in enumerate(STEPS):
        output = folder / f"output-{number}"
        output.touch()
        script = folder / f"script-{number}.sh"
        script.write_text(step["run"])
        env = {
            "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}",
            "HOME": str(folder),
            "RUNNER_TEMP": str(temp),
            "GITHUB_ACTION_PATH": str(ROOT),
            "GITHUB_WORKSPACE": str(folder),
            "GITHUB_OUTPUT": str(output),
            "GITHUB_STEP_SUMMARY": str(summary),
            **{name: expanded(value, values) for name, value in step.get("env", {}).items()},
        }
        done = subprocess.run(
            [*BASH, str(script)], cwd=folder, env=env, capture_output=True, text=True
        )
        log, code = log + done.stdout + done.stderr, done.returncode
        told = dict(line.split("=", 1) for line in output.read_text().splitlines())
        values |= {f"steps.{step.get('id')}.outputs.{k}": v for k, v in told.items()}
        if code:
            break
    outputs = {
        name: EXPRESSION.sub(lambda match: values.get(match[1], ""), told["value"])
        for name, told in ACTION["outputs"].items()
    }
    installed = (temp / "eagle3-lint" / "bin" / "asked").read_text().splitlines()
    return Ran(code, log, outputs, summary.read_text(encoding="utf-8"), installed)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_draft(tmp_path / "good", llama_config(), llama_tensors())
    write_draft(tmp_path / "broken", llama_config(), llama_tensors("layers.0."))
    return tmp_path


def test_no_expression_in_a_script() -> None:
    for step in STEPS:
        assert "${{" not in step["run"]
        assert step["shell"] == "bash"
        for value in step.get("env", {}).values():
            assert re.fullmatch(r"\$\{\{ inputs\.[a-z-]+ \}\}", value)


def test_every_input_is_used_and_told() -> None:
    used = {
        v for step in STEPS for value in step["env"].values() for v in EXPRESSION.findall(value)
    }
    assert used == {f"inputs.{name}" for name in ACTION["inputs"]}
    assert ACTION["runs"]["using"] == "composite"
    for told in (*ACTION["inputs"].values(), *ACTION["outputs"].values()):
        assert told["description"].endswith(".")


def test_a_good_draft(folder: Path) -> None:
    ran = act(folder, path="good", targets="sglang==0.5.9")
    assert (ran.code, ran.outputs) == (0, {"verdict": "serves", "exit-code": "0"}), ran.log
    # What is said of an unknown target model is a notice, and no reason to fail.
    assert {line.partition(" ")[0] for line in ran.log.splitlines()} == {"::notice"}


def test_a_broken_draft(folder: Path) -> None:
    ran = act(folder, path="broken", targets="sglang==0.5.9 sglang==0.5.12")
    assert (ran.code, ran.outputs) == (1, {"verdict": "broken", "exit-code": "1"}), ran.log
    errors = [line for line in ran.log.splitlines() if line.startswith("::error ")]
    assert len(errors) == 1
    assert errors[0].startswith("::error file=broken/model.safetensors,title=E3L201 tensor-dropped")
    assert "sglang 0.5.9 drops 10 tensors" in errors[0]


def test_the_summary_shows_every_release(folder: Path) -> None:
    """SGLang reads layers.0 from 0.5.12 on; whatever the targets, both sides of that are shown."""
    ran = act(folder, path="broken", targets="sglang==0.5.12")
    assert ran.code == 0, ran.log
    head, begin, *matrix, end = ran.summary.splitlines()
    assert (head, begin, end) == ("### eagle3-lint", "```text", "```")
    assert matrix[0] == "broken"
    text = "\n".join(matrix)
    assert re.search(r"^  \S+ - 0\.5\.11 +broken ", text, re.MULTILINE)
    assert re.search(r"^  0\.5\.12\S* - \S+ +serves", text, re.MULTILINE)
    assert "vllm" in matrix


def test_several_drafts_and_all_options(folder: Path) -> None:
    (folder / "target.json").write_text(
        json.dumps(
            {
                "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 64,
                "num_hidden_layers": 32, "vocab_size": 1000, "max_position_embeddings": 4096,
            }
        )
    )  # fmt: skip
    (folder / "broken").rename(folder / "a b")
    ran = act(
        folder,
        path="good\na b\n\n",
        targets="\n sglang==0.5.9\nvllm>=0.32,<0.34\n",
        target_model="target.json",
        fail_on="never",
        args="--ids-mean output\n--ignore E3L3,E3L5",
    )
    assert (ran.code, ran.outputs) == (0, {"verdict": "broken", "exit-code": "0"}), ran.log
    [line] = ran.log.splitlines()
    assert line.startswith("::error file=a b/model.safetensors,")
    assert "serving target.json" in line
    assert "\ngood\n" in ran.summary
    assert "\na b\n" in ran.summary


@pytest.mark.parametrize(
    ("inputs", "words"),
    [
        ({"path": "nothing"}, "no such file or folder"),
        ({"path": "good", "targets": "trt==1"}, "no such runtime"),
        ({"path": "good", "target_model": "./nowhere"}, "no such folder"),
        ({"path": "good", "args": "--nonsense"}, "--nonsense"),
        ({"path": ""}, "Missing argument"),
    ],
)
def test_wrong_input(folder: Path, inputs: dict[str, str], words: str) -> None:
    ran = act(folder, **inputs)
    assert (ran.code, ran.outputs) == (2, {"verdict": "", "exit-code": "2"})
    assert words in ran.log
    assert ran.summary == ""


@pytest.mark.parametrize("name", ["path", "targets", "target_model", "fail_on", "args", "version"])
def test_an_input_runs_nothing(folder: Path, name: str) -> None:
    text = (
        "$(touch a) `touch b` '; touch c; ' \"; touch d; \" ; touch e\ntouch f\n$((g[$(touch g)]))"
    )
    ran = act(folder, **{"path": "good", "targets": "sglang==0.5.9", name: text})
    assert [path for path in folder.rglob("?") if path.is_file()] == []
    # A version goes to pip alone, which here says yes to everything.
    assert (ran.code == 0) == (name == "version"), ran.log


def test_a_draft_whose_name_is_an_option_or_a_fence(folder: Path) -> None:
    (folder / "good").rename(folder / "--help")
    (folder / "broken").rename(folder / "```")
    ran = act(folder, path="--help\n```", targets="sglang==0.5.12")
    assert ran.code == 0, ran.log
    lines = ran.summary.splitlines()
    assert lines[1] == "````text"
    assert lines[-1] == "````"
    assert "````" not in lines[2:-1]
    assert {"--help", "```"} <= set(lines[2:-1])


def test_what_is_installed(folder: Path) -> None:
    quiet = "--quiet --disable-pip-version-check"
    assert act(folder, path="good").installed == [f"{quiet} {ROOT}"]


def test_a_release_is_installed(folder: Path) -> None:
    quiet = "--quiet --disable-pip-version-check"
    ran = act(folder, path="good", version="1.2.3")
    assert ran.installed == [f"{quiet} eagle3-lint==1.2.3"]


def test_one_that_is_there_already_is_installed_again(folder: Path) -> None:
    quiet = "--quiet --disable-pip-version-check"
    ran = act(folder, path="good", targets="sglang==0.5.9", satisfied="yes")
    assert ran.code == 0, ran.log
    assert ran.installed == [
        f"{quiet} {ROOT}",
        f"{quiet} --force-reinstall --no-deps {ROOT}",
    ]
