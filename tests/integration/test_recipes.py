"""docs/recipes.md: every block runs on drafts that the trainers wrote, good and damaged."""

from __future__ import annotations

import os
import re
import shutil
import stat
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml

from eagle3_lint import GateError
from tests.integration.training import ROOT, need, python

FIXTURES = ROOT / "fixtures"
PAGE = (ROOT / "docs/recipes.md").read_text(encoding="utf-8")
#: Recipe → folder that its blocks speak of → the fixture that is there. Weights of drafts only
#: are damaged, and the target model is none.
FOLDERS = {
    "After the training's command": {"out/draft": "acceptance-draft"},
    "A training loop": {"out/draft": "acceptance-draft"},
    "speculators": {"output/checkpoints/checkpoint_best": "speculators-0.9.0-llama"},
    "SpecForge": {"draft": "specforge-0.2.0"},
    "NVIDIA ModelOpt": {
        "export/run": "modelopt-0.47.0-llama",
        "export/checkpoint-2": "modelopt-0.47.0-llama",
    },
    "AngelSlim": {"out/checkpoint-2": "angelslim-0.3.0"},
    "NeMo Automodel": {"checkpoints/LATEST/model/consolidated": "nemo-automodel-0.7.0"},
    "Any other trainer on transformers' Trainer": {"out/checkpoint-2": "acceptance-draft"},
    "pre-commit": {"drafts/one": "specforge-0.2.0"},
}
#: Where a recipe's target model is, for those that name one.
TARGET = {"target": "acceptance-target"}


class Block(NamedTuple):
    recipe: str
    language: str
    number: int
    text: str

    def __str__(self) -> str:
        return f"{self.recipe}-{self.language}-{self.number}"


def blocks() -> list[Block]:
    found = []
    for section in PAGE.split("\n## ")[1:]:
        recipe = section.splitlines()[0]
        fences = re.findall(r"^```(\w*)\n(.*?)^```$", section, re.DOTALL | re.MULTILINE)
        found += [Block(recipe, lang, n, text) for n, (lang, text) in enumerate(fences)]
    return found


BLOCKS = blocks()
PYTHON = [b for b in BLOCKS if b.language == "python"]
PLAIN = [b for b in PYTHON if "Eagle3LintCallback" not in b.text]
CALLBACKS = [b for b in PYTHON if "Eagle3LintCallback" in b.text]
SHELL = [b for b in BLOCKS if b.language == "sh"]


def place(folder: Path, recipe: str, damaged: bool = False) -> Path:
    for where, fixture in {**FOLDERS[recipe], **TARGET}.items():
        shutil.copytree(FIXTURES / fixture, folder / where)
        if damaged and fixture != TARGET["target"]:
            [weights] = (folder / where).glob("*.safetensors")
            with weights.open("r+b") as file:
                file.truncate(weights.stat().st_size - 1)
    return folder


def test_every_block_is_run() -> None:
    assert {b.recipe for b in BLOCKS} == FOLDERS.keys()
    assert {b.language for b in BLOCKS} == {"python", "sh", "yaml"}
    # What README and this page promise: the trainers, a bare loop, the shell.
    assert {"speculators", "SpecForge", "NVIDIA ModelOpt", "AngelSlim", "NeMo Automodel"} < (
        {b.recipe for b in BLOCKS}
    )


@pytest.mark.parametrize("damaged", [False, True], ids=["good", "damaged"])
@pytest.mark.parametrize("block", PLAIN, ids=str)
def test_python(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    block: Block,
    damaged: bool,
) -> None:
    monkeypatch.chdir(place(tmp_path, block.recipe, damaged))
    told = ""
    try:
        exec(compile(block.text, str(block), "exec"), {"__name__": "__main__"})
    except GateError as error:
        told = str(error)
    if "logging" in block.text:
        assert told == ""  # the training goes on
        told = caplog.text
    # A damaged draft shows that the block looks where the recipe says that the draft is.
    assert ("error[E3L002]" in told) is damaged
    assert (told == "") is not damaged


@pytest.mark.parametrize("damaged", [False, True], ids=["good", "damaged"])
@pytest.mark.parametrize("block", CALLBACKS, ids=str)
def test_python_with_a_callback(tmp_path: Path, block: Block, damaged: bool) -> None:
    need("torch", "transformers", "accelerate")
    folder = place(tmp_path, block.recipe, damaged)
    (folder / "recipe.py").write_text(block.text)
    ran = python("-m", "tests.integration.recipe_run", "recipe.py", cwd=folder)
    assert (ran.returncode == 0) is not damaged, ran.stderr
    if damaged:
        assert "GateError" in ran.stderr
        assert "E3L002" in ran.stderr


@pytest.mark.parametrize("kind", ["good", "damaged", "training fails"])
@pytest.mark.parametrize("block", SHELL, ids=str)
def test_shell(tmp_path: Path, block: Block, kind: str) -> None:
    """By bash, with the trainers' commands replaced by ones that do nothing, or fail."""
    folder = place(tmp_path / "job", block.recipe, kind == "damaged")
    tools = tmp_path / "tools"
    tools.mkdir()
    trainer = "exit 3" if kind == "training fails" else "exit 0"
    ours = f'exec {sys.executable} -m eagle3_lint.cli "$@"'
    for name, does in {
        "torchrun": trainer, "specforge": trainer, "python": trainer, "eagle3-lint": ours,
    }.items():  # fmt: skip
        (tools / name).write_text(f"#!/bin/sh\n{does}\n")
        (tools / name).chmod(stat.S_IRWXU)
    if "git ls-files" in block.text:
        subprocess.run(["git", "init", "-q"], cwd=folder, check=True)
        subprocess.run(["git", "add", "-A"], cwd=folder, check=True)
    ran = subprocess.run(
        ["bash", "-c", block.text],
        cwd=folder,
        env={**os.environ, "PATH": f"{tools}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    told = ran.stdout + ran.stderr
    if kind == "damaged":
        assert ran.returncode in (1, 2, 123), told  # 123: what xargs makes of 1
        assert "E3L002" in told or "weights" in told, told
    elif kind == "training fails" and "&&" in block.text:
        assert (ran.returncode, told) == (3, "")
    else:
        assert ran.returncode == 0, told
        assert "serves" in told


def test_pre_commit_names_the_hooks() -> None:
    [block] = [b for b in BLOCKS if b.language == "yaml"]
    [repository] = yaml.safe_load(block.text)["repos"]
    hooks = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    assert [h["id"] for h in repository["hooks"]] == [h["id"] for h in hooks]


@pytest.mark.parametrize("number", [0, 1])
def test_pre_commit_hands_over_good_options(tmp_path: Path, number: int) -> None:
    folder = place(tmp_path, "pre-commit")
    [block] = [b for b in BLOCKS if b.language == "yaml"]
    args = yaml.safe_load(block.text)["repos"][0]["hooks"][number]["args"]
    entry = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())[number]["entry"]
    words = [*entry.split()[1:], *args, "drafts/one/config.json"]
    ran = subprocess.run(
        [sys.executable, "-m", "eagle3_lint.cli", *words],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0, ran.stderr
    assert "vllm" in ran.stdout
