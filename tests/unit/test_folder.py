"""Which files make up a checkpoint, and the values of its small tensors."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from eagle3_lint.facts import gather_facts
from eagle3_lint.load.folder import open_checkpoint
from eagle3_lint.load.values import read_integers
from tests.drafts import (
    DRAFT_VOCAB,
    VOCAB,
    Shapes,
    llama_config,
    llama_tensors,
    safetensors_bytes,
    shard,
    spread,
    write_draft,
)


@pytest.fixture
def draft(tmp_path: Path) -> Path:
    return write_draft(tmp_path, llama_config(), llama_tensors())


@pytest.mark.parametrize("name", ["", "config.json", "model.safetensors"])
def test_the_folder_or_a_file_in_it(draft: Path, name: str) -> None:
    checkpoint = open_checkpoint(draft / name)
    assert checkpoint.path == draft
    assert {t.name: (t.dtype, t.shape) for t in checkpoint.tensors} == llama_tensors()
    assert checkpoint.problems == ()
    assert checkpoint.metadata == {"format": "pt"}


def test_offsets_lead_to_the_values(draft: Path) -> None:
    [d2t] = [t for t in open_checkpoint(draft).tensors if t.name == "d2t"]
    raw = (draft / "model.safetensors").read_bytes()[d2t.offset : d2t.offset + d2t.nbytes]
    assert list(struct.unpack(f"<{DRAFT_VOCAB}q", raw)) == [t - r for r, t in enumerate(spread())]


def test_facts_have_the_values_of_both_tables(draft: Path) -> None:
    facts = gather_facts(open_checkpoint(draft))
    assert facts.d2t is not None
    assert facts.t2d is not None
    assert [row + offset for row, offset in enumerate(facts.d2t)] == spread()
    assert [token for token, used in enumerate(facts.t2d) if used] == spread()
    assert len(facts.t2d) == VOCAB


def test_shards_are_one_checkpoint(draft: Path) -> None:
    shard(draft, llama_tensors())
    for name in ("", "model.safetensors.index.json", "model-2.safetensors"):
        checkpoint = open_checkpoint(draft / name)
        assert {t.name: (t.dtype, t.shape) for t in checkpoint.tensors} == llama_tensors()
        assert checkpoint.problems == ()
    assert {t.file for t in checkpoint.tensors} == {"model-1.safetensors", "model-2.safetensors"}


def test_one_bad_shard_does_not_hide_the_other(draft: Path) -> None:
    weight_map = shard(draft, llama_tensors())
    path = draft / "model-2.safetensors"
    path.write_bytes(path.read_bytes()[:-1])
    checkpoint = open_checkpoint(draft)
    assert [(p.kind, p.file) for p in checkpoint.problems] == [("truncated-data", path.name)]
    found = {t.name for t in checkpoint.tensors}
    assert found == {n for n, f in weight_map.items() if f == "model-1.safetensors"}


def test_two_files_without_an_index_are_both_read(draft: Path) -> None:
    (draft / "model.safetensors").rename(draft / "a.safetensors")
    more: Shapes = {"mask_hidden": ("BF16", (1, 1, 192))}
    (draft / "b.safetensors").write_bytes(safetensors_bytes(more))
    names = {t.name for t in open_checkpoint(draft).tensors}
    assert names == {*llama_tensors(), "mask_hidden"}


@pytest.mark.parametrize(
    ("dtype", "raw", "expected"),
    [
        ("I64", struct.pack("<2q", -1, 2**40), [-1, 2**40]),
        ("I32", struct.pack("<2i", -1, 7), [-1, 7]),
        ("I16", struct.pack("<2h", -1, 7), [-1, 7]),
        ("BOOL", b"\x00\x01", [0, 1]),
        ("F32", struct.pack("<2f", 1.5, -2.0), [1.5, -2.0]),
        ("F16", struct.pack("<2e", 1.5, -2.0), [1.5, -2.0]),
        # 1.5 and -2 are exact in bfloat16: sign, exponent and 7 bits of a float32.
        ("BF16", b"\xc0\x3f\x00\xc0", [1.5, -2.0]),
    ],
)
def test_values_of_every_kind(
    tmp_path: Path, dtype: str, raw: bytes, expected: list[float]
) -> None:
    from eagle3_lint.load.checkpoint import Tensor

    (tmp_path / "weights").write_bytes(b"head" + raw)
    tensor = Tensor("d2t", dtype, (2,), "weights", 4, len(raw))
    found = read_integers(tmp_path, tensor)
    assert found is not None
    assert list(found) == expected


def test_a_torch_file_gives_the_same_facts(draft: Path) -> None:
    torch = pytest.importorskip("torch")
    from safetensors.torch import load_file

    state = load_file(draft / "model.safetensors")
    torch.save(state, draft / "pytorch_model.bin")
    whole = gather_facts(open_checkpoint(draft))
    (draft / "model.safetensors").unlink()
    facts = gather_facts(open_checkpoint(draft))
    assert facts.weights_format == "torch"
    assert facts.shapes == whole.shapes
    assert {n: t.dtype for n, t in facts.tensors.items()} == {
        n: t.dtype for n, t in whole.tensors.items()
    }
    assert list(facts.d2t or ()) == list(whole.d2t or ())


def test_an_unsafe_pickle_is_a_problem_and_is_not_run(draft: Path) -> None:
    torch = pytest.importorskip("torch")
    (draft / "model.safetensors").unlink()
    torch.save({"fc.weight": Path}, draft / "pytorch_model.bin")
    [problem] = open_checkpoint(draft).problems
    assert problem.kind == "bad-torch-file"
