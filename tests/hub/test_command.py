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
from fixtures.build.materialise import materialise
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


def run_alone(
    hub: Hub, folder: Path, *arguments: str, program: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """A check in a process of its own, to which the environment alone says where the Hub is."""
    (folder / "tmp").mkdir()
    environment = {
        **os.environ,
        "HF_ENDPOINT": hub.url,
        "HF_HOME": str(folder / "home"),
        "TMPDIR": str(folder / "tmp"),
        "PYTHONPATH": os.pathsep.join([str(PACKAGE.parent), os.environ.get("PYTHONPATH", "")]),
    }
    command = [str(program)] if program is not None else [
        "-m", "eagle3_lint.cli", "check", "-t", "sglang==0.5.9", "--format", "json", *arguments,
    ]  # fmt: skip
    return subprocess.run(
        [sys.executable, *command],
        capture_output=True,
        text=True,
        env=environment,
        cwd=folder / "tmp",
        check=False,
    )


def test_a_process_of_its_own(hub: Hub, draft: Path, tmp_path: Path) -> None:
    commit = hub.add("org/draft", draft)
    hub.add("org/target", write_target(tmp_path / "target"))
    done = run_alone(hub, tmp_path, "org/draft", "hf://org/draft", "-m", "hf://org/target")
    assert done.returncode == 1, done.stderr
    assert done.stderr == ""
    found = json.loads(done.stdout)["checkpoints"]
    assert [c["path"] for c in found] == [f"hf://org/draft@{commit}"] * 2
    assert found[0]["results"][0]["target"]["model"] == "hf://org/target"
    assert list((tmp_path / "tmp").iterdir()) == [], "no temporary folder is left"


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


@pytest.mark.parametrize("form", ["github", "gitlab", "junit"])
def test_reports_for_ci(hub: Hub, draft: Path, form: str) -> None:
    commit = hub.add("org/draft", draft)
    done = run("check", "hf://org/draft", "-t", "sglang==0.5.9", "--format", form)
    assert done.exit_code == 1, done.output
    assert f"//org/draft@{commit}" in done.stdout  # GitHub wants the colon escaped


def test_sarif_has_the_text_that_a_fix_changes(hub: Hub, tmp_path: Path) -> None:
    fixture = PACKAGE.parent / "fixtures" / "kimi-k2.5-layers0"
    materialise(fixture, tmp_path / "kimi")
    hub.add("org/kimi", tmp_path / "kimi")

    def fixes(path: str) -> list[bool]:
        more = ("-t", "sglang==0.5.9", "-m", "kimi-k2.5", "--format", "sarif")
        (found,) = json.loads(run("check", path, *more).stdout)["runs"]
        return ["fixes" in result for result in found["results"]]

    near = fixes(str(tmp_path / "kimi"))
    assert any(near)
    assert fixes("hf://org/kimi") == near


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_many_drafts(hub: Hub, draft: Path, tmp_path: Path, jobs: str) -> None:
    """Processes share nothing, and leave nothing in the temporary folder either."""
    names = [f"hf://org/draft{i}" for i in range(6)]
    commits = {hub.add(name.removeprefix("hf://"), draft) for name in names}
    (tmp_path / "list.txt").write_text("\n".join([*names, "hf://org/none"]) + "\n")
    done = run_alone(hub, tmp_path, "--from-file", str(tmp_path / "list.txt"), "--jobs", jobs)
    assert done.returncode == 1, done.stderr
    assert f"hf://org/none: {hub.url} has no such repository" in done.stdout
    found = json.loads(done.stdout)["checkpoints"]
    assert [c["path"].rpartition("@")[0] for c in found if c.get("results")] == names
    assert {c["path"].rpartition("@")[2] for c in found if c.get("results")} == commits
    assert list((tmp_path / "tmp").iterdir()) == []


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_process_begins_anew(hub: Hub, draft: Path, tmp_path: Path) -> None:
    """It may not write to its parent's mirrors, which its sisters have too."""
    for i in range(3):
        hub.add(f"org/draft{i}", draft)
    program = """
import multiprocessing, os, tempfile
from eagle3_lint.checking import read_draft
from eagle3_lint.load import folder_shown_as
def read(number):
    facts = read_draft(f"hf://org/draft{number}")
    return str(folder_shown_as(facts.path)), len(facts.d2t), os.listdir(tempfile.gettempdir())
if __name__ == "__main__":
    here = read(0)
    with multiprocessing.get_context("fork").Pool(2) as pool:
        there = pool.map(read, [1, 2, 0, 1, 2, 0])
        pool.close()
        pool.join()
    again = read(0)
    assert again[:2] == here[:2], (here, again)
    assert len({length for _, length, _ in [here, *there]}) == 1
    roots = {os.path.dirname(folder) for folder, _, _ in there}
    assert os.path.dirname(here[0]) not in roots, (here, there)
    print(len(os.listdir(tempfile.gettempdir())))
"""
    (tmp_path / "program.py").write_text(program)
    done = run_alone(hub, tmp_path, program=tmp_path / "program.py")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "1\n", "the children's are gone, and this process has its own"
    assert list((tmp_path / "tmp").iterdir()) == []


def test_a_command_names_the_repository(hub: Hub, draft: Path) -> None:
    """And the commit that was checked, where the release has a way to say it."""
    commit = hub.add("org/draft", draft)
    write_draft(draft / "deep", llama_config(), llama_tensors())

    def launch(target: str, path: str = "hf://org/draft") -> Result:
        return run("launch", path, "-t", target, "-m", "llama-3.1-8b")

    # SGLang 0.5.2 server_args.py:1548; 0.5.1 managers/tp_worker.py:109 has the target's --revision.
    line = " ".join(launch("sglang==0.5.2").stdout.replace("\\\n", " ").split())
    assert "--speculative-draft-model-path org/draft " in line
    assert f"--speculative-draft-model-revision {commit}" in line
    done = launch("sglang==0.5.1")
    assert "-draft-model-revision" not in done.stdout
    assert f"hf download org/draft --revision {commit}" in " ".join(done.output.split())
    # vLLM 0.33.0 config/speculative.py:455
    done = launch("vllm==0.33.0")
    assert f'"revision": "{commit}"' in done.stdout
    assert_one_line(launch("sglang==0.5.9", "hf://org/draft/deep"), "download it first")


def test_a_command_that_names_the_repository(hub: Hub, draft: Path) -> None:
    hub.add("org/draft", draft)

    def rules(named: str) -> set[str]:
        launch = (
            f"vllm serve x/y --speculative-config.method eagle3 --speculative-config.model {named}"
        )
        more = ("-t", "vllm==0.33.0", "-m", "llama-3.1-8b", "--format", "json")
        found = json.loads(run("check", "hf://org/draft", *more, "--launch", launch).stdout)
        (result,) = found["checkpoints"][0]["results"]
        return {d["rule"] for d in result["diagnostics"]}

    assert "E3L618" not in rules("org/draft")
    assert "E3L618" in rules("org/other")


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
