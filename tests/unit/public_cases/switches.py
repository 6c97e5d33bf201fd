"""Positions, rope, windows and norms: switches of the forward pass."""

from __future__ import annotations

from tests.drafts import HEAD_DIM, HIDDEN, speculators_config
from tests.unit.public_cases.case import (
    DEEPSEEK,
    GPT_OSS,
    LLAMA,
    Case,
    bf16,
    degraded,
    refused,
    serves,
    warned,
)

PLAIN = {"architectures": ["LlamaForCausalLM"]}
#: gpt-oss: 32 times 4096 positions are 131072.
YARN = {"rope_type": "yarn", "factor": 32.0, "original_max_position_embeddings": 4096}
LONG = 131072
#: What every MLA draft has: vLLM refuses one without a factor until 0.27.1.
MLA_YARN = {**YARN, "beta_fast": 32.0, "beta_slow": 1.0, "mscale": 1.0, "mscale_all_dim": 1.0}
FC_NORMS = bf16({f"fc_norm.{index}": (HIDDEN,) for index in range(3)})
NORMED = {"fc_norm": True, "norm_output": True}
SLIDING = {"layer_types": ["sliding_attention"], "sliding_window": 512}
QWEN3_LAYER = {**speculators_config()["transformer_layer_config"], "model_type": "qwen3"}
QK_NORMS = bf16({f"layers.0.self_attn.{norm}_norm": (HEAD_DIM,) for norm in ("q", "k")})

