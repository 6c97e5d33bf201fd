"""The drafts that every runtime's oracle, the contracts and the simulator are compared on.

``cases()`` names each once; ``write()`` puts one on disk. Pure Python: a runtime's environment needs
nothing of this project.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any, Final

from tests.conformance import dialects, faults
from tests.conformance.draft import (
    ABSENT,
    HEAD_DIM,
    HEADS,
    HIDDEN,
    INTERMEDIATE,
    KV_HEADS,
    Draft,
    Shape,
    Spec,
    attention,
    llama,
)


@dataclass(frozen=True)
class Case:
    """One draft: ``config`` is its config.json, ``tensors`` the dtype and shape of each stored tensor.

    ``d2t`` holds the values of the tensor ``d2t`` in row-major order (None: no such tensor, or any value
    does). ``tags`` name the family, and ``llama``/``mla``, ``single``/``pair``.
    """

    name: str
    config: dict[str, Any]
    tensors: dict[str, Spec]
    d2t: tuple[int, ...] | None
    tags: frozenset[str]

    @property
    def target_hidden(self) -> int:
        """The width of the target model this draft asks for (``target_hidden_size``, or its own)."""
        inner = self.config.get("transformer_layer_config") or {}
        for fields, key in (
            (self.config, "target_hidden_size"),
            (self.config, "hidden_size"),
            (inner, "hidden_size"),
        ):
            if isinstance(fields.get(key), int):
                return int(fields[key])
        return HIDDEN

    def values(self) -> dict[str, float]:
        """The constant that fills each tensor: its place, from 1, among the sorted names.

        Fewer than 256 tensors: every constant is exact in BF16. ``d2t`` and BOOL tensors have values of
        their own.
        """
        return {name: float(place) for place, name in enumerate(sorted(self.tensors), start=1)}


def cases() -> list[Case]:
    """Every case, each name once."""
    found: list[Case] = []
    for family, drafts, tags in _families():
        for name, draft in drafts():
            found.append(
                Case(
                    f"{family}/{name}",
                    dict(draft.fields),
                    dict(draft.tensors),
                    draft.d2t,
                    frozenset({family, *tags}),
                )
            )
    names = [case.name for case in found]
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise ValueError(f"cases named twice: {sorted(twice)}")
    return found


Drafts = Callable[[], Iterator[tuple[str, Draft]]]


def _families() -> list[tuple[str, Drafts, set[str]]]:
    return [
        ("spelling", dialects.spellings, {"llama", "single"}),
        ("class", dialects.classes, {"llama", "single"}),
        ("layers", dialects.layers, {"llama", "single"}),
        ("mla", dialects.latent, {"mla", "single"}),
        ("missing", lambda: _edited(faults.missing()), {"llama", "single"}),
        ("missing layers.0", lambda: _edited(faults.missing(), "layers.0."), {"llama", "single"}),
        ("shape", lambda: _edited(faults.shapes()), {"llama", "single"}),
        ("bias", lambda: _edited(iter(faults.BIAS.items())), {"llama", "single"}),
        ("switch", lambda: _edited(iter(faults.SWITCHES.items())), {"llama", "single"}),
        ("switch layers.0", _switches_under_layers, {"llama", "single"}),
        ("vocabulary", lambda: _edited(iter(faults.VOCABULARY.items())), {"llama", "single"}),
        ("width", lambda: _edited(iter(faults.TARGET_WIDTH.items())), {"llama", "single"}),
        ("extra", lambda: _edited(iter(faults.EXTRA.items())), {"llama", "single"}),
        ("aux", _aux, {"llama", "single"}),
        ("dimension", _dimensions, {"llama", "single"}),
        ("config", _config, {"llama", "single"}),
        ("pair", _pairs, {"llama", "pair"}),
    ]


def _edited(
    edits: Iterator[tuple[str, faults.Edit]], layer: str = "midlayer."
) -> Iterator[tuple[str, Draft]]:
    for name, edit in edits:
        draft = edit(llama())
        yield name, draft if layer == "midlayer." else draft.rename("midlayer.", layer)


def _switches_under_layers() -> Iterator[tuple[str, Draft]]:
    """The switches again with the layer names that vLLM and newer SGLang releases use themselves."""
    chosen = ("fc_norm flag and tensors", "q_norm and k_norm", "norm_before_fc nested")
    return _edited(((name, faults.SWITCHES[name]) for name in chosen), "layers.0.")


def _pairs() -> Iterator[tuple[str, Draft]]:
    exclusive = {
        frozenset(("draft_vocab_size null", "draft_vocab_size absent")),
        frozenset(("bias flag", "qkvo bias")),
    }
    for (first, one), (second, other) in combinations(faults.PAIRED.items(), 2):
        if frozenset((first, second)) not in exclusive:
            yield f"{first} + {second}", other(one(llama()))


def _aux() -> Iterator[tuple[str, Draft]]:
    """Layer ids nested, at the top, or counted, against the width of fc."""
    key = "eagle_aux_hidden_state_layer_ids"
    lists: dict[str, list[int]] = {
        "no ids": [],
        "one id": [12],
        "two ids": [1, 12],
        "three ids": [1, 12, 20],
        "three ids unsorted": [20, 1, 12],
        "three ids repeated": [1, 1, 12],
        "four ids": [1, 8, 12, 20],
    }
    for words, ids in lists.items():
        for blocks in sorted({3, max(1, len(ids))}):
            draft = llama().put("fc.weight", HIDDEN, blocks * HIDDEN)
            yield f"{words} nested, fc of {blocks}", draft.eagle(**{key: ids})
            yield f"{words} at the top, fc of {blocks}", draft.config(**{key: ids})
    for count in (2, 3, 4):
        draft = llama().put("fc.weight", HIDDEN, count * HIDDEN)
        yield f"num_aux_hidden_states {count}", draft.config(num_aux_hidden_states=count)
        yield f"num_aux_hidden_states {count}, fc of 3", llama().config(num_aux_hidden_states=count)
    wide = llama().put("fc.weight", HIDDEN, 4 * HIDDEN)
    yield "num_aux_hidden_states null", llama().config(num_aux_hidden_states=None)
    yield "num_aux_hidden_states 4 against three nested ids", wide.config(
        num_aux_hidden_states=4
    ).eagle(**{key: [1, 12, 20]})
    yield "three nested, four at the top, fc of 3", llama().config(**{key: [1, 8, 12, 20]}).eagle(
        **{key: [1, 12, 20]}
    )
    yield "ids null nested", llama().eagle(**{key: None})
    yield "eagle_config null", llama().config(eagle_config=None)
    yield "eagle_config empty", llama().config(eagle_config={})
    yield "eagle_config a list", llama().config(eagle_config=[1, 12, 20])
    yield "use_aux_hidden_state true", llama().eagle(use_aux_hidden_state=True)
    for words, draft in (
        ("fc of 3", llama()),
        ("no fc", llama().drop("fc.weight")),
        ("square fc", llama().put("fc.weight", HIDDEN, HIDDEN)),
    ):
        yield f"use_aux_hidden_state false, {words}", draft.eagle(use_aux_hidden_state=False)
    yield "use_aux_hidden_state false at the top", llama().config(use_aux_hidden_state=False)
    yield "use_aux_hidden_state false, no fc, no ids needed", (
        llama().drop("fc.weight").eagle(use_aux_hidden_state=False, **{key: []})
    )
    yield "four ids nested, layers.0, fc_norm of four", (
        wide.rename("midlayer.", "layers.0.")
        .put("fc_norm.0.weight", HIDDEN)
        .put("fc_norm.1.weight", HIDDEN)
        .put("fc_norm.2.weight", HIDDEN)
        .put("fc_norm.3.weight", HIDDEN)
        .config(fc_norm=True)
        .eagle(**{key: [1, 8, 12, 20]})
    )


def _dimensions() -> Iterator[tuple[str, Draft]]:
    """Head and width fields that are absent, null or disagree with the tensors."""
    wide = Draft(
        llama().fields,
        {**llama().tensors, **attention("midlayer.", inputs=2 * HIDDEN, head_dim=16)},
        llama().d2t,
    )
    many = Draft(
        llama().fields,
        {**llama().tensors, **attention("midlayer.", inputs=2 * HIDDEN, kv_heads=HEADS)},
        llama().d2t,
    )
    yield "head_dim absent", llama().config(head_dim=ABSENT)
    yield "head_dim null", llama().config(head_dim=None)
    yield "head_dim 16, wide heads", wide.config(head_dim=16)
    yield "head_dim absent, wide heads", wide.config(head_dim=ABSENT)
    yield "head_dim null, wide heads", wide.config(head_dim=None)
    yield "head_dim 16, narrow heads", llama().config(head_dim=16)
    yield "head_dim 4", llama().config(head_dim=4)
    yield "num_key_value_heads absent", llama().config(num_key_value_heads=ABSENT)
    yield "num_key_value_heads absent, all kv heads", many.config(num_key_value_heads=ABSENT)
    yield "num_key_value_heads null", llama().config(num_key_value_heads=None)
    yield "num_key_value_heads 1", llama().config(num_key_value_heads=1)
    yield "num_key_value_heads 4", llama().config(num_key_value_heads=4)
    yield "num_key_value_heads 3", llama().config(num_key_value_heads=3)
    yield "num_attention_heads 4", llama().config(num_attention_heads=4)
    yield "num_attention_heads 4, head_dim absent", llama().config(
        num_attention_heads=4, head_dim=ABSENT
    )
    yield "num_attention_heads 16", llama().config(num_attention_heads=16)
    yield "num_attention_heads 6", llama().config(num_attention_heads=6)
    yield "intermediate_size larger", llama().config(intermediate_size=INTERMEDIATE + 32)
    yield "intermediate_size smaller", llama().config(intermediate_size=INTERMEDIATE - 32)
    yield "intermediate_size absent", llama().config(intermediate_size=ABSENT)
    yield "hidden_size larger", llama().config(hidden_size=96)
    yield "hidden_size smaller", llama().config(hidden_size=48)
    yield "hidden_size absent", llama().config(hidden_size=ABSENT)
    yield "vocab_size absent", llama().config(vocab_size=ABSENT)
    yield "small kv heads in the file", Draft(
        llama().fields,
        {
            **llama().tensors,
            "midlayer.self_attn.k_proj.weight": ("BF16", (KV_HEADS * HEAD_DIM // 2, 2 * HIDDEN)),
        },
        llama().d2t,
    )
    yield "q of wide heads alone", llama().put(
        "midlayer.self_attn.q_proj.weight", HEADS * HEAD_DIM * 2, 2 * HIDDEN
    )
    yield "num_attention_heads absent", llama().config(num_attention_heads=ABSENT)
    yield "num_attention_heads null", llama().config(num_attention_heads=None)


def _config() -> Iterator[tuple[str, Draft]]:
    """Fields that change how the draft is built, or that came along from somewhere else."""
    yield "hidden_act gelu", llama().config(hidden_act="gelu")
    yield "hidden_act absent", llama().config(hidden_act=ABSENT)
    yield "torch_dtype absent", llama().config(torch_dtype=ABSENT)
    yield "torch_dtype float32", llama().config(torch_dtype="float32")
    yield "torch_dtype float16", llama().config(torch_dtype="float16")
    yield "dtype instead of torch_dtype", llama().config(torch_dtype=ABSENT, dtype="bfloat16")
    yield "torch_dtype auto", llama().config(torch_dtype="auto")
    yield "rms_norm_eps absent", llama().config(rms_norm_eps=ABSENT)
    yield "rope_theta absent", llama().config(rope_theta=ABSENT)
    yield "rope_scaling null", llama().config(rope_scaling=None)
    yield "rope_parameters instead", llama().config(
        rope_theta=ABSENT, rope_parameters={"rope_type": "default", "rope_theta": 10000.0}
    )
    yield "rope_parameters null", llama().config(rope_parameters=None)
    yield "rope_scaling llama3", llama().config(
        rope_scaling={
            "rope_type": "llama3",
            "factor": 8.0,
            "low_freq_factor": 1.0,
            "high_freq_factor": 4.0,
            "original_max_position_embeddings": 1024,
        }
    )
    yield "rope_scaling yarn", llama().config(
        rope_scaling={
            "rope_type": "yarn",
            "factor": 4.0,
            "original_max_position_embeddings": 1024,
        }
    )
    yield "rope_scaling mrope", llama().config(
        rope_scaling={"type": "default", "rope_type": "default", "mrope_section": [2, 1, 1]}
    )
    yield "rope_scaling of an unknown type", llama().config(
        rope_scaling={"rope_type": "no_such_rope", "factor": 2.0}
    )
    yield "rope_scaling without a type", llama().config(rope_scaling={"factor": 2.0})
    yield "max_position_embeddings absent", llama().config(max_position_embeddings=ABSENT)
    yield "max_position_embeddings 2048", llama().config(max_position_embeddings=2048)
    yield "partial_rotary_factor", llama().config(partial_rotary_factor=0.5)
    yield "pretraining_tp 2", llama().config(pretraining_tp=2)
    yield "quantization_config fp8", llama().config(
        quantization_config={"quant_method": "fp8", "activation_scheme": "dynamic"}
    )
    yield "quantization_config fp8 blocks", llama().config(
        quantization_config={
            "quant_method": "fp8",
            "activation_scheme": "dynamic",
            "fmt": "e4m3",
            "weight_block_size": [128, 128],
        }
    )
    yield "quantization_config null", llama().config(quantization_config=None)
    yield "quantization_config of an unknown method", llama().config(
        quantization_config={"quant_method": "no_such_method"}
    )
    yield "float16 tensors", Draft(
        llama().fields,
        {n: ("F16" if s[0] == "BF16" else s[0], s[1]) for n, s in llama().tensors.items()},
        llama().d2t,
    )
    yield "float32 tensors", Draft(
        llama().fields,
        {n: ("F32" if s[0] == "BF16" else s[0], s[1]) for n, s in llama().tensors.items()},
        llama().d2t,
    )
    yield "target_model_type", llama().config(target_model_type="qwen3")
    yield "null leftovers", llama().config(
        bos_token_id=None, pad_token_id=None, id2label=None, top_k=None, sliding_window=None
    )
    yield "token ids outside the vocabulary", llama().config(
        bos_token_id=151643, eos_token_id=151645
    )
    yield "pad_token_id outside the vocabulary", llama().config(pad_token_id=5000)
    yield "ModelOpt template", llama("layers.0.").drop("t2d").config(
        bos_token_id=1, eos_token_id=[2], initializer_range=0.01, pad_token_id=None,
        use_cache=True, attention_bias=False, mlp_bias=False, attention_dropout=0.0,
        pretraining_tp=1,
    ).eagle(
        eagle_aux_hidden_state_layer_ids=[1, 15, 28],
        use_aux_hidden_state=True,
        use_input_layernorm_in_first_layer=True,
        use_last_layernorm=True,
        use_mtp_layernorm=False,
        next_layer_regular=True,
        parallel_draft_step=1,
        parallel_draft_heads_num_layers=1,
    )


_PACK: Final[dict[str, str]] = {
    "F32": "<f", "F16": "<e", "I64": "<q", "I32": "<i", "I16": "<h", "U8": "<B", "BOOL": "<B",
}  # fmt: skip


def _element(dtype: str, value: float) -> bytes:
    if dtype == "BF16":
        return struct.pack("<f", value)[2:]
    return struct.pack(_PACK[dtype], value if dtype in ("F32", "F16") else int(value))


def _count(shape: Shape) -> int:
    total = 1
    for n in shape:
        total *= n
    return total


def _bytes(case: Case, name: str, value: float) -> bytes:
    dtype, shape = case.tensors[name]
    if name == "d2t" and case.d2t is not None:
        return b"".join(_element(dtype, n) for n in case.d2t)
    if name == "t2d" and case.d2t is not None:
        used = {i + offset for i, offset in enumerate(case.d2t)}
        return bytes(i in used for i in range(_count(shape)))
    if dtype == "BOOL":
        return bytes(_count(shape))
    return _element(dtype, value) * _count(shape)


def write(case: Case, folder: Path) -> Path:
    """Write ``config.json`` and ``model.safetensors`` into ``folder`` (made if missing); returns it.

    Tensor data follows the safetensors format: 8-byte little-endian header length, JSON header, data in
    the order of the sorted names.
    """
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(case.config, indent=2) + "\n", encoding="utf-8")
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    data = bytearray()
    for name, value in case.values().items():
        dtype, shape = case.tensors[name]
        raw = _bytes(case, name, value)
        header[name] = {
            "dtype": dtype,
            "shape": list(shape),
            "data_offsets": [len(data), len(data) + len(raw)],
        }
        data += raw
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + data)
    return folder
