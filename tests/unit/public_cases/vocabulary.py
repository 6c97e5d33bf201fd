"""d2t, t2d and the two vocabularies.

A good d2t holds offsets: row i of the head stands for token i + d2t[i] of the target model.
"""

from __future__ import annotations

from tests.drafts import DRAFT_VOCAB, HIDDEN, VOCAB, offsets, spread
from tests.unit.public_cases.case import (
    FULL,
    LLAMA,
    Case,
    broken,
    fails,
    refused,
    serves,
    warned,
)

PLAIN = {"architectures": ["LlamaForCausalLM"]}
ROWS = range(DRAFT_VOCAB)
FIRST = [token < DRAFT_VOCAB for token in range(VOCAB)]
#: All 320 tokens of a small vocabulary, with both tables all the same.
SMALL = {
    "config": {"vocab_size": DRAFT_VOCAB},
    "shape": {"embed_tokens.weight": [DRAFT_VOCAB, HIDDEN], "t2d": [DRAFT_VOCAB]},
    "values": {"d2t": [0] * DRAFT_VOCAB, "t2d": [True] * DRAFT_VOCAB},
}
WHOLE = {"draft_vocab_size": VOCAB}
WHOLE_HEAD = {"lm_head.weight": [VOCAB, HIDDEN]}

