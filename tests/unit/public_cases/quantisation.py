"""Quantised drafts and target models, dtypes, the KV cache."""

from __future__ import annotations

from typing import Any

from tests.drafts import HIDDEN, INTERMEDIATE, llama_tensors
from tests.unit.public_cases.case import LLAMA, Case, refused, serves, unknown, warned

PLAIN = {"architectures": ["LlamaForCausalLM"]}

#: Four bits to a weight, eight weights to an int32, one scale to 32 of them.
PACKED: dict[str, Any] = {
    "quant_method": "compressed-tensors",
    "format": "pack-quantized",
    "config_groups": {
        "group_0": {
            "targets": ["Linear"],
            "weights": {"num_bits": 4, "type": "int", "strategy": "group", "group_size": 32},
        }
    },
    "ignore": ["re:.*embed_tokens", "re:.*fc", "re:.*self_attn.*", "lm_head"],
}
_MLP = {
    "gate_proj": (INTERMEDIATE, HIDDEN),
    "up_proj": (INTERMEDIATE, HIDDEN),
    "down_proj": (HIDDEN, INTERMEDIATE),
}
PACKED_MLP = {
    f"midlayer.mlp.{name}.{part}": value
    for name, (rows, columns) in _MLP.items()
    for part, value in {
        "weight_packed": ["I32", rows, columns // 8],
        "weight_scale": ["BF16", rows, columns // 32],
        "weight_shape": ["I64", 2],
    }.items()
}
_LINEAR = [n for n in llama_tensors() if n.endswith("_proj.weight") or n == "fc.weight"]
#: Every linear layer in fp8 with scales for weights and inputs.
FP8 = {
    **{name: ["F8_E4M3", *llama_tensors()[name][1]] for name in _LINEAR},
    **{f"{name}_scale": ["F32", 1] for name in _LINEAR},
    **{f"{name.removesuffix('weight')}input_scale": ["F32", 1] for name in _LINEAR},
}

QUANTISATION = (
    Case(
        (80,),
        "a plain draft before a target model packed to four bits",
        {"config": PLAIN},
        (serves("vllm==0.10.2"), refused("vllm==0.11.0"), serves("vllm==0.11.1")),
        model={**LLAMA, "quantization_config": PACKED},
        note="0.11.0 builds the draft's layer with the target model's quantisation "
        "(model_executor/models/llama_eagle3.py:37)",
    ),
    Case(
        (82,),
        "an MLP packed to four bits, attention left alone",
        {
            "config": {"quantization_config": PACKED},
            "remove": [f"midlayer.mlp.{name}.weight" for name in _MLP],
            "add": PACKED_MLP,
        },
        (unknown("vllm==0.25.1", "E3L701"), unknown("vllm==0.26.0", "E3L701")),
        note="the first layer's qkv is called `qkv_proj` until 0.25.1 and `self_attn.qkv_proj` "
        "from 0.26.0 on (model_executor/models/llama_eagle3.py:63); packed weights are not "
        "described, so that neither is claimed",
    ),
    Case(
        (83,),
        "every linear layer in fp8, the fc too",
        {
            "config": {
                "quantization_config": {"quant_method": "fp8", "activation_scheme": "static"}
            },
            "add": FP8,
        },
        (refused("vllm==0.11.0", "E3L205", error="KeyError"), serves("vllm==0.11.1")),
    ),
    Case(
        (88,),
        "other KV heads than the target model's",
        {},
        # Pages of two sizes: neither the types nor the page sizes are uniform (0.10.2
        # v1/core/kv_cache_utils.py:1118-1133).
        (refused("vllm==0.10.2"), serves("vllm==0.11.0")),
        model={**LLAMA, "num_key_value_heads": 4},
        note="reported of vllm-ascend; vLLM raises NotImplementedError itself until 0.10.2",
    ),
    Case(
        (90,),
        "float16 before a bfloat16 target model",
        {"config": {"torch_dtype": "float16"}},
        # The fc in float16 is handed states in bfloat16 (0.5.9 configs/model_config.py:258,
        # models/llama_eagle3.py).
        (warned("sglang==0.5.9"), serves("vllm==0.33.0")),
        note="vLLM casts the draft to the target model's dtype",
    ),
)
