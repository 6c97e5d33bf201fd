"""Architectures, tensor names, completeness."""

from __future__ import annotations

from tests.drafts import HIDDEN
from tests.unit.public_cases.case import (
    LAYERS_NAMES,
    QWEN3,
    Case,
    broken,
    degraded,
    nested,
    refused,
    second_layer,
    serves,
    warned,
)

NAMES = (
    Case(
        (1,),
        "the target model's own architecture and model_type",
        {
            "config": {"architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3"},
            "remove": ["embed_tokens.weight"],
        },
        (
            refused("sglang==0.4.10.post2", "E3L102", mended=True),
            refused("sglang==0.5.23", "E3L102", mended=True),
            refused("vllm==0.23.0", "E3L102"),
            # The Qwen3 class comes with 0.24.0 and norms queries and keys; the draft does not.
            warned("vllm==0.24.0", "E3L202"),
        ),
        model=QWEN3,
    ),
    Case(
        (2,),
        "architectures is LlamaForCausalLM",
        {"config": {"architectures": ["LlamaForCausalLM"]}},
        (
            refused("sglang==0.5.9", "E3L102", mended=True),
            refused("sglang==0.5.23", "E3L102", mended=True),
            serves("vllm==0.9.1"),
            serves("vllm==0.33.0"),
        ),
    ),
    Case(
        (3,),
        "LlamaForCausalLM without an embedding, as the first heads were published",
        {"config": {"architectures": ["LlamaForCausalLM"]}, "remove": ["embed_tokens.weight"]},
        (
            refused("sglang==0.4.5.post1", "E3L102"),
            # The head has 320 rows where LlamaForCausalLM has 1000.
            refused("sglang==0.4.10.post2", "E3L102", error="AssertionError", mended=True),
        ),
    ),
    Case(
        (4,),
        "LlamaForCausalLMEagle3 before a Qwen3 target",
        {},
        (
            refused("vllm==0.10.0", "E3L109", "E3L601"),
            refused("vllm==0.10.1", "E3L109", mended=True),
            serves("vllm==0.10.2"),
        ),
        model=QWEN3,
        note="0.10.1 admits Qwen3 and still has this name commented out (models/registry.py:265)",
    ),
    Case(
        (4,),
        "Eagle3LlamaForCausalLM before a Qwen3 target",
        {"config": {"architectures": ["Eagle3LlamaForCausalLM"]}},
        (refused("vllm==0.10.0", "E3L601"), serves("vllm==0.10.1")),
        model=QWEN3,
    ),
    Case(
        (9,),
        "`model.` in front of every name but the head's",
        {
            "rename": {
                "midlayer.": "model.layers.0.",
                "fc.": "model.fc.",
                "norm.": "model.norm.",
                "embed_tokens.": "model.embed_tokens.",
            },
        },
        (
            broken("sglang==0.5.11", "E3L201", mended=True),
            serves("sglang==0.5.12"),
            refused("vllm==0.14.1", "E3L205", error="KeyError", mended=True),
            refused("vllm==0.33.0", "E3L205", error="ValueError", mended=True),
        ),
    ),
    Case(
        (10,),
        "`layers.0.` names",
        {"rename": LAYERS_NAMES},
        (
            broken("sglang==0.5.11", "E3L201", mended=True),
            serves("sglang==0.5.12"),
            serves("vllm==0.33.0"),
        ),
    ),
    Case(
        (10,),
        "two layers, the second with hidden_norm",
        {
            "config": {"num_hidden_layers": 2},
            "rename": LAYERS_NAMES,
            "add": second_layer("hidden_norm"),
        },
        (refused("sglang==0.5.11", "E3L107", error="ValueError"), serves("sglang==0.5.12")),
    ),
    Case(
        (10,),
        "two layers, the second with input_layernorm",
        {
            "config": {"num_hidden_layers": 2},
            "rename": LAYERS_NAMES,
            "add": second_layer("input_layernorm"),
        },
        (degraded("sglang==0.5.12", "E3L201"),),
        note="layers after the first call hidden_norm in SGLang (0.5.12 models/llama_eagle3.py)",
    ),
    Case(
        (10,),
        "an fc for four states and four ids",
        {"config": nested(1, 9, 20, 32), "shape": {"fc.weight": [HIDDEN, 4 * HIDDEN]}},
        (
            refused("sglang==0.5.11", "E3L210"),
            # CUDA graphs of the extend phase are captured with a buffer for three states: its
            # width is looked up in the target model's configuration.
            refused("sglang==0.5.12"),
            refused("sglang==0.5.14"),
            serves("sglang==0.5.15"),
        ),
        note="the names are right from 0.5.12 on, the buffer of the CUDA graphs only from 0.5.15 "
        "(0.5.12 speculative/eagle_info.py:891, 0.5.15 speculative/eagle_utils.py:437)",
    ),
    Case(
        (11,),
        "speculators' nested configuration",
        {"base": "speculators", "config": {"architectures": ["Eagle3Speculator"]}},
        (
            refused("sglang==0.5.9", "E3L104"),
            refused("sglang==0.5.23", "E3L104"),
            refused("vllm==0.10.0", "E3L104"),
            serves("vllm==0.10.1"),
        ),
    ),
    Case(
        (13,),
        "two layers, the second with input_layernorm",
        {
            "config": {"num_hidden_layers": 2},
            "rename": LAYERS_NAMES,
            "add": second_layer("input_layernorm"),
        },
        (refused("vllm==0.11.0", "E3L205", error="KeyError"), serves("vllm==0.11.1")),
    ),
    Case(
        (14,),
        "a bias of the fc that the configuration does not promise",
        {"add": {"fc.bias": ["BF16", HIDDEN]}},
        (
            serves("sglang==0.4.8.post1"),
            degraded("sglang==0.4.9", "E3L201"),
            degraded("sglang==0.5.23", "E3L201"),
            refused("vllm==0.24.0", "E3L205", error="KeyError"),
            degraded("vllm==0.25.0", "E3L201"),
        ),
        note="not loud in SGLang from 0.4.9 on and in vLLM from 0.25.0 on (0.25.0 "
        "model_executor/models/utils.py:402)",
    ),
    Case(
        (14,),
        "bias: true without one",
        {"config": {"bias": True}},
        (
            warned("sglang==0.5.9", "E3L209", mended=True),
            # vLLM gives the output projection of the attention a bias for it.
            warned("vllm==0.33.0", "E3L209", mended=True),
        ),
        note="never loud: nothing looks for parameters that no tensor fills",
    ),
    Case(
        (15,),
        "a training state beside the weights",
        {"files": {"training_state.pt": b"", "optimizer.bin": b"", "scheduler.bin": b""}},
        (serves("sglang==0.5.23"), serves("vllm==0.33.0")),
    ),
    Case(
        (15,),
        "a training state in the place of the weights",
        {"container": "absent", "files": {"optimizer.bin": b"", "training_args.bin": b""}},
        (refused("sglang==0.5.23", "E3L018"), refused("vllm==0.33.0", "E3L018")),
    ),
    Case(
        (108,),
        "a trainer's own files, never exported",
        {
            "container": "absent",
            "files": {"draft_model.pt": b"", "eagle3_meta.pt": b""},
        },
        (refused("sglang==0.5.23", "E3L018"), refused("vllm==0.33.0", "E3L018")),
    ),
    Case(
        (28,),
        "draft_vocab_size missing",
        {"unset": ["draft_vocab_size"]},
        (
            refused("sglang==0.5.9", "E3L106", error="AttributeError", mended=True),
            refused("vllm==0.10.2", "E3L106", error="AttributeError", mended=True),
            refused("vllm==0.11.0", "E3L208", mended=True),
            refused("vllm==0.33.0", "E3L208", mended=True),
        ),
        note="from 0.11.0 on vLLM takes vocab_size and stops at the rows of the head",
    ),
)
