"""Drafts with multi-head latent attention (DeepSeek and Kimi style)."""

from __future__ import annotations

from collections.abc import Iterator

from tests.conformance.dialects import rooted, word
from tests.conformance.draft import (
    ABSENT,
    AUX,
    HEADS,
    HIDDEN,
    KV_LORA,
    Q_LORA,
    QK_NOPE,
    QK_ROPE,
    VOCAB,
    Draft,
    llama,
    mla,
)

Named = Iterator[tuple[str, Draft]]


def drafts() -> Named:
    """Drafts with multi-head latent attention."""
    kept = ("lm_head", "d2t", "t2d")
    base = mla()
    attn = "layers.0.self_attn."
    a_rows = Q_LORA + KV_LORA + QK_ROPE
    split = (f"{attn}q_a_proj.weight", f"{attn}kv_a_proj_with_mqa.weight")
    joined = base.drop(*split).put(f"{attn}fused_qkv_a_proj_with_mqa.weight", a_rows, 2 * HIDDEN)
    yield "split a-projections", base
    yield "under midlayer.", mla("midlayer.")
    yield "under model.layers.0.", mla("model.layers.0.")
    yield "model. on all but the head", rooted(base, "model.", keep=kept)
    yield "fused a-projections", joined
    yield "fused a-projections under midlayer.", joined.rename("layers.0.", "midlayer.")
    yield "with embedding", base.embed()
    yield "V3 spelling", base.config(architectures=["Eagle3DeepseekV3ForCausalLM"])
    yield "named LlamaForCausalLMEagle3", base.config(architectures=["LlamaForCausalLMEagle3"])
    yield (
        "Llama draft named Eagle3DeepseekV2ForCausalLM",
        llama().config(architectures=["Eagle3DeepseekV2ForCausalLM"]),
    )
    for kind in ("kimi_k2", "deepseek_v2", "llama", "kimi_k25", ABSENT):
        yield f"model_type {word(kind)}", base.config(model_type=kind)
    for name in (
        *split,
        *(f"{attn}{n}.weight" for n in ("q_a_layernorm", "q_b_proj", "kv_a_layernorm")),
        f"{attn}kv_b_proj.weight",
        f"{attn}o_proj.weight",
        "layers.0.hidden_norm.weight",
        "layers.0.input_layernorm.weight",
        "layers.0.mlp.gate_proj.weight",
        "layers.0.mlp.down_proj.weight",
        "fc.weight",
        "norm.weight",
        "lm_head.weight",
        "d2t",
        "t2d",
    ):
        yield f"no {name.removeprefix('layers.0.')}", base.drop(name)
    whole = HEADS * (QK_NOPE + QK_ROPE)
    direct = base.drop(split[0], f"{attn}q_a_layernorm.weight", f"{attn}q_b_proj.weight").put(
        f"{attn}q_proj.weight", whole, 2 * HIDDEN
    )
    yield "q_lora_rank null", direct.config(q_lora_rank=None)
    yield "q_lora_rank absent", direct.config(q_lora_rank=ABSENT)
    for name in (
        split[0],
        split[1],
        f"{attn}q_b_proj.weight",
        f"{attn}kv_b_proj.weight",
        f"{attn}o_proj.weight",
    ):
        short = name.removeprefix(attn).removesuffix(".weight")
        yield f"{short} rows +4", base.grow(name, 0, 4)
        yield f"{short} rows -4", base.grow(name, 0, -4)
        yield f"{short} columns +4", base.grow(name, 1, 4)
        yield f"{short} columns -4", base.grow(name, 1, -4)
    yield "gate_proj rows +4", base.grow("layers.0.mlp.gate_proj.weight", 0, 4)
    yield "gate_proj rows -4", base.grow("layers.0.mlp.gate_proj.weight", 0, -4)
    yield "fc columns +64", base.grow("fc.weight", 1, HIDDEN)
    for letter, rows in (("q_a", Q_LORA), ("kv_a", KV_LORA + QK_ROPE)):
        suffix = "_proj_with_mqa" if letter == "kv_a" else "_proj"
        yield f"{letter} bias", base.put(f"{attn}{letter}{suffix}.bias", rows)
    yield "unknown weight", base.put("adapter.weight", HIDDEN, HIDDEN)
    yield (
        "draft_vocab_size null, no head",
        base.drop("lm_head.weight", "d2t", "t2d").config(draft_vocab_size=None),
    )
    yield (
        "draft_vocab_size absent, no head",
        base.drop("lm_head.weight", "d2t", "t2d").config(draft_vocab_size=ABSENT),
    )
    yield (
        "full vocabulary, no head",
        base.drop("lm_head.weight", "d2t", "t2d").config(draft_vocab_size=VOCAB),
    )
    yield (
        "full vocabulary",
        base.drop("d2t", "t2d").put("lm_head.weight", VOCAB, HIDDEN).config(draft_vocab_size=VOCAB),
    )
    yield "draft_vocab_size absent", base.config(draft_vocab_size=ABSENT)
    yield "tied", base.config(tie_word_embeddings=True)
    chunks = base
    for i in range(AUX):
        chunks = chunks.put(f"fc_norm.{i}.weight", HIDDEN)
    yield "fc_norm and norm_output", chunks.config(fc_norm=True, norm_output=True)
    yield "fc_norm tensors alone", chunks
    yield "fc_norm flag alone", base.config(fc_norm=True)
    yield "norm_before_fc", base.put("input_norm.weight", AUX * HIDDEN).config(norm_before_fc=True)
    yield (
        "nested four ids",
        base.put("fc.weight", HIDDEN, 4 * HIDDEN).eagle(
            eagle_aux_hidden_state_layer_ids=[1, 9, 29, 57]
        ),
    )
    yield (
        "top-level four ids",
        base.put("fc.weight", HIDDEN, 4 * HIDDEN).config(
            eagle_aux_hidden_state_layer_ids=[1, 9, 29, 57]
        ),
    )
    yield (
        "num_aux_hidden_states 4",
        base.put("fc.weight", HIDDEN, 4 * HIDDEN).config(num_aux_hidden_states=4),
    )
    yield "nested no ids", base.eagle(eagle_aux_hidden_state_layer_ids=[])
    yield "two layers", base.config(num_hidden_layers=2)
    yield (
        "wider target, embedding",
        base.embed().put("fc.weight", HIDDEN, AUX * 96).config(target_hidden_size=96),
    )
    yield (
        "wider target, no embedding",
        base.put("fc.weight", HIDDEN, AUX * 96).config(target_hidden_size=96),
    )
    yield "target_hidden_size null", base.config(target_hidden_size=None)
    yield "rope_scaling absent", base.config(rope_scaling=ABSENT)
    yield (
        "yarn",
        base.config(
            rope_scaling={
                "type": "yarn",
                "factor": 4.0,
                "original_max_position_embeddings": 1024,
                "mscale": 1.0,
                "mscale_all_dim": 1.0,
                "beta_fast": 32.0,
                "beta_slow": 1.0,
            }
        ),
    )
    yield "max_position_embeddings absent", base.config(max_position_embeddings=ABSENT)
    yield "bias flag, fc bias", base.put("fc.bias", HIDDEN).config(bias=True)
    yield "num_key_value_heads absent", base.config(num_key_value_heads=ABSENT)
    yield (
        "target experts ride along",
        base.config(
            n_routed_experts=8,
            num_experts_per_tok=2,
            moe_intermediate_size=32,
            first_k_dense_replace=1,
        ),
    )
