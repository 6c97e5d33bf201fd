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
from eagle3_lint.diagnostic import Diagnostic
from eagle3_lint.fused import Fused, known_fused, parts_of
from eagle3_lint.load.checkpoint import Tensor
from eagle3_lint.load.header import read_header
from eagle3_lint.rule_folder import complaints
from tests.drafts import shard, write_case

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


def test_an_mlp_of_another_size_than_the_experts() -> None:
    """Llama 4: modeling_speculative.py of TensorRT-LLM (Eagle3DecoderLayer.__init__) reads
    intermediate_size_mlp for model_type llama4_text."""
    config = {"intermediate_size": 80, "intermediate_size_mlp": 160}
    gate, up = (f"midlayer.mlp.{name}_proj.weight" for name in ("gate", "up"))
    whole = "midlayer.mlp.gate_up_proj.weight"
    assert rows(whole, 320, config) == [(gate, 160), (up, 160)]
    assert rows(whole, 160, config) == [(gate, 80), (up, 80)]


def test_a_rule_folder_can_have_a_table_of_its_own(tmp_path: Path) -> None:
    assert known_fused(tmp_path / "without") == known_fused()
    text = (rules_folder() / "fused.toml").read_text().replace("self_attn.qkv_proj", "attn.c_attn")
    (tmp_path / "fused.toml").write_text(text)
    assert "attn.c_attn" in {f.name for f in known_fused(tmp_path)}
    assert "attn.c_attn" not in {f.name for f in known_fused()}


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ('rows = "intermediate_size"', 'rows = "a * * b"', "unexpected"),
        ('name = "mlp.up_proj"', 'name = "mlp.gate_proj"', "named twice"),
        ('rows = "q_lora_rank"', "rows = 24", "is not of type"),
    ],
)
def test_a_table_that_is_wrong(tmp_path: Path, old: str, new: str, complaint: str) -> None:
    rules = tmp_path / "rules"
    shutil.copytree(rules_folder(), rules, ignore=shutil.ignore_patterns("build"))
    text = (rules / "fused.toml").read_text()
    assert old in text
    (rules / "fused.toml").write_text(text.replace(old, new))
    assert any(complaint in line for line in complaints(rules))


def test_rows_that_cannot_be_worked_out() -> None:
    table = (Fused("mlp.gate_up_proj", (("mlp.gate_proj", "a // b"), ("mlp.up_proj", "a"))),)
    tensor = Tensor("mlp.gate_up_proj.weight", "BF16", (4, 2), "f", 0, 16)
    assert parts_of(tensor, {"a": 2, "b": 0}, table) is None


# -- beside other things ---------------------------------------------------------------------------

TENSORRT = "tensorrt-llm==1.3.0rc25"
#: The layer of tests/drafts.py: gate and up of 160 rows, and q, k and v of 64, 16 and 16.
GATE_UP, QKV = "midlayer.mlp.gate_up_proj.weight", "midlayer.self_attn.qkv_proj.weight"
MLP_PARTS = [f"midlayer.mlp.{name}_proj.weight" for name in ("gate", "up")]
QKV_PARTS = [f"midlayer.self_attn.{letter}_proj.weight" for letter in "qkv"]


def findings(folder: Path, target: str) -> dict[str, Diagnostic]:
    (result,) = eagle3_lint.check(folder, [target]).checkpoints[0].results
    return {d.rule: d for d in result.diagnostics}


def test_a_quantised_matrix_is_left_whole(tmp_path: Path) -> None:
    """Its scale is one for all of it."""
    for number, scale in enumerate(({}, {QKV + "_scale": ["F32", 1]})):
        dtype = "BF16" if scale else "F8_E4M3"
        added = {QKV: [dtype, 96, 128], **scale}
        case = {"base": "llama", "remove": QKV_PARTS, "add": added}
        draft = write_case(case, tmp_path / str(number))
        assert "E3L212" not in findings(draft, TENSORRT)


def test_what_fails_for_another_reason_too(tmp_path: Path) -> None:
    """A promised bias raises as well, in the same words: neither silence nor that text is claimed
    of the fused matrix, and what mends the bias is still found."""
    config = {"attention_bias": True}
    added = {GATE_UP: ["BF16", 320, 64]}
    case = {"base": "llama", "config": config, "remove": MLP_PARTS, "add": added}
    draft = write_case(case, tmp_path / "draft")
    found = findings(draft, TENSORRT)
    assert "Without a word" not in found["E3L212"].message
    assert "AssertionError" not in found["E3L212"].message
    assert found["E3L209"].fix is not None
    done = eagle3_lint.fix(draft, [TENSORRT])
    assert done.after.checkpoints[0].results[0].verdict == "serves"


def test_one_that_cannot_be_split_does_not_keep_another_from_it(tmp_path: Path) -> None:
    """A qkv_proj of half the columns stays; gate and up come apart."""
    added = {GATE_UP: ["BF16", 320, 64], QKV: ["BF16", 96, 64]}
    case = {"base": "llama", "remove": [*MLP_PARTS, *QKV_PARTS], "add": added}
    draft = write_case(case, tmp_path / "draft")
    found = findings(draft, TENSORRT)["E3L212"]
    assert found.fix is not None
    assert [dict(e.fields)["tensor"] for e in found.fix.edits] == [GATE_UP]


def test_a_layer_that_is_not_built_stays_as_it_is(tmp_path: Path) -> None:
    """Of two layers' joined a-projections the one is split that the target reads."""
    one, two = f"{ATTENTION}fused_qkv_a_proj.weight", WHOLE.replace("layers.0", "layers.1")
    added = {one: ["BF16", 44, 128], two: ["BF16", 44, 128]}
    case = {"base": "mla", "remove": [Q_A, KV_A], "add": added}
    found = findings(write_case(case, tmp_path / "draft"), "sglang==0.5.23")
    fix = found["E3L212"].fix
    assert fix is not None
    assert [dict(e.fields)["tensor"] for e in fix.edits] == [one]
    for diagnostic in found.values():
        assert "layers.1.self_attn.q_a_proj" not in diagnostic.message


def test_the_same_parts_twice_are_taken_once(tmp_path: Path) -> None:
    names = (f"{ATTENTION}fused_qkv_a_proj.weight", WHOLE)
    added = {name: ["BF16", 44, 128] for name in names}
    draft = write_case({"base": "mla", "remove": [Q_A, KV_A], "add": added}, tmp_path / "draft")
    fix = findings(draft, "sglang==0.5.23")["E3L212"].fix
    assert fix is not None and len(fix.edits) == 1
    done = eagle3_lint.fix(draft, ["sglang==0.5.23"])
    assert [e.op for e in done.edits] == ["split_tensor"]


def test_a_matrix_of_a_torch_file_that_is_stored_transposed(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    from safetensors.torch import load_file

    case = {"base": "llama", "remove": MLP_PARTS, "add": {GATE_UP: ["BF16", 320, 64]}}
    draft, copy = write_case(case, tmp_path / "draft"), tmp_path / "copy"
    state = load_file(draft / "model.safetensors")
    whole = torch.arange(320 * 64, dtype=torch.float32).reshape(64, 320).t().bfloat16()
    assert not whole.is_contiguous()
    torch.save({**state, GATE_UP: whole}, draft / "pytorch_model.bin")
    (draft / "model.safetensors").unlink()
    eagle3_lint.fix(draft, [TENSORRT], output=copy)
    made = load_file(copy / "model.safetensors")
    assert torch.equal(torch.cat([made[name] for name in MLP_PARTS]), whole)
