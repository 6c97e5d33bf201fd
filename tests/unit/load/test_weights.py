"""Which files are the weights, and every way in which they can disagree. Problems, never errors."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from eagle3_lint.load.checkpoint import Tensor
from eagle3_lint.load.folder import open_checkpoint
from eagle3_lint.load.weights import INDEX
from tests.unit.load.containers import A, entry, many, one
from tests.unit.load.folders import held, index, kinds, put


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "config.json").write_text("{}")
    return tmp_path


ONE, TWO, THREE = (f"model-0000{n}-of-00003.safetensors" for n in (1, 2, 3))


# -- one file --------------------------------------------------------------------------------------


def test_tensors_have_their_place_in_the_file(folder: Path) -> None:
    raw = many([entry("b", '"U8"', "[3]", "[4,7]"), A], 7)
    (folder / "model.safetensors").write_bytes(raw)
    checkpoint = open_checkpoint(folder)
    start = len(raw) - 7
    assert checkpoint.tensors == (
        Tensor("b", "U8", (3,), "model.safetensors", start + 4, 3),
        Tensor("a", "F32", (1,), "model.safetensors", start, 4),
    )
    assert checkpoint.weights_format == "safetensors"
    assert checkpoint.index is None
    assert kinds(checkpoint) == []


def test_a_damaged_header_is_a_problem_with_its_kind(folder: Path) -> None:
    (folder / "model.safetensors").write_bytes(one(3))
    assert kinds(open_checkpoint(folder)) == [("truncated-data", "model.safetensors", "a")]


def test_a_name_twice_in_a_header(folder: Path) -> None:
    (folder / "model.safetensors").write_bytes(many([A, A], 4))
    checkpoint = open_checkpoint(folder)
    assert kinds(checkpoint) == [("duplicate-key", "model.safetensors", "a")]
    assert held(checkpoint) == [("model.safetensors", "a")]


def test_no_weights(folder: Path) -> None:
    checkpoint = open_checkpoint(folder)
    assert checkpoint.weights_format == "none"
    assert kinds(checkpoint) == [("no-weights", "config.json", None)]


@pytest.mark.parametrize(
    ("name", "word"),
    [("training_state.pt", "specforge"), ("draft_model.pt", "nemo_automodel"),
     ("__0_0.distcp", "converter"), ("optimizer.bin", "save_pretrained")],
)  # fmt: skip
def test_no_weights_but_a_training_state(folder: Path, name: str, word: str) -> None:
    (folder / name).touch()
    [problem] = open_checkpoint(folder).problems
    assert problem.kind == "no-weights"
    assert name in problem.message
    assert word in problem.message


def test_a_training_state_beside_the_weights_is_nothing_special(folder: Path) -> None:
    put(folder, "model.safetensors", "a")
    for name in ("training_state.pt", "optimizer.bin", "training_args.bin"):
        (folder / name).touch()
    assert kinds(open_checkpoint(folder)) == []


def test_a_pipe_is_not_waited_for(folder: Path) -> None:
    os.mkfifo(folder / "model.safetensors")
    assert kinds(open_checkpoint(folder)) == [("unreadable", "model.safetensors", None)]


def test_a_folder_in_the_place_of_weights(folder: Path) -> None:
    (folder / "model.safetensors").mkdir()
    assert kinds(open_checkpoint(folder)) == [("unreadable", "model.safetensors", None)]


def test_a_link_of_an_incomplete_download(folder: Path) -> None:
    (folder / "model.safetensors").symlink_to("../../blobs/0123")
    [problem] = open_checkpoint(folder).problems
    assert problem.kind == "unreadable"
    assert "incomplete download" in problem.message


@pytest.mark.parametrize("step", ["pathlib.Path.open", "pathlib.Path.stat"])
@pytest.mark.parametrize("linked", [False, True])
def test_no_permission_for_the_weights(
    folder: Path, monkeypatch: pytest.MonkeyPatch, step: str, linked: bool
) -> None:
    put(folder, "blob", "a")
    if linked:
        (folder / "model.safetensors").symlink_to("blob")
    else:
        (folder / "blob").rename(folder / "model.safetensors")
    original = getattr(Path, step.rpartition(".")[2])

    def refuse(path: Path, *arguments: Any, **options: Any) -> Any:
        if path.name == "model.safetensors":
            raise PermissionError(errno.EACCES, "Permission denied")
        return original(path, *arguments, **options)

    monkeypatch.setattr(step, refuse)
    [problem] = open_checkpoint(folder).problems
    assert problem.kind == "unreadable"
    assert "Permission denied" in problem.message


# -- several files without an index ----------------------------------------------------------------


def test_without_an_index_all_are_loaded_in_the_order_of_their_numbers(folder: Path) -> None:
    for number in (10, 2, 1):
        put(folder, f"model-{number}.safetensors", f"t{number}")
    checkpoint = open_checkpoint(folder)
    assert [name for _, name in held(checkpoint)] == ["t1", "t2", "t10"]
    assert kinds(checkpoint) == [("bad-index", "model-1.safetensors", None)]
    assert "3 safetensors files" in checkpoint.problems[0].message


def test_a_tensor_in_two_files(folder: Path) -> None:
    put(folder, "a.safetensors", "x", "y")
    put(folder, "b.safetensors", "y")
    checkpoint = open_checkpoint(folder)
    assert ("tensor-in-two-shards", "b.safetensors", "y") in kinds(checkpoint)
    assert held(checkpoint).count(("b.safetensors", "y")) == 1
    assert len(checkpoint.tensors) == 3


def test_a_part_that_the_names_of_the_others_ask_for(folder: Path) -> None:
    put(folder, ONE, "a")
    put(folder, THREE, "c")
    assert ("missing-shard", TWO, None) in kinds(open_checkpoint(folder))


def test_a_number_in_a_name_that_counts_no_parts(folder: Path) -> None:
    put(folder, "step-1-of-20000000.safetensors", "a")
    assert kinds(open_checkpoint(folder)) == []


def test_hidden_files_are_not_weights(folder: Path) -> None:
    put(folder, "model.safetensors", "a")
    put(folder, ".model.safetensors.partial.safetensors", "b")
    assert held(open_checkpoint(folder)) == [("model.safetensors", "a")]


def test_an_adapter_beside_the_weights_is_loaded_with_them(folder: Path) -> None:
    put(folder, "model.safetensors", "a")
    put(folder, "adapter_model.safetensors", "lora_A")
    checkpoint = open_checkpoint(folder)
    assert {name for _, name in held(checkpoint)} == {"a", "lora_A"}
    assert kinds(checkpoint) == [("weights-twice", "adapter_model.safetensors", None)]


def test_an_adapter_alone_is_the_weights(folder: Path) -> None:
    put(folder, "adapter_model.safetensors", "lora_A")
    checkpoint = open_checkpoint(folder)
    assert held(checkpoint) == [("adapter_model.safetensors", "lora_A")]
    assert kinds(checkpoint) == []


@pytest.mark.parametrize("indexed", [False, True])
def test_a_consolidated_twin(folder: Path, indexed: bool) -> None:
    put(folder, "model.safetensors", "a")
    put(folder, "consolidated.safetensors", "a")
    if indexed:
        index(folder, {"a": "model.safetensors"})
    checkpoint = open_checkpoint(folder)
    assert held(checkpoint) == [("model.safetensors", "a")]
    assert kinds(checkpoint) == [("weights-twice", "consolidated.safetensors", None)]


def test_a_consolidated_file_alone_is_the_weights(folder: Path) -> None:
    put(folder, "consolidated.safetensors", "a")
    checkpoint = open_checkpoint(folder)
    assert held(checkpoint) == [("consolidated.safetensors", "a")]
    assert kinds(checkpoint) == []


def test_a_torch_file_beside_safetensors_is_not_opened(folder: Path) -> None:
    put(folder, "model.safetensors", "a")
    for name in ("pytorch_model.bin", "scheduler.bin"):
        (folder / name).write_bytes(b"not read")
    checkpoint = open_checkpoint(folder)
    assert kinds(checkpoint) == [("weights-twice", "pytorch_model.bin", None)]
    assert checkpoint.weights_format == "safetensors"


# -- an index --------------------------------------------------------------------------------------


@pytest.fixture
def shards(folder: Path) -> Path:
    """Three tensors in two shards, with their index."""
    put(folder, "1.safetensors", "a", "b")
    put(folder, "2.safetensors", "c")
    index(folder, {"c": "2.safetensors", "a": "1.safetensors", "b": "1.safetensors"})
    return folder


def test_shards_with_their_index(shards: Path) -> None:
    checkpoint = open_checkpoint(shards)
    assert held(checkpoint) == [
        ("1.safetensors", "a"), ("1.safetensors", "b"), ("2.safetensors", "c"),
    ]  # fmt: skip
    assert kinds(checkpoint) == []
    assert checkpoint.index is not None
    assert checkpoint.index.get("/weight_map/c") == "2.safetensors"


def test_a_shard_is_missing(shards: Path) -> None:
    (shards / "1.safetensors").unlink()
    checkpoint = open_checkpoint(shards)
    assert kinds(checkpoint) == [("missing-shard", "1.safetensors", None)]
    assert "2 tensors" in checkpoint.problems[0].message
    assert held(checkpoint) == [("2.safetensors", "c")]


def test_all_shards_are_missing(shards: Path) -> None:
    (shards / "1.safetensors").unlink()
    (shards / "2.safetensors").unlink()
    checkpoint = open_checkpoint(shards)
    assert {kind for kind, _, _ in kinds(checkpoint)} == {"missing-shard"}
    assert checkpoint.weights_format == "safetensors"


def test_a_damaged_shard_does_not_hide_the_other(shards: Path) -> None:
    (shards / "1.safetensors").write_bytes(b"")
    checkpoint = open_checkpoint(shards)
    assert kinds(checkpoint) == [("empty-file", "1.safetensors", None)]
    assert held(checkpoint) == [("2.safetensors", "c")]


def test_a_tensor_in_the_wrong_shard(shards: Path) -> None:
    index(shards, {"a": "1.safetensors", "b": "2.safetensors", "c": "2.safetensors"})
    checkpoint = open_checkpoint(shards)
    assert kinds(checkpoint) == [("tensor-in-wrong-shard", "1.safetensors", "b")]
    assert "2.safetensors" in checkpoint.problems[0].message


def test_a_tensor_in_two_shards(shards: Path) -> None:
    put(shards, "2.safetensors", "b", "c")
    assert kinds(open_checkpoint(shards)) == [("tensor-in-two-shards", "2.safetensors", "b")]


def test_a_tensor_that_the_index_names_and_no_shard_has(shards: Path) -> None:
    put(shards, "1.safetensors", "a")
    assert kinds(open_checkpoint(shards)) == [("named-but-absent", "1.safetensors", "b")]


def test_a_tensor_that_the_index_does_not_name(shards: Path) -> None:
    index(shards, {"a": "1.safetensors", "c": "2.safetensors"})
    assert kinds(open_checkpoint(shards)) == [("not-in-index", "1.safetensors", "b")]


def test_a_file_that_the_index_does_not_name_is_passed_over(shards: Path) -> None:
    put(shards, "3.safetensors", "d")
    checkpoint = open_checkpoint(shards)
    assert kinds(checkpoint) == [("not-in-index", "3.safetensors", None)]
    assert "d" not in [name for _, name in held(checkpoint)]


@pytest.mark.parametrize(
    "name", ["../2.safetensors", "/etc/2.safetensors", "a/../../2.safetensors", "..\\2.safetensors",
             "C:\\2.safetensors", "c:2.safetensors", "", "."],
)  # fmt: skip
def test_a_shard_outside_the_folder_is_not_opened(shards: Path, name: str) -> None:
    put(shards.parent, "2.safetensors", "c")
    index(shards, {"a": "1.safetensors", "b": "1.safetensors", "c": name})
    checkpoint = open_checkpoint(shards)
    assert ("path-leaves-folder", INDEX, None) in kinds(checkpoint)
    assert {file for file, _ in held(checkpoint)} == {"1.safetensors"}
    (shards.parent / "2.safetensors").unlink()


@pytest.mark.parametrize("name", ["sub/2.safetensors", "x" * 5000, "2.safetensors\0", "2.bin"])
def test_a_shard_that_no_runtime_finds(shards: Path, name: str) -> None:
    (shards / "sub").mkdir()
    (shards / "2.safetensors").rename(shards / "sub" / "2.safetensors")
    index(shards, {"a": "1.safetensors", "b": "1.safetensors", "c": name})
    found = [(p.kind, p.file) for p in open_checkpoint(shards).problems]
    assert found == [("missing-shard", name)]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", ["line 1"]),
        ("[]", ["no object"]),
        ("{}", ["no weight_map"]),
        ('{"weight_map": []}', ["no weight_map"]),
        ('{"weight_map": {"a": 1}}', ["no weight_map"]),
    ],
)
def test_an_index_that_says_nothing_does_not_hide_the_shards(
    shards: Path, text: str, words: list[str]
) -> None:
    (shards / INDEX).write_text(text)
    checkpoint = open_checkpoint(shards)
    assert len(checkpoint.tensors) == 3
    assert kinds(checkpoint)[0] == ("bad-index", INDEX, None)
    for word in words:
        assert word in checkpoint.problems[0].message


def test_an_index_with_a_tensor_twice(shards: Path) -> None:
    text = (shards / INDEX).read_text()
    (shards / INDEX).write_text(text.replace('"a":', '"a": "2.safetensors", "a":'))
    checkpoint = open_checkpoint(shards)
    assert kinds(checkpoint) == [("bad-index", INDEX, None)]
    assert "/weight_map/a" in checkpoint.problems[0].message


def test_an_index_that_is_a_pipe(shards: Path) -> None:
    (shards / INDEX).unlink()
    os.mkfifo(shards / INDEX)
    assert ("bad-index", INDEX, None) in kinds(open_checkpoint(shards))


def test_an_index_that_links_to_nothing(shards: Path) -> None:
    (shards / INDEX).unlink()
    (shards / INDEX).symlink_to("gone")
    assert ("bad-index", INDEX, None) in kinds(open_checkpoint(shards))