SWITCHES = (
    Case(
        (67, 68, 69),
        "2048 positions before a target model of 8192",
        {"config": {**PLAIN, "max_position_embeddings": 2048}},
        (
            warned("vllm==0.10.2", "E3L501"),
            # The second runner drafts on, past the end of the rotary table.
            warned("vllm==0.24.0", "E3L501"),
            warned("vllm==0.24.0", "E3L501", runner="v1"),
            serves("vllm==0.33.0"),
        ),
        model={**LLAMA, "max_position_embeddings": 8192},
        note="0.27.0 raises the draft's positions to the target's (config/speculative.py:1165)",
    ),
    Case(
        (67, 68, 69),
        "the same in SGLang",
        {"config": {"max_position_embeddings": 2048}},
        (
            # A line in the log, and positions past the end of the rotary table
            # (0.4.10.post2 configs/model_config.py:164).
            warned("sglang==0.4.10.post2", "E3L501"),
            warned("sglang==0.5.1", "E3L501", mended=True),
            warned("sglang==0.5.23", "E3L501", mended=True),
        ),
        model={**LLAMA, "max_position_embeddings": 8192},
    ),
    Case(
        (75,),
        "plain rope before a target model with yarn",
        {"config": {"max_position_embeddings": LONG, "rope_theta": 150000}},
        (warned("sglang==0.5.17", "E3L506"), warned("vllm==0.28.0", "E3L506")),
        model={
            **GPT_OSS,
            "max_position_embeddings": LONG,
            "rope_theta": 150000,
            "rope_scaling": YARN,
        },
    ),
    Case(
        (76,),
        "yarn put in at export, 32 times 4096 positions",
        {"config": {"max_position_embeddings": LONG, "rope_scaling": YARN}},
        (serves("sglang==0.5.12"), serves("vllm==0.33.0")),
        model={**LLAMA, "max_position_embeddings": LONG},
    ),
    Case(
        (76,),
        "yarn and the positions before it",
        {"config": {"max_position_embeddings": 4096, "rope_scaling": YARN}},
        (warned("sglang==0.5.12", "E3L501"),),
        model={**LLAMA, "max_position_embeddings": LONG},
        note="SGLang leaves the factor out when original_max_position_embeddings stands there "
        "(0.5.23 utils/hf_transformers/common.py:677)",
    ),
    Case(
        (78,),
        "a sliding window in a Llama draft",
        {"config": {**PLAIN, **SLIDING}},
        (
            warned("vllm==0.10.0", "E3L504"),
            refused("vllm==0.10.1", error="IndexError"),
            serves("vllm==0.10.2"),
            serves("vllm==0.33.0"),
        ),
        note="0.10.1 asks layer_types for a layer after the target's (models/llama.py:172)",
    ),
    Case(
        (78,),
        "a sliding window in SGLang",
        {"config": SLIDING},
        (warned("sglang==0.5.9", "E3L503"), warned("sglang==0.5.23", "E3L503")),
    ),
    Case(
        (78,),
        "a sliding window in a Qwen3 draft of speculators",
        {
            "base": "speculators",
            "config": {"transformer_layer_config": {**QWEN3_LAYER, **SLIDING}},
            "add": QK_NORMS,
        },
        (
            warned("vllm==0.24.0", "E3L503"),
            warned("vllm==0.25.1", "E3L503"),
            serves("vllm==0.26.0"),
        ),
    ),
    Case(
        (92,),
        "norm_before_residual in a plain configuration",
        {"config": {**PLAIN, "norm_before_residual": True}},
        (degraded("vllm==0.10.0", "E3L503"), serves("vllm==0.10.1"), serves("vllm==0.33.0")),
    ),
    Case(
        (92,),
        "norm_before_residual in SGLang",
        {"config": {"norm_before_residual": True}},
        (degraded("sglang==0.5.9", "E3L503"), degraded("sglang==0.5.23", "E3L503")),
    ),
    Case(
        (92,),
        "a speculators configuration that does not say",
        {"base": "speculators", "unset": ["norm_before_residual"]},
        (
            degraded("vllm==0.10.1", "E3L502", mended=True),
            degraded("vllm==0.33.0", "E3L502", mended=True),
        ),
    ),
    Case(
        (93, 94),
        "fc_norm and norm_output",
        {"config": NORMED, "add": FC_NORMS},
        (
            degraded("sglang==0.5.11", "E3L201", "E3L503"),
            serves("sglang==0.5.12"),
            refused("vllm==0.21.0", "E3L205", error="KeyError"),
            serves("vllm==0.22.0"),
        ),
        note="reported of other runtimes; both of these have such releases too",
    ),
    Case(
        (93, 94),
        "norm_output alone, which has no tensor",
        {"config": {"norm_output": True}},
        (
            degraded("sglang==0.5.11", "E3L503"),
            serves("sglang==0.5.12"),
            degraded("vllm==0.21.0", "E3L503"),
            serves("vllm==0.22.0"),
        ),
    ),
    Case(
        (94,),
        "fc_norm and norm_output in an MLA draft",
        {"base": "mla", "config": {**NORMED, "rope_scaling": MLA_YARN}, "add": FC_NORMS},
        (
            degraded("sglang==0.5.12", "E3L503"),
            serves("sglang==0.5.13"),
            # The norms are built and never called (0.22.0 models/deepseek_eagle3.py:225).
            degraded("vllm==0.22.0", "E3L503"),
            serves("vllm==0.23.0"),
        ),
        model={**DEEPSEEK, "rope_scaling": MLA_YARN},
    ),
    Case(
        (96,),
        "aux norms under their first names",
        {
            "config": {"use_aux_norm": True},
            "add": bf16({f"aux_norm_{which}": (HIDDEN,) for which in ("low", "mid", "high")}),
        },
        (
            degraded("sglang==0.5.11"),
            serves("sglang==0.5.12"),
            refused("vllm==0.21.0", "E3L205", error="KeyError"),
            refused("vllm==0.33.0", "E3L205", error="ValueError", mended=True),
        ),
    ),
    Case(
        (97,),
        "norm_before_fc, embedding and head of the target model",
        {
            "config": {"norm_before_fc": True, "draft_vocab_size": None},
            "remove": ["embed_tokens.weight", "lm_head.weight", "d2t", "t2d"],
            "add": bf16({"input_norm": (3 * HIDDEN,)}),
        },
        (
            degraded("sglang==0.5.16", "E3L201"),
            serves("sglang==0.5.17"),
            refused("vllm==0.17.1", "E3L205", error="KeyError"),
            serves("vllm==0.18.0"),
        ),
    ),
)
