"""Model types, classes other than the Llama one, and speculators' format."""

from __future__ import annotations

from tests.drafts import HIDDEN
from tests.unit.public_cases.case import (
    DEEPSEEK,
    LAYERS_NAMES,
    Case,
    bf16,
    degraded,
    refused,
    serves,
)
from tests.unit.public_cases.switches import QK_NORMS, QWEN3_LAYER

FORMATS = (
    Case(
        (98,),
        "model_type kimi_k2 in a Llama draft",
        {"config": {"model_type": "kimi_k2"}},
        (refused("sglang==0.5.11", "E3L105", mended=True),),
        model=DEEPSEEK,
    ),
    Case(
        (98,),
        "model_type kimi_k2 in an MLA draft",
        {"base": "mla", "config": {"model_type": "kimi_k2"}},
        (refused("sglang==0.5.11"), serves("sglang==0.5.12"), serves("vllm==0.18.0")),
        model=DEEPSEEK,
    ),
    Case(
        (100,),
        "a Qwen3 draft of speculators",
        {
            "base": "speculators",
            "config": {"transformer_layer_config": QWEN3_LAYER},
            "add": QK_NORMS,
        },
        (refused("vllm==0.23.0", "E3L205", error="KeyError"), serves("vllm==0.24.0")),
    ),
    Case(
        (103,),
        "one tensor too many in a draft of speculators",
        {"base": "speculators", "add": {"layers.0.gate.weight": ["BF16", HIDDEN, HIDDEN]}},
        (refused("vllm==0.28.0", "E3L205", error="ValueError"),),
    ),
    Case(
        (107,),
        "no use_cache",
        {},
        (serves("sglang==0.5.23"), serves("vllm==0.33.0")),
        note="only the exporter's own validation asks for it",
    ),
    Case(
        (6,),
        "`midlayer.` names under speculators' configuration",
        {"base": "speculators", "rename": {v: k for k, v in LAYERS_NAMES.items()}},
        (serves("vllm==0.10.1"), serves("vllm==0.33.0")),
        note="what the converter loses happens in the converter; vLLM reads either name",
    ),
    Case(
        (100,),
        "norms of queries and keys in a Llama draft",
        {
            "add": bf16(
                {f"midlayer.self_attn.{norm}_norm": (8,) for norm in ("q", "k")},
            ),
        },
        (degraded("sglang==0.5.9", "E3L201"), degraded("sglang==0.5.23", "E3L201")),
    ),
)
