"""From a path to a folder with a readable config.json, or one line that says why not."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from eagle3_lint.errors import InputError
from eagle3_lint.load.folder import open_checkpoint
from tests.drafts import llama_config, llama_tensors, write_draft


def refusal(path: Path | str) -> str:
    with pytest.raises(InputError) as caught:
        open_checkpoint(path)
    message = str(caught.value)
    assert "\n" not in message
    assert str(path) in message
    return message


@pytest.fixture
def draft(tmp_path: Path) -> Path:
    return write_draft(tmp_path / "draft", llama_config(), llama_tensors())


@pytest.mark.parametrize(
    "name",
    ["", "config.json", "model.safetensors", "model.safetensors.index.json", "pytorch_model.bin"],
)
def test_the_folder_and_the_files_in_it_are_one_draft(draft: Path, name: str) -> None:
    if name and not (draft / name).exists():
        (draft / name).write_text("{}")
    assert open_checkpoint(draft / name).path == draft
    assert open_checkpoint(str(draft / name)).config.data == llama_config()


def test_all_names_are_kept_sorted(draft: Path) -> None:
    (draft / "README.md").touch()
    (draft / ".gitattributes").touch()
    names = (".gitattributes", "README.md", "config.json", "model.safetensors")
    assert open_checkpoint(draft).files == names


def test_links_of_a_hub_cache_are_followed(draft: Path, tmp_path: Path) -> None:
    """snapshots/<revision>/<file> is a link to ../../blobs/<hash>, outside the folder."""
    blobs, snapshot = tmp_path / "blobs", tmp_path / "snapshots" / "main"
    blobs.mkdir()
    snapshot.mkdir(parents=True)
    for name in ("config.json", "model.safetensors"):
        (draft / name).rename(blobs / name.replace(".", ""))
        (snapshot / name).symlink_to(Path("../../blobs") / name.replace(".", ""))
    checkpoint = open_checkpoint(snapshot / "config.json")
    assert checkpoint.path == snapshot
    assert {t.name for t in checkpoint.tensors} == set(llama_tensors())
    assert checkpoint.problems == ()


def nothing(draft: Path) -> Path:
    return draft / "nothing"


def link_to_nothing(draft: Path) -> Path:
    (draft.parent / "link").symlink_to("gone")
    return draft.parent / "link"


def below_a_file(draft: Path) -> Path:
    return draft / "config.json" / "draft"


def null_byte(draft: Path) -> Path:
    return Path("draft\0")


def long_name(draft: Path) -> Path:
    return draft / ("x" * 5000)


def other_file(draft: Path) -> Path:
    (draft / "notes.txt").touch()
    return draft / "notes.txt"


def pipe(draft: Path) -> Path:
    os.mkfifo(draft / "pipe.safetensors")
    return draft / "pipe.safetensors"


def training_file(draft: Path) -> Path:
    (draft / "training_state.pt").touch()
    return draft / "training_state.pt"


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (nothing, ["no such file or folder", "give the draft's folder"]),
        (link_to_nothing, ["a link to nothing"]),
        (below_a_file, ["a file, not a folder"]),
        (null_byte, ["cannot be read", "null"]),
        (long_name, ["cannot be read", "too long"]),
        (other_file, ["no draft", "give its folder"]),
        (pipe, ["no draft"]),
        (training_file, ["no draft", "SpecForge", "specforge.export"]),
    ],
)
def test_paths(draft: Path, make: Callable[[Path], Path], words: list[str]) -> None:
    message = refusal(make(draft))
    for word in words:
        assert word in message


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ([], ["neither config.json nor weights"]),
        (["notes.txt"], ["neither config.json nor weights"]),
        (["model.safetensors"], ["no config.json beside the weights", "copy"]),
        (["pytorch_model.bin"], ["no config.json beside the weights"]),
        (["training_state.pt"], ["not an exported draft", "python -m specforge.export.to_sglang"]),
        (["draft_model.pt"], ["not an exported draft", "NeMo"]),
        (["eagle_meta.pt"], ["not an exported draft", "model/consolidated"]),
        (["__0_0.distcp", ".metadata"], ["not an exported draft", "__0_0.distcp", "converter"]),
        (["optimizer.bin", "scheduler.pt"], ["not an exported draft", "optimizer.bin"]),
        (["zero_to_fp32.py", "latest"], ["not an exported draft", "DeepSpeed"]),
        (["modelopt_state.pth"], ["not an exported draft", "export_hf_checkpoint.py"]),
        (["draft-q8.gguf"], ["llama.cpp"]),
    ],
)
def test_folders_without_a_configuration(
    tmp_path: Path, files: list[str], words: list[str]
) -> None:
    for name in files:
        (tmp_path / name).touch()
    message = refusal(tmp_path)
    for word in words:
        assert word in message


def test_the_draft_inside_is_named(draft: Path) -> None:
    (draft.parent / "logs").mkdir()
    assert f"did you mean {draft}?" in refusal(draft.parent)


def test_the_draft_two_levels_inside_is_named(draft: Path, tmp_path: Path) -> None:
    step = tmp_path / "epoch_0_step_100"
    (step / "model").mkdir(parents=True)
    (step / "eagle_meta.pt").touch()
    draft.rename(step / "model" / "consolidated")
    assert f"did you mean {step / 'model' / 'consolidated'}?" in refusal(step)


def test_of_several_drafts_inside_none_is_guessed(draft: Path) -> None:
    write_draft(draft.parent / "other", llama_config(), llama_tensors())
    assert "did you mean" not in refusal(draft.parent)


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (b'{\n  "a": 1\n', [":3:1:", "not JSON"]),
        (b"[]", [":1:1:", "no object"]),
        (b"\xff\xfe{\0}\0", [":1:1:", "UTF-16"]),
        (b'{"a": "\xff"}', [":1:8:", "not UTF-8"]),
        (b"", ["empty"]),
        (b"version https://git-lfs.github.com/spec/v1\n", ["git lfs pull"]),
    ],
)
def test_configurations_that_cannot_be_read(draft: Path, raw: bytes, words: list[str]) -> None:
    (draft / "config.json").write_bytes(raw)
    message = refusal(draft)
    assert message.startswith(f"{draft / 'config.json'}:")
    for word in words:
        assert word in message


def test_a_folder_called_config(draft: Path) -> None:
    (draft / "config.json").unlink()
    (draft / "config.json").mkdir()
    assert "not a regular file" in refusal(draft)


def test_a_pipe_called_config(draft: Path) -> None:
    (draft / "config.json").unlink()
    os.mkfifo(draft / "config.json")
    assert "not a regular file" in refusal(draft)


def test_a_configuration_that_links_to_nothing(draft: Path) -> None:
    (draft / "config.json").unlink()
    (draft / "config.json").symlink_to("../blobs/gone")
    assert "a link to nothing" in refusal(draft)


def _denied(*_: object, **__: object) -> None:
    raise PermissionError(errno.EACCES, "Permission denied")


def test_no_permission_behind_a_link(draft: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (draft / "config.json").rename(draft / "blob")
    (draft / "config.json").symlink_to("blob")
    monkeypatch.setattr(Path, "read_bytes", _denied)
    assert "cannot be read: Permission denied" in refusal(draft)


@pytest.mark.parametrize("what", ["stat", "read_bytes"])
def test_no_permission_for_a_file(draft: Path, monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    monkeypatch.setattr(Path, what, _denied)
    assert "cannot be read: Permission denied" in refusal(draft)


def test_no_permission_for_the_folder(draft: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "listdir", _denied)
    assert "cannot be listed: Permission denied" in refusal(draft)
