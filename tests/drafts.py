"""Small drafts for tests: a base of each kind, changes to it, and the folder they make.

Sizes are those of the public trouble reports' minimal draft: hidden 64, 8 query heads of width 8,
2 KV heads, intermediate 160, 1000 tokens of which the draft proposes 320.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from math import prod
from pathlib import Path
from typing import Any

Shapes = dict[str, tuple[str, tuple[int, ...]]]

HIDDEN, HEADS, KV_HEADS, HEAD_DIM, INTERMEDIATE = 64, 8, 2, 8, 160
VOCAB, DRAFT_VOCAB = 1000, 320
Q_LORA, KV_LORA, NOPE, ROPE, VALUE = 24, 16, 8, 4, 8
BYTES = {"BF16": 2, "F16": 2, "F32": 4, "I64": 8, "I32": 4, "BOOL": 1, "F8_E4M3": 1}


def llama_config() -> dict[str, Any]:
    return {
        "architectures": ["LlamaForCausalLMEagle3"],
        "model_type": "llama",
        "hidden_size": HIDDEN,
        "intermediate_size": INTERMEDIATE,
        "num_attention_heads": HEADS,
        "num_key_value_heads": KV_HEADS,
        "head_dim": HEAD_DIM,
        "num_hidden_layers": 1,
        "vocab_size": VOCAB,
        "draft_vocab_size": DRAFT_VOCAB,
        "max_position_embeddings": 4096,
        "rope_theta": 10000,
        "rms_norm_eps": 1e-6,
        "hidden_act": "silu",
        "tie_word_embeddings": False,
        "torch_dtype": "bfloat16",
    }


def _frame() -> Shapes:
    """What stands around the decoder layer."""
    return {
        "fc.weight": ("BF16", (HIDDEN, 3 * HIDDEN)),
        "norm.weight": ("BF16", (HIDDEN,)),
        "lm_head.weight": ("BF16", (DRAFT_VOCAB, HIDDEN)),
        "embed_tokens.weight": ("BF16", (VOCAB, HIDDEN)),
        "d2t": ("I64", (DRAFT_VOCAB,)),
        "t2d": ("BOOL", (VOCAB,)),
    }


def _mlp_and_norms(layer: str) -> Shapes:
    norms = ("input_layernorm", "hidden_norm", "post_attention_layernorm")
    return {
        **{f"{layer}{norm}.weight": ("BF16", (HIDDEN,)) for norm in norms},
        f"{layer}mlp.gate_proj.weight": ("BF16", (INTERMEDIATE, HIDDEN)),
        f"{layer}mlp.up_proj.weight": ("BF16", (INTERMEDIATE, HIDDEN)),
        f"{layer}mlp.down_proj.weight": ("BF16", (HIDDEN, INTERMEDIATE)),
    }


def llama_tensors(layer: str = "midlayer.") -> Shapes:
    rows, key_rows = HEADS * HEAD_DIM, KV_HEADS * HEAD_DIM
    return {
        **_frame(),
        **_mlp_and_norms(layer),
        f"{layer}self_attn.q_proj.weight": ("BF16", (rows, 2 * HIDDEN)),
        f"{layer}self_attn.k_proj.weight": ("BF16", (key_rows, 2 * HIDDEN)),
        f"{layer}self_attn.v_proj.weight": ("BF16", (key_rows, 2 * HIDDEN)),
        f"{layer}self_attn.o_proj.weight": ("BF16", (HIDDEN, rows)),
    }


def mla_config() -> dict[str, Any]:
    return {
        **llama_config(),
        "architectures": ["Eagle3DeepseekV2ForCausalLM"],
        "model_type": "deepseek_v2",
        "num_key_value_heads": HEADS,
        "q_lora_rank": Q_LORA,
        "kv_lora_rank": KV_LORA,
        "qk_nope_head_dim": NOPE,
        "qk_rope_head_dim": ROPE,
        "v_head_dim": VALUE,
    }


def mla_tensors(layer: str = "layers.0.") -> Shapes:
    attention = f"{layer}self_attn."
    return {
        **_frame(),
        **_mlp_and_norms(layer),
        f"{attention}q_a_proj.weight": ("BF16", (Q_LORA, 2 * HIDDEN)),
        f"{attention}kv_a_proj_with_mqa.weight": ("BF16", (KV_LORA + ROPE, 2 * HIDDEN)),
        f"{attention}q_a_layernorm.weight": ("BF16", (Q_LORA,)),
        f"{attention}kv_a_layernorm.weight": ("BF16", (KV_LORA,)),
        f"{attention}q_b_proj.weight": ("BF16", (HEADS * (NOPE + ROPE), Q_LORA)),
        f"{attention}kv_b_proj.weight": ("BF16", (HEADS * (NOPE + VALUE), KV_LORA)),
        f"{attention}o_proj.weight": ("BF16", (HIDDEN, HEADS * VALUE)),
    }


def speculators_config() -> dict[str, Any]:
    """As speculators 0.9.0 writes it: the layer's sizes nested, no model_type at the top."""
    layer = llama_config()
    for field in ("architectures", "draft_vocab_size", "torch_dtype"):
        del layer[field]
    return {
        "architectures": ["Eagle3DraftModel"],
        "draft_vocab_size": DRAFT_VOCAB,
        "norm_before_residual": False,
        "eagle_aux_hidden_state_layer_ids": [2, 18, 33],
        "speculators_model_type": "eagle3",
        "speculators_version": "0.9.0",
        "speculators_config": {
            "algorithm": "eagle3",
            "default_proposal_method": "greedy",
            "proposal_methods": [{"proposal_type": "greedy", "speculative_tokens": 3}],
            "verifier": {"architectures": ["LlamaForCausalLM"], "name_or_path": "nobody/nothing"},
        },
        "transformer_layer_config": layer,
    }


