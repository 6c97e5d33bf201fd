"""Whole drafts as their producers spell them: names, classes, model types, layers and MLA."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

from tests.conformance.draft import (
    ABSENT,
    AUX,
    HEAD_DIM,
    HEADS,
    HIDDEN,
    INTERMEDIATE,
    KV_HEADS,
    KV_LORA,
    LLAMA_CONFIG,
    Q_LORA,
    QK_NOPE,
    QK_ROPE,
    VOCAB,
    Draft,
    attention,
    llama,
    mla,
    two_layers,
)

Named = Iterator[tuple[str, Draft]]

LAYER_PREFIXES: Final = (
    "midlayer.",
    "layers.0.",
    "model.midlayer.",
    "model.layers.0.",
    "layers.1.",
    "layer.",
    "decoder.layers.0.",
    "eagle_module.midlayer.",
)


def rooted(draft: Draft, root: str, *, keep: tuple[str, ...] = ("d2t", "t2d")) -> Draft:
    """Put ``root`` in front of every name that does not start with one of ``keep``."""
    tensors = {
        name if name.startswith(keep) else root + name: spec
        for name, spec in draft.tensors.items()
    }
    return replace(draft, tensors=tensors, d2t=draft.d2t if "d2t" in tensors else None)


def fused(draft: Draft, layer: str) -> Draft:
    """q, k, v and gate, up stored as the runtimes fuse them."""
    q, kv = HEADS * HEAD_DIM, KV_HEADS * HEAD_DIM
    return (
        draft.drop(
            *(f"{layer}self_attn.{letter}_proj.weight" for letter in "qkv"),
            *(f"{layer}mlp.{name}_proj.weight" for name in ("gate", "up")),
        )
        .put(f"{layer}self_attn.qkv_proj.weight", q + 2 * kv, 2 * HIDDEN)
        .put(f"{layer}mlp.gate_up_proj.weight", 2 * INTERMEDIATE, HIDDEN)
    )


def spellings() -> Named:
    """One good Llama draft under every naming of its tensors."""
    for layer in LAYER_PREFIXES:
        yield f"layer under {layer}", llama(layer)
    kept = ("lm_head", "d2t", "t2d")
    yield "NeMo: model. on all but the head", rooted(llama("layers.0."), "model.", keep=kept).embed()
    yield (
        "NeMo with model.embed_tokens",
        rooted(llama("layers.0.").embed(), "model.", keep=kept).config(target_hidden_size=HIDDEN),
    )
    yield "model. on all but the head, midlayer", rooted(llama(), "model.", keep=kept)
    yield "model. on the head too", rooted(llama("layers.0."), "model.")
    yield "model.fc alone", llama().rename("fc.", "model.fc.")
    yield "model.norm alone", llama().rename("norm.", "model.norm.")
    yield "model.embed_tokens alone", llama().embed().rename("embed_tokens.", "model.embed_tokens.")
    yield "model.lm_head alone", llama().rename("lm_head.", "model.lm_head.")
    for layer in ("midlayer.", "layers.0.", "model.layers.0."):
        yield f"fused under {layer}", fused(llama(layer), layer)
    yield "fused qkv too tall", fused(llama(), "midlayer.").grow(
        "midlayer.self_attn.qkv_proj.weight", 0, 4
    )
    yield "fused qkv too short", fused(llama(), "midlayer.").grow(
        "midlayer.self_attn.qkv_proj.weight", 0, -4
    )
    yield "fused gate_up too tall", fused(llama(), "midlayer.").grow(
        "midlayer.mlp.gate_up_proj.weight", 0, 4
    )
    yield "fused gate_up too short", fused(llama(), "midlayer.").grow(
        "midlayer.mlp.gate_up_proj.weight", 0, -4
    )
    for root in ("module.", "_orig_mod.", "draft_model.", "eagle_module.", "language_model."):
        yield f"{root} left over", rooted(llama(), root, keep=())
    yield "module. left over, layers.0", rooted(llama("layers.0."), "module.", keep=())
    yield "upper case", rooted(llama("Midlayer."), "")
    yield "empty", replace(llama(), tensors={}, d2t=None)
    yield "only the head", llama().drop(
        *(name for name in llama().tensors if name != "lm_head.weight")
    )


ARCHITECTURES: Final[tuple[Any, ...]] = (
    "Eagle3LlamaForCausalLM",
    "LlamaForCausalLM",
    "Qwen3ForCausalLM",
    "Qwen2ForCausalLM",
    "Eagle3Speculator",
    "Eagle3DraftModel",
    "LlamaEagle3DraftModel",
    "GptOssForCausalLMEagle3",
    "LlamaForCausalLMEagle3Deep",
    "LlamaForCausalLMEagle",
    "EAGLE3LlamaForCausalLM",
    "Eagle3Qwen3ForCausalLM",
    "PEagleDraftModel",
    "llamaforcausallmeagle3",
    "NoSuchModel",
)

MODEL_TYPES: Final[tuple[Any, ...]] = (
    ABSENT,
    None,
    "deepseek_v3",
    "kimi_k2",
    "qwen2",
    "qwen3",
    "qwen3_moe",
    "mistral",
    "gpt_oss",
    "llama4_text",
    "llama4",
    "eagle",
    "speculator_model",
    "no_such_type",
)


def word(value: Any) -> str:
    """How a value reads in a case name."""
    return "absent" if value is ABSENT else "null" if value is None else str(value)


def classes() -> Named:
    """``architectures`` and ``model_type`` in every combination a producer writes."""
    for name in ARCHITECTURES:
        yield f"architecture {name}", llama().config(architectures=[name])
    yield "architecture absent", llama().config(architectures=ABSENT)
    yield "architecture null", llama().config(architectures=None)
    yield "architecture empty", llama().config(architectures=[])
    yield "architecture a string", llama().config(architectures="LlamaForCausalLMEagle3")
    yield "architecture two, second good", llama().config(
        architectures=["NoSuchModel", "LlamaForCausalLMEagle3"]
    )
    yield "architecture two, first good", llama().config(
        architectures=["LlamaForCausalLMEagle3", "LlamaForCausalLM"]
    )
    yield "LlamaForCausalLM with layers.0", llama("layers.0.").config(
        architectures=["LlamaForCausalLM"]
    )
    yield "LlamaForCausalLM with model.layers.0", rooted(
        llama("layers.0."), "model.", keep=("lm_head", "d2t", "t2d")
    ).config(architectures=["LlamaForCausalLM"])
    yield "Qwen3ForCausalLM of type qwen3", llama().config(
        architectures=["Qwen3ForCausalLM"], model_type="qwen3"
    )
    yield "Eagle3Qwen3ForCausalLM of type qwen3", llama().config(
        architectures=["Eagle3Qwen3ForCausalLM"], model_type="qwen3"
    )
    yield "GptOssForCausalLMEagle3 of type gpt_oss", llama().config(
        architectures=["GptOssForCausalLMEagle3"], model_type="gpt_oss"
    )
    for kind in MODEL_TYPES:
        yield f"model_type {word(kind)}", llama().config(model_type=kind)
    yield "model_type qwen3, head_dim absent", llama().config(model_type="qwen3", head_dim=ABSENT)
    yield "llama4_text, intermediate_size_mlp", llama().config(
        model_type="llama4_text", intermediate_size=96, intermediate_size_mlp=INTERMEDIATE
    )
    yield "llama4_text, intermediate_size_mlp default", llama().config(
        model_type="llama4_text", intermediate_size_mlp=ABSENT
    )
    yield "llama, intermediate_size_mlp", llama().config(intermediate_size_mlp=96)
    yield "an ordinary Llama, not a draft", ordinary_llama()
    yield "auto_map", llama().config(auto_map={"AutoConfig": "configuration_draft.DraftConfig"})
    yield from speculators()


def ordinary_llama() -> Draft:
    """A one-layer target model given as a draft: no fc, no d2t, its layers as Hugging Face names them."""
    tensors = {
        **llama("model.layers.0.").tensors,
        **attention("model.layers.0.", inputs=HIDDEN),
    }
    draft = replace(llama(), tensors=tensors)
    return (
        draft.drop("fc.weight", "d2t", "t2d", "model.layers.0.hidden_norm.weight")
        .rename("norm.", "model.norm.")
        .put("model.embed_tokens.weight", VOCAB, HIDDEN)
        .put("lm_head.weight", VOCAB, HIDDEN)
        .config(architectures=["LlamaForCausalLM"], draft_vocab_size=ABSENT)
    )


def speculators_config(architecture: str, **changes: Any) -> dict[str, Any]:
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


def speculators() -> Named:
    """The dialect whose sizes lie inside ``transformer_layer_config``."""
    base = llama("layers.0.").embed()

    def spec(draft: Draft, architecture: str, **changes: Any) -> Draft:
        return replace(draft, fields=speculators_config(architecture, **changes))

    def inner(draft: Draft, **changes: Any) -> Draft:
        config = dict(speculators_config("Eagle3DraftModel"))
        config["transformer_layer_config"] = {**config["transformer_layer_config"], **changes}
        return replace(draft, fields=config)

    yield "speculators trained", spec(base, "Eagle3DraftModel")
    yield "speculators converted", spec(
        base, "Eagle3Speculator", speculators_version="0.2.0", norm_before_residual=True
    )
    yield "speculators without a version", spec(
        base, "Eagle3Speculator", speculators_version=ABSENT
    )
    yield "speculators with model_type speculator_model", spec(
        base, "Eagle3Speculator", model_type="speculator_model"
    )
    yield "speculators with model_type eagle3", spec(base, "Eagle3Speculator", model_type="eagle3")
    yield "speculators named LlamaForCausalLMEagle3", spec(base, "LlamaForCausalLMEagle3")
    yield "speculators without ids", spec(
        base, "Eagle3DraftModel", eagle_aux_hidden_state_layer_ids=ABSENT
    )
    yield "speculators four ids", spec(
        base.put("fc.weight", HIDDEN, 4 * HIDDEN),
        "Eagle3DraftModel",
        eagle_aux_hidden_state_layer_ids=[2, 9, 16, 29],
    )
    yield "speculators four ids, fc of three", spec(
        base, "Eagle3DraftModel", eagle_aux_hidden_state_layer_ids=[2, 9, 16, 29]
    )
    yield "speculators midlayer", spec(llama().embed(), "Eagle3DraftModel")
    yield "speculators without embedding", spec(llama("layers.0."), "Eagle3DraftModel")
    yield "speculators without mapping", spec(base.drop("d2t", "t2d"), "Eagle3DraftModel")
    yield "speculators full vocabulary", spec(
        base.drop("d2t", "t2d").put("lm_head.weight", VOCAB, HIDDEN),
        "Eagle3DraftModel",
        draft_vocab_size=VOCAB,
    )
    yield "speculators verifier tensors", spec(
        base.put("verifier_lm_head.weight", 320, HIDDEN).put("verifier_norm.weight", HIDDEN),
        "Eagle3DraftModel",
    )
    yield "speculators unknown weight", spec(
        base.put("adapter.weight", HIDDEN, HIDDEN), "Eagle3DraftModel"
    )
    normed = base.put("input_norm.weight", AUX * HIDDEN)
    yield "speculators norm_before_fc", spec(normed, "Eagle3DraftModel", norm_before_fc=True)
    yield "speculators input_norm, flag false", spec(normed, "Eagle3DraftModel")
    yield "speculators norm_before_fc, no tensor", spec(
        base, "Eagle3DraftModel", norm_before_fc=True
    )
    chunks = base
    for i in range(AUX):
        chunks = chunks.put(f"fc_norm.{i}.weight", HIDDEN)
    yield "speculators fc_norm", spec(chunks, "Eagle3DraftModel", fc_norm=True, norm_output=True)
    yield "speculators fc_norm, flag false", spec(chunks, "Eagle3DraftModel")
    yield "speculators norm_output", spec(base, "Eagle3DraftModel", norm_output=True)
    yield "speculators norm_before_residual", spec(
        base, "Eagle3DraftModel", norm_before_residual=True
    )
    yield "speculators norm_before_residual absent", spec(
        base, "Eagle3DraftModel", norm_before_residual=ABSENT
    )
    yield "speculators target_hidden_size", spec(
        base, "Eagle3DraftModel", target_hidden_size=HIDDEN
    )
    yield "speculators wider target", spec(
        base.put("fc.weight", HIDDEN, AUX * 96), "Eagle3DraftModel", target_hidden_size=96
    )
    qk = base.put("layers.0.self_attn.q_norm.weight", HEAD_DIM).put(
        "layers.0.self_attn.k_norm.weight", HEAD_DIM
    )
    yield "speculators qwen3 layer", inner(qk, model_type="qwen3")
    yield "speculators qwen3 layer, no qk norms", inner(base, model_type="qwen3")
    yield "speculators llama layer, qk norms", inner(qk)
    yield "speculators sliding window", inner(
        base, layer_types=["sliding_attention"], sliding_window=512, use_sliding_window=True
    )
    qkv = base
    for letter, rows in (("q", HEADS), ("k", KV_HEADS), ("v", KV_HEADS)):
        qkv = qkv.put(f"layers.0.self_attn.{letter}_proj.bias", rows * HEAD_DIM)
    yield "speculators attention_bias", inner(qkv, attention_bias=True)
    yield "speculators two layers", inner(
        two_layers("layers.1.", "input_layernorm", "post_attention_layernorm").embed(),
        num_hidden_layers=2,
    )
    yield "speculators peagle", spec(
        base.put("mask_hidden", 1, 1, AUX * HIDDEN),
        "PEagleDraftModel",
        speculators_model_type="peagle",
        mask_token_id=7,
    )
    yield "speculators tied", inner(base, tie_word_embeddings=True)


def layers() -> Named:
    """More than one decoder layer, and counts that do not match the tensors."""
    both = ("input_layernorm", "hidden_norm", "post_attention_layernorm")
    plain = ("input_layernorm", "post_attention_layernorm")
    fused_residual = ("hidden_norm", "post_attention_layernorm")
    yield "two layers, input_layernorm", two_layers("layers.1.", *plain)
    yield "two layers, hidden_norm", two_layers("layers.1.", *fused_residual)
    yield "two layers, both norms", two_layers("layers.1.", *both)
    yield "two layers, second one reads 2*HIDDEN", replace(
        two_layers("layers.1.", *both),
        tensors={
            **two_layers("layers.1.", *both).tensors,
            **attention("layers.1.", inputs=2 * HIDDEN),
        },
    )
    split = two_layers("midlayer.1.", *plain).rename("layers.0.", "midlayer.0.")
    yield "two layers as midlayer.0 and midlayer.1", split
    yield "two layers as midlayer.0 and midlayer.1, hidden_norm", two_layers(
        "midlayer.1.", *fused_residual
    ).rename("layers.0.", "midlayer.0.")
    yield "two layers as midlayer and midlayer.1", two_layers("midlayer.1.", *both).rename(
        "layers.0.", "midlayer."
    )
    yield "two layers as midlayer and layers.1", two_layers("layers.1.", *both).rename(
        "layers.0.", "midlayer."
    )
    yield "two layers under model.", rooted(
        two_layers("layers.1.", *both), "model.", keep=("lm_head", "d2t", "t2d")
    )
    yield "two layers, count one", two_layers("layers.1.", *both).config(num_hidden_layers=1)
    yield "two layers, count three", two_layers("layers.1.", *both).config(num_hidden_layers=3)
    for count in (0, 2, 3):
        yield f"one layer, count {count}", llama("layers.0.").config(num_hidden_layers=count)
        yield f"one midlayer, count {count}", llama().config(num_hidden_layers=count)
    yield "one layer, count absent", llama().config(num_hidden_layers=ABSENT)
    yield "one layer, count null", llama().config(num_hidden_layers=None)
    yield "num_nextn_predict_layers 0", llama().config(num_nextn_predict_layers=0)
    yield "num_nextn_predict_layers 1", llama().config(num_nextn_predict_layers=1)


def latent() -> Named:
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
    yield "Llama draft named Eagle3DeepseekV2ForCausalLM", llama().config(
        architectures=["Eagle3DeepseekV2ForCausalLM"]
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
    direct = base.drop(
        split[0], f"{attn}q_a_layernorm.weight", f"{attn}q_b_proj.weight"
    ).put(f"{attn}q_proj.weight", whole, 2 * HIDDEN)
    yield "q_lora_rank null", direct.config(q_lora_rank=None)
    yield "q_lora_rank absent", direct.config(q_lora_rank=ABSENT)
    for name in (split[0], split[1], f"{attn}q_b_proj.weight", f"{attn}kv_b_proj.weight",
                 f"{attn}o_proj.weight"):
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
    yield "draft_vocab_size null, no head", base.drop("lm_head.weight", "d2t", "t2d").config(
        draft_vocab_size=None
    )
    yield "draft_vocab_size absent, no head", base.drop("lm_head.weight", "d2t", "t2d").config(
        draft_vocab_size=ABSENT
    )
    yield "full vocabulary, no head", base.drop("lm_head.weight", "d2t", "t2d").config(
        draft_vocab_size=VOCAB
    )
    yield "full vocabulary", base.drop("d2t", "t2d").put("lm_head.weight", VOCAB, HIDDEN).config(
        draft_vocab_size=VOCAB
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
    yield "nested four ids", base.put("fc.weight", HIDDEN, 4 * HIDDEN).eagle(
        eagle_aux_hidden_state_layer_ids=[1, 9, 29, 57]
    )
    yield "top-level four ids", base.put("fc.weight", HIDDEN, 4 * HIDDEN).config(
        eagle_aux_hidden_state_layer_ids=[1, 9, 29, 57]
    )
    yield "num_aux_hidden_states 4", base.put("fc.weight", HIDDEN, 4 * HIDDEN).config(
        num_aux_hidden_states=4
    )
    yield "nested no ids", base.eagle(eagle_aux_hidden_state_layer_ids=[])
    yield "two layers", base.config(num_hidden_layers=2)
    yield "wider target, embedding", base.embed().put("fc.weight", HIDDEN, AUX * 96).config(
        target_hidden_size=96
    )
    yield "wider target, no embedding", base.put("fc.weight", HIDDEN, AUX * 96).config(
        target_hidden_size=96
    )
    yield "target_hidden_size null", base.config(target_hidden_size=None)
    yield "rope_scaling absent", base.config(rope_scaling=ABSENT)
    yield "yarn", base.config(
        rope_scaling={
            "type": "yarn",
            "factor": 4.0,
            "original_max_position_embeddings": 1024,
            "mscale": 1.0,
            "mscale_all_dim": 1.0,
            "beta_fast": 32.0,
            "beta_slow": 1.0,
        }
    )
    yield "max_position_embeddings absent", base.config(max_position_embeddings=ABSENT)
    yield "bias flag, fc bias", base.put("fc.bias", HIDDEN).config(bias=True)
    yield "num_key_value_heads absent", base.config(num_key_value_heads=ABSENT)
    yield "target experts ride along", base.config(
        n_routed_experts=8, num_experts_per_tok=2, moe_intermediate_size=32, first_k_dense_replace=1
    )
