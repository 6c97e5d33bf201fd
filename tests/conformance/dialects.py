"""Whole drafts as their producers spell them: names, classes, model types, layers and MLA."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

from tests.conformance.draft import (
    ABSENT,
    HEAD_DIM,
    HEADS,
    HIDDEN,
    INTERMEDIATE,
    KV_HEADS,
    VOCAB,
    Draft,
    attention,
    llama,
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
        name if name.startswith(keep) else root + name: spec for name, spec in draft.tensors.items()
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
    yield (
        "NeMo: model. on all but the head",
        rooted(llama("layers.0."), "model.", keep=kept).embed(),
    )
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
    yield (
        "fused qkv too tall",
        fused(llama(), "midlayer.").grow("midlayer.self_attn.qkv_proj.weight", 0, 4),
    )
    yield (
        "fused qkv too short",
        fused(llama(), "midlayer.").grow("midlayer.self_attn.qkv_proj.weight", 0, -4),
    )
    yield (
        "fused gate_up too tall",
        fused(llama(), "midlayer.").grow("midlayer.mlp.gate_up_proj.weight", 0, 4),
    )
    yield (
        "fused gate_up too short",
        fused(llama(), "midlayer.").grow("midlayer.mlp.gate_up_proj.weight", 0, -4),
    )
    for root in ("module.", "_orig_mod.", "draft_model.", "eagle_module.", "language_model."):
        yield f"{root} left over", rooted(llama(), root, keep=())
    yield "module. left over, layers.0", rooted(llama("layers.0."), "module.", keep=())
    yield "upper case", rooted(llama("Midlayer."), "")
    yield "empty", replace(llama(), tensors={}, d2t=None)
    yield (
        "only the head",
        llama().drop(*(name for name in llama().tensors if name != "lm_head.weight")),
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
    yield (
        "architecture two, second good",
        llama().config(architectures=["NoSuchModel", "LlamaForCausalLMEagle3"]),
    )
    yield (
        "architecture two, first good",
        llama().config(architectures=["LlamaForCausalLMEagle3", "LlamaForCausalLM"]),
    )
    yield (
        "LlamaForCausalLM with layers.0",
        llama("layers.0.").config(architectures=["LlamaForCausalLM"]),
    )
    yield (
        "LlamaForCausalLM with model.layers.0",
        rooted(llama("layers.0."), "model.", keep=("lm_head", "d2t", "t2d")).config(
            architectures=["LlamaForCausalLM"]
        ),
    )
    yield (
        "Qwen3ForCausalLM of type qwen3",
        llama().config(architectures=["Qwen3ForCausalLM"], model_type="qwen3"),
    )
    yield (
        "Eagle3Qwen3ForCausalLM of type qwen3",
        llama().config(architectures=["Eagle3Qwen3ForCausalLM"], model_type="qwen3"),
    )
    yield (
        "GptOssForCausalLMEagle3 of type gpt_oss",
        llama().config(architectures=["GptOssForCausalLMEagle3"], model_type="gpt_oss"),
    )
    for kind in MODEL_TYPES:
        yield f"model_type {word(kind)}", llama().config(model_type=kind)
    yield "model_type qwen3, head_dim absent", llama().config(model_type="qwen3", head_dim=ABSENT)
    yield (
        "llama4_text, intermediate_size_mlp",
        llama().config(
            model_type="llama4_text", intermediate_size=96, intermediate_size_mlp=INTERMEDIATE
        ),
    )
    yield (
        "llama4_text, intermediate_size_mlp default",
        llama().config(model_type="llama4_text", intermediate_size_mlp=ABSENT),
    )
    yield "llama, intermediate_size_mlp", llama().config(intermediate_size_mlp=96)
    yield "an ordinary Llama, not a draft", ordinary_llama()
    yield "auto_map", llama().config(auto_map={"AutoConfig": "configuration_draft.DraftConfig"})


def ordinary_llama() -> Draft:
    """A one-layer target model given as a draft: no fc, no d2t, its layers as Hugging Face names
    them."""
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


def layers() -> Named:
    """More than one decoder layer, and counts that do not match the tensors."""
    both = ("input_layernorm", "hidden_norm", "post_attention_layernorm")
    plain = ("input_layernorm", "post_attention_layernorm")
    fused_residual = ("hidden_norm", "post_attention_layernorm")
    yield "two layers, input_layernorm", two_layers("layers.1.", *plain)
    yield "two layers, hidden_norm", two_layers("layers.1.", *fused_residual)
    yield "two layers, both norms", two_layers("layers.1.", *both)
    yield (
        "two layers, second one reads 2*HIDDEN",
        replace(
            two_layers("layers.1.", *both),
            tensors={
                **two_layers("layers.1.", *both).tensors,
                **attention("layers.1.", inputs=2 * HIDDEN),
            },
        ),
    )
    split = two_layers("midlayer.1.", *plain).rename("layers.0.", "midlayer.0.")
    yield "two layers as midlayer.0 and midlayer.1", split
    yield (
        "two layers as midlayer.0 and midlayer.1, hidden_norm",
        two_layers("midlayer.1.", *fused_residual).rename("layers.0.", "midlayer.0."),
    )
    yield (
        "two layers as midlayer and midlayer.1",
        two_layers("midlayer.1.", *both).rename("layers.0.", "midlayer."),
    )
    yield (
        "two layers as midlayer and layers.1",
        two_layers("layers.1.", *both).rename("layers.0.", "midlayer."),
    )
    yield (
        "two layers under model.",
        rooted(two_layers("layers.1.", *both), "model.", keep=("lm_head", "d2t", "t2d")),
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