BASES = {
    "llama": (llama_config, llama_tensors),
    "mla": (mla_config, mla_tensors),
    "speculators": (speculators_config, lambda: llama_tensors("layers.0.")),
}


def spread(rows: int = DRAFT_VOCAB, vocab: int = VOCAB) -> list[int]:
    """Target ids of a draft vocabulary: scattered evenly, ascending."""
    return [i * vocab // rows for i in range(rows)]


def offsets(rows: int = DRAFT_VOCAB, kind: str = "good") -> list[int]:
    """d2t of a good draft, or with one kind of mistake."""
    good = [token - row for row, token in enumerate(spread(rows))]
    if kind == "negative":
        return [*good[:7], -50, *good[8:]]
    if kind == "duplicate":
        return [*good[:7], good[6] - 1, *good[8:]]
    if kind == "unsorted":
        return [token - row for row, token in enumerate(reversed(spread(rows)))]
    return {"good": good, "absolute": spread(rows), "zeros": [0] * rows}[kind]


def values_of(
    name: str, dtype: str, shape: tuple[int, ...], d2t: str = "good", t2d: str = "good"
) -> bytes:
    """d2t and t2d with values that mean something; zeros for the rest."""
    if name.endswith("d2t") and dtype == "I64" and len(shape) == 1 and shape[0]:
        return struct.pack(f"<{shape[0]}q", *offsets(shape[0], d2t))
    if name.endswith("t2d") and dtype == "BOOL" and len(shape) == 1:
        marks = {
            "good": spread(vocab=shape[0]), "first": range(DRAFT_VOCAB), "none": (),
        }  # fmt: skip
        chosen = set(marks[t2d])
        return bytes(token in chosen for token in range(shape[0]))
    return bytes(prod(shape) * BYTES[dtype])


def safetensors_bytes(tensors: Shapes, d2t: str = "good", t2d: str = "good") -> bytes:
    """A safetensors file, laid out as the format's specification says."""
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    data = b""
    for name, (dtype, shape) in tensors.items():
        piece = values_of(name, dtype, shape, d2t, t2d)
        header[name] = {
            "dtype": dtype,
            "shape": list(shape),
            "data_offsets": [len(data), len(data) + len(piece)],
        }
        data += piece
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + data


def write_draft(
    folder: Path,
    config: Mapping[str, Any],
    tensors: Shapes,
    d2t: str = "good",
    t2d: str = "good",
) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config, indent=2))
    (folder / "model.safetensors").write_bytes(safetensors_bytes(tensors, d2t, t2d))
    return folder


def _with_a_name_twice(data: bytes) -> bytes:
    """The header's last entry once more, in front: legal, and the last one counts."""
    (length,) = struct.unpack_from("<Q", data)
    text = data[8 : 8 + length].decode().rstrip()
    last = text[text.rindex('"t2d":') : -1]
    text = "{" + last + "," + text[1:]
    return struct.pack("<Q", len(text)) + text.encode() + data[8 + length :]


