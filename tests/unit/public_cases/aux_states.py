"""Aux hidden states, the fc, and target models that can feed them.

For a target of 36 layers the usual aux states are 2, 18 and 33; ids of the output convention are
one lower.
"""

from __future__ import annotations

from typing import Any

from tests.drafts import HIDDEN
from tests.unit.public_cases.case import (
    DEEPSEEK,
    GPT_OSS,
    KIMI,
    LLAMA,
    Case,
    bf16,
    broken,
    degraded,
    loses,
    model,
    nested,
    refused,
    serves,
    top,
    warned,
    wrapper,
)

PLAIN = {"architectures": ["LlamaForCausalLM"]}
MINIMAX = model("MiniMaxM2ForCausalLM", "minimax_m2", num_hidden_layers=62)
MAVERICK = wrapper("Llama4ForConditionalGeneration", "llama4", "llama4_text", num_hidden_layers=48)
#: Every fourth layer attends over all positions.
HYBRID = model(
    "Qwen3NextForCausalLM",
    "qwen3_next",
    num_hidden_layers=48,
    full_attention_interval=4,
    layer_types=["full_attention" if layer % 4 == 3 else "linear_attention" for layer in range(48)],
)
INPUT_NORM = bf16({"input_norm": (3 * HIDDEN,)})
OFF: dict[str, Any] = {"eagle_config": {"use_aux_hidden_state": False}}

