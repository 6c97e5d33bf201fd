"""Drafts that only TensorRT-LLM is asked about, beside the corpus."""

from __future__ import annotations

from collections.abc import Iterator

from tests.conformance.corpus import Case
from tests.conformance.draft import (
    ABSENT,
    DRAFT_VOCAB,
    HEADS,
    HIDDEN,
    INTERMEDIATE,
    VOCAB,
    Draft,
    attention,
    llama,
    mla,
)

ATTENTION = "midlayer.self_attn."


def drafts() -> Iterator[tuple[str, Draft]]:
    """Each with its name."""
    yield from _rotary()
    yield from _joined()
    yield from _names()
    for named in ([""], 5, {"a": 1}):
        yield f"architectures {named}", llama().config(architectures=named)
    yield (
        "llama4_text, an MLP of its own size",
        llama().config(
            model_type="llama4_text",
            intermediate_size=INTERMEDIATE // 2,
            intermediate_size_mlp=INTERMEDIATE,
        ),
    )
    yield "tied, embedding of its own", llama().embed().config(tie_word_embeddings=True)
    wide = llama().embed().config(target_hidden_size=96).put("fc.weight", HIDDEN, 3 * 96)
    yield "a wider target, tied", wide.config(tie_word_embeddings=True)


def _rotary() -> Iterator[tuple[str, Draft]]:
    for key in ("type", "rope_type"):
        unknown = {key: "su", "factor": 2.0}
        yield f"rope_parameters, {key} su", llama().config(rope_parameters=unknown)
        yield f"rope_scaling, {key} su", llama().config(rope_scaling=unknown)
        loud = {key: "YARN", "factor": 2.0}
        yield f"rope_scaling, {key} YARN", llama().config(rope_scaling=loud)
    hidden = {"rope_type": "su", "factor": 2.0}
    shown = {"rope_type": "linear", "factor": 2.0}
    yield (
        "rope_scaling hides rope_parameters",
        llama().config(rope_scaling=shown, rope_parameters=hidden),
    )
    yield "rope_scaling a string", llama().config(rope_scaling="yarn")


def _joined() -> Iterator[tuple[str, Draft]]:
    """Parts of a joined matrix in other shapes."""
    parts = attention("midlayer.", inputs=2 * HIDDEN)
    deep = llama()
    for letter in "qkv":
        name = f"{ATTENTION}{letter}_proj.weight"
        deep = deep.put(name, parts[name][1][0], 2 * HIDDEN, 1)
    yield "q, k and v of three dimensions", deep
    latent = mla("midlayer.").drop("d2t", "t2d").put("lm_head.weight", VOCAB, HIDDEN)
    latent = latent.config(draft_vocab_size=VOCAB)
    yield "latent, a vocabulary like the target's", latent
    for name in sorted(latent.tensors):
        yield f"latent, no {name.removeprefix('midlayer.')}", latent.drop(name)


def _names() -> Iterator[tuple[str, Draft]]:
    """Names that begin as a module's does."""
    yield "fc2 without fc", llama().drop("fc.weight").put("fc2.weight", HIDDEN, HIDDEN)
    yield "norm_x without norm", llama().drop("norm.weight").put("norm_x.weight", HIDDEN)
    yield "fc2 beside fc", llama().put("fc2.weight", HIDDEN, HIDDEN)
    head = llama().drop("lm_head.weight")
    yield "lm_head2 without a head", head.put("lm_head2.weight", DRAFT_VOCAB, HIDDEN)
    yield (
        "o_proj_x without o_proj",
        llama().drop(f"{ATTENTION}o_proj.weight").put(f"{ATTENTION}o_proj_x.weight", HIDDEN, HEADS),
    )
    yield "bias promised, no o_proj", (
        llama()
        .config(attention_bias=True)
        .drop(f"{ATTENTION}o_proj.weight")
        .put(f"{ATTENTION}q_proj.bias", 64)
        .put(f"{ATTENTION}k_proj.bias", 16)
        .put(f"{ATTENTION}v_proj.bias", 16)
    )
    yield "head_dim absent", llama().config(head_dim=ABSENT)


def cases() -> list[Case]:
    """The same as cases of the corpus."""
    return [
        Case(
            f"own/{name}",
            dict(draft.fields),
            dict(draft.tensors),
            draft.d2t,
            frozenset({"own"}),
        )
        for name, draft in drafts()
    ]
