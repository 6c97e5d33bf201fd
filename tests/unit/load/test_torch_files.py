"""pytorch_model.bin: what torch says of it, and what is said without torch."""

from __future__ import annotations

import errno
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from eagle3_lint.load.checkpoint import Problem, Tensor
from eagle3_lint.load.folder import open_checkpoint
from eagle3_lint.load.pickle import read_torch_file
from eagle3_lint.load.values import read_integers
from eagle3_lint.load.weights import TORCH_INDEX
from tests.unit.load.containers import one
from tests.unit.load.folders import held, index, kinds


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "config.json").write_text("{}")
    return tmp_path


@pytest.fixture
def no_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)


@pytest.fixture
def torch() -> Any:
    return pytest.importorskip("torch")


# -- without torch ---------------------------------------------------------------------------------


@pytest.mark.usefixtures("no_torch")
def test_without_torch_one_problem_says_what_to_install(folder: Path) -> None:
    for name in ("pytorch_model-00001-of-00002.bin", "pytorch_model-00002-of-00002.bin"):
        (folder / name).write_bytes(b"PK\x03\x04" + bytes(100))
    index(folder, {"a": name}, TORCH_INDEX)
    checkpoint = open_checkpoint(folder)
    [problem] = checkpoint.problems
    assert problem.kind == "needs-torch"
    assert "pip install 'eagle3-lint[torch]'" in problem.message
    assert checkpoint.weights_format == "torch"