VOCABULARY = (
    Case(
        (30,),
        "no d2t and no t2d",
        {"remove": ["d2t", "t2d"]},
        (
            refused("sglang==0.4.8.post1", "E3L211", error="AttributeError"),
            broken("sglang==0.4.9", "E3L401"),
            broken("sglang==0.5.23", "E3L401"),
            broken("vllm==0.33.0", "E3L401"),
        ),
        note="SGLang reads d2t alone; it never looks at t2d (0.5.23 models/llama_eagle3.py:355)",
    ),
    Case(
        (31,),
        "d2t of zeros and the first tokens in t2d",
        {"values": {"d2t": [0] * DRAFT_VOCAB, "t2d": FIRST}},
        (serves("sglang==0.5.9", "E3L410"), serves("vllm==0.33.0", "E3L410")),
    ),
    Case(
        (32,),
        "the row's own number in d2t: row i becomes token 2i",
        {"values": {"d2t": list(ROWS)}},
        (broken("sglang==0.5.9", "E3L405"), broken("vllm==0.33.0", "E3L405")),
    ),
    Case(
        (32,),
        "the same for the whole vocabulary: half the rows lead outside",
        {
            "config": WHOLE,
            "shape": {**WHOLE_HEAD, "d2t": [VOCAB]},
            "values": {"d2t": list(range(VOCAB)), "t2d": [True] * VOCAB},
        },
        (fails("sglang==0.5.9", "E3L403"), fails("vllm==0.29.0", "E3L403")),
    ),
    Case(
        (32,),
        "the tokens of t2d themselves in d2t",
        {"values": {"d2t": spread()}},
        (
            fails("sglang==0.5.9", "E3L403", mended=True),
            fails("vllm==0.33.0", "E3L403", mended=True),
        ),
    ),
    Case(
        (33,),
        "the last row leads to token 319 + 900",
        {"values": {"d2t": [*offsets()[:-1], 900]}},
        (fails("sglang==0.5.9", "E3L404"), fails("vllm==0.33.0", "E3L404")),
    ),
    Case(
        (33,),
        "the first row leads to token -1",
        {"values": {"d2t": [-1, *offsets()[1:]]}},
        (fails("sglang==0.5.9", "E3L404"), fails("vllm==0.33.0", "E3L404")),
    ),
    Case(
        (33,),
        "d2t in int32",
        {"add": {"d2t": ["I32", DRAFT_VOCAB]}, "values": {"d2t": offsets()}},
        (serves("sglang==0.5.9"), serves("vllm==0.33.0")),
        note="SGLang adds an int64 range, vLLM copies into an int64 parameter: exact in both",
    ),
    Case(
        (33,),
        "d2t of two dimensions",
        {"add": {"d2t": ["I64", DRAFT_VOCAB, 1]}, "values": {"d2t": offsets()}},
        (refused("vllm==0.33.0", "E3L204", error="AssertionError"),),
    ),
    Case(
        (34,),
        "d2t of zeros for the whole vocabulary",
        SMALL,
        (
            serves("sglang==0.5.9"),
            serves("sglang==0.5.23"),
            serves("vllm==0.10.2"),
            serves("vllm==0.29.0"),
            refused("vllm==0.30.0", "E3L205", error="ValueError"),
        ),
        model={**LLAMA, "vocab_size": DRAFT_VOCAB},
        note="harmless until vLLM 0.29.0; from 0.30.0 on it has no parameter for d2t when the "
        "vocabularies are equal, and raises (model_executor/models/llama_eagle3.py:345)",
    ),
    Case(
        (36,),
        "d2t of 60 rows beside a head of 320",
        {
            "shape": {"d2t": [60]},
            "values": {
                "d2t": offsets(60),
                "t2d": [token in spread(60) for token in range(VOCAB)],
            },
        },
        (
            refused("vllm==0.11.1", "E3L204", error="AssertionError"),
            refused("vllm==0.33.0", "E3L204", error="AssertionError"),
            # hot_token_id has 60 entries and is asked for a row of 320 (0.5.9 eagle_worker.py:626).
            fails("sglang==0.5.9"),
        ),
    ),
    Case(
        (37,),
        "t2d of 900 tokens",
        {"shape": {"t2d": [900]}},
        (serves("sglang==0.5.9", "E3L412"), serves("vllm==0.33.0", "E3L412")),
        note="no runtime reads t2d, so that it serves; d2t comes from the same cache",
    ),
    Case(
        (37,),
        "t2d of another run",
        {"values": {"t2d": FIRST}},
        (warned("sglang==0.5.9", "E3L405"), warned("vllm==0.33.0", "E3L405")),
    ),
    Case(
        (38,),
        "d2t of 320 rows and a head for the whole vocabulary",
        {"config": WHOLE, "shape": WHOLE_HEAD},
        (
            refused("vllm==0.29.0", "E3L204", error="AssertionError"),
            refused("vllm==0.30.0", "E3L205", error="ValueError"),
            fails("sglang==0.5.9"),
        ),
    ),
    Case(
        (38,),
        "the same without draft_vocab_size",
        {"unset": ["draft_vocab_size"], "shape": WHOLE_HEAD},
        (
            refused("sglang==0.5.9", "E3L106", error="AttributeError"),
            refused("vllm==0.29.0", "E3L204", error="AssertionError"),
            refused("vllm==0.30.0", "E3L205", error="ValueError"),
        ),
    ),
    Case(
        (39,),
        "a reduced vocabulary without an embedding",
        {"config": PLAIN, "remove": ["embed_tokens.weight"]},
        (
            serves("vllm==0.8.5"),
            broken("vllm==0.9.0", "E3L401"),
            broken("vllm==0.9.0.1", "E3L401"),
            serves("vllm==0.9.1"),
        ),
    ),
    Case(
        (40, 43),
        "the whole vocabulary without tables",
        {**FULL, "config": {**PLAIN, **FULL["config"]}},
        (serves("vllm==0.9.1"), serves("vllm==0.29.0"), serves("vllm==0.30.0")),
        note="both tables are optional in vLLM, and the detour of #53458 costs time only",
    ),
    Case(
        (43,),
        "the whole vocabulary without tables, in SGLang",
        FULL,
        (
            refused("sglang==0.4.8.post1", "E3L211", error="AttributeError"),
            serves("sglang==0.4.9"),
            serves("sglang==0.5.23"),
        ),
        note="SGLang needs d2t until 0.4.8.post1, as the loader of the report does",
    ),
    Case(
        (42,),
        "a target model of 1280 tokens",
        {},
        (broken("sglang==0.5.9", "E3L605"), broken("vllm==0.33.0", "E3L605")),
        model={**LLAMA, "vocab_size": 1280},
    ),
    Case(
        (91,),
        "d2t cast to bfloat16 with the weights",
        {"add": {"d2t": ["BF16", DRAFT_VOCAB]}, "values": {"d2t": offsets()}},
        (fails("sglang==0.5.9", "E3L408"), fails("vllm==0.33.0", "E3L408")),
        note="offsets above 256 are rounded to even numbers, those above 512 to multiples of four",
    ),
    Case(
        (91,),
        "d2t in float32",
        {"add": {"d2t": ["F32", DRAFT_VOCAB]}, "values": {"d2t": offsets()}},
        (fails("sglang==0.5.9", "E3L408"), serves("vllm==0.33.0", "E3L408")),
        note="exact in vLLM, which copies it into int64; SGLang keeps floating-point token ids",
    ),
)
