"""What is asked about vLLM's aux hidden states: draft configurations, and target models.

The configurations are those of ``aux_cases`` in a plain draft and in the nested form of the
speculators trainer, and the keys that vLLM alone looks at (``v1/worker/gpu_model_runner.py``
``_get_eagle3_aux_layers_from_config``, ``v1/worker/gpu/spec_decode/eagle/eagle3_utils.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from tests.conformance import nested
from tests.conformance.aux_cases import IDS, SWITCH, aux_cases, other, usual
from tests.conformance.draft import HIDDEN, LLAMA_CONFIG, VOCAB

Config = dict[str, Any]

LAYERS: Final = 24
"""Decoder layers of the target models that every configuration is asked with."""

OTHER_LAYERS: Final = (2, 3, 4, 5, 6, 7, 30, 61, 62)
"""Further numbers of layers of the first target model, asked without any ids."""

NESTED_GROUPS: Final = ("place", "eagle_config", "switch", "stray")
"""The groups of cases that are asked in the nested form too."""


@dataclass(frozen=True)
class AuxQuestion:
    """One config.json of a draft."""

    name: str
    config: Config


@dataclass(frozen=True)
class AuxTarget:
    """A target model: ``make`` gives its config.json for so many layers."""

    name: str
    make: Callable[[int], Config]


def questions() -> list[AuxQuestion]:
    """All configurations, for a target model of ``LAYERS`` layers. Names are unique, and those of
    nested forms have an ``@``."""
    fragments = [(case.name, dict(case.fragment)) for case in aux_cases(LAYERS)]
    fragments += _vllm_only(LAYERS)
    return [AuxQuestion(name, config) for name, config in _dressed(fragments)]


def asked_of_every_target(name: str) -> bool:
    """Whether the answer may depend on the target model's class: the ids do not change on their
    way to it, so those of one place are asked."""
    return name == "place/none" or name.startswith(("ids/top", "odd/top"))


def well_formed(config: Config, layers: int) -> bool:
    """Whether what the config says of aux states is of the kind that a trainer writes.

    Lists of ids are absent, null, empty or name states between the embedding and the last layer, in
    ascending order; what holds them is a mapping; the switch is true or false.
    """
    inner = config.get("transformer_layer_config", {})
    return all(_is_well_formed(held, layers) for held in (config, inner))


def _is_well_formed(held: Config, layers: int) -> bool:
    eagle, dflash = held.get("eagle_config"), held.get("dflash_config")
    if not all(isinstance(mapping, dict | None) for mapping in (eagle, dflash)):
        return False
    eagle, dflash = eagle or {}, dflash or {}
    states = [held.get(IDS), eagle.get(IDS), eagle.get("layer_ids"), dflash.get("layer_ids")]
    outputs = [held.get(name) for name in ("target_layer_ids", "dspark_target_layer_ids")] + [
        dflash.get("target_layer_ids")
    ]
    return (
        all(_ascend(ids, 1, layers) for ids in states)
        and all(_ascend(ids, 0, layers - 1) for ids in outputs)
        and isinstance(eagle.get(SWITCH, True), bool)
    )


def _ascend(ids: Any, first: int, end: int) -> bool:
    if ids is None:
        return True
    if not isinstance(ids, list) or any(type(i) is not int for i in ids):
        return False
    return ids == sorted(set(ids)) and all(first <= i < end for i in ids)


def plain(**fields: Any) -> Config:
    """config.json of a plain draft, under a name that every release knows."""
    return {**LLAMA_CONFIG, "architectures": ["Eagle3LlamaForCausalLM"], **fields}


def _dressed(fragments: list[tuple[str, Config]]) -> Iterator[tuple[str, Config]]:
    bare = nested.config("Eagle3Speculator")
    del bare[IDS]
    inner = bare["transformer_layer_config"]
    for name, fragment in fragments:
        yield name, plain(**fragment)
        if name.partition("/")[0] in NESTED_GROUPS:
            yield f"{name} @ speculators", {**bare, **fragment}
            yield (
                f"{name} @ inside speculators",
                {**bare, "transformer_layer_config": {**inner, **fragment}},
            )


def _vllm_only(n: int) -> Iterator[tuple[str, Config]]:
    """Keys that other drafters of vLLM keep their ids under, alone, together and damaged."""
    ids, others = usual(n), other(n)
    third = [i + 1 for i in others]
    keys: dict[str, Callable[[Any], Config]] = {
        "dflash_config.target_layer_ids": lambda v: {"dflash_config": {"target_layer_ids": v}},
        "dflash_config.layer_ids": lambda v: {"dflash_config": {"layer_ids": v}},
        "eagle_config.layer_ids": lambda v: {"eagle_config": {"layer_ids": v}},
        "dspark_target_layer_ids": lambda v: {"dspark_target_layer_ids": v},
        "target_layer_ids": lambda v: {"target_layer_ids": v},
    }
    values: dict[str, Any] = {
        "ids": others,
        "unsorted": others[::-1],
        "one id": others[:1],
        "last n - 1": [2, n // 2, n - 1],
        "last n": [2, n // 2, n],
        "minus one": [-1, 2, n // 2],
        "empty": [],
        "null": None,
        "strings": [str(i) for i in others],
        "a string": "7,14,16",
        "a number": 7,
    }
    for key, put in keys.items():
        for words, value in values.items():
            yield f"vllm/{key}, {words}", put(value)
        yield f"vllm/{key} beside top ids", {IDS: ids, **put(others)}
        yield f"vllm/{key} beside empty top ids", {IDS: [], **put(others)}
        merged = {**put(others).get("eagle_config", {}), IDS: ids}
        yield f"vllm/{key} beside nested ids", {**put(others), "eagle_config": merged}
        for words, mapping in (
            ("an empty eagle_config", {}),
            ("an eagle_config without ids", {"x": 1}),
            ("a null id list in eagle_config", {IDS: None}),
            ("a switch", {SWITCH: True}),
            ("a false switch", {SWITCH: False}),
        ):
            merged = {**put(others).get("eagle_config", {}), **mapping}
            yield f"vllm/{key} beside {words}", {**put(others), "eagle_config": merged}
    names = list(keys)
    for i, first in enumerate(names):
        for second in names[i + 1 :]:
            both = {**keys[first](others), **keys[second](third)}
            for shared in set(keys[first](0)) & set(keys[second](0)):
                both[shared] = {**keys[first](others)[shared], **keys[second](third)[shared]}
            yield f"vllm/{first} and {second}", both
    for words, value in (("null", None), ("a list", others), ("a string", "dflash"), ("empty", {})):
        yield f"vllm/dflash_config {words}", {"dflash_config": value}
        yield (
            f"vllm/dflash_config {words}, nested ids",
            {
                "dflash_config": value,
                "eagle_config": {IDS: ids},
            },
        )


def _llama(kind: str, architecture: str, n: int, **fields: Any) -> Config:
    return {
        "architectures": [architecture],
        "model_type": kind,
        "hidden_size": HIDDEN,
        "intermediate_size": 32,
        "num_attention_heads": 8,
        "num_key_value_heads": 2,
        "head_dim": 8,
        "num_hidden_layers": n,
        "hidden_act": "silu",
        "vocab_size": VOCAB,
        "max_position_embeddings": 2048,
        "rms_norm_eps": 1e-06,
        "rope_theta": 10000.0,
        "tie_word_embeddings": False,
        "torch_dtype": "bfloat16",
        **fields,
    }


def _deepseek(n: int) -> Config:
    """Dense layers only: what a layer computes is replaced anyhow."""
    return _llama(
        "deepseek_v3", "DeepseekV3ForCausalLM", n,
        num_key_value_heads=8, q_lora_rank=24, kv_lora_rank=16, qk_nope_head_dim=8,
        qk_rope_head_dim=4, v_head_dim=6, first_k_dense_replace=n, moe_layer_freq=1,
        n_routed_experts=8, n_shared_experts=1, num_experts_per_tok=2,
        moe_intermediate_size=32, n_group=1, topk_group=1, routed_scaling_factor=1.0,
        scoring_func="sigmoid", topk_method="noaux_tc", norm_topk_prob=True,
    )  # fmt: skip


def _qwen3_moe(n: int) -> Config:
    """Dense but for the first layer: the class wants one with experts."""
    return _llama(
        "qwen3_moe", "Qwen3MoeForCausalLM", n, mlp_only_layers=list(range(1, n)), num_experts=4,
        num_experts_per_tok=2, moe_intermediate_size=32, decoder_sparse_step=1,
        norm_topk_prob=True, attention_bias=False,
    )  # fmt: skip


TARGETS: Final[tuple[AuxTarget, ...]] = (
    AuxTarget("llama", lambda n: _llama("llama", "LlamaForCausalLM", n)),
    AuxTarget("mistral", lambda n: _llama("mistral", "MistralForCausalLM", n)),
    AuxTarget("phi3", lambda n: _llama("phi3", "Phi3ForCausalLM", n, pad_token_id=0)),
    AuxTarget("qwen2", lambda n: _llama("qwen2", "Qwen2ForCausalLM", n)),
    AuxTarget("qwen3", lambda n: _llama("qwen3", "Qwen3ForCausalLM", n)),
    AuxTarget("qwen3_moe", _qwen3_moe),
    AuxTarget("deepseek_v3", _deepseek),
    AuxTarget("seed_oss", lambda n: _llama("seed_oss", "SeedOssForCausalLM", n)),
    AuxTarget("granite", lambda n: _llama("granite", "GraniteForCausalLM", n)),
    AuxTarget("smollm3", lambda n: _llama("smollm3", "SmolLM3ForCausalLM", n, pad_token_id=0)),
)
"""Target models of those classes that a machine without a GPU can make.

Each is asked if the release has it: the first one about every configuration, the others about those
that ``asked_of_every_target`` names. The last one is run by transformers' own class
(``models/transformers/base.py``).
"""
