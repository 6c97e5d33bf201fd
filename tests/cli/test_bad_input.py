"""Bad input of any kind: exit code 2, one line on stderr that says what and where, no traceback."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from eagle3_lint.cli import main
from tests.drafts import llama_config, llama_tensors, safetensors_bytes, write_draft


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, list(arguments))


def assert_one_line(result: Result, *words: str) -> None:
    assert result.exit_code == 2, result.output
    assert result.exception is None or isinstance(result.exception, SystemExit)
    lines = result.stderr.splitlines()
    assert len(lines) == 1, lines
    assert lines[0].startswith("eagle3-lint: ")
    for word in words:
        assert word in lines[0]


def write_config(folder: Path, text: str | bytes) -> Path:
    write_draft(folder, llama_config(), llama_tensors())
    raw = text.encode() if isinstance(text, str) else text
    (folder / "config.json").write_bytes(raw)
    return folder


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", (":1:2", "not JSON")),
        # Python 3.13 puts the comma itself, older ones what follows it.
        ('{\n  "a": 1,\n}', ("config.json:", "not JSON")),
        ("[1]", ("no object",)),
        ("", ("not JSON",)),
        (b"\xef\xbb\xbf{}", ("byte order mark",)),
        (b'{"a": "\xff"}', ("not UTF-8",)),
        ("[" * 100_000, ("config.json",)),
        ('{"a": ' + "1" * 5000 + "}", ("config.json",)),
    ],
)
def test_broken_config(tmp_path: Path, text: str | bytes, words: tuple[str, ...]) -> None:
    draft = write_config(tmp_path, text)
    assert_one_line(run("check", str(draft)), "config.json", *words)


def missing(folder: Path) -> Path:
    return folder / "nothing"


def empty_folder(folder: Path) -> Path:
    return folder


def weights_alone(folder: Path) -> Path:
    (folder / "model.safetensors").write_bytes(safetensors_bytes(llama_tensors()))
    return folder


def folder_called_config(folder: Path) -> Path:
    (folder / "config.json").mkdir()
    return folder


def pipe_called_config(folder: Path) -> Path:
    os.mkfifo(folder / "config.json")
    return folder


def broken_link(folder: Path) -> Path:
    (folder / "config.json").symlink_to(folder / "gone.json")
    return folder


def link_to_itself(folder: Path) -> Path:
    (folder / "draft").symlink_to(folder / "draft")
    return folder / "draft"


def other_file(folder: Path) -> Path:
    (folder / "notes.txt").write_text("hello")
    return folder / "notes.txt"


def below_a_file(folder: Path) -> Path:
    (folder / "notes.txt").write_text("hello")
    return folder / "notes.txt" / "draft"


def training_state(folder: Path) -> Path:
    (folder / "training_state.pt").write_bytes(b"PK")
    return folder


def not_a_draft(folder: Path) -> Path:
    config = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 64}
    tensors = {f"model.layers.{i}.mlp.up_proj.weight": ("BF16", (8, 8)) for i in range(40)}
    return write_draft(folder / "model", config, tensors)


def eagle1_draft(folder: Path) -> Path:
    config = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 64}
    tensors = {"fc.weight": ("BF16", (64, 128)), "layers.0.mlp.up_proj.weight": ("BF16", (8, 8))}
    return write_draft(folder / "model", config, tensors)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (missing, ("no such file or folder",)),
        (empty_folder, ("neither config.json nor weights",)),
        (weights_alone, ("no config.json beside the weights",)),
        (folder_called_config, ("config.json", "not a regular file")),
        (pipe_called_config, ("config.json", "not a regular file")),
        (broken_link, ("config.json",)),
        (link_to_itself, ("cannot be read",)),
        (other_file, ("no draft",)),
        (below_a_file, ("a file, not a folder",)),
        (training_state, ("not an exported draft", "SpecForge")),
        (not_a_draft, ("no EAGLE-3 draft", "whole model of 40 layers")),
        (eagle1_draft, ("no EAGLE-3 draft", "EAGLE-1")),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
@pytest.mark.parametrize("command", ["check", "matrix", "inspect"])
def test_bad_path(
    tmp_path: Path, command: str, make: Callable[[Path], Path], words: tuple[str, ...]
) -> None:
    assert_one_line(run(command, str(make(tmp_path))), *words)


def test_no_permission(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    draft = write_draft(tmp_path, llama_config(), llama_tensors())

    def refuse(self: Path) -> bytes:
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr(Path, "read_bytes", refuse)
    assert_one_line(run("check", str(draft)), "config.json", "Permission denied")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("-t", "trt==1"), ("no such runtime", "sglang")),
        (("-t", "sglang>=99"), ("no known release",)),
        (("-t", "sglang=>0.5"), ("no release range",)),
        (("-t", "sglang==five"), ("no release range",)),
        (("-t", "sglang@installed"), ("has no package of that name", "pip download")),
        (("-m", "kimi-k25x"), ("kimi-k25x", "did you mean")),
        (("-m", "./nowhere"), ("no such folder",)),
        (("--rules", "/nowhere"), ("no rule folder",)),
    ],
)
def test_bad_options(tmp_path: Path, arguments: tuple[str, ...], words: tuple[str, ...]) -> None:
    draft = write_draft(tmp_path, llama_config(), llama_tensors())
    assert_one_line(run("check", str(draft), *arguments), *words)


def test_bad_target_model_config(tmp_path: Path) -> None:
    draft = write_draft(tmp_path / "draft", llama_config(), llama_tensors())
    target = tmp_path / "config.json"
    target.write_text("{]")
    assert_one_line(run("check", str(draft), "-m", str(target)), "config.json:1", "not JSON")
    target.write_text('{"hidden_size": 8}')
    assert_one_line(run("check", str(draft), "-m", str(target)), "names no architectures")


def test_output_that_cannot_be_written(tmp_path: Path) -> None:
    draft = write_draft(tmp_path / "draft", llama_config(), llama_tensors())
    place = tmp_path / "missing" / "report.json"
    assert_one_line(run("check", str(draft), "--output", str(place)), "cannot write the report")


@pytest.mark.parametrize(
    "change",
    [
        {"architectures": None},
        {"architectures": []},
        {"architectures": "LlamaForCausalLMEagle3"},
        {"architectures": [7]},
        {"hidden_size": None},
        {"hidden_size": "64"},
        {"hidden_size": -64},
        {"hidden_size": 6.4},
        {"hidden_size": 10**30},
        {"num_attention_heads": 0},
        {"num_hidden_layers": 10**9},
        {"num_hidden_layers": "one"},
        {"eagle_config": []},
        {"eagle_config": {"eagle_aux_hidden_state_layer_ids": "2,30,58"}},
        {"model_type": ["llama"]},
        {"vocab_size": True},
        {
            "transformer_layer_config": 3,
            "speculators_config": 4,
            "speculators_model_type": "eagle3",
        },
    ],
    ids=lambda change: json.dumps(change)[:40],
)
def test_strange_values_are_findings_not_tracebacks(
    tmp_path: Path, change: dict[str, object]
) -> None:
    draft = write_draft(tmp_path, {**llama_config(), **change}, llama_tensors())
    result = run("check", str(draft), "-t", "sglang>=0.4", "--format", "json")
    assert result.exit_code in (0, 1), result.output
    assert result.exception is None or isinstance(result.exception, SystemExit)
    assert json.loads(result.stdout)["schema"] == "eagle3-lint/report/1"


def test_a_closed_pipe_is_quiet(tmp_path: Path) -> None:
    draft = write_draft(tmp_path, llama_config(), llama_tensors("layers.0."))
    command = f"{sys.executable} -m eagle3_lint.cli matrix {draft} | head -1"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True)
    assert "Traceback" not in done.stderr


def test_a_name_cannot_steer_the_terminal(tmp_path: Path) -> None:
    tensors = {**llama_tensors(), "evil\x1b[2J\nname.weight": ("BF16", (64,))}
    draft = write_draft(tmp_path / "draft", llama_config(), tensors)
    ran = CliRunner().invoke(main, ["check", str(draft), "-t", "sglang==0.5.9"])
    assert "\x1b" not in ran.output
    assert "\\x1b[2J" in ran.output
