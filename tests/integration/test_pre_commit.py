"""The hooks of .pre-commit-hooks.yaml: what the file names is run, and, asked for, by pre-commit.

``EAGLE3_LINT_PRE_COMMIT=VENV/bin/pre-commit`` runs the real program too, which installs this
checkout into an environment of its own.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from eagle3_lint.checking import read_draft
from tests.drafts import safetensors_bytes, write_case

ROOT = Path(__file__).parents[2]
HOOKS: dict[str, dict[str, Any]] = {
    hook["id"]: hook for hook in yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
}
REAL = os.environ.get("EAGLE3_LINT_PRE_COMMIT")
#: SGLang reads ``midlayer.`` in every release and ``layers.0.`` from 0.5.12 on.
GOOD, BROKEN = {"base": "llama"}, {"base": "llama", "rename": {"midlayer.": "layers.0."}}
OLD = ("-t", "sglang==0.5.9")


class Ran(NamedTuple):
    code: int
    out: str
    err: str


def run(hook_id: str, folder: Path, *args: str) -> Ran:
    """A hook over all files of a folder, as pre-commit's documentation says that it is called."""
    hook = HOOKS[hook_id]
    names = sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file())
    chosen = [name for name in names if re.search(hook["files"], name)]
    program, *entry = shlex.split(hook["entry"])
    assert program == "eagle3-lint"
    done = subprocess.run(
        [sys.executable, "-m", "eagle3_lint.cli", *entry, *args, *chosen],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    return Ran(done.returncode, done.stdout, done.stderr)


def others(folder: Path) -> None:
    """What a repository holds beside drafts, under names that the hooks look at."""
    target = {"architectures": ["LlamaForCausalLM"], "hidden_size": 64}
    tensors = {"model.layers.0.mlp.up_proj.weight": ("BF16", (8, 64))}
    (folder / "target").mkdir(parents=True)
    (folder / "target/config.json").write_text(json.dumps(target))
    (folder / "target/model.safetensors").write_bytes(safetensors_bytes(tensors))
    (folder / "website").mkdir()
    (folder / "website/config.json").write_text('{"port": 80, // comments and all\n}')
    (folder / "list").mkdir()
    (folder / "list/config.json").write_text("[]")
    (folder / "adapter").mkdir()
    adapter = {"base_model.model.lm_head.lora_A.weight": ("BF16", (8, 64))}
    (folder / "adapter/adapter_model.safetensors").write_bytes(safetensors_bytes(adapter))
    (folder / "eagle1").mkdir()
    (folder / "eagle1/config.json").write_text(json.dumps({"architectures": ["LlamaForCausalLM"]}))
    one = {"fc.weight": ("BF16", (64, 128)), "layers.0.mlp.up_proj.weight": ("BF16", (8, 64))}
    (folder / "eagle1/model.safetensors").write_bytes(safetensors_bytes(one))
    (folder / "empty").mkdir()
    (folder / "empty/pytorch_model.bin").write_bytes(b"")


def contents(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


# -- the file -------------------------------------------------------------------------------------


def test_the_hooks_are_called_as_users_write_it() -> None:
    assert list(HOOKS) == ["eagle3-lint", "eagle3-lint-fix"]
    for hook in HOOKS.values():
        assert hook["language"] == "python"
        # Two processes over the files of one draft would check it twice, or fix it at once.
        assert hook["require_serial"] is True


@pytest.mark.parametrize("hook", HOOKS.values(), ids=list(HOOKS))
def test_a_hook_runs_a_script_of_the_package(hook: dict[str, Any]) -> None:
    scripts = (ROOT / "pyproject.toml").read_text().split("[project.scripts]")[1].split("[")[0]
    assert f"{hook['entry'].split()[0]} = " in scripts


@pytest.mark.parametrize("hook", HOOKS.values(), ids=list(HOOKS))
@pytest.mark.parametrize(
    ("name", "matches"),
    [
        ("config.json", True),
        ("a/b/config.json", True),
        ("a/model.safetensors", True),
        ("a/model-00001-of-00002.safetensors", True),
        ("a/model.safetensors.index.json", True),
        ("pytorch_model.bin", True),
        ("a/pytorch_model-00001-of-00002.bin", True),
        ("a/tsconfig.json", False),
        ("a/config.json.orig", False),
        ("a/generation_config.json", False),
        ("a/optimizer.bin", False),
        ("a/README.md", False),
    ],
)
def test_files_that_a_hook_looks_at(hook: dict[str, Any], name: str, matches: bool) -> None:
    assert bool(re.search(hook["files"], name)) is matches


# -- eagle3-lint ----------------------------------------------------------------------------------


@pytest.mark.parametrize("hook", HOOKS)
def test_what_is_no_draft_passes_without_a_word(tmp_path: Path, hook: str) -> None:
    others(tmp_path)
    before = contents(tmp_path)
    assert run(hook, tmp_path) == Ran(0, "", "")
    assert contents(tmp_path) == before


@pytest.mark.parametrize("where", [".", "drafts/good"])
def test_a_good_draft_passes_and_is_checked_once(tmp_path: Path, where: str) -> None:
    others(tmp_path)
    write_case(GOOD, tmp_path / where)
    ran = run("eagle3-lint", tmp_path, *OLD)
    # config.json and model.safetensors are two of the names.
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.count("sglang 0.5.9: serves") == 1
    assert ran.out.startswith(f"{where} (midlayer names")


def test_a_broken_draft_fails(tmp_path: Path) -> None:
    others(tmp_path)
    write_case(GOOD, tmp_path / "good")
    write_case(BROKEN, tmp_path / "broken")
    ran = run("eagle3-lint", tmp_path, *OLD)
    assert ran.code == 1
    assert ran.out.count("error[E3L201]") == 1
    assert ran.out.count("sglang 0.5.9: broken") == ran.out.count("sglang 0.5.9: serves") == 1


def test_targets_of_the_repository_are_taken(tmp_path: Path) -> None:
    write_case(BROKEN, tmp_path / "broken")
    assert run("eagle3-lint", tmp_path).code == 0  # the newest releases read layers.0
    settings = '[tool.eagle3-lint]\ntargets = ["sglang==0.5.9"]\n'
    (tmp_path / "pyproject.toml").write_text(settings)
    assert run("eagle3-lint", tmp_path).code == 1


MERGED = '<<<<<<< ours\n{"architectures": ["LlamaForCausalLMEagle3"]}\n=======\n>>>>>>> theirs\n'
POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n"


@pytest.mark.parametrize(
    ("files", "named"),
    [
        # By the configuration although the weights were not fetched, and the other way round.
        ({"config.json": MERGED.encode(), "model.safetensors": POINTER}, "config.json:1"),
        ({"config.json": b"{"}, "config.json:1"),
        ({"config.json": None}, "no config.json"),
    ],
)
@pytest.mark.parametrize("hook", HOOKS)
def test_a_damaged_draft_is_still_one(
    tmp_path: Path, hook: str, files: dict[str, bytes | None], named: str
) -> None:
    draft = write_case(GOOD, tmp_path / "draft")
    for name, content in files.items():
        if content is None:
            (draft / name).unlink()
        else:
            (draft / name).write_bytes(content)
    ran = run(hook, tmp_path, *OLD)
    assert ran.code == 2
    assert "draft" in ran.err
    assert named in ran.err


def test_weights_that_were_not_fetched_are_named(tmp_path: Path) -> None:
    draft = write_case(GOOD, tmp_path / "draft")
    (draft / "model.safetensors").write_bytes(POINTER)
    ran = run("eagle3-lint", tmp_path, *OLD)
    assert ran.code == 1
    assert "error[E3L007]" in ran.out


# -- eagle3-lint-fix ------------------------------------------------------------------------------


def test_fix_changes_a_draft_and_fails_once(tmp_path: Path) -> None:
    others(tmp_path)
    write_case(BROKEN, tmp_path / "broken")
    write_case(GOOD, tmp_path / "good")
    before = contents(tmp_path)
    ran = run("eagle3-lint-fix", tmp_path, *OLD)
    assert ran.code == 1, ran.err
    assert "sglang 0.5.9: broken → serves" in ran.out
    after = contents(tmp_path)
    # Nothing beside the files that could be committed, and only the one file is other than before.
    assert after.keys() == before.keys()
    assert [name for name in after if after[name] != before[name]] == ["broken/model.safetensors"]
    assert "midlayer.hidden_norm.weight" in read_draft(tmp_path / "broken").tensors
    again = run("eagle3-lint-fix", tmp_path, *OLD)
    assert again.code == 0
    assert contents(tmp_path) == after


def test_fix_fails_when_it_cannot_mend(tmp_path: Path) -> None:
    # The whole head is gone: nothing can be renamed to it.
    write_case({"base": "llama", "remove": ["lm_head.weight"]}, tmp_path / "draft")
    before = contents(tmp_path)
    assert run("eagle3-lint-fix", tmp_path, *OLD).code == 1
    assert contents(tmp_path) == before


@pytest.mark.parametrize("words", [("--output", "x"), ("--format", "json")])
def test_fix_of_many_is_in_place_and_told_in_text(tmp_path: Path, words: tuple[str, str]) -> None:
    write_case(GOOD, tmp_path / "draft")
    ran = run("eagle3-lint-fix", tmp_path, *words)
    assert ran.code == 2
    assert "--skip-others" in ran.err


# -- the options by themselves --------------------------------------------------------------------


def lint(*words: str | Path) -> Ran:
    done = subprocess.run(
        [sys.executable, "-m", "eagle3_lint.cli", *map(str, words)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    return Ran(done.returncode, done.stdout, done.stderr)


def test_a_path_that_is_not_there_is_never_passed_over(tmp_path: Path) -> None:
    for command in ("check", "fix"):
        ran = lint(command, "--skip-others", tmp_path / "gone/config.json")
        assert ran.code == 2
        assert "gone" in ran.err


def test_folders_and_other_names_of_one_draft_count_once(tmp_path: Path) -> None:
    draft = write_case(GOOD, tmp_path / "draft")
    (tmp_path / "link").symlink_to(draft)
    (draft / "README.md").write_text("")
    paths = (draft / "README.md", tmp_path / "link", draft, draft / "config.json")
    ran = lint("check", "--skip-others", *OLD, "--format", "json", *paths)
    [checkpoint] = json.loads(ran.out)["checkpoints"]
    assert checkpoint["path"] == str(tmp_path / "link")


def test_a_report_of_nothing_is_still_one(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    ran = lint("check", "--skip-others", "--format", "json", tmp_path)
    assert ran.code == 0
    assert json.loads(ran.out)["checkpoints"] == []


def test_fix_takes_one_path_without_it(tmp_path: Path) -> None:
    draft = write_case(BROKEN, tmp_path / "draft")
    ran = lint("fix", *OLD, draft, draft)
    assert ran.code == 2
    assert "--skip-others" in ran.err
    # And what it changes is no failure there.
    assert lint("fix", *OLD, draft).code == 0


# -- the real program -----------------------------------------------------------------------------


def git(folder: Path, *words: str) -> str:
    command = ["git", "-c", "user.name=nobody", "-c", "user.email=nobody@localhost", *words]
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout


def commit_all(folder: Path) -> None:
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "all")


@pytest.fixture(scope="module")
def hooks_repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """This checkout as it is now, as a repository that pre-commit can install."""
    folder = tmp_path_factory.mktemp("hooks") / "eagle3-lint"
    folder.mkdir()
    ignored = shutil.ignore_patterns("__pycache__")
    for name in ("eagle3_lint", "rules"):
        shutil.copytree(ROOT / name, folder / name, ignore=ignored)
    for name in ("pyproject.toml", "README.md", "LICENSE", ".pre-commit-hooks.yaml"):
        shutil.copy(ROOT / name, folder)
    git(folder, "init", "-q")
    commit_all(folder)
    return folder


@pytest.mark.skipif(REAL is None, reason="EAGLE3_LINT_PRE_COMMIT is not set")
def test_pre_commit_itself(tmp_path: Path, hooks_repository: Path) -> None:
    assert REAL is not None
    hooks = [{"id": name, "args": list(OLD)} for name in HOOKS]
    rev = git(hooks_repository, "rev-parse", "HEAD").strip()
    config = {"repos": [{"repo": str(hooks_repository), "rev": rev, "hooks": hooks}]}
    (tmp_path / ".pre-commit-config.yaml").write_text(yaml.safe_dump(config))
    others(tmp_path / "others")
    write_case(GOOD, tmp_path / "drafts/good")
    write_case(BROKEN, tmp_path / "drafts/broken")
    git(tmp_path, "init", "-q")
    commit_all(tmp_path)
    home = hooks_repository.parent / "home"

    def hook(name: str, *files: str) -> Ran:
        done = subprocess.run(
            [REAL, "run", name, "--verbose", *files],
            cwd=tmp_path,
            env={**os.environ, "PRE_COMMIT_HOME": str(home)},
            capture_output=True,
            text=True,
        )
        return Ran(done.returncode, done.stdout, done.stderr)

    every = ("--all-files",)
    good = ("--files", "drafts/good/config.json", "drafts/good/model.safetensors")
    other = ("--files", *(f"others/{p}/config.json" for p in ("target", "website", "list")))
    broken = ("--files", "drafts/broken/model.safetensors")

    passed = hook("eagle3-lint", *good)
    assert passed.code == 0, passed
    assert passed.out.count("sglang 0.5.9: serves") == 1
    silent = hook("eagle3-lint", *other)
    assert silent.code == 0, silent
    assert "E3L" not in silent.out
    failed = hook("eagle3-lint", *broken)
    assert failed.code == 1, failed
    assert "error[E3L201]" in failed.out
    assert hook("eagle3-lint", *every).code == 1

    mended = hook("eagle3-lint-fix", *every)
    assert mended.code == 1, mended
    assert "files were modified by this hook" in mended.out
    assert git(tmp_path, "status", "--porcelain") == " M drafts/broken/model.safetensors\n"
    commit_all(tmp_path)
    for name in HOOKS:
        assert hook(name, *every).code == 0
