"""A draft's embedding and head beside the target model's weights."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import pytest

from eagle3_lint.checking import check, read_draft
from eagle3_lint.comparison import AGREES, Comparison, compare_weights
from eagle3_lint.load.checkpoint import Tensor
from eagle3_lint.load.rows import read_rows
from eagle3_lint.load.target_weights import EMBEDDING, HEAD, find_matrix
from tests.drafts import HIDDEN, VOCAB, write_case
from tests.weights import give_weights, write_target


@pytest.fixture(name="target")
def _target(tmp_path: Path) -> Path:
    return write_target(tmp_path / "target")


def compared(folder: Path, target: Path, kind: str = "good", **case: object) -> Comparison:
    draft = write_case({"base": "llama", **case}, folder / "draft")
    give_weights(draft, kind)
    return compare_weights(read_draft(draft), target)


def test_a_good_draft(tmp_path: Path, target: Path) -> None:
    found = compared(tmp_path, target)
    assert found.embedding == pytest.approx(1)
    assert found.head is not None
    assert found.head > AGREES
    assert found.head_by_t2d is None, "not looked at when d2t agrees"


def test_another_order(tmp_path: Path, target: Path) -> None:
    found = compared(tmp_path, target, "d2t-unsorted")
    assert (found.head or 0) < AGREES < (found.head_by_t2d or 0)


def test_a_shuffled_head(tmp_path: Path, target: Path) -> None:
    found = compared(tmp_path, target, "head-shuffled")
    assert max(found.head or 0, found.head_by_t2d or 0) < AGREES


def test_an_embedding_that_was_trained_on(tmp_path: Path, target: Path) -> None:
    # The vectors are a + b / 2 with independent normal a and b: cos = 1 / sqrt(1 + 1 / 4).
    found = compared(tmp_path, target, "embedding-tuned")
    assert found.embedding == pytest.approx(1.25**-0.5, abs=0.02)


def test_zeros_say_nothing(tmp_path: Path, target: Path) -> None:
    draft = write_case({"base": "llama"}, tmp_path / "draft")
    assert compare_weights(read_draft(draft), target) == Comparison()


def test_another_width_cannot_be_compared(tmp_path: Path, target: Path) -> None:
    wide = {"embed_tokens.weight": [VOCAB, HIDDEN * 2]}
    draft = write_case({"base": "llama", "shape": wide}, tmp_path / "draft")
    assert compare_weights(read_draft(draft), target).embedding is None


def test_a_target_model_without_weights(tmp_path: Path, target: Path) -> None:
    (target / "model.safetensors").unlink()
    assert compared(tmp_path, target) == Comparison()


def test_a_tied_target_model_has_its_embedding_for_a_head(tmp_path: Path, target: Path) -> None:
    path = target / "model.safetensors"
    raw = path.read_bytes()
    (length,) = struct.unpack_from("<Q", raw)
    header = json.loads(raw[8 : 8 + length])
    head, embedding = header.pop("lm_head.weight"), header["model.embed_tokens.weight"]
    # The data of the two tensors change places, so that the head's are the embedding's now.
    header["unused"] = {**head, "data_offsets": embedding["data_offsets"]}
    header["model.embed_tokens.weight"] = {**embedding, "data_offsets": head["data_offsets"]}
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + raw[8 + length :])
    found = compared(tmp_path, target)
    assert (found.head or 0) > AGREES


def test_only_the_shard_of_the_matrix_is_opened(target: Path) -> None:
    (target / "model.safetensors").rename(target / "a.safetensors")
    (target / "b.safetensors").write_bytes(b"not read")
    names = {"model.embed_tokens.weight": "a.safetensors", "lm_head.weight": "../a.safetensors"}
    (target / "model.safetensors.index.json").write_text(json.dumps({"weight_map": names}))
    found = find_matrix(target, EMBEDDING)
    assert found is not None
    assert (found.file, found.shape) == ("a.safetensors", (VOCAB, HIDDEN))
    assert find_matrix(target, HEAD) is None, "a shard outside the folder is not opened"


def test_the_rows_are_those_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"x" + struct.pack("<6f", *range(6)))
    tensor = Tensor("m", "F32", (3, 2), "f", 1, 24)
    assert read_rows(tmp_path, tensor, [2, 0], 8) == [(4.0, 5.0), (0.0, 1.0)]
    assert read_rows(tmp_path, tensor, [1], 1) == [(2.0,)]
    assert read_rows(tmp_path, tensor, [3], 1) is None


@pytest.mark.parametrize(("dtype", "raw"), [("BF16", "803f0040"), ("F16", "003c0040")])
def test_half_precision(tmp_path: Path, dtype: str, raw: str) -> None:
    # 0x3F80 and 0x4000 are 1 and 2 in bfloat16, 0x3C00 and 0x4000 in float16.
    (tmp_path / "f").write_bytes(bytes.fromhex(raw))
    assert read_rows(tmp_path, Tensor("m", dtype, (1, 2), "f", 0, 4), [0], 2) == [(1.0, 2.0)]


def test_a_report_says_that_a_rebuilt_d2t_mends_it(tmp_path: Path, target: Path) -> None:
    draft = write_case({"base": "llama"}, tmp_path / "draft")
    give_weights(draft, "d2t-unsorted")
    result = check(draft, ["vllm==0.32.0"], str(target)).checkpoints[0].results[0]
    assert result.verdict == "broken"
    (finding,) = (d for d in result.diagnostics if d.rule == "E3L407")
    assert finding.fix is not None
    assert finding.fix.applicability == "safe"