def _bytes_damage(data: bytes, kind: str) -> bytes:
    """The weights file with one kind of damage."""
    return {
        "truncated": lambda: data[:-16],
        "trailing": lambda: data + b"extra",
        "empty": lambda: b"",
        "lfs": lambda: b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n",
        "html": lambda: b"<!DOCTYPE html><html><body>not found</body></html>",
        "torch-zip": lambda: b"PK\x03\x04\x14\x00\x08\x08" + bytes(60),
        "not-json": lambda: data[:8] + b"?" + data[9:],
        "unknown-dtype": lambda: data.replace(b'"BF16"', b'"BF61"', 1),
        "hole": lambda: data.replace(b'"data_offsets":[0,', b'"data_offsets":[2,', 1),
        "duplicate": lambda: _with_a_name_twice(data),
    }[kind]()


def shard(folder: Path, tensors: Shapes) -> dict[str, str]:
    """Split a draft's weights into two files with an index; returns the map it wrote."""
    (folder / "model.safetensors").unlink()
    names = list(tensors)
    halves = {"model-1.safetensors": names[::2], "model-2.safetensors": names[1::2]}
    for file, chosen in halves.items():
        (folder / file).write_bytes(safetensors_bytes({name: tensors[name] for name in chosen}))
    weight_map = {name: file for file, chosen in halves.items() for name in chosen}
    write_index(folder, weight_map)
    return weight_map


def write_index(folder: Path, weight_map: Mapping[str, str]) -> None:
    text = json.dumps({"metadata": {}, "weight_map": weight_map})
    (folder / "model.safetensors.index.json").write_text(text)


def _damage(folder: Path, kind: str, tensors: Shapes) -> None:
    """Damage a draft's weights in one way."""
    weights = folder / "model.safetensors"
    first, last = next(iter(tensors)), list(tensors)[-1]
    if kind == "absent":
        weights.unlink()
    elif kind == "both-formats":
        (folder / "pytorch_model.bin").write_bytes(b"PK")
    elif kind in ("bad-torch", "no-torch"):
        weights.rename(folder / "pytorch_model.bin")
    elif kind == "shard-missing":
        shard(folder, tensors)
        (folder / "model-2.safetensors").unlink()
    elif kind == "wrong-shard":
        write_index(folder, {**shard(folder, tensors), first: "model-2.safetensors"})
    elif kind == "two-shards":
        shard(folder, tensors)
        names = [first, *list(tensors)[1::2]]
        (folder / "model-2.safetensors").write_bytes(
            safetensors_bytes({name: tensors[name] for name in names})
        )
    elif kind == "shard-outside":
        write_index(folder, {**shard(folder, tensors), last: "../model-2.safetensors"})
    elif kind == "index-short":
        weight_map = shard(folder, tensors)
        del weight_map[first]
        write_index(folder, weight_map)
    else:
        weights.write_bytes(_bytes_damage(weights.read_bytes(), kind))


def write_case(case: Mapping[str, Any], folder: Path) -> Path:
    """The draft that a rule's case describes."""
    make_config, make_tensors = BASES[case["base"]]
    config, tensors = make_config(), make_tensors()
    config.update(case.get("config", {}))
    for field in case.get("unset", ()):
        del config[field]
    for name in case.get("remove", ()):
        del tensors[name]
    for name, (dtype, *shape) in case.get("add", {}).items():
        tensors[name] = (dtype, tuple(shape))
    for name, shape in case.get("shape", {}).items():
        tensors[name] = (tensors[name][0], tuple(shape))
    for old, new in case.get("rename", {}).items():
        tensors = {
            (new + name[len(old) :] if name.startswith(old) else name): tensor
            for name, tensor in tensors.items()
        }
    if "prefix" in case:
        tensors = {case["prefix"] + name: tensor for name, tensor in tensors.items()}
    write_draft(folder, config, tensors, case.get("d2t", "good"), case.get("t2d", "good"))
    if "duplicate" in case:
        path = folder / "config.json"
        field = case["duplicate"]
        line = f"{json.dumps(field)}: {json.dumps(config[field])},"
        path.write_text(path.read_text().replace("{", "{\n  " + line, 1))
    if "container" in case:
        _damage(folder, case["container"], tensors)
    return folder
