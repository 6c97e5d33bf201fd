"""Drafts of the speculators trainer: their sizes lie inside ``transformer_layer_config``."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from tests.conformance.draft import (
    ABSENT,
    AUX,
    HEAD_DIM,
    HEADS,
    HIDDEN,
    KV_HEADS,
    LLAMA_CONFIG,
    VOCAB,
    Draft,
    llama,
    two_layers,
)

Named = Iterator[tuple[str, Draft]]


def config(architecture: str, **changes: Any) -> dict[str, Any]:
    """The nested config of the speculators trainer; ``changes`` are top-level fields."""
    inner = {
        k: v
        for k, v in LLAMA_CONFIG.items()
        if k not in ("architectures", "draft_vocab_size", "torch_dtype")
    }
    fields = {
        "architectures": [architecture],
        "speculators_model_type": "eagle3",
        "speculators_version": "0.9.0",
        "draft_vocab_size": LLAMA_CONFIG["draft_vocab_size"],
        "target_hidden_size": None,
        "norm_before_residual": False,
        "norm_before_fc": False,
        "fc_norm": False,
        "norm_output": False,
        "embed_requires_grad": False,
        "eagle_aux_hidden_state_layer_ids": [2, 16, 29],
        "dtype": "bfloat16",
        "speculators_config": {
            "algorithm": "eagle3",
            "default_proposal_method": "greedy",
            "proposal_methods": [
                {
                    "accept_tolerance": 0.0,
                    "proposal_type": "greedy",
                    "speculative_tokens": 3,
                    "verifier_accept_k": 1,
                }
            ],
            "verifier": {"architectures": ["LlamaForCausalLM"], "name_or_path": None},
        },
        "transformer_layer_config": inner,
        **changes,
    }
    return {k: v for k, v in fields.items() if v is not ABSENT}


def drafts() -> Named:
    """The dialect whose sizes lie inside ``transformer_layer_config``."""
    base = llama("layers.0.").embed()

    def spec(draft: Draft, architecture: str, **changes: Any) -> Draft:
        return replace(draft, fields=config(architecture, **changes))

    def inner(draft: Draft, **changes: Any) -> Draft:
        outer = config("Eagle3DraftModel")
        outer["transformer_layer_config"] = {**outer["transformer_layer_config"], **changes}
        return replace(draft, fields=outer)

    yield "speculators trained", spec(base, "Eagle3DraftModel")
    yield (
        "speculators converted",
        spec(base, "Eagle3Speculator", speculators_version="0.2.0", norm_before_residual=True),
    )
    yield (
        "speculators without a version",
        spec(base, "Eagle3Speculator", speculators_version=ABSENT),
    )
    yield (
        "speculators with model_type speculator_model",
        spec(base, "Eagle3Speculator", model_type="speculator_model"),
    )
    yield "speculators with model_type eagle3", spec(base, "Eagle3Speculator", model_type="eagle3")
    yield "speculators named LlamaForCausalLMEagle3", spec(base, "LlamaForCausalLMEagle3")
    yield (
        "speculators without ids",
        spec(base, "Eagle3DraftModel", eagle_aux_hidden_state_layer_ids=ABSENT),
    )
    yield (
        "speculators four ids",
        spec(
            base.put("fc.weight", HIDDEN, 4 * HIDDEN),
            "Eagle3DraftModel",
            eagle_aux_hidden_state_layer_ids=[2, 9, 16, 29],
        ),
    )
    yield (
        "speculators four ids, fc of three",
        spec(base, "Eagle3DraftModel", eagle_aux_hidden_state_layer_ids=[2, 9, 16, 29]),
    )
    yield "speculators midlayer", spec(llama().embed(), "Eagle3DraftModel")
    yield "speculators without embedding", spec(llama("layers.0."), "Eagle3DraftModel")
    yield "speculators without mapping", spec(base.drop("d2t", "t2d"), "Eagle3DraftModel")
    yield (
        "speculators full vocabulary",
        spec(
            base.drop("d2t", "t2d").put("lm_head.weight", VOCAB, HIDDEN),
            "Eagle3DraftModel",
            draft_vocab_size=VOCAB,
        ),
    )
    yield (
        "speculators verifier tensors",
        spec(
            base.put("verifier_lm_head.weight", 320, HIDDEN).put("verifier_norm.weight", HIDDEN),
            "Eagle3DraftModel",
        ),
    )
    yield (
        "speculators unknown weight",
        spec(base.put("adapter.weight", HIDDEN, HIDDEN), "Eagle3DraftModel"),
    )
    normed = base.put("input_norm.weight", AUX * HIDDEN)
    yield "speculators norm_before_fc", spec(normed, "Eagle3DraftModel", norm_before_fc=True)
    yield "speculators input_norm, flag false", spec(normed, "Eagle3DraftModel")
    yield (
        "speculators norm_before_fc, no tensor",
        spec(base, "Eagle3DraftModel", norm_before_fc=True),
    )
    chunks = base
    for i in range(AUX):
        chunks = chunks.put(f"fc_norm.{i}.weight", HIDDEN)
    yield "speculators fc_norm", spec(chunks, "Eagle3DraftModel", fc_norm=True, norm_output=True)
    yield "speculators fc_norm, flag false", spec(chunks, "Eagle3DraftModel")
    yield "speculators norm_output", spec(base, "Eagle3DraftModel", norm_output=True)
    yield (
        "speculators norm_before_residual",
        spec(base, "Eagle3DraftModel", norm_before_residual=True),
    )
    yield (
        "speculators norm_before_residual absent",
        spec(base, "Eagle3DraftModel", norm_before_residual=ABSENT),
    )
    yield (
        "speculators target_hidden_size",
        spec(base, "Eagle3DraftModel", target_hidden_size=HIDDEN),
    )
    yield (
        "speculators wider target",
        spec(base.put("fc.weight", HIDDEN, AUX * 96), "Eagle3DraftModel", target_hidden_size=96),
    )
    qk = base.put("layers.0.self_attn.q_norm.weight", HEAD_DIM).put(
        "layers.0.self_attn.k_norm.weight", HEAD_DIM
    )
    yield "speculators qwen3 layer", inner(qk, model_type="qwen3")
    yield "speculators qwen3 layer, no qk norms", inner(base, model_type="qwen3")
    yield "speculators llama layer, qk norms", inner(qk)
    yield (
        "speculators sliding window",
        inner(base, layer_types=["sliding_attention"], sliding_window=512, use_sliding_window=True),
    )
    qkv = base
    for letter, rows in (("q", HEADS), ("k", KV_HEADS), ("v", KV_HEADS)):
        qkv = qkv.put(f"layers.0.self_attn.{letter}_proj.bias", rows * HEAD_DIM)
    yield "speculators attention_bias", inner(qkv, attention_bias=True)
    yield (
        "speculators two layers",
        inner(
            two_layers("layers.1.", "input_layernorm", "post_attention_layernorm").embed(),
            num_hidden_layers=2,
        ),
    )
    yield (
        "speculators peagle",
        spec(
            base.put("mask_hidden", 1, 1, AUX * HIDDEN),
            "PEagleDraftModel",
            speculators_model_type="peagle",
            mask_token_id=7,
        ),
    )
    yield "speculators tied", inner(base, tie_word_embeddings=True)