def test_a_torch_that_does_not_import_counts_as_none(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = folder / "modules"
    broken.mkdir()
    (broken / "torch.py").write_text("raise OSError('libcudart.so: cannot open')")
    monkeypatch.syspath_prepend(str(broken))
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    (folder / "pytorch_model.bin").write_bytes(b"PK\x03\x04")
    [problem] = open_checkpoint(folder).problems
    assert problem.kind == "needs-torch"
    assert "libcudart" in problem.message


@pytest.mark.usefixtures("no_torch")
@pytest.mark.parametrize(
    ("raw", "kind"),
    [
        (b"", "empty-file"),
        (bytes(100), "all-zero"),
        (b"version https://git-lfs.github.com/spec/v1\n", "git-lfs-pointer"),
        (b"<html></html>", "html"),
    ],
)
def test_what_is_no_torch_file_is_named_without_torch(folder: Path, raw: bytes, kind: str) -> None:
    (folder / "pytorch_model.bin").write_bytes(raw)
    assert kinds(open_checkpoint(folder)) == [(kind, "pytorch_model.bin", None)]


@pytest.mark.usefixtures("no_torch")
def test_a_pipe_is_not_waited_for(folder: Path) -> None:
    os.mkfifo(folder / "pytorch_model.bin")
    assert kinds(open_checkpoint(folder)) == [("unreadable", "pytorch_model.bin", None)]


def test_no_permission(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "pytorch_model.bin").write_bytes(b"PK\x03\x04")

    def refuse(*_: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)
    _, problem = read_torch_file(folder / "pytorch_model.bin")
    assert problem is not None
    assert problem.kind == "unreadable"
    assert "Permission denied" in problem.message


@pytest.mark.usefixtures("no_torch")
def test_values_without_torch_are_none(folder: Path) -> None:
    (folder / "pytorch_model.bin").write_bytes(b"PK\x03\x04")
    assert read_integers(folder, Tensor("d2t", "I64", (2,), "pytorch_model.bin", -1, 16)) is None


# -- with torch ------------------------------------------------------------------------------------


@pytest.mark.parametrize("legacy", [False, True])
def test_names_dtypes_shapes_and_values(folder: Path, torch: Any, legacy: bool) -> None:
    state = {
        "fc.weight": torch.zeros(2, 6, dtype=torch.bfloat16),
        "midlayer.hidden_norm.weight": torch.ones(2, dtype=torch.float16),
        "d2t": torch.tensor([0, 5, -1]),
        "t2d": torch.tensor([True, False]),
    }
    path = folder / "pytorch_model.bin"
    torch.save(state, path, _use_new_zipfile_serialization=not legacy)
    checkpoint = open_checkpoint(folder)
    assert kinds(checkpoint) == []
    assert checkpoint.weights_format == "torch"
    # bfloat16 and float16 have 2 bytes, int64 8, bool 1.
    assert checkpoint.tensors == (
        Tensor("fc.weight", "BF16", (2, 6), path.name, -1, 24),
        Tensor("midlayer.hidden_norm.weight", "F16", (2,), path.name, -1, 4),
        Tensor("d2t", "I64", (3,), path.name, -1, 24),
        Tensor("t2d", "BOOL", (2,), path.name, -1, 2),
    )
    assert list(read_integers(folder, checkpoint.tensors[2]) or ()) == [0, 5, -1]
    assert list(read_integers(folder, checkpoint.tensors[3]) or ()) == [1, 0]


def test_dtypes_are_spelled_as_safetensors_spells_them(folder: Path, torch: Any) -> None:
    """What safetensors itself writes for a tensor of each dtype."""
    save = pytest.importorskip("safetensors.torch").save
    names = ["bfloat16", "float16", "float32", "float64", "bool", "int8", "int16", "int32", "int64",
             "uint8", "uint16", "uint32", "uint64", "float8_e4m3fn", "float8_e5m2", "complex64",
             "float8_e8m0fnu", "float8_e4m3fnuz", "float8_e5m2fnuz"]  # fmt: skip
    state = {name: torch.empty(4, dtype=getattr(torch, name)) for name in names}
    torch.save(state, folder / "pytorch_model.bin")
    from_torch = {t.name: t.dtype for t in open_checkpoint(folder).tensors}
    (folder / "model.safetensors").write_bytes(save(state))
    assert from_torch == {t.name: t.dtype for t in open_checkpoint(folder).tensors}


def test_shards_and_their_index(folder: Path, torch: Any) -> None:
    torch.save({"a": torch.zeros(1)}, folder / "pytorch_model-1.bin")
    torch.save({"b": torch.zeros(1)}, folder / "pytorch_model-2.bin")
    index(folder, {"a": "pytorch_model-1.bin", "b": "pytorch_model-3.bin"}, TORCH_INDEX)
    checkpoint = open_checkpoint(folder)
    assert held(checkpoint) == [("pytorch_model-1.bin", "a"), ("pytorch_model-2.bin", "b")]
    assert kinds(checkpoint) == [
        ("missing-shard", "pytorch_model-3.bin", None),
        ("tensor-in-wrong-shard", "pytorch_model-2.bin", "b"),
    ]


def test_an_index_of_safetensors_that_are_not_there(folder: Path, torch: Any) -> None:
    torch.save({"a": torch.zeros(1)}, folder / "pytorch_model.bin")
    index(folder, {"a": "model.safetensors"})
    checkpoint = open_checkpoint(folder)
    assert held(checkpoint) == [("pytorch_model.bin", "a")]
    assert [kind for kind, _, _ in kinds(checkpoint)] == ["bad-index"]


def test_a_trainer_s_own_files_are_not_weights(folder: Path, torch: Any) -> None:
    torch.save({"a": torch.zeros(1)}, folder / "pytorch_model.bin")
    for name in ("optimizer.bin", "training_args.bin"):
        (folder / name).write_bytes(b"not read")
    checkpoint = open_checkpoint(folder)
    assert held(checkpoint) == [("pytorch_model.bin", "a")]
    assert kinds(checkpoint) == []


def problem_of(folder: Path, torch: Any, value: Any) -> tuple[list[Tensor], Problem]:
    path = folder / "pytorch_model.bin"
    torch.save(value, path)
    tensors, problem = read_torch_file(path)
    assert problem is not None
    assert problem.kind == "bad-torch-file"
    return tensors, problem


def test_a_state_dict_a_level_too_deep(folder: Path, torch: Any) -> None:
    nested = {"epoch": 3, "state_dict": {"a": torch.zeros(1)}}
    tensors, problem = problem_of(folder, torch, nested)
    assert tensors == []
    assert "'state_dict'" in problem.message


def test_something_besides_tensors(folder: Path, torch: Any) -> None:
    tensors, problem = problem_of(folder, torch, {"a": torch.zeros(1), "epoch": 3})
    assert [t.name for t in tensors] == ["a"]
    assert "'epoch'" in problem.message


def test_no_state_dict(folder: Path, torch: Any) -> None:
    tensors, problem = problem_of(folder, torch, [torch.zeros(1)])
    assert tensors == []
    assert "list" in problem.message


class Harmful:
    """Unpickling it makes a folder."""

    def __reduce__(self) -> Any:
        return os.mkdir, ("harm",)


@pytest.mark.parametrize("legacy", [False, True])
def test_an_unsafe_pickle_is_refused_and_not_run(
    folder: Path, torch: Any, legacy: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    path = folder / "pytorch_model.bin"
    torch.save({"a": Harmful()}, path, _use_new_zipfile_serialization=not legacy)
    [problem] = open_checkpoint(folder).problems
    assert problem.kind == "bad-torch-file"
    assert "torch cannot read it safely" in problem.message
    assert not (folder / "harm").exists()


@pytest.mark.parametrize("size", [10, 300])
def test_a_truncated_file(folder: Path, torch: Any, size: int) -> None:
    path = folder / "pytorch_model.bin"
    torch.save({"a": torch.zeros(1)}, path)
    path.write_bytes(path.read_bytes()[:size])
    [problem] = open_checkpoint(folder).problems
    assert problem.kind == "bad-torch-file"
    assert problem.message.isprintable()


@pytest.mark.usefixtures("torch")
def test_safetensors_under_the_name_of_a_torch_file(folder: Path) -> None:
    (folder / "pytorch_model.bin").write_bytes(one())
    [problem] = open_checkpoint(folder).problems
    assert problem.kind == "bad-torch-file"
    assert "rename it" in problem.message
