"""A small EAGLE-3 draft as data, and the edits that turn a good one into every other.

No tensor values here and no torch: a draft is a ``config.json`` and the names, dtypes and shapes of
a safetensors header. Sizes are tiny but all different where the loaders treat them differently, so
that a tensor cannot land in the wrong place unseen (``num_heads * head_dim == hidden`` is the
exception: it is what published drafts have; the ``wide heads`` cases break it).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

HIDDEN: Final = 64
VOCAB: Final = 1000
DRAFT_VOCAB: Final = 320
HEADS: Final = 8
KV_HEADS: Final = 2
HEAD_DIM: Final = 8
INTERMEDIATE: Final = 160
AUX: Final = 3

# MLA sizes: every product differs from every other and from HIDDEN.
Q_LORA: Final = 24
KV_LORA: Final = 16
QK_NOPE: Final = 8
QK_ROPE: Final = 4
V_HEAD: Final = 6

ABSENT: Final = object()
"""Given as a config value: the field is not in config.json at all (None would be JSON null)."""

Shape = tuple[int, ...]
Spec = tuple[str, Shape]

OFFSETS: Final = tuple(20 * (i // 10) for i in range(DRAFT_VOCAB))
"""A healthy d2t: runs of ten consecutive target ids, 20 apart; the last id is 319 + 620 = 939 <
VOCAB."""

LLAMA_CONFIG: Final[Mapping[str, Any]] = {
    "architectures": ["LlamaForCausalLMEagle3"],
    "model_type": "llama",
    "hidden_size": HIDDEN,
    "intermediate_size": INTERMEDIATE,
    "num_attention_heads": HEADS,
    "num_key_value_heads": KV_HEADS,
    "head_dim": HEAD_DIM,
    "num_hidden_layers": 1,
    "hidden_act": "silu",
    "vocab_size": VOCAB,
    "draft_vocab_size": DRAFT_VOCAB,
    "max_position_embeddings": 4096,
    "rope_theta": 10000,
    "rms_norm_eps": 1e-06,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
}

MLA_CONFIG: Final[Mapping[str, Any]] = {
    "architectures": ["Eagle3DeepseekV2ForCausalLM"],
    "model_type": "deepseek_v3",
    "hidden_size": HIDDEN,
    "intermediate_size": INTERMEDIATE,
    "num_attention_heads": HEADS,
    "num_key_value_heads": HEADS,
    "q_lora_rank": Q_LORA,
    "kv_lora_rank": KV_LORA,
    "qk_nope_head_dim": QK_NOPE,
    "qk_rope_head_dim": QK_ROPE,
    "v_head_dim": V_HEAD,
    "num_hidden_layers": 1,
    "hidden_act": "silu",
    "vocab_size": VOCAB,
    "draft_vocab_size": DRAFT_VOCAB,
    "max_position_embeddings": 4096,
    "rope_theta": 10000,
    "rope_scaling": None,
    "rms_norm_eps": 1e-06,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
}


@dataclass(frozen=True)
class Draft:
    """A draft under construction. Every method returns a changed copy.

    ``d2t`` holds the values of the tensor ``d2t`` in row-major order, or None when there is no such
    tensor or its values do not matter.
    """

    fields: Mapping[str, Any]
    tensors: Mapping[str, Spec]
    d2t: tuple[int, ...] | None = None

    def config(self, **changes: Any) -> Draft:
        """Set config fields; ``ABSENT`` removes one."""
        merged = {**self.fields, **changes}
        return replace(self, fields={k: v for k, v in merged.items() if v is not ABSENT})

    def eagle(self, **changes: Any) -> Draft:
        """Set fields of the nested ``eagle_config``."""
        nested = {**(self.fields.get("eagle_config") or {}), **changes}
        return self.config(eagle_config={k: v for k, v in nested.items() if v is not ABSENT})

    def put(self, name: str, *shape: int, dtype: str = "BF16") -> Draft:
        """Add a tensor, or give one another shape or dtype."""
        return replace(self, tensors={**self.tensors, name: (dtype, shape)})

    def drop(self, *names: str) -> Draft:
        """Remove tensors. Raises KeyError for one that is not there, so that no case tests
        nothing."""
        for name in names:
            self.tensors[name]
        kept = {k: v for k, v in self.tensors.items() if k not in names}
        return replace(self, tensors=kept, d2t=self.d2t if "d2t" in kept else None)

    def rename(self, old: str, new: str) -> Draft:
        """Replace the prefix ``old`` of every name that has it. Raises KeyError when none has."""
        if not any(name.startswith(old) for name in self.tensors):
            raise KeyError(old)
        renamed = {
            new + name.removeprefix(old) if name.startswith(old) else name: spec
            for name, spec in self.tensors.items()
        }
        return replace(self, tensors=renamed, d2t=self.d2t if "d2t" in renamed else None)

    def grow(self, name: str, axis: int, by: int) -> Draft:
        """Give one axis of a tensor ``by`` more (or, negative, fewer) entries."""
        dtype, shape = self.tensors[name]
        return self.put(
            name, *(n + by if i == axis else n for i, n in enumerate(shape)), dtype=dtype
        )

    def mapping(self, offsets: tuple[int, ...], *, dtype: str = "I64") -> Draft:
        """Give ``d2t`` other values (one per draft token)."""
        return replace(self.put("d2t", len(offsets), dtype=dtype), d2t=offsets)

    def embed(self, rows: int = VOCAB, columns: int = HIDDEN) -> Draft:
        """Ship an input embedding."""
        return self.put("embed_tokens.weight", rows, columns)


def attention(
    prefix: str,
    *,
    inputs: int,
    heads: int = HEADS,
    kv_heads: int = KV_HEADS,
    head_dim: int = HEAD_DIM,
) -> dict[str, Spec]:
    """Grouped-query attention: q [heads*d, inputs], k and v [kv_heads*d, inputs], o [HIDDEN,
    heads*d]."""
    q, kv = heads * head_dim, kv_heads * head_dim
    return {
        f"{prefix}self_attn.q_proj.weight": ("BF16", (q, inputs)),
        f"{prefix}self_attn.k_proj.weight": ("BF16", (kv, inputs)),
        f"{prefix}self_attn.v_proj.weight": ("BF16", (kv, inputs)),
        f"{prefix}self_attn.o_proj.weight": ("BF16", (HIDDEN, q)),
    }


def latent_attention(prefix: str) -> dict[str, Spec]:
    """Multi-head latent attention of a DeepSeek-style draft; its a-projections read 2*HIDDEN."""
    return {
        f"{prefix}self_attn.q_a_proj.weight": ("BF16", (Q_LORA, 2 * HIDDEN)),
        f"{prefix}self_attn.q_a_layernorm.weight": ("BF16", (Q_LORA,)),
        f"{prefix}self_attn.q_b_proj.weight": ("BF16", (HEADS * (QK_NOPE + QK_ROPE), Q_LORA)),
        f"{prefix}self_attn.kv_a_proj_with_mqa.weight": (
            "BF16",
            (KV_LORA + QK_ROPE, 2 * HIDDEN),
        ),
        f"{prefix}self_attn.kv_a_layernorm.weight": ("BF16", (KV_LORA,)),
        f"{prefix}self_attn.kv_b_proj.weight": ("BF16", (HEADS * (QK_NOPE + V_HEAD), KV_LORA)),
        f"{prefix}self_attn.o_proj.weight": ("BF16", (HIDDEN, HEADS * V_HEAD)),
    }


def dense(prefix: str) -> dict[str, Spec]:
    """The gated MLP."""
    return {
        f"{prefix}mlp.gate_proj.weight": ("BF16", (INTERMEDIATE, HIDDEN)),
        f"{prefix}mlp.up_proj.weight": ("BF16", (INTERMEDIATE, HIDDEN)),
        f"{prefix}mlp.down_proj.weight": ("BF16", (HIDDEN, INTERMEDIATE)),
    }


def norms(prefix: str, *names: str) -> dict[str, Spec]:
    """RMS norms of width HIDDEN."""
    return {f"{prefix}{name}.weight": ("BF16", (HIDDEN,)) for name in names}


LAYER_NORMS: Final = ("input_layernorm", "hidden_norm", "post_attention_layernorm")

_SHARED: Final[dict[str, Spec]] = {
    "fc.weight": ("BF16", (HIDDEN, AUX * HIDDEN)),
    "norm.weight": ("BF16", (HIDDEN,)),
    "lm_head.weight": ("BF16", (DRAFT_VOCAB, HIDDEN)),
    "d2t": ("I64", (DRAFT_VOCAB,)),
    "t2d": ("BOOL", (VOCAB,)),
}


def llama(layer: str = "midlayer.") -> Draft:
    """The minimal good Llama draft (no embedding of its own), its decoder layer under ``layer``."""
    return Draft(
        fields=dict(LLAMA_CONFIG),
        tensors={
            **_SHARED,
            **attention(layer, inputs=2 * HIDDEN),
            **dense(layer),
            **norms(layer, *LAYER_NORMS),
        },
        d2t=OFFSETS,
    )


def two_layers(second: str, *second_norms: str) -> Draft:
    """A Llama draft whose second decoder layer reads HIDDEN (not 2*HIDDEN), under ``second``."""
    base = llama("layers.0.")
    tensors = {
        **base.tensors,
        **attention(second, inputs=HIDDEN),
        **dense(second),
        **norms(second, *second_norms),
    }
    return replace(base, tensors=tensors).config(num_hidden_layers=2)


def mla(layer: str = "layers.0.") -> Draft:
    """The minimal good MLA draft with split a-projections."""
    return Draft(
        fields=dict(MLA_CONFIG),
        tensors={
            **_SHARED,
            **latent_attention(layer),
            **dense(layer),
            **norms(layer, *LAYER_NORMS),
        },
        d2t=OFFSETS,
    )