AUX_STATES = (
    Case(
        (44,),
        "ids of the input convention before DeepSeek",
        {"config": nested(2, 18, 33)},
        (degraded("sglang==0.5.12.post1", "E3L301", mended=True), serves("sglang==0.5.13")),
        model=DEEPSEEK,
    ),
    Case(
        (44,),
        "ids of the input convention before Llama",
        {"config": nested(2, 18, 33)},
        (degraded("sglang==0.5.23", "E3L301", mended=True),),
        note="only the DeepSeek family got the first-id test (0.5.23 models/llama.py:929)",
    ),
    Case(
        (44,),
        "a first id that is neither 1 nor 2",
        {"config": nested(5, 18, 30)},
        (warned("sglang==0.5.12.post1", "E3L303"), warned("sglang==0.5.23", "E3L303")),
        model=DEEPSEEK,
    ),
    Case(
        (45,),
        "no ids, and nobody says that it was trained on other states",
        {},
        (serves("vllm==0.33.0"), serves("sglang==0.5.23")),
        note="not warned of: nearly every trainer that writes no ids trains on the states that "
        "both runtimes take then, and most published drafts have none",
    ),
    Case(
        (45,),
        "no ids, trained on other states",
        {},
        (degraded("vllm==0.33.0", "E3L301"), degraded("sglang==0.5.23", "E3L301")),
        trained_on=(5, 20, 33),
    ),
    Case(
        (45, 46),
        "aux hidden states switched off in a draft with an fc for three",
        {"config": OFF},
        (
            serves("sglang==0.5.7"),
            loses("sglang==0.5.8", "E3L310"),
            serves("vllm==0.11.2"),
            loses("vllm==0.12.0", "E3L310"),
        ),
        note="releases that ignore the switch feed what the fc was trained for",
    ),
    Case(
        (46, 47, 48),
        "aux hidden states switched off, no fc",
        {"config": OFF, "remove": ["fc.weight"]},
        (
            broken("sglang==0.5.7", "E3L202"),
            serves("sglang==0.5.8"),
            broken("vllm==0.11.2", "E3L202"),
            serves("vllm==0.12.0"),
            serves("vllm==0.29.0", runner="v1"),
            # Three states reach a buffer as wide as one (0.29.0
            # v1/worker/gpu/spec_decode/autoregressive/speculator.py:253).
            refused("vllm==0.29.0", "E3L310"),
            refused("vllm==0.32.0", "E3L310"),
            serves("vllm==0.33.0"),
        ),
        note="the second model runner of vLLM ignores the switch until 0.32.0, and that is loud",
    ),
    Case(
        (46,),
        "aux hidden states switched off, an fc for one",
        {"config": OFF, "shape": {"fc.weight": [HIDDEN, HIDDEN]}},
        (refused("sglang==0.5.9", "E3L210", error="AssertionError"),),
        note="SGLang builds the fc for three whatever the switch says",
    ),
    Case(
        (50,),
        "the state after the last layer, and a norm before the fc",
        {"config": nested(24, 30, 36, norm_before_fc=True), "add": INPUT_NORM},
        (
            refused("sglang==0.5.16", "E3L305"),
            serves("sglang==0.5.17"),
            serves("vllm==0.28.0"),
            # The second model runner reads ids at the top level only.
            degraded("vllm==0.29.0", "E3L301", mended=True),
        ),
        model=GPT_OSS,
    ),
    Case(
        (50,),
        "the same states in SGLang's numbers",
        {"config": nested(23, 29, 35, norm_before_fc=True), "add": INPUT_NORM},
        (refused("sglang==0.5.16", "E3L305"),),
        model=GPT_OSS,
        trained_on=(24, 30, 36),
        note="0.5.16 looks before each layer only and never sees the last state "
        "(models/gpt_oss.py:692)",
    ),
    Case(
        (50,),
        "ids lowered until it starts",
        {"config": nested(23, 29, 34, norm_before_fc=True), "add": INPUT_NORM},
        (degraded("sglang==0.5.16", "E3L301", "E3L201"),),
        model=GPT_OSS,
        trained_on=(24, 30, 36),
    ),
    Case(
        (51,),
        "ids at the top level that are not the default",
        {"config": {**PLAIN, **top(9, 20, 31)}},
        (degraded("vllm==0.11.0", "E3L301"), serves("vllm==0.11.1")),
        trained_on=(9, 20, 31),
    ),
    Case(
        (51,),
        "nested ids that are not the default",
        {"config": nested(8, 19, 30)},
        (
            degraded("sglang==0.4.9", "E3L304"),
            degraded("sglang==0.5.10.post1", "E3L304"),
            serves("sglang==0.5.11"),
        ),
        trained_on=(9, 20, 31),
        note="until 0.5.10.post1 the CUDA graphs keep the default",
    ),
    Case(
        (51,),
        "nested ids and a bias of the fc",
        {"config": nested(8, 19, 30), "add": {"fc.bias": ["BF16", HIDDEN]}},
        (degraded("sglang==0.4.8.post1", "E3L301"),),
        trained_on=(9, 20, 31),
    ),
    Case(
        (54,),
        "nested ids in SGLang's numbers before MiniMax-M2",
        {"config": nested(1, 30, 58)},
        (
            serves("sglang==0.5.11"),
            degraded("vllm==0.28.0", "E3L301", mended=True),
            serves("vllm==0.29.0"),
        ),
        model=MINIMAX,
        note="the second model runner, usual from 0.29.0 on, does not read nested ids",
    ),
    Case(
        (54,),
        "the same at the top level",
        {"config": top(1, 30, 58)},
        (
            degraded("vllm==0.20.0", "E3L301", mended=True),
            degraded("vllm==0.33.0", "E3L301", mended=True),
        ),
        model=MINIMAX,
    ),
    Case(
        (57,),
        "norm_before_fc in eagle_config alone",
        {"config": {"eagle_config": {"norm_before_fc": True}}, "add": INPUT_NORM},
        (
            refused("vllm==0.17.1", "E3L205", error="KeyError"),
            degraded("vllm==0.18.0", "E3L504", mended=True),
            degraded("vllm==0.21.0", "E3L504", mended=True),
            serves("vllm==0.22.0"),
            degraded("sglang==0.5.16", "E3L201"),
            serves("sglang==0.5.17"),
        ),
    ),
    *(
        Case(
            (number,),
            f"before {what}",
            {},
            (refused("vllm==0.17.1", "E3L601"), serves("vllm==0.18.0")),
            model=target,
        )
        for number, what, target in (
            (58, "Kimi-K2", model("DeepseekV3ForCausalLM", "kimi_k2")),
            (58, "Kimi-K2.5", KIMI),
            (59, "DeepSeek-V3", DEEPSEEK),
            (59, "DeepSeek-V3.2", model("DeepseekV32ForCausalLM", "deepseek_v32")),
        )
    ),
    *(
        Case((60,), f"before {what}", {}, (refused(no, "E3L601"), serves(yes)), model=target)
        for what, target, no, yes in (
            (
                "Qwen3-MoE",
                model("Qwen3MoeForCausalLM", "qwen3_moe"),
                "vllm==0.11.0",
                "vllm==0.11.1",
            ),
            ("Qwen3-Next", HYBRID, "vllm==0.23.0", "vllm==0.24.0"),
            ("MiniCPM", model("MiniCPMForCausalLM", "minicpm"), "vllm==0.10.2", "vllm==0.11.0"),
            (
                "Gemma 4",
                wrapper("Gemma4ForConditionalGeneration", "gemma4", "gemma4_text"),
                "vllm==0.19.0",
                "vllm==0.19.1",
            ),
            (
                "Pixtral",
                wrapper("PixtralForConditionalGeneration", "pixtral", "mistral"),
                "vllm==0.21.0",
                "vllm==0.22.0",
            ),
            ("Sarvam", model("SarvamMLAForCausalLM", "sarvam_mla"), "vllm==0.29.0", "vllm==0.30.0"),
            (
                "GLM-4.5",
                model("Glm4MoeForCausalLM", "glm4_moe"),
                "sglang==0.5.4.post3",
                "sglang==0.5.5",
            ),
        )
    ),
    Case(
        (61,),
        "before Qwen3.5",
        {},
        (
            refused("sglang==0.5.21", "E3L601"),
            serves("sglang==0.5.22"),
            refused("vllm==0.19.1", "E3L601"),
            serves("vllm==0.20.0"),
        ),
        model=wrapper("Qwen3_5ForConditionalGeneration", "qwen3_5", "qwen3_5_text"),
        note="reported of llama.cpp; SGLang sets the layers until 0.5.21 and looks elsewhere",
    ),
    Case(
        (62,),
        "nested ids at layers without full attention",
        {"config": nested(2, 24, 45)},
        (warned("sglang==0.5.12", "E3L311"),),
        model=HYBRID,
    ),
    Case(
        (62,),
        "ids at the top level whose states come out of such layers",
        {"config": top(2, 24, 45)},
        # States 2, 24 and 45 are what layers 1, 23 and 44 put out; only 23 attends.
        (warned("vllm==0.24.0", "E3L311"),),
        model=HYBRID,
    ),
    Case(
        (62,),
        "nested ids at layers with full attention",
        {"config": nested(3, 23, 43)},
        (serves("sglang==0.5.12"),),
        model=HYBRID,
        trained_on=(4, 24, 44),
    ),
    Case(
        (62,),
        "the card's nested ids, the last layer's output among them",
        {"config": nested(3, 23, 47)},
        # layers[48] of 48 (0.5.12 models/qwen3_next.py, set_eagle3_layers_to_capture).
        (refused("sglang==0.5.12", "E3L305"),),
        model=HYBRID,
        trained_on=(4, 24, 48),
        note="SGLang marks the layer after the one that is meant, and there is none",
    ),
    Case(
        (62,),
        "the same states at the top level",
        {"config": top(4, 24, 48)},
        (serves("vllm==0.24.0"),),
        model=HYBRID,
        trained_on=(4, 24, 48),
    ),
    Case(
        (64,),
        "ids of a speculators configuration where vLLM never looks",
        {
            "base": "speculators",
            "config": nested(1, 23, 44),
            "unset": ["eagle_aux_hidden_state_layer_ids"],
        },
        (degraded("vllm==0.11.1", "E3L301"), degraded("vllm==0.28.0", "E3L301")),
        model=MAVERICK,
        trained_on=(1, 23, 44),
    ),
    Case(
        (64,),
        "ids of a speculators configuration at the top level",
        {"base": "speculators", "config": top(1, 23, 44)},
        (degraded("vllm==0.11.0", "E3L301"), serves("vllm==0.11.1")),
        model={**LLAMA, "num_hidden_layers": 48},
    ),
    Case(
        (64,),
        "two places that mean other states",
        {"config": {**top(2, 18, 33), **nested(5, 9, 20)}},
        (warned("vllm==0.25.0", "E3L307"), warned("sglang==0.5.12", "E3L307")),
    ),
    Case(
        (64,),
        "two places that mean the same states",
        {"config": {**top(2, 18, 33), **nested(1, 17, 32)}},
        (serves("vllm==0.25.0"), serves("vllm==0.33.0"), serves("sglang==0.5.12")),
    ),
    Case(
        (65,),
        "an fc for four states and three ids",
        {"config": nested(1, 17, 32), "shape": {"fc.weight": [HIDDEN, 4 * HIDDEN]}},
        (
            refused("sglang==0.5.9", "E3L210", error="AssertionError"),
            refused("sglang==0.5.23", "E3L210", error="AssertionError"),
            refused("vllm==0.12.0", "E3L210", error="AssertionError"),
            refused("vllm==0.33.0", "E3L210", error="AssertionError"),
        ),
    ),
)
