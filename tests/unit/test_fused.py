"""Matrices that are stored as one: told apart by their rows, and split without moving a byte."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import eagle3_lint
from eagle3_lint.contract.rules_folder import rules_folder
from eagle3_lint.fused import known_fused, parts_of
from eagle3_lint.load.checkpoint import Tensor
from eagle3_lint.load.header import read_header
from tests.drafts import shard

#: ModelOpt's draft with latent attention, as its exporter wrote it: the two a-projections apart.
FIXTURE = Path(__file__).resolve().parents[2] / "fixtures" / "modelopt-0.47.0-mla"
ATTENTION = "layers.0.self_attn."
Q_A, KV_A = f"{ATTENTION}q_a_proj.weight", f"{ATTENTION}kv_a_proj_with_mqa.weight"
WHOLE = f"{ATTENTION}fused_qkv_a_proj_with_mqa.weight"

LLAMA = {"hidden_size": 64, "num_attention_heads": 8, "num_key_value_heads": 2, "head_dim": 8,
         "intermediate_size": 160}  # fmt: skip
MLA = {"q_lora_rank": 24, "kv_lora_rank": 16, "qk_rope_head_dim": 4}


def tensors(folder: Path) -> dict[str, tuple[str, tuple[int, ...], bytes]]:
    """Dtype, shape and bytes of every tensor of a folder, by name."""
    found = {}
    for path in sorted(folder.glob("*.safetensors")):
        header, raw = read_header(path), path.read_bytes()
        for info in header.tensors:
            begin, end = header.data_start + info.begin, header.data_start + info.end
            found[info.name] = (info.dtype, tuple(info.shape), raw[begin:end])
    return found


def write(folder: Path, held: Mapping[str, tuple[str, tuple[int, ...], bytes]]) -> None:
    """One safetensors file, its data in the order of ``held``."""
    entries: dict[str, Any] = {}
    at = 0
    for name, (dtype, shape, content) in held.items():
        span = [at, at + len(content)]
        entries[name] = {"dtype": dtype, "shape": shape, "data_offsets": span}
        at += len(content)
    text = json.dumps(entries).encode()
    content = b"".join(content for _, _, content in held.values())
    (folder / "model.safetensors").write_bytes(len(text).to_bytes(8, "little") + text + content)


@pytest.fixture
def draft(tmp_path: Path) -> Path:
    """The producer's draft with its a-projections joined as the runtimes join them: q first."""
    folder = tmp_path / "draft"
    folder.mkdir()
    shutil.copy(FIXTURE / "config.json", folder)
    held = tensors(FIXTURE)
    (dtype, q_shape, q), (_, kv_shape, kv) = held.pop(Q_A), held.pop(KV_A)
    held[WHOLE] = (dtype, (q_shape[0] + kv_shape[0], *q_shape[1:]), q + kv)
    write(folder, held)
    return folder


@pytest.mark.parametrize("target", ["sglang==0.5.23", "sglang==0.5.12", "vllm==0.33.0"])
def test_what_is_split_is_what_the_producer_wrote(draft: Path, target: str) -> None:
    before = {p.name: p.read_bytes() for p in draft.iterdir()}
    (was,) = eagle3_lint.check(draft, [target]).checkpoints[0].results
    assert "E3L212" in {d.rule for d in was.diagnostics}
    assert was.verdict in ("broken", "refused")
    done = eagle3_lint.fix(draft, [target])
    (now,) = done.after.checkpoints[0].results
    assert now.load is not None and now.load.outcome == "ok"
    assert "E3L212" not in {d.rule for d in now.diagnostics}
    apart = tensors(draft)
    expected = tensors(FIXTURE)
    names = {dict(e.fields)["tensor"]: dict(e.fields)["to"] for e in done.edits
             if e.op == "rename_tensor"}  # fmt: skip
    assert apart == {str(names.get(n, n)): content for n, content in expected.items()}
    eagle3_lint.undo(draft)
    assert {p.name: p.read_bytes() for p in draft.iterdir() if p.is_file()} == before


def test_the_index_of_the_shards_names_the_parts(draft: Path) -> None:
    held = tensors(draft)
    shard(draft, {name: (dtype, shape) for name, (dtype, shape, _) in held.items()})
    index = draft / "model.safetensors.index.json"
    file = json.loads(index.read_text())["weight_map"][WHOLE]
    eagle3_lint.fix(draft, ["vllm==0.33.0"])
    after = json.loads(index.read_text())["weight_map"]
    assert after[Q_A] == after[KV_A] == file
    assert set(after) == (set(held) - {WHOLE}) | {Q_A, KV_A}
    assert not eagle3_lint.check(draft, ["vllm==0.33.0"]).checkpoints[0].results[0].load.dropped  # type: ignore[union-attr]


