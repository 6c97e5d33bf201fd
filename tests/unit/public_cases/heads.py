"""The embedding and the head."""

from __future__ import annotations

from typing import Any

from tests.drafts import HEAD_DIM, HEADS, HIDDEN, INTERMEDIATE, KV_HEADS, VOCAB
from tests.unit.public_cases.case import (
    FULL,
    KIMI,
    Case,
    broken,
    degraded,
    refused,
    serves,
    warned,
)

#: Named so that every release of vLLM finds the class.
PLAIN = {"architectures": ["LlamaForCausalLM"]}
NARROW = 48
_ROWS, _KEY_ROWS = HEADS * HEAD_DIM, KV_HEADS * HEAD_DIM
#: A draft 48 wide for a target model 64 wide: 192 columns in the fc as before.
NARROW_DRAFT: dict[str, Any] = {
    "config": {**PLAIN, "hidden_size": NARROW, "target_hidden_size": 64},
    "shape": {
        "fc.weight": [NARROW, 3 * 64],
        "norm.weight": [NARROW],
        "lm_head.weight": [320, NARROW],
        "embed_tokens.weight": [VOCAB, NARROW],
        "midlayer.input_layernorm.weight": [NARROW],
        "midlayer.hidden_norm.weight": [NARROW],
        "midlayer.post_attention_layernorm.weight": [NARROW],
        "midlayer.self_attn.q_proj.weight": [_ROWS, 2 * NARROW],
        "midlayer.self_attn.k_proj.weight": [_KEY_ROWS, 2 * NARROW],
        "midlayer.self_attn.v_proj.weight": [_KEY_ROWS, 2 * NARROW],
        "midlayer.self_attn.o_proj.weight": [NARROW, _ROWS],
        "midlayer.mlp.gate_proj.weight": [INTERMEDIATE, NARROW],
        "midlayer.mlp.up_proj.weight": [INTERMEDIATE, NARROW],
        "midlayer.mlp.down_proj.weight": [NARROW, INTERMEDIATE],
    },
}
_NARROW_ALONE = {
    **NARROW_DRAFT,
    "remove": ["embed_tokens.weight"],
    "shape": {k: v for k, v in NARROW_DRAFT["shape"].items() if k != "embed_tokens.weight"},
}

HEADS_AND_EMBEDDINGS = (
    Case(
        (16, 18),
        "an embedding of its own",
        {"config": PLAIN},
        (
            serves("vllm==0.8.5"),
            refused("vllm==0.9.0", "E3L205", error="KeyError"),
            refused("vllm==0.9.0.1", "E3L205", error="KeyError"),
            serves("vllm==0.9.1"),
        ),
    ),
    Case(
        (18,),
        "no embedding, the whole vocabulary, d2t of zeros",
        {
            "config": {**PLAIN, "draft_vocab_size": VOCAB},
            "remove": ["embed_tokens.weight", "t2d"],
            "shape": {"lm_head.weight": [VOCAB, HIDDEN], "d2t": [VOCAB]},
            "d2t": "zeros",
        },
        (serves("vllm==0.8.5"), serves("vllm==0.9.0"), serves("vllm==0.9.1")),
    ),
    Case(
        (17,),
        "narrower than the target model, with an embedding",
        NARROW_DRAFT,
        (
            refused("vllm==0.9.0.1", "E3L205", error="KeyError"),
            serves("vllm==0.9.1"),
            serves("vllm==0.11.0"),
            serves("vllm==0.11.1"),
        ),
        note="0.9.1 already takes the target model's embedding only when its shape is the same "
        "(v1/spec_decode/eagle.py:332), long before the fix that the report names",
    ),
    Case(
        (17,),
        "narrower than the target model, without an embedding",
        _NARROW_ALONE,
        (
            broken("vllm==0.11.0", "E3L202"),
            # The target model's embedding is put in its place whatever its width
            # (0.11.1 v1/spec_decode/eagle.py:1012), and the first batch stops at an assertion.
            refused("vllm==0.11.1"),
            refused("vllm==0.24.0"),
            broken("vllm==0.25.0", "E3L202"),
        ),
    ),
    Case(
        (17,),
        "the same in SGLang, with an embedding",
        {**NARROW_DRAFT, "config": {"hidden_size": NARROW, "target_hidden_size": 64}},
        (serves("sglang==0.5.9"), serves("sglang==0.5.23")),
    ),
    Case(
        (17,),
        "the same in SGLang, without an embedding",
        {**_NARROW_ALONE, "config": {"hidden_size": NARROW, "target_hidden_size": 64}},
        (broken("sglang==0.5.9", "E3L202"), broken("sglang==0.5.23", "E3L202")),
    ),
    Case(
        (19,),
        "an embedding that was trained on",
        {"config": PLAIN, "weights": "embedding-tuned"},
        (degraded("vllm==0.11.0", "E3L409"), serves("vllm==0.11.1")),
    ),
    Case(
        (19,),
        "a head of its own for the whole vocabulary",
        {**FULL, "config": {**PLAIN, **FULL["config"]}},
        (serves("vllm==0.10.2"), warned("vllm==0.11.0"), serves("vllm==0.11.1")),
        note="0.11.0 alone replaces it (v1/spec_decode/eagle.py:891)",
    ),
    Case(
        (21,),
        "no head in an MLA draft of the whole vocabulary",
        {
            **FULL,
            "base": "mla",
            "remove": [*FULL["remove"], "lm_head.weight"],
            "shape": {},
        },
        (
            broken("sglang==0.5.12", "E3L202", mended=True),
            broken("sglang==0.5.23", "E3L202", mended=True),
            serves("vllm==0.18.0"),
            serves("vllm==0.33.0"),
        ),
        model=KIMI,
        note="draft_vocab_size: null mends it in SGLang (0.5.23 models/kimi_k25_eagle3.py:355)",
    ),
    Case(
        (21,),
        "no head in a Llama draft of the whole vocabulary",
        {**FULL, "remove": [*FULL["remove"], "lm_head.weight"], "shape": {}},
        (
            broken("sglang==0.5.9", "E3L202", mended=True),
            broken("vllm==0.10.2", "E3L202"),
            serves("vllm==0.11.1"),
            serves("vllm==0.33.0"),
        ),
    ),
    Case(
        (21,),
        "no head and a reduced vocabulary",
        {"remove": ["lm_head.weight"]},
        (broken("sglang==0.5.9", "E3L202"), broken("vllm==0.33.0", "E3L402")),
        note="not loud anywhere: vLLM reads the first rows of the target model's head",
    ),
    Case(
        (22,),
        "draft_vocab_size: null, no head, no tables",
        {
            "config": {"draft_vocab_size": None},
            "remove": ["lm_head.weight", "d2t", "t2d"],
        },
        (
            refused("sglang==0.5.1.post3", "E3L107"),
            serves("sglang==0.5.2"),
            serves("vllm==0.33.0"),
        ),
    ),
    Case(
        (25, 26, 29),
        "tie_word_embeddings with a head of 320 rows",
        {"config": {"tie_word_embeddings": True}},
        (
            # Draft row i is then the embedding of token i, and still read as token i + d2t[i].
            broken("sglang==0.5.9", "E3L201", mended=True),
            broken("sglang==0.5.23", "E3L201", mended=True),
            serves("vllm==0.33.0"),
        ),
    ),
)
