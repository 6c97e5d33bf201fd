"""Fixes that move or add data: what comes out is the trained draft, byte for byte."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import pytest

import eagle3_lint
from eagle3_lint.load.checkpoint import Tensor
from eagle3_lint.load.header import read_header
from eagle3_lint.plan.change import column_blocks
from tests.drafts import DRAFT_VOCAB, VOCAB, llama_tensors, offsets, shard, spread, write_case
from tests.engine.variants import TARGET_MODEL, VARIANTS

TARGET = "vllm==0.32.0"


def written(folder: Path, name: str) -> Path:
    """A variant of the trained pair."""
    variant = next(v for v in VARIANTS if v.name == name)
    variant.make().write(folder)
    return folder


def data(folder: Path, tensor: str) -> bytes:
    """The bytes of a tensor, wherever it is."""
    for path in sorted(folder.glob("*.safetensors")):
        header = read_header(path)
        for info in header.tensors:
            if info.name == tensor:
                start = header.data_start
                return path.read_bytes()[start + info.begin : start + info.end]
    raise KeyError(tensor)


def test_an_fc_that_was_trained_in_another_order(tmp_path: Path) -> None:
    good = written(tmp_path / "good", "good")
    turned = written(tmp_path / "turned", "fc-for-5-4-2")
    before = {p.name: p.read_bytes() for p in turned.iterdir()}
    assert data(turned, "fc.weight") != data(good, "fc.weight")

    done = eagle3_lint.fix(turned, [TARGET], str(TARGET_MODEL), trained_on=(5, 4, 2), runner="v1")

    assert done.after.checkpoints[0].results[0].verdict == "serves"
    assert data(turned, "fc.weight") == data(good, "fc.weight")
    config = json.loads((turned / "config.json").read_text())
    assert config["eagle_config"]["eagle_aux_hidden_state_layer_ids"] == [2, 4, 5]
    for info in read_header(good / "model.safetensors").tensors:
        assert data(turned, info.name) == data(good, info.name), info.name
    eagle3_lint.undo(turned)
    assert {p.name: p.read_bytes() for p in turned.iterdir() if p.is_file()} == before


def test_a_d2t_that_is_missing_beside_t2d(tmp_path: Path) -> None:
    good = written(tmp_path / "good", "good")
    draft = written(tmp_path / "draft", "no-d2t")
    done = eagle3_lint.fix(draft, [TARGET], str(TARGET_MODEL), trained_on=(2, 4, 5), runner="v1")
    assert done.after.checkpoints[0].results[0].verdict == "serves"
    for info in read_header(good / "model.safetensors").tensors:
        assert data(draft, info.name) == data(good, info.name), info.name


def test_the_added_d2t_is_read_by_the_library(tmp_path: Path) -> None:
    safetensors = pytest.importorskip("safetensors")
    pytest.importorskip("numpy")
    draft = write_case({"base": "llama", "remove": ["d2t"]}, tmp_path / "draft")
    eagle3_lint.fix(draft, ["sglang==0.5.9"])
    with safetensors.safe_open(str(draft / "model.safetensors"), "np") as file:
        assert file.get_tensor("d2t").tolist() == offsets()
        assert file.get_tensor("t2d").shape == (VOCAB,)


def test_the_added_d2t_is_in_the_index_of_the_shards(tmp_path: Path) -> None:
    draft = write_case({"base": "llama", "remove": ["d2t"]}, tmp_path / "draft")
    tensors = llama_tensors()
    del tensors["d2t"]
    shard(draft, tensors)
    eagle3_lint.fix(draft, ["sglang==0.5.9"])
    index = json.loads((draft / "model.safetensors.index.json").read_text())["weight_map"]
    assert index["d2t"] == index["t2d"]
    assert data(draft, "d2t") == struct.pack(f"<{DRAFT_VOCAB}q", *offsets())


@pytest.mark.parametrize("variant", ["fc-for-5-4-2", "no-d2t"])
def test_a_torch_file_comes_out_the_same(tmp_path: Path, variant: str) -> None:
    torch = pytest.importorskip("torch")
    from safetensors.torch import load_file

    good, draft = written(tmp_path / "good", "good"), written(tmp_path / "draft", variant)
    torch.save(load_file(draft / "model.safetensors"), draft / "pytorch_model.bin")
    (draft / "model.safetensors").unlink()
    states = (5, 4, 2) if variant.startswith("fc") else (2, 4, 5)
    copy = tmp_path / "copy"
    done = eagle3_lint.fix(
        draft, [TARGET], str(TARGET_MODEL), trained_on=states, runner="v1", output=copy
    )
    assert done.after.checkpoints[0].results[0].verdict == "serves"
    for info in read_header(good / "model.safetensors").tensors:
        assert data(copy, info.name) == data(good, info.name), info.name


def test_column_blocks_by_hand() -> None:
    # Two rows of three blocks of one two-byte number: bytes 0-1, 2-3, 4-5 and 6-7, 8-9, 10-11.
    fc = Tensor("fc.weight", "BF16", (2, 3), "f", 0, 12)
    assert column_blocks(fc, (2, 0, 1)) == ((4, 6), (0, 2), (2, 4), (10, 12), (6, 8), (8, 10))


@pytest.mark.parametrize("shape", [(2, 4), (6,), (0, 3)])
def test_no_column_blocks(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"fc\.weight"):
        column_blocks(Tensor("fc.weight", "BF16", shape, "f", 0, 12), (2, 0, 1))


def test_a_d2t_from_a_list_beside_the_weights(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    draft = write_case({"base": "llama", "remove": ["d2t", "t2d"]}, tmp_path / "draft")
    # In the order of the rows, which is not ascending for a trainer that sorts by frequency.
    tokens = list(reversed(spread()))
    meta = {"selected_token_ids": torch.tensor(tokens), "step": 3}
    torch.save(meta, draft / "eagle_meta.pt")
    done = eagle3_lint.fix(draft, ["sglang==0.5.9"])
    assert done.after.checkpoints[0].results[0].verdict == "serves"
    expected = [token - row for row, token in enumerate(tokens)]
    assert data(draft, "d2t") == struct.pack(f"<{DRAFT_VOCAB}q", *expected)


@pytest.mark.parametrize("tokens", [[1, 2, 3], [0] * DRAFT_VOCAB, ["a"] * DRAFT_VOCAB])
def test_a_list_that_is_none(tmp_path: Path, tokens: list[object]) -> None:
    torch = pytest.importorskip("torch")
    draft = write_case({"base": "llama", "remove": ["d2t", "t2d"]}, tmp_path / "draft")
    torch.save({"selected_token_ids": tokens}, draft / "eagle_meta.pt")
    report = eagle3_lint.check(draft, ["sglang==0.5.9"])
    (finding,) = (d for d in report.checkpoints[0].results[0].diagnostics if d.rule == "E3L401")
    assert finding.fix is None