def test_a_torch_file_is_split_in_a_copy(draft: Path, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    from safetensors.torch import load_file

    state = load_file(draft / "model.safetensors")
    (draft / "model.safetensors").unlink()
    torch.save(state, draft / "pytorch_model.bin")
    copy = tmp_path / "copy"
    eagle3_lint.fix(draft, ["vllm==0.33.0"], output=copy)
    assert tensors(copy) == tensors(FIXTURE)


def test_other_names_come_first(draft: Path) -> None:
    """Under a prefix that the target does not read, the names are put right, then the matrix."""
    held = tensors(draft)
    write(draft, {f"module.{name}": content for name, content in held.items()})
    done = eagle3_lint.fix(draft, ["vllm==0.33.0"])
    assert {e.op for e in done.edits} >= {"rename_tensor", "split_tensor"}
    # The spelling of a draft of one layer that every release reads.
    expected = {n.replace("layers.0.", "midlayer."): t for n, t in tensors(FIXTURE).items()}
    assert tensors(draft) == expected


def test_a_part_that_is_there_too_keeps_the_whole_as_it_is(draft: Path) -> None:
    held = tensors(draft)
    write(draft, {**held, Q_A: tensors(FIXTURE)[Q_A]})
    (result,) = eagle3_lint.check(draft, ["sglang==0.5.23"]).checkpoints[0].results
    assert "E3L212" not in {d.rule for d in result.diagnostics}


# -- rows, by hand ---------------------------------------------------------------------------------


def rows(name: str, count: int, config: Mapping[str, object]) -> list[tuple[str, int]] | None:
    tensor = Tensor(name, "BF16", (count, 128), "f", 0, 2 * 128 * count)
    parts = parts_of(tensor, config, known_fused())
    return None if parts is None else [(p.name, p.rows) for p in parts]


def test_query_key_and_value() -> None:
    # 8 heads and twice 2 heads of width 8: 64 + 16 + 16.
    q, k, v = (f"midlayer.self_attn.{letter}_proj.weight" for letter in "qkv")
    whole = "midlayer.self_attn.qkv_proj.weight"
    assert rows(whole, 96, LLAMA) == [(q, 64), (k, 16), (v, 16)]
    default = {k: v for k, v in LLAMA.items() if k != "head_dim"}
    assert rows(whole, 96, default) == [(q, 64), (k, 16), (v, 16)]
    # Without num_key_value_heads every head has a key of its own.
    alone = {k: v for k, v in LLAMA.items() if k != "num_key_value_heads"}
    assert rows(whole, 192, alone) == [(q, 64), (k, 64), (v, 64)]


def test_gate_and_up_and_their_biases() -> None:
    for kind in ("weight", "bias"):
        gate, up = (f"layers.0.mlp.{name}_proj.{kind}" for name in ("gate", "up"))
        assert rows(f"layers.0.mlp.gate_up_proj.{kind}", 320, LLAMA) == [(gate, 160), (up, 160)]


@pytest.mark.parametrize("name", ["fused_qkv_a_proj_with_mqa", "fused_qkv_a_proj"])
def test_the_a_projections(name: str) -> None:
    # 24, and 16 + 4.
    assert rows(f"{ATTENTION}{name}.weight", 44, MLA) == [(Q_A, 24), (KV_A, 20)]


@pytest.mark.parametrize(
    ("name", "count", "config"),
    [
        ("midlayer.self_attn.qkv_proj.weight", 95, LLAMA),
        ("midlayer.self_attn.qkv_proj.weight", 96, {}),
        ("midlayer.self_attn.qkv_proj.weight_scale", 96, LLAMA),
        ("midlayer.self_attn.o_proj.weight", 96, LLAMA),
        ("midlayer.cross_attn_qkv_proj.weight", 96, LLAMA),
        (WHOLE, 44, {**MLA, "q_lora_rank": None}),
        (WHOLE, 44, {**MLA, "q_lora_rank": "24"}),
        (WHOLE, 20, {**MLA, "q_lora_rank": 0}),
    ],
)
def test_what_cannot_be_told_apart(name: str, count: int, config: Mapping[str, object]) -> None:
    assert rows(name, count, config) is None


def test_a_rule_folder_without_the_table_has_the_built_in_one(tmp_path: Path) -> None:
    assert known_fused(tmp_path) == known_fused()
    shutil.copy(rules_folder() / "fused.toml", tmp_path)
    assert known_fused(tmp_path / ".") == known_fused()
