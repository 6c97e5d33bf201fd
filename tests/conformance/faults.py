"""Single edits of a good Llama draft: each is one row of a table, and pairs of rows make harder
drafts.

An edit takes a draft whose decoder layer is under ``midlayer.`` and returns the changed draft.
Whether an edit is harmless, silent or fatal is for the runtime to say: nothing here expects
anything.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tests.conformance.draft import (
    ABSENT,
    AUX,
    DRAFT_VOCAB,
    HEAD_DIM,
    HIDDEN,
    OFFSETS,
    VOCAB,
)
from tests.conformance.switches import BIAS, KV, SWITCHES, THREE_FC_NORMS, Edit, M, Q, fc_norms

VOCABULARY: Final[dict[str, Edit]] = {
    "draft_vocab_size absent": lambda d: d.config(draft_vocab_size=ABSENT),
    "draft_vocab_size null": lambda d: d.config(draft_vocab_size=None),
    "draft_vocab_size null, no head": lambda d: d.drop("lm_head.weight", "d2t", "t2d").config(
        draft_vocab_size=None
    ),
    "draft_vocab_size null, whole head": lambda d: (
        d.drop("d2t", "t2d").put("lm_head.weight", VOCAB, HIDDEN).config(draft_vocab_size=None)
    ),
    "draft_vocab_size absent, whole head": lambda d: (
        d.drop("d2t", "t2d").put("lm_head.weight", VOCAB, HIDDEN).config(draft_vocab_size=ABSENT)
    ),
    "draft_vocab_size too large": lambda d: d.config(draft_vocab_size=DRAFT_VOCAB + 64),
    "draft_vocab_size too small": lambda d: d.config(draft_vocab_size=DRAFT_VOCAB - 64),
    "draft_vocab_size is vocab_size, short head": lambda d: d.config(draft_vocab_size=VOCAB),
    "full vocabulary": lambda d: (
        d.drop("d2t", "t2d").put("lm_head.weight", VOCAB, HIDDEN).config(draft_vocab_size=VOCAB)
    ),
    "full vocabulary, zero d2t": lambda d: (
        d.mapping((0,) * VOCAB).put("lm_head.weight", VOCAB, HIDDEN).config(draft_vocab_size=VOCAB)
    ),
    "full vocabulary, no head": lambda d: d.drop("d2t", "t2d", "lm_head.weight").config(
        draft_vocab_size=VOCAB
    ),
    "full vocabulary, no head, d2t": lambda d: d.drop("lm_head.weight").config(
        draft_vocab_size=VOCAB
    ),
    "odd draft vocabulary": lambda d: (
        d.mapping(OFFSETS[:300]).put("lm_head.weight", 300, HIDDEN).config(draft_vocab_size=300)
    ),
    "d2t missing": lambda d: d.drop("d2t"),
    "t2d missing": lambda d: d.drop("t2d"),
    "d2t and t2d missing": lambda d: d.drop("d2t", "t2d"),
    "d2t float32": lambda d: d.mapping(OFFSETS, dtype="F32"),
    "d2t bfloat16": lambda d: d.mapping(OFFSETS, dtype="BF16"),
    "d2t int32": lambda d: d.mapping(OFFSETS, dtype="I32"),
    "d2t short": lambda d: d.mapping(OFFSETS[:60]),
    "d2t long": lambda d: d.mapping((*OFFSETS, *OFFSETS[-8:])),
    "d2t zeros": lambda d: d.mapping((0,) * DRAFT_VOCAB),
    "d2t absolute": lambda d: d.mapping(tuple(i + n for i, n in enumerate(OFFSETS))),
    "d2t arange": lambda d: d.mapping(tuple(range(DRAFT_VOCAB))),
    "d2t out of range": lambda d: d.mapping((*OFFSETS[:-1], 900)),
    "d2t a column": lambda d: d.put("d2t", DRAFT_VOCAB, 1, dtype="I64"),
    "t2d short": lambda d: d.put("t2d", VOCAB - 100, dtype="BOOL"),
    "t2d uint8": lambda d: d.put("t2d", VOCAB, dtype="U8"),
    "model.d2t": lambda d: d.rename("d2t", "model.d2t"),
    "draft_id_to_target_id": lambda d: d.rename("d2t", "draft_id_to_target_id"),
    "tied": lambda d: d.config(tie_word_embeddings=True),
    "tied, no head": lambda d: d.drop("lm_head.weight").config(tie_word_embeddings=True),
    "tied, no head, embedding": lambda d: (
        d.drop("lm_head.weight").embed().config(tie_word_embeddings=True)
    ),
    "tied, full vocabulary, embedding, head": lambda d: (
        d.drop("d2t", "t2d")
        .embed()
        .put("lm_head.weight", VOCAB, HIDDEN)
        .config(tie_word_embeddings=True, draft_vocab_size=VOCAB)
    ),
    "tied, draft_vocab_size absent": lambda d: d.drop("lm_head.weight").config(
        tie_word_embeddings=True, draft_vocab_size=ABSENT
    ),
    "tie_word_embeddings absent": lambda d: d.config(tie_word_embeddings=ABSENT),
    "embedding": lambda d: d.embed(),
    "embedding rows too few": lambda d: d.embed(VOCAB - 8),
    "embedding rows padded": lambda d: d.embed(1024),
    "embedding columns too many": lambda d: d.embed(VOCAB, HIDDEN + 16),
    "vocab_size too large": lambda d: d.config(vocab_size=VOCAB + 24),
    "vocab_size too large, embedding": lambda d: d.embed().config(vocab_size=VOCAB + 24),
    "vocab_size too small, embedding": lambda d: d.embed().config(vocab_size=VOCAB - 40),
    "vocab_size is draft_vocab_size": lambda d: d.config(vocab_size=DRAFT_VOCAB),
}

TARGET_WIDTH: Final[dict[str, Edit]] = {
    "target_hidden_size equal": lambda d: d.config(target_hidden_size=HIDDEN),
    "target_hidden_size null": lambda d: d.config(target_hidden_size=None),
    "target_hidden_size null, embedding": lambda d: d.embed().config(target_hidden_size=None),
    "wider target, embedding": lambda d: (
        d.embed().put("fc.weight", HIDDEN, AUX * 96).config(target_hidden_size=96)
    ),
    "wider target, no embedding": lambda d: d.put("fc.weight", HIDDEN, AUX * 96).config(
        target_hidden_size=96
    ),
    "wider target, fc of the draft's width": lambda d: d.embed().config(target_hidden_size=96),
    "wider target unnamed": lambda d: d.embed().put("fc.weight", HIDDEN, AUX * 96),
    "wider target, fc_norm": lambda d: (
        fc_norms(d.embed(), *THREE_FC_NORMS)
        .put("fc.weight", HIDDEN, AUX * 96)
        .put("fc_norm.0.weight", 96)
        .put("fc_norm.1.weight", 96)
        .put("fc_norm.2.weight", 96)
        .config(target_hidden_size=96, fc_norm=True)
    ),
    "wider target, full vocabulary, no head": lambda d: (
        d.embed()
        .drop("lm_head.weight", "d2t", "t2d")
        .put("fc.weight", HIDDEN, AUX * 96)
        .config(target_hidden_size=96, draft_vocab_size=None)
    ),
}

EXTRA: Final[dict[str, Edit]] = {
    "rotary_emb.inv_freq": lambda d: d.put(
        f"{M}self_attn.rotary_emb.inv_freq", HEAD_DIM // 2, dtype="F32"
    ),
    "rotary caches": lambda d: d.put(
        f"{M}self_attn.rotary_emb.cos_cached", 16, HEAD_DIM, dtype="F32"
    ).put(f"{M}self_attn.rotary_emb.sin_cached", 16, HEAD_DIM, dtype="F32"),
    "verifier_lm_head": lambda d: d.put("verifier_lm_head.weight", DRAFT_VOCAB, HIDDEN),
    "verifier_norm": lambda d: d.put("verifier_norm.weight", HIDDEN),
    "unknown weight": lambda d: d.put("adapter.weight", HIDDEN, HIDDEN),
    "unknown bias": lambda d: d.put("adapter.bias", HIDDEN),
    "unknown layer weight": lambda d: d.put(f"{M}self_attn.g_proj.weight", Q, 2 * HIDDEN),
    "unknown layer norm": lambda d: d.put(f"{M}extra_norm.weight", HIDDEN),
    "embed_norm": lambda d: d.put("embed_norm.weight", HIDDEN),
    "lm_head bias": lambda d: d.put("lm_head.bias", DRAFT_VOCAB),
    "model.lm_head beside lm_head": lambda d: d.put("model.lm_head.weight", DRAFT_VOCAB, HIDDEN),
    "projector name": lambda d: d.put("mm_projector.weight", HIDDEN, HIDDEN),
    "layer beyond num_hidden_layers": lambda d: d.put("layers.1.hidden_norm.weight", HIDDEN),
    "same layer norm under both names": lambda d: d.put("layers.0.hidden_norm.weight", HIDDEN),
    "fc under both names": lambda d: d.put("model.fc.weight", HIDDEN, AUX * HIDDEN),
    "trap: foo.d2t_bias": lambda d: d.put("foo.d2t_bias", 4, dtype="I64"),
    "trap: a.d2t before d2t": lambda d: d.put("a.d2t", 4, dtype="I64"),
    "trap: t2dx": lambda d: d.put("t2dx.weight", HIDDEN, HIDDEN),
    "trap: xmidlayery": lambda d: d.put("xmidlayery.weight", HIDDEN),
    "trap: aux_norm_lower": lambda d: d.put("aux_norm_lower.weight", HIDDEN),
    "trap: my_lm_head": lambda d: d.put("my_lm_head.weight", DRAFT_VOCAB, HIDDEN),
    "kv scales": lambda d: d.put(f"{M}self_attn.k_scale", 1, dtype="F32").put(
        f"{M}self_attn.v_scale", 1, dtype="F32"
    ),
    "weight scales": lambda d: d.put(f"{M}self_attn.q_proj.weight_scale", 1, dtype="F32").put(
        f"{M}mlp.down_proj.weight_scale", 1, dtype="F32"
    ),
}

MATRICES: Final = (
    "fc",
    "lm_head",
    *(f"{M}self_attn.{letter}_proj" for letter in "qkvo"),
    *(f"{M}mlp.{name}_proj" for name in ("gate", "up", "down")),
)
VECTORS: Final = (
    "norm",
    *(f"{M}{name}" for name in ("input_layernorm", "hidden_norm", "post_attention_layernorm")),
)


def _grown(tensor: str, axis: int, by: int) -> Edit:
    return lambda d: d.grow(f"{tensor}.weight", axis, by)


def _missing(tensor: str) -> Edit:
    return lambda d: d.drop(f"{tensor}.weight")


def _flat(tensor: str) -> Edit:
    return lambda d: d.put(f"{tensor}.weight", d.tensors[f"{tensor}.weight"][1][0])


def missing() -> Iterator[tuple[str, Edit]]:
    """Each tensor of the draft left out, one at a time."""
    for tensor in (*MATRICES, *VECTORS):
        yield f"no {tensor.removeprefix(M)}", _missing(tensor)


def shapes() -> Iterator[tuple[str, Edit]]:
    """Each axis of each tensor a little too long and a little too short, one at a time."""
    for tensor in MATRICES:
        short = tensor.removeprefix(M)
        for axis, word in enumerate(("rows", "columns")):
            yield f"{short} {word} +4", _grown(tensor, axis, 4)
            yield f"{short} {word} -4", _grown(tensor, axis, -4)
    for tensor in VECTORS:
        short = tensor.removeprefix(M)
        yield f"{short} +4", _grown(tensor, 0, 4)
        yield f"{short} -4", _grown(tensor, 0, -4)
    yield "hidden_norm one element", lambda d: d.put(f"{M}hidden_norm.weight", 1)
    yield "q_proj one column", lambda d: d.put(f"{M}self_attn.q_proj.weight", Q, 1)
    yield "fc one row", lambda d: d.put("fc.weight", 1, AUX * HIDDEN)
    yield "lm_head one column", lambda d: d.put("lm_head.weight", DRAFT_VOCAB, 1)
    yield "o_proj flat", _flat(f"{M}self_attn.o_proj")
    yield "q_proj flat", _flat(f"{M}self_attn.q_proj")
    yield "norm a matrix", lambda d: d.put("norm.weight", 1, HIDDEN)
    yield (
        "qkv read HIDDEN",
        lambda d: (
            d.put(f"{M}self_attn.q_proj.weight", Q, HIDDEN)
            .put(f"{M}self_attn.k_proj.weight", KV, HIDDEN)
            .put(f"{M}self_attn.v_proj.weight", KV, HIDDEN)
        ),
    )
    yield (
        "kv heads repeated",
        lambda d: d.put(f"{M}self_attn.k_proj.weight", Q, 2 * HIDDEN).put(
            f"{M}self_attn.v_proj.weight", Q, 2 * HIDDEN
        ),
    )


PAIRED: Final[dict[str, Edit]] = {
    "no hidden_norm": _missing(f"{M}hidden_norm"),
    "no fc": _missing("fc"),
    "no q_proj": _missing(f"{M}self_attn.q_proj"),
    "no lm_head": _missing("lm_head"),
    "d2t missing": VOCABULARY["d2t missing"],
    "draft_vocab_size null": VOCABULARY["draft_vocab_size null"],
    "draft_vocab_size absent": VOCABULARY["draft_vocab_size absent"],
    "tied": VOCABULARY["tied"],
    "bias flag": BIAS["bias flag"],
    "qkvo bias": BIAS["qkvo bias"],
    "fc_norm flag and tensors": SWITCHES["fc_norm flag and tensors"],
    "norm_before_fc nested": SWITCHES["norm_before_fc nested"],
    "wider target, no embedding": TARGET_WIDTH["wider target, no embedding"],
    "k_proj rows +4": _grown(f"{M}self_attn.k_proj", 0, 4),
    "gate_proj rows -4": _grown(f"{M}mlp.gate_proj", 0, -4),
    "unknown weight": EXTRA["unknown weight"],
    "layers.0 names": lambda d: d.rename(M, "layers.0."),
}
"""Representative edits that are combined with one another, in table order (a rename of the layer
last)."""
