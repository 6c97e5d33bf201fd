"""The command line with addresses, and what a plain check on this disk still does without."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import eagle3_lint
from eagle3_lint.cli import main
from tests.drafts import llama_config, llama_tensors, write_draft
from tests.hub.server import Hub
from tests.weights import write_target

PACKAGE = Path(eagle3_lint.__file__).parent


@pytest.fixture(name="draft")
def _draft(tmp_path: Path) -> Path:
    return write_draft(tmp_path / "draft", llama_config(), llama_tensors("layers.0."))


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, list(arguments))


def assert_one_line(result: Result, *words: str) -> None:
    assert result.exit_code == 2, result.output
    lines = result.stderr.splitlines()
    assert len(lines) == 1, lines
    assert lines[0].startswith("eagle3-lint: ")
    for word in words:
        assert word in lines[0]


def test_a_process_of_its_own(hub: Hub, draft: Path, tmp_path: Path) -> None:
    """Nothing but the environment says where the Hub is; no temporary folder is left."""
    commit = hub.add("org/draft", draft)
    hub.add("org/target", write_target(tmp_path / "target"))
    (tmp_path / "tmp").mkdir()
    environment = {
        **os.environ,
        "HF_ENDPOINT": hub.url,
        "HF_HOME": str(tmp_path / "home"),
        "TMPDIR": str(tmp_path / "tmp"),
    }
    arguments = ["check", "org/draft", "hf://org/draft", "-m", "hf://org/target",
                 "-t", "sglang==0.5.9", "--format", "json"]  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-m", "eagle3_lint.cli", *arguments],
        capture_output=True, text=True, env=environment, cwd=tmp_path / "tmp", check=False,
    )  # fmt: skip
    assert done.returncode == 1, done.stderr
    assert done.stderr == ""
    found = json.loads(done.stdout)["checkpoints"]
    assert [c["path"] for c in found] == [f"hf://org/draft@{commit}"] * 2
    assert found[0]["results"][0]["target"]["model"] == "hf://org/target"
    assert list((tmp_path / "tmp").iterdir()) == []


@pytest.mark.parametrize("command", ["check", "matrix", "inspect"])
def test_commands_that_read(hub: Hub, draft: Path, command: str) -> None:
    commit = hub.add("org/draft", draft)
    near, far = run(command, str(draft)), run(command, "hf://org/draft")
    assert near.exit_code in (0, 1)
    assert far.exit_code == near.exit_code
    assert f"hf://org/draft@{commit}" in far.stdout
    # Lines are wrapped to the length of the path.
    shown = far.stdout.replace(f"hf://org/draft@{commit}", str(draft))
    assert shown.split() == near.stdout.split()


@pytest.mark.parametrize("command", ["check", "matrix", "inspect"])
def test_what_is_not_there(hub: Hub, command: str) -> None:
    assert_one_line(run(command, "hf://org/draft"), "hf://org/draft: ", "no such repository")
    assert_one_line(run(command, "org/draft"), "org/draft: no such file or folder", "on the Hub")


def test_inspect_a_vocabulary(hub: Hub, draft: Path, tmp_path: Path) -> None:
    target = write_target(tmp_path / "target")
    hub.add("org/draft", draft)
    hub.add("org/target", target)
    near = run("inspect", str(draft), "--vocab", "-m", str(target))
    far = run("inspect", "hf://org/draft", "--vocab", "-m", "hf://org/target")
    assert near.exit_code == far.exit_code == 0, far.output
    assert far.stdout == near.stdout


@pytest.mark.parametrize("command", ["fix", "undo"])
@pytest.mark.parametrize("path", ["hf://org/draft", "s3://bucket/draft"])
def test_commands_that_write_need_the_files(hub: Hub, draft: Path, command: str, path: str) -> None:
    hub.add("org/draft", draft)
    assert_one_line(run(command, path), f"{path}: ", "download", "hf download", "that folder")
    assert hub.seen == []


@pytest.mark.parametrize("command", ["fix", "undo"])
def test_a_name_that_could_be_on_the_hub_is_a_path_for_them(hub: Hub, command: str) -> None:
    assert_one_line(run(command, "org/draft"), "org/draft: no such file or folder")
    assert hub.seen == []


def test_a_target_model_that_is_not_there(hub: Hub, draft: Path) -> None:
    result = run("check", str(draft), "-m", "hf://org/target")
    assert_one_line(result, "hf://org/target: ", "no such repository")
    hub.add("org/target", draft.parent)
    result = run("check", str(draft), "-m", "hf://org/target")
    assert_one_line(result, "target model hf://org/target@", "/config.json: cannot be read")


@pytest.mark.parametrize(
    ("package", "arguments", "words"),
    [
        ("huggingface_hub", ("hf://org/draft",), ("pip install 'eagle3-lint[hub]'",)),
        ("huggingface_hub", ("org/draft",),
         ("no such file or folder; give the draft's folder", "eagle3-lint[hub]")),
        ("huggingface_hub", ("DRAFT", "-m", "hf://org/target"), ("eagle3-lint[hub]",)),
        ("fsspec", ("s3://bucket/draft",), ("pip install 'eagle3-lint[stores]'",)),
    ],
)  # fmt: skip
def test_extras_that_are_not_installed(
    draft: Path,
    monkeypatch: pytest.MonkeyPatch,
    package: str,
    arguments: tuple[str, ...],
    words: tuple[str, ...],
) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == package]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    given = [str(draft) if word == "DRAFT" else word for word in arguments]
    assert_one_line(run("check", *given), *words)


# -- a draft on this disk --------------------------------------------------------------------------


def test_a_plain_check_knows_nothing_of_it(draft: Path) -> None:
    program = (
        "import sys\nfrom eagle3_lint.cli import main\n"
        f"try:\n    main(['check', {str(draft)!r}])\nexcept SystemExit:\n    pass\n"
        "print('\\n' + ' '.join(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    names = set(done.stdout.splitlines()[-1].split())
    assert "eagle3_lint.load.folder" in names
    mine = {name for name in names if name.startswith("eagle3_lint.load.remote")}
    heavy = {"huggingface_hub", "fsspec", "tempfile", "concurrent.futures", "http.client"}
    assert mine == names & heavy == set()


@pytest.mark.parametrize("form", ["sarif", "github", "gitlab", "junit"])
def test_reports_for_ci(hub: Hub, draft: Path, form: str) -> None:
    commit = hub.add("org/draft", draft)
    more = ("-t", "sglang==0.5.9", "--format", form)
    done = run("check", "hf://org/draft", *more)
    assert done.exit_code == 1, done.output
    assert f"//org/draft@{commit}" in done.stdout  # GitHub wants the colon escaped
    if form == "sarif":  # whose fixes hold the text that they change
        fixes = [r.get("fixes") for r in json.loads(done.stdout)["runs"][0]["results"]]
        local = json.loads(run("check", str(draft), *more).stdout)["runs"][0]["results"]
        assert [bool(f) for f in fixes] == [bool(r.get("fixes")) for r in local]


def test_a_command_names_the_repository(hub: Hub, draft: Path) -> None:
    hub.add("org/draft", draft)
    write_draft(draft / "deep", llama_config(), llama_tensors())
    model = ("-t", "sglang==0.5.9", "-m", "llama-3.1-8b")
    done = run("launch", "hf://org/draft", *model)
    assert "--speculative-draft-model-path org/draft " in done.stdout.replace("\\\n", " ")
    assert_one_line(run("launch", "hf://org/draft/deep", *model), "download it first")


#: Functions that open a file without a word, because those who call them have said it.
_TOLD_BEFORE = {
    "load_state", "read_torch_file",  # weights.py asks for the whole file
    "read_header_text",  # for fix, which refuses addresses
}  # fmt: skip


def functions() -> Iterator[tuple[str, ast.FunctionDef]]:
    for path in sorted((PACKAGE / "load").glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.FunctionDef):
                yield f"{path.name}:{node.name}", node


def test_every_reader_says_what_it_is_about_to_read() -> None:
    """Else it would find an empty file or holes, on the Hub alone."""
    openers = {"open", "read_bytes", "read_text"}
    found = set()
    for name, function in functions():
        calls = [node.func for node in ast.walk(function) if isinstance(node, ast.Call)]
        called = {c.id if isinstance(c, ast.Name) else getattr(c, "attr", "") for c in calls}
        if called & openers and function.name not in _TOLD_BEFORE:
            found.add(name)
            assert "bring" in called, name
    assert {"header.py:read_header", "rows.py:read_rows", "values.py:read_integers"} <= found
