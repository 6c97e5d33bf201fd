"""What vLLM's contracts say, at the releases where vLLM changed its mind.

Expectations are read off the files and lines that each test names, relative to ``vllm/`` in the
wheel of the release.
"""

from __future__ import annotations

import pytest

from eagle3_lint.config_classes import ConfigClassTable
from eagle3_lint.contract.runtime import runtime_file
from eagle3_lint.simulate.aux_states import aux_states
from eagle3_lint.simulate.resolve import ConfigClassRefusal
from tests.conformance.draft import ABSENT, llama, mla
from tests.unit.loader import Loader

GOOD = llama().config(architectures=["Eagle3LlamaForCausalLM"])
LATENT = mla().config(model_type="kimi_k2")
YARN = {"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 1024}

LOADER = Loader("vllm")
played, refused, loaded = LOADER.played, LOADER.refused, LOADER.loaded


@pytest.mark.parametrize("release", runtime_file("vllm").releases)
def test_a_good_draft_loads_whole_and_two_releases_lose_its_map(release: str) -> None:
    """0.9.0 throws the map away: it asks for d2t among the names of parameters
    (model_executor/models/llama_eagle3.py:254)."""
    load = loaded(GOOD, release)
    assert load.outcome == "ok"
    lost = release in ("0.9.0", "0.9.0.1")
    assert load.vocabulary_map == (None if lost else "d2t")


def test_the_first_name_that_vllm_knows_is_its_own() -> None:
    """LlamaForCausalLMEagle3 is a comment in 0.10.1 (model_executor/models/registry.py:264)."""
    assert "are not supported for now" in refused(llama(), "0.10.1.1")[1]
    assert loaded(llama(), "0.10.2").outcome == "ok"


def test_two_releases_want_every_parameter() -> None:
    """0.9.0 model_executor/model_loader/default_loader.py:281; 0.9.1 does not say what it loaded,
    so that nothing is compared any more."""
    draft = GOOD.drop("norm.weight")
    text = "Following weights were not initialized from checkpoint: {'model.norm.weight'}"
    assert refused(draft, "0.9.0") == ("ValueError", text)
    assert loaded(draft, "0.9.1").unfilled == ("model.norm.weight",)


def test_part_of_a_fused_parameter_is_enough_for_them() -> None:
    """The set of loaded names has qkv_proj once k_proj came (0.9.0 llama_eagle3.py:171)."""
    load = loaded(GOOD.drop("midlayer.self_attn.q_proj.weight"), "0.9.0")
    assert "model.layers.0.self_attn.qkv_proj.weight" in load.unfilled


def test_unknown_weights_raise_differently_since_the_loader_is_shared() -> None:
    """0.24.0 llama_eagle3.py:284 looks into a dictionary, 0.25.0 utils.py:387 says what it has."""
    draft = GOOD.put("adapter.weight", 4, 4)
    assert refused(draft, "0.24.0") == ("KeyError", "'adapter.weight'")
    text = "There is no module or parameter named 'adapter' in LlamaModel."
    assert refused(draft, "0.25.0") == ("ValueError", text)


@pytest.mark.parametrize(
    ("release", "draft_class"),
    [("0.23.0", "Eagle3LlamaForCausalLM"), ("0.24.0", "Eagle3Qwen3ForCausalLM")],
)
def test_a_speculators_draft_of_qwen3_gets_a_class_of_its_own(
    release: str, draft_class: str
) -> None:
    """0.23.0 transformers_utils/configs/speculators/algos.py:40 knows one architecture, 0.24.0
    algos.py:38 one for each type of layer; only the Qwen3 class has q_norm."""
    layer = {k: v for k, v in GOOD.fields.items() if k not in ("architectures", "draft_vocab_size")}
    draft = (
        GOOD.config(**dict.fromkeys(GOOD.fields, ABSENT))
        .config(
            speculators_model_type="eagle3",
            speculators_config={
                "proposal_methods": [{"speculative_tokens": 3, "proposal_type": "greedy"}],
                "verifier": {"name_or_path": "somewhere", "architectures": []},
            },
            draft_vocab_size=GOOD.fields["draft_vocab_size"],
            transformer_layer_config={**layer, "model_type": "qwen3"},
        )
        .put("midlayer.self_attn.q_norm.weight", 8)
        .put("midlayer.self_attn.k_norm.weight", 8)
    )
    if draft_class == "Eagle3Qwen3ForCausalLM":
        assert "model.layers.0.self_attn.q_norm.weight" in loaded(draft, release).parameters
    else:
        assert refused(draft, release)[0] == "KeyError"


def test_a_draft_that_keeps_deepseek_v3_is_taken_for_its_mtp_head() -> None:
    """0.18.0 config/speculative.py:184, transformers_utils/configs/eagle.py:29."""
    kind, text = refused(mla(), "0.18.0")
    assert kind == "ValidationError" and "['Eagle3DeepSeekMTPModel'] are not supported" in text


def test_a_model_type_with_a_text_config_inside_is_refused_since_0_15() -> None:
    """0.15.0 transformers_utils/config.py:990 looks into the dictionary that EAGLEConfig made."""
    draft = llama().config(model_type="qwen3_vl")
    assert loaded(draft, "0.14.1").outcome == "ok"
    kind, text = refused(draft, "0.15.0")
    assert kind == "ValidationError" and "does not have `num_attention_heads`" in text


@pytest.mark.parametrize("release", ["0.19.1", "0.27.1"])
def test_a_latent_draft_needs_yarn_while_rope_scaling_is_never_empty(release: str) -> None:
    """deepseek_eagle3.py:79 of both takes any rope_scaling for YaRN's; from 0.19.1 on vLLM admits
    transformers 5, where it is another name of rope_parameters."""
    assert refused(LATENT, release) == ("KeyError", "'factor'")
    assert loaded(LATENT.config(rope_scaling=YARN), release).outcome == "ok"


@pytest.mark.parametrize("release", ["0.19.0", "0.28.0"])
def test_before_and_after_it_does_not(release: str) -> None:
    assert loaded(LATENT, release).outcome == "ok"


def test_an_fp8_draft_without_scales_computes_with_garbage() -> None:
    """0.11.1 model_executor/layers/quantization/fp8.py:466: a scale for each linear layer; before,
    the draft was built without looking at its quantization_config (0.11.0 llama_eagle3.py:37)."""
    draft = llama().config(quantization_config={"quant_method": "fp8"})
    layer = "model.layers.0."
    assert loaded(draft, "0.11.0").unfilled == ()
    assert loaded(draft, "0.11.1").unfilled == (
        "model.fc.weight_scale",
        f"{layer}mlp.down_proj.weight_scale",
        f"{layer}mlp.gate_up_proj.weight_scale",
        f"{layer}self_attn.o_proj.weight_scale",
        f"{layer}self_attn.qkv_proj.weight_scale",
    )


def test_the_second_model_runner_does_not_see_nested_ids() -> None:
    """0.28.0 v1/worker/gpu_model_runner.py (the first runner) reads them; 0.29.0 starts the second
    (config/vllm.py:645), whose eagle3_utils.py reads the top level."""
    config = {"eagle_config": {"eagle_aux_hidden_state_layer_ids": [1, 5, 9]}}
    older, newer = (runtime_file("vllm").release(r).aux for r in ("0.28.0", "0.29.0"))
    assert aux_states(older, None, config, 24).states == (1, 5, 9)
    assert aux_states(newer, None, config, 24).states == (2, 12, 21)
    on_top = {"eagle_aux_hidden_state_layer_ids": [1, 5, 9]}
    assert aux_states(newer, None, on_top, 24).states == (1, 5, 9)


def test_ids_of_another_kind_of_draft_are_raised_by_one() -> None:
    """0.29.0 v1/worker/gpu/spec_decode/eagle/eagle3_utils.py: dflash_config counts outputs."""
    config = {"dflash_config": {"target_layer_ids": [1, 5, 9]}}
    statement = runtime_file("vllm").release("0.29.0").aux
    assert aux_states(statement, None, config, 24).states == (2, 6, 10)


def test_a_class_does_not_divide_by_what_it_does_not_need() -> None:
    """transformers 4.57.1 models/llama/configuration_llama.py: head_dim is a quotient of two
    fields, computed only when it is not given."""
    add_defaults = ConfigClassTable().lookup("vllm", "0.14.0")
    fields = {"hidden_size": 64, "num_attention_heads": None}
    with pytest.raises(ConfigClassRefusal, match="TypeError"):
        add_defaults("llama", fields)
    assert add_defaults("llama", {**fields, "head_dim": 8}) is not None
