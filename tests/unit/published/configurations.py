"""What is known of published drafts, and what the runtimes do with each by their own sources.

``config`` holds the published fields; those that nobody published are filled in and named in
``assumed``. Releases are written out, so that a look at an entry says what was asked: the first one
that serves the target model and knows the draft's class, the newest known, and those that a public
thread names or that lie on either side of a change. File paths lie in the wheel of the release that
is asked, or that is named with them.
"""

from __future__ import annotations

from typing import Any

from tests.unit.published.entry import Case, NoDraft, Published, fails
from tests.unit.published.layouts import (
    MIDLAYER,
    MIDLAYER_EMBEDDING,
    MODELOPT_LAYERS,
    NEMO,
    SPECULATORS,
    TORCHSPEC_VLLM,
    Config,
    Layout,
)

#: The newest releases known when the entries were written.
SGLANG, VLLM = "sglang==0.5.23", "vllm==0.33.0"


# --- pieces of configuration that several entries share -------------------------------------------

EAGLE3 = {"architectures": ["LlamaForCausalLMEagle3"]}
LLAMA: Config = {
    "model_type": "llama",
    "hidden_act": "silu",
    "initializer_range": 0.02,
    "num_hidden_layers": 1,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
    "use_cache": True,
}
#: SpecForge configs/llama3-8B-eagle3.json: sizes of the EAGLE authors' own head for this target.
LLAMA_8B: Config = {
    **LLAMA,
    "bos_token_id": 128000,
    "eos_token_id": 128001,
    "pad_token_id": 0,
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "max_position_embeddings": 2048,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "rms_norm_eps": 1e-05,
    "torch_dtype": "float16",
    "transformers_version": "4.28.1",
    "vocab_size": 128256,
    "draft_vocab_size": 32000,
}
LLAMA_70B: Config = {
    **LLAMA_8B,
    "hidden_size": 6144,
    "target_hidden_size": 8192,
    "intermediate_size": 16384,
    "num_attention_heads": 48,
}
QWEN3: Config = {
    **LLAMA,
    "attention_bias": False,
    "attention_dropout": 0.0,
    "bos_token_id": 151643,
    "eos_token_id": 151645,
    "head_dim": 128,
    "max_position_embeddings": 40960,
    "num_key_value_heads": 8,
    "rms_norm_eps": 1e-06,
    "rope_scaling": None,
    "rope_theta": 1000000,
    "vocab_size": 151936,
    "draft_vocab_size": 32000,
}
QWEN3_235B: Config = {
    **QWEN3,
    "hidden_size": 4096,
    "intermediate_size": 24576,
    "num_attention_heads": 64,
    "num_key_value_heads": 4,
    "transformers_version": "4.51.0",
}
GPT_OSS: Config = {
    **LLAMA,
    "head_dim": 64,
    "hidden_size": 2880,
    "intermediate_size": 17280,
    "max_position_embeddings": 131072,
    "num_attention_heads": 64,
    "num_key_value_heads": 8,
    "rms_norm_eps": 1e-05,
    "vocab_size": 201088,
}
KIMI: Config = {
    **LLAMA,
    "attention_bias": False,
    "attention_dropout": 0.0,
    "bos_token_id": 163584,
    "eos_token_id": 163585,
    "head_dim": 128,
    "hidden_size": 7168,
    "intermediate_size": 18432,
    "max_position_embeddings": 131072,
    "num_attention_heads": 64,
    "num_key_value_heads": 64,
    "rms_norm_eps": 1e-06,
    "rope_scaling": None,
    "rope_theta": 1000000.0,
    "vocab_size": 163840,
    "draft_vocab_size": 32000,
}
KIMI_MLA: Config = {
    "architectures": ["Eagle3DeepseekV2ForCausalLM"],
    "model_type": "kimi_k2",
    "hidden_act": "silu",
    "hidden_size": 7168,
    "intermediate_size": 18432,
    "kv_lora_rank": 512,
    "max_position_embeddings": 262144,
    "num_attention_heads": 64,
    "num_hidden_layers": 1,
    "num_key_value_heads": 64,
    "q_lora_rank": 1536,
    "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64,
    "rms_norm_eps": 1e-05,
    "rope_scaling": {
        "beta_fast": 1.0,
        "beta_slow": 1.0,
        "factor": 64.0,
        "mscale": 1.0,
        "mscale_all_dim": 1.0,
        "original_max_position_embeddings": 4096,
        "type": "yarn",
    },
    "rope_theta": 50000.0,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
    "v_head_dim": 128,
    "vocab_size": 163840,
    "draft_vocab_size": 163840,
}
MINIMAX_M3: Config = {
    **EAGLE3,
    **LLAMA,
    "head_dim": 128,
    "hidden_size": 6144,
    "intermediate_size": 12288,
    "max_position_embeddings": 1048576,
    "num_attention_heads": 64,
    "num_key_value_heads": 4,
    "rms_norm_eps": 1e-06,
    "rope_theta": 5000000,
    "vocab_size": 200064,
}
LLAMA_ROPE: Config = {
    "rope_scaling": {
        "factor": 8.0,
        "high_freq_factor": 4.0,
        "low_freq_factor": 1.0,
        "original_max_position_embeddings": 8192,
        "rope_type": "llama3",
    },
    "rope_theta": 500000.0,
}


def ids(*layers: int, **switches: bool) -> Config:
    """An eagle_config with layer ids."""
    return {"eagle_config": {"eagle_aux_hidden_state_layer_ids": list(layers), **switches}}


def speculators(layer: Config, verifier: tuple[str, str], **top: Any) -> Config:
    """A configuration in the form that speculators and its converter write."""
    nested = {k: v for k, v in layer.items() if k not in ("draft_vocab_size", "torch_dtype")}
    return {
        "architectures": ["Eagle3Speculator"],
        "draft_vocab_size": layer["draft_vocab_size"],
        "norm_before_residual": False,
        "speculators_model_type": "eagle3",
        "torch_dtype": "float32",
        **top,
        "speculators_config": {
            "algorithm": "eagle3",
            "default_proposal_method": "greedy",
            "proposal_methods": [
                {
                    "accept_tolerance": 0.0,
                    "proposal_type": "greedy",
                    "speculative_tokens": 5,
                    "verifier_accept_k": 1,
                }
            ],
            "verifier": {"architectures": [verifier[0]], "name_or_path": verifier[1]},
        },
        "transformer_layer_config": nested,
    }


# --- target models that have no known name --------------------------------------------------------

VICUNA_13B: Config = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 5120,
    "num_hidden_layers": 40,
    "vocab_size": 32000,
    "max_position_embeddings": 2048,
}
R1_DISTILL_8B: Config = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 4096,
    "num_hidden_layers": 32,
    "vocab_size": 128256,
    "max_position_embeddings": 131072,
}
QWEN3_CODER_NEXT: Config = {
    "architectures": ["Qwen3NextForCausalLM"],
    "model_type": "qwen3_next",
    "hidden_size": 2048,
    "num_hidden_layers": 48,
    "vocab_size": 151936,
    "max_position_embeddings": 262144,
}
QWEN35_9B: Config = {
    "architectures": ["Qwen3_5ForConditionalGeneration"],
    "model_type": "qwen3_5",
    "text_config": {
        "model_type": "qwen3_5_text",
        "hidden_size": 4096,
        "num_hidden_layers": 32,
        "vocab_size": 248320,
        "max_position_embeddings": 262144,
    },
}

# --- the releases that entries have in common -----------------------------------------------------

NEWEST = "the newest known"
NO_CLASS = (
    "the architecture is the plain model's: speculative/eagle_worker_v2.py:366 finds no "
    "hot_token_id"
)
NESTED_V1 = (
    "0.22.0 v1/worker/gpu_model_runner.py:5225 reads ids in eagle_config, and takes them for inputs"
)
NESTED_V2 = (
    "0.33.0 v1/worker/gpu/spec_decode/eagle/eagle3_utils.py:113 does not look in eagle_config for "
    "ids"
)
SPECULATORS_UNREAD = (
    "no release reads a nested configuration: sglang issue 18216; AutoConfig wants a model_type"
)
BIASED_FC = "models/llama_eagle3.py:111: torch.nn.Linear has a bias unless told otherwise"
TIED = (
    "models/llama_eagle3.py:303 takes the embedding, of the target and in its vocabulary, for the "
    "head"
)
V2_SWITCH = (
    "0.32.0 v1/worker/gpu/model_runner.py:307 captures aux states whatever the switch says; the "
    "draft hands three of them back as they are (llama_eagle3.py:401), and the copy into a buffer "
    "of "
    "one fails (target_dependent_ar/speculator.py:246); the switch is read there from 0.33.0 on"
)


def sglang_llama_head(first: str) -> tuple[Case, ...]:
    """Heads that name the plain Llama class, in the first release with EAGLE-3 and the newest."""
    why = "sglang PR 33966: the class that is built is the one that is named"
    return (
        fails(f"sglang=={first}", why, "refused", E3L102=NO_CLASS),
        fails(SGLANG, NEWEST, "refused", E3L102=NO_CLASS),
    )


EAGLE_AUTHORS: tuple[Published, ...] = (
    Published(
        name="yuhuili/EAGLE3-LLaMA3.1-Instruct-8B",
        source="sglang PR 33966; vllm issue 48894; speculators PR 75",
        model="llama-3.1-8b",
        config={"architectures": ["LlamaForCausalLM"], **LLAMA_8B},
        layout=MIDLAYER,
        cases=(
            *sglang_llama_head("0.4.4.post2"),
            Case("vllm==0.8.5", "the first with EAGLE-3, for Llama alone"),
            fails(
                "vllm==0.9.0",
                "vllm PR 18909: acceptance length 1.12 for 2.99",
                "broken",
                E3L401="model_executor/models/llama_eagle3.py:254 looks for `d2t` after the "
                "renaming",
            ),
            Case(
                "vllm==0.24.0",
                "vllm issue 48894: fails beyond 2048 positions",
                says=("E3L501",),
            ),
            Case(VLLM, NEWEST),
        ),
        assumed="sizes of SpecForge's template for this target, which has the same positions and "
        "vocabularies; the weights are .bin, given here as safetensors; no embedding",
    ),
    Published(
        name="yuhuili/EAGLE3-DeepSeek-R1-Distill-LLaMA-8B",
        source="EAGLE issue 249: lm_head [32000, 4096], 128256 tokens (or the head for Llama 3.1)",
        model=R1_DISTILL_8B,
        config={"architectures": ["LlamaForCausalLM"], **LLAMA_8B},
        layout=MIDLAYER,
        cases=(
            *sglang_llama_head("0.4.9"),
            Case("vllm==0.8.5", "the first with EAGLE-3"),
            Case(VLLM, NEWEST),
        ),
        assumed="all but the head's shape and the vocabulary: as for Llama 3.1",
    ),
    Published(
        name="yuhuili/EAGLE3-Vicuna1.3-13B",
        source="sglang PR 33966 (40 layers stated, one there); EAGLE issue 222 (d2t all zero)",
        model=VICUNA_13B,
        config={
            "architectures": ["LlamaForCausalLM"],
            **LLAMA_8B,
            "hidden_size": 5120,
            "intermediate_size": 13824,
            "num_attention_heads": 40,
            "num_hidden_layers": 40,
            "num_key_value_heads": 40,
            "vocab_size": 32000,
        },
        layout=Layout(tables=("d2t", "t2d")),
        cases=(
            *sglang_llama_head("0.4.9"),
            Case("vllm==0.8.5", "the first with EAGLE-3; it builds one layer, whatever is stated"),
            Case(
                "vllm==0.11.0",
                "the last that builds one layer; it takes the target's head where the sizes agree",
                says=("E3L415",),
            ),
            fails(
                "vllm==0.11.1",
                "the first that builds all",
                "broken",
                E3L207="model_executor/models/llama_eagle3.py:163 (range(num_hidden_layers))",
            ),
            fails(
                VLLM,
                NEWEST,
                "refused",
                E3L205="0.30.0 model_executor/models/llama_eagle3.py:345: no draft_id_to_target_id "
                "where the vocabularies are one size, and d2t is there",
                E3L207="as above",
            ),
        ),
        assumed="sizes of Vicuna 13B",
    ),
    Published(
        name="yuhuili/EAGLE3-LLaMA3.3-Instruct-70B",
        source="vllm issues 18906, 19174 and PR 28549",
        model="llama-3.3-70b",
        config={"architectures": ["LlamaForCausalLM"], **LLAMA_70B},
        layout=MIDLAYER_EMBEDDING,
        cases=(
            *sglang_llama_head("0.4.9"),
            Case("vllm==0.8.5", "the first with EAGLE-3"),
            fails(
                "vllm==0.9.0",
                "vllm issue 18906: KeyError: 'embed_tokens.weight'",
                "refused",
                E3L205="model_executor/models/llama_eagle3.py has no embedding to load",
            ),
            Case("vllm==0.9.1", "has one again and keeps it: the sizes differ"),
            Case("vllm==0.11.1", "vllm PR 28549"),
            Case(VLLM, NEWEST),
        ),
        assumed="hidden 6144 and what follows from it: published is only that it is not the "
        "target's "
        "8192",
    ),
    Published(
        name="lmsys/sglang-EAGLE3-LLaMA3.1-Instruct-8B",
        source="sglang PR 33966 (the copy that names the EAGLE-3 class)",
        model="llama-3.1-8b",
        config={**EAGLE3, **LLAMA_8B},
        layout=MIDLAYER,
        cases=(
            Case(
                "sglang==0.4.4.post2",
                "the first with EAGLE-3; SGLang's guide: 373 tokens/s with such a head, 158 "
                "without",
                "degraded",
                {"E3L209": BIASED_FC},
            ),
            Case("sglang==0.4.9", "the first whose fc has no bias"),
            Case(SGLANG, NEWEST),
        ),
        assumed="as the head that it is a copy of",
    ),
    Published(
        name="lmsys/sglang-EAGLE3-LLaMA3.3-Instruct-70B",
        source="sglang issue 6783 (2048 positions)",
        model="llama-3.3-70b",
        config={**EAGLE3, **LLAMA_70B},
        layout=MIDLAYER_EMBEDDING,
        cases=(
            fails(
                "sglang==0.4.9",
                "the first whose fc has no bias",
                "refused",
                E3L312="speculative/eagle_draft_extend_cuda_graph_runner.py:87 makes a buffer of "
                "three times the draft's width, and fc takes three times the target's",
            ),
            Case("sglang==0.4.9.post3", "sglang PR 8163"),
            Case(SGLANG, NEWEST, says=("E3L501",)),
        ),
        assumed="as the head that it is a copy of",
    ),
)

QWEN3_DRAFTS: tuple[Published, ...] = (
    Published(
        name="lmsys/Qwen3-235B-A22B-EAGLE3",
        source="card of its conversion; SpecForge configs/qwen3-235B-A22B-eagle3.json",
        model="qwen3-235b-a22b",
        config={**EAGLE3, **QWEN3_235B, **ids(1, 46, 90, use_aux_hidden_state=True)},
        layout=MIDLAYER,
        cases=(
            Case("sglang==0.4.9", "the first that serves Qwen3MoeForCausalLM"),
            Case("sglang==0.5.10", "graphs keep the default, which these ids are"),
            Case(SGLANG, NEWEST),
            Case(
                "vllm==0.11.1", "the first that serves Qwen3MoeForCausalLM; no ids in eagle_config"
            ),
            fails("vllm==0.22.0", "reads eagle_config", "degraded", E3L301=NESTED_V1),
            Case(VLLM, "the newest known, which takes its default: the same states"),
        ),
    ),
    Published(
        name="nm-testing/Qwen3-235B-A22B-EAGLE3-converted-speculators-lmsys",
        source="its card: Eagle3Speculator, speculators 0.1.0.dev42, ids at top level as they were",
        model="qwen3-235b-a22b-instruct-2507",
        config=speculators(
            QWEN3_235B,
            ("Qwen3MoeForCausalLM", "Qwen/Qwen3-235B-A22B-Instruct-2507-FP8"),
            speculators_version="0.1.0.dev42",
            eagle_aux_hidden_state_layer_ids=[1, 46, 90],
        ),
        layout=SPECULATORS,
        cases=(
            fails(SGLANG, NEWEST, "refused", E3L104=SPECULATORS_UNREAD),
            *(
                Case(
                    target,
                    why,
                    "degraded",
                    {"E3L301": "0.11.1 v1/worker/gpu_model_runner.py:3395 takes them for inputs"},
                )
                for target, why in (
                    ("vllm==0.11.1", "the first that serves Qwen3MoeForCausalLM"),
                    (VLLM, NEWEST),
                )
            ),
        ),
        assumed="norm_before_residual false, as the converter wrote it for block 2a; the embedding",
    ),
    Published(
        name="RedHatAI/Qwen3-235B-A22B-speculator.eagle3",
        source="vllm-ascend issue 6612 (another rope_theta than the target's); sglang issue 18216",
        model="qwen3-235b-a22b",
        config=speculators(
            {**QWEN3_235B, "rope_theta": 10000},
            ("Qwen3MoeForCausalLM", "Qwen/Qwen3-235B-A22B"),
        ),
        layout=SPECULATORS,
        cases=(
            fails(
                "sglang==0.5.8",
                "sglang issue 18216, of February 2026",
                "refused",
                E3L104=SPECULATORS_UNREAD,
            ),
            fails(SGLANG, NEWEST, "refused", E3L104=SPECULATORS_UNREAD),
            Case("vllm==0.11.1", "the first that serves Qwen3MoeForCausalLM"),
            Case(VLLM, NEWEST),
        ),
        assumed="sizes of lmsys's draft, rope_theta 10000, no ids, no version",
    ),
    Published(
        name="Qwen3-14B-EAGLE3 (AngelSlim)",
        source="sglang issue 9135, AngelSlim issue 39",
        model="qwen3-14b",
        config={
            "architectures": ["Qwen3ForCausalLM"],
            **QWEN3,
            "model_type": "qwen3",
            "hidden_size": 5120,
            "intermediate_size": 17408,
            "max_window_layers": 40,
            "num_attention_heads": 40,
        },
        layout=MIDLAYER_EMBEDDING,
        cases=(
            fails(
                "sglang==0.4.10.post2",
                "sglang issue 9135, August 2025: KeyError: 'midlayer.self_attn.qkv_proj.weight'",
                "refused",
                E3L102="models/qwen3.py (load_weights): the plain model has no such parameter, and "
                "its head has other rows; the order of the tensors decides what is raised",
            ),
            fails(SGLANG, NEWEST, "refused", E3L102=NO_CLASS),
            fails(
                "vllm==0.24.0",
                "the first with a class for Qwen3ForCausalLM drafts",
                "degraded",
                E3L202="model_executor/models/qwen3.py:149 norms queries and keys; this draft has "
                "no such weights, and ones stay",
            ),
        ),
        assumed="32000 tokens; the embedding, which AngelSlim saves",
    ),
    Published(
        name="AngelSlim/Qwen3-8B_eagle3, Tengyunw/qwen3_8b_eagle3",
        source="vllm PR 22333; EAGLE issue 294 (fc 12288 to 4096)",
        model="qwen3-8b",
        config={
            **EAGLE3,
            **QWEN3,
            "hidden_size": 4096,
            "intermediate_size": 12288,
            "num_attention_heads": 32,
        },
        layout=MIDLAYER_EMBEDDING,
        cases=(
            Case("sglang==0.4.9", "the first that serves Qwen3ForCausalLM"),
            Case(SGLANG, NEWEST),
            fails(
                "vllm==0.10.1",
                "the first that serves Qwen3ForCausalLM",
                "refused",
                E3L109="model_executor/models/registry.py has the class under this name from "
                "0.10.2 on",
            ),
            Case("vllm==0.10.2", "the first that knows the class by this name"),
            Case(VLLM, NEWEST),
        ),
        assumed="all but class and fc: the target's sizes; 32000 tokens",
    ),
    *(
        Published(
            name=f"AngelSlim/{name}_eagle3",
            source="vllm PR 22333; sfllm PR 32 (tie_word_embeddings has to be set to false)",
            model=name.lower(),
            config={
                **EAGLE3,
                **QWEN3,
                **sizes,
                "tie_word_embeddings": True,
            },
            layout=MIDLAYER_EMBEDDING,
            cases=(
                Case(
                    "sglang==0.4.9",
                    "the first that serves Qwen3ForCausalLM",
                    "broken",
                    {"E3L201": TIED},
                ),
                Case(
                    SGLANG,
                    NEWEST,
                    "broken",
                    {"E3L201": TIED},
                ),
                Case("vllm==0.10.2", "the first that knows the class; it never ties"),
                Case(VLLM, NEWEST),
            ),
            assumed="all but class, tie and rope_theta: the target's sizes; 32000 tokens",
        )
        for name, sizes in (
            (
                "Qwen3-1.7B",
                {"hidden_size": 2048, "intermediate_size": 6144, "num_attention_heads": 16},
            ),
            (
                "Qwen3-4B",
                {"hidden_size": 2560, "intermediate_size": 9728, "num_attention_heads": 32},
            ),
        )
    ),
    Published(
        name="AngelSlim/Qwen3-32B_eagle3",
        source="vllm-ascend PR 2215 (another number of KV heads times width than the target's 8 x "
        "128)",
        model="qwen3-32b",
        config={
            **EAGLE3,
            **QWEN3,
            "hidden_size": 5120,
            "intermediate_size": 25600,
            "num_attention_heads": 40,
            "num_key_value_heads": 40,
        },
        layout=MIDLAYER_EMBEDDING,
        cases=(
            Case("sglang==0.4.9", "the first that serves Qwen3ForCausalLM"),
            Case(SGLANG, NEWEST),
            Case("vllm==0.10.2", "the first that knows the class"),
            Case(VLLM, NEWEST),
        ),
        assumed="the number of heads, and all but class and hidden size",
    ),
    Published(
        name="thoughtworks/Qwen3-Coder-Next-Eagle3",
        source="its card: aux layers 3, 23, 47; needs a fork of SGLang; SpecForge's template",
        model=QWEN3_CODER_NEXT,
        config={
            **EAGLE3,
            **QWEN3,
            "hidden_size": 2048,
            "intermediate_size": 8192,
            "max_position_embeddings": 4096,
            "num_attention_heads": 16,
            "num_key_value_heads": 4,
            **ids(3, 23, 47, use_aux_hidden_state=True),
        },
        layout=MIDLAYER,
        cases=tuple(
            fails(
                target,
                why,
                "refused",
                E3L305="0.5.9 models/qwen3_next.py:849, :1154: 47 + 1 indexes layers of which "
                "there "
                "are 48, IndexError at the start",
            )
            for target, why in (
                ("sglang==0.5.9", "the first that serves Qwen3NextForCausalLM"),
                (SGLANG, NEWEST),
            )
        ),
        assumed="sizes of SpecForge configs/qwen3-coder-next-eagle3.json; the ids stand in "
        "eagle_config",
    ),
    Published(
        name="Ex0bit/Qwen3.6-27B-PRISM-EAGLE3 (full)",
        source="club-3090 issue 171: 3.1 GB, about 248K tokens",
        model="qwen3.6-27b",
        config={
            **EAGLE3,
            **QWEN3,
            "hidden_size": 5120,
            "intermediate_size": 17408,
            "max_position_embeddings": 262144,
            "num_attention_heads": 40,
            "vocab_size": 248320,
            "draft_vocab_size": 248320,
        },
        layout=MIDLAYER,
        cases=(
            fails(
                "sglang==0.5.21",
                "such drafts are served by a patched qwen3_5.py",
                "refused",
                E3L601="models/qwen3_vl.py:1766 marks layers_to_capture, models/qwen3_5.py:1826 "
                "looks at _is_layer_to_capture",
            ),
            Case("sglang==0.5.22", "the first that serves Qwen3_5ForConditionalGeneration"),
            Case(SGLANG, NEWEST),
            Case("vllm==0.20.0", "the first that serves it"),
            Case(VLLM, NEWEST),
        ),
        assumed="all but the vocabulary; no embedding, which 3.1 GB have no room for",
    ),
    Published(
        name="Ex0bit/Qwen3.6-27B-PRISM-EAGLE3 (compressed)",
        source="club-3090 issue 171: 1.1 GB, 32K tokens and d2t",
        model="qwen3.6-27b",
        config={
            **EAGLE3,
            **QWEN3,
            "hidden_size": 5120,
            "intermediate_size": 17408,
            "max_position_embeddings": 262144,
            "num_attention_heads": 40,
            "vocab_size": 248320,
            "draft_vocab_size": 32000,
        },
        layout=Layout(tables=("d2t",)),
        cases=(
            Case("sglang==0.5.22", "the first that serves Qwen3_5ForConditionalGeneration"),
            Case(SGLANG, NEWEST),
            Case("vllm==0.20.0", "the first that serves it"),
            Case(VLLM, NEWEST),
        ),
        assumed="all but the vocabularies",
    ),
    Published(
        name="Qwen3.5-9B draft",
        source="fixture of a public Rust repository (architectures and draft_vocab_size cut off)",
        model=QWEN35_9B,
        config={
            **EAGLE3,
            **LLAMA,
            "eos_token_id": 248044,
            "head_dim": 256,
            "hidden_size": 4096,
            "intermediate_size": 12288,
            "max_position_embeddings": 262144,
            "num_attention_heads": 16,
            "num_key_value_heads": 4,
            "partial_rotary_factor": 0.25,
            "rms_norm_eps": 1e-06,
            "rope_parameters": {
                "partial_rotary_factor": 0.25,
                "rope_theta": 10000000,
                "rope_type": "default",
            },
            "transformers_version": "5.3.0",
            "vocab_size": 248320,
            "draft_vocab_size": 32000,
            **ids(1, 15, 28, use_aux_hidden_state=True),
        },
        layout=MIDLAYER,
        cases=(
            Case("sglang==0.5.22", "the first that serves Qwen3_5ForConditionalGeneration"),
            Case(SGLANG, NEWEST),
            fails("vllm==0.22.0", "reads eagle_config", "degraded", E3L301=NESTED_V1),
            Case(VLLM, "the newest known, which takes its default: the same states"),
        ),
        assumed="LlamaForCausalLMEagle3, 32000 tokens, SpecForge's layout; the target's 32 "
        "layers, for "
        "which these ids are the usual ones",
    ),
)

NVIDIA_DRAFTS: tuple[Published, ...] = (
    Published(
        name="nvidia/gpt-oss-120b-Eagle3",
        source="sglang PR 9739; vllm PR 28549 (acceptance length 2.28 with 3 tokens)",
        model="gpt-oss-120b",
        config={
            **EAGLE3,
            **GPT_OSS,
            "draft_vocab_size": None,
            "eagle_config": {"use_aux_hidden_state": True},
        },
        layout=Layout(head=False, tables=()),
        cases=(
            fails(
                "sglang==0.5.1.post3",
                "the last before sglang PR 9739",
                "refused",
                E3L107="layers/vocab_parallel_embedding.py:233: null has no rows",
            ),
            Case("sglang==0.5.2", "sglang PR 9739"),
            Case(SGLANG, NEWEST),
            fails(
                "vllm==0.11.0",
                "the first that serves GptOssForCausalLM",
                "refused",
                E3L702="model_executor/models/llama_eagle3.py:37 gives the draft the target's "
                "quantisation, and layers/quantization/mxfp4.py:146 has no linear layers",
            ),
            Case("vllm==0.11.1", "the first that gives the draft its own; vllm PR 28549"),
            Case(VLLM, NEWEST),
        ),
        assumed="sizes of SpecForge's draft, no ids, ModelOpt's names of 2025 (midlayer)",
    ),
    Published(
        name="nvidia/gpt-oss-120b-Eagle3-v2",
        source="vllm PR 40656; its card (for less than 8k)",
        model="gpt-oss-120b",
        config={
            **EAGLE3,
            **GPT_OSS,
            "draft_vocab_size": None,
            "eagle_config": {"use_aux_hidden_state": False},
        },
        layout=Layout(head=False, fc=False, tables=()),
        cases=(
            fails(
                "sglang==0.5.7",
                "the last that does not read the switch",
                "broken",
                E3L202="models/llama_eagle3.py:135: three states go through an fc that is random",
            ),
            Case("sglang==0.5.8", "the first that reads the switch"),
            Case(SGLANG, NEWEST),
            Case("vllm==0.12.0", "the first that reads the switch"),
            Case("vllm==0.28.0", "the last whose plain start takes the first model runner"),
            *(
                fails(f"vllm=={release}", why, "refused", E3L310=V2_SWITCH)
                for release, why in (
                    ("0.29.0", "the first whose plain start takes the second"),
                    ("0.32.0", "the last that does not read the switch there"),
                )
            ),
            Case(VLLM, NEWEST),
        ),
        assumed="all but the switch: as the first version; no fc, as ModelOpt builds none then",
    ),
    Published(
        name="nvidia/gpt-oss-120b-Eagle3-v3",
        source="sglang issue 32226 and PR 32334; vllm PR 42143; its card",
        model="gpt-oss-120b",
        config={
            **EAGLE3,
            **GPT_OSS,
            "draft_vocab_size": 201088,
            **ids(24, 30, 36, use_aux_hidden_state=True, norm_before_fc=True),
        },
        layout=MODELOPT_LAYERS,
        cases=(
            fails(
                "sglang==0.5.16",
                "the last before sglang PR 32334: 5760 columns for 8640",
                "refused",
                E3L201="models/llama_eagle3.py knows no input_norm",
                E3L503="models/llama_eagle3.py knows no norm_before_fc, which is why",
                E3L305="models/gpt_oss.py:692 looks before each of 36 layers; 36 + 1 is after the "
                "last",
                E3L301="models/gpt_oss.py:1296 adds one to each id; 36 is no output of a layer",
            ),
            Case("sglang==0.5.17", "sglang PR 32334: models/gpt_oss.py:1341, llama_eagle3.py:165"),
            Case(SGLANG, NEWEST),
            fails(
                "vllm==0.21.0",
                "the last before vllm PR 42143",
                "degraded",
                E3L201="no norm_before_fc, no input_norm",
                E3L504="model_executor/models/llama_eagle3.py:153 reads norm_before_fc at top "
                "level",
                E3L301="v1/worker/gpu_model_runner.py:5025 reads ids at top level",
            ),
            Case("vllm==0.22.0", "vllm PR 42143"),
            Case("vllm==0.28.0", "the last whose plain start takes the first model runner"),
            fails(VLLM, NEWEST, "degraded", E3L301=NESTED_V2),
        ),
        assumed="sizes of SpecForge's draft; a head of its own for the whole vocabulary; no ids "
        "at top "
        "level; ModelOpt's names of 2026 (layers.0)",
    ),
    Published(
        name="nvidia/gpt-oss-120b-Eagle3-long-context",
        source="sglang PR 32334 (ids 1, 17, 32)",
        model="gpt-oss-120b",
        config={
            **EAGLE3,
            **GPT_OSS,
            "draft_vocab_size": 201088,
            **ids(1, 17, 32, use_aux_hidden_state=True),
        },
        layout=MODELOPT_LAYERS,
        cases=(
            Case("sglang==0.5.12", "the first that reads layers.0"),
            Case(SGLANG, NEWEST),
            fails("vllm==0.28.0", "reads eagle_config", "degraded", E3L301=NESTED_V1),
            Case(VLLM, "the newest known, which takes its default: the same states"),
        ),
        assumed="as v3",
    ),
    Published(
        name="nvidia/gpt-oss-120b-Eagle3-short-context",
        source="sglang PR 32334 (the last state alone)",
        model="gpt-oss-120b",
        config={
            **EAGLE3,
            **GPT_OSS,
            "draft_vocab_size": 201088,
            "eagle_config": {"use_aux_hidden_state": False},
        },
        layout=Layout(layer="layers.0.", fc=False, tables=()),
        cases=(
            Case("sglang==0.5.12", "the first that reads layers.0"),
            Case(SGLANG, NEWEST),
            Case("vllm==0.28.0", "the last whose plain start takes the first model runner"),
            fails(
                "vllm==0.32.0",
                "the last that does not read the switch in the second",
                "refused",
                E3L310=V2_SWITCH,
            ),
            Case(VLLM, NEWEST),
        ),
        assumed="as v3; how the switch is spelled",
    ),
    Published(
        name="nvidia/Llama-3.3-70B-Instruct-Eagle3",
        source="tpu-inference PR 2841 (use_aux_hidden_state false); vllm PR 50170 (no ids)",
        model="llama-3.3-70b",
        config={
            **EAGLE3,
            **LLAMA_8B,
            **LLAMA_ROPE,
            "hidden_size": 8192,
            "intermediate_size": 28672,
            "max_position_embeddings": 131072,
            "num_attention_heads": 64,
            "torch_dtype": "bfloat16",
            "eagle_config": {"use_aux_hidden_state": False},
        },
        layout=Layout(tables=("d2t",), fc=False),
        cases=(
            Case("sglang==0.5.8", "the first that reads the switch"),
            Case(SGLANG, NEWEST),
            Case("vllm==0.12.0", "the first that reads the switch"),
            Case(
                "vllm==0.22.0", "the last whose plain start takes the first model runner for Llama"
            ),
            *(
                fails(f"vllm=={release}", why, "refused", E3L310=V2_SWITCH)
                for release, why in (
                    ("0.23.0", "the first whose plain start takes the second for Llama"),
                    ("0.32.0", "the last that does not read the switch there"),
                )
            ),
            Case(VLLM, NEWEST),
        ),
        assumed="all but the switch and the ids that are not there; the two threads do not agree "
        "about "
        "it: the second measured 1.2 % with vLLM's default states",
    ),
    Published(
        name="nvidia/Qwen3-30B-A3B-Thinking-2507-Eagle3",
        source="vllm PR 53458 (the draft's vocabulary is the target's)",
        model="qwen3-30b-a3b-thinking-2507",
        config={
            **EAGLE3,
            **QWEN3,
            "hidden_size": 2048,
            "intermediate_size": 6144,
            "max_position_embeddings": 262144,
            "num_attention_heads": 32,
            "num_key_value_heads": 4,
            "draft_vocab_size": 151936,
        },
        layout=MODELOPT_LAYERS,
        cases=(
            Case("sglang==0.5.12", "the first that reads layers.0"),
            Case(SGLANG, NEWEST),
            Case("vllm==0.11.1", "the first that serves Qwen3MoeForCausalLM"),
            Case(VLLM, NEWEST),
        ),
        assumed="all but the vocabulary: the target's sizes, no ids, no tables",
    ),
    Published(
        name="nvidia/Kimi-K2.6-Eagle3",
        source="sglang issue 27829 (every line accept len: 1.00) and PR 27908",
        model="kimi-k2.6",
        config={**KIMI_MLA, "eagle_config": {"use_aux_hidden_state": True}},
        layout=Layout(layer="layers.0.", head=False, tables=()),
        cases=(
            *(
                fails(
                    target,
                    why,
                    "broken",
                    E3L202="0.5.12 models/kimi_k25_eagle3.py:308 makes a head of its own where "
                    "draft_vocab_size is given; nothing fills it",
                )
                for target, why in (
                    ("sglang==0.5.12", "the first with the class"),
                    ("sglang==0.5.13", "sglang issue 27829, June 2026"),
                    (SGLANG, NEWEST),
                )
            ),
            Case("vllm==0.18.0", "the first that serves KimiK25; it takes the target's head"),
            Case(VLLM, NEWEST),
        ),
        assumed="sizes of the target, its rope, no ids",
    ),
    Published(
        name="nvidia/Kimi-K2.5-Thinking-Eagle3",
        source="sglang PR 27908 (the same configuration, and a head)",
        model="kimi-k2.5",
        config={**KIMI_MLA, "eagle_config": {"use_aux_hidden_state": True}},
        layout=MODELOPT_LAYERS,
        cases=(
            Case("sglang==0.5.12", "the first with the class"),
            Case("sglang==0.5.13", "sglang PR 27908, June 2026"),
            Case(SGLANG, NEWEST),
            Case("vllm==0.18.0", "the first that serves KimiK25"),
            Case(VLLM, NEWEST),
        ),
        assumed="sizes of the target, its rope, no ids",
    ),
)

KIMI_DRAFTS: tuple[Published, ...] = (
    Published(
        name="AQ-MedAI/Kimi-K2-Instruct-eagle3",
        source="mirrors of its card: Llama-style, SGLang 0.5.6, training_state.pt beside the "
        "weights",
        model="kimi-k2-instruct",
        config={**EAGLE3, **KIMI},
        layout=MIDLAYER,
        files=("training_state.pt",),
        cases=(
            Case("sglang==0.5.4.post2", "the first that serves DeepseekV3ForCausalLM"),
            Case("sglang==0.5.6", "the release on its card"),
            Case(SGLANG, NEWEST),
        ),
        assumed="SpecForge's template without its ids and with model_type llama, the only one that "
        "0.5.6 can read",
    ),
    Published(
        name="AQ-MedAI/Kimi-K25-eagle3",
        source="sglang PR 19689; vllm PR 35966 (51.78 % accepted)",
        model="kimi-k2.5",
        config={**EAGLE3, **KIMI},
        layout=MIDLAYER,
        cases=(
            fails(
                "sglang==0.5.9",
                "knows the target, but not how to feed from it",
                "refused",
                E3L601="models/kimi_k25.py:648 has no set_eagle3_layers_to_capture",
            ),
            Case("sglang==0.5.10", "sglang PR 19689"),
            Case(SGLANG, NEWEST),
            Case("vllm==0.18.0", "vllm PR 35966"),
            Case(VLLM, NEWEST),
        ),
        assumed="SpecForge's template (below) without its ids",
    ),
    Published(
        name="lightseekorg/kimi-k2.5-eagle3",
        source="cards of ginsongsong/eagle3-kimik2.5-w4a8 and amd/kimi-k2.5-eagle3-fp8; TorchSpec "
        "configs/draft_models/kimi_k25_eagle3.json",
        model="kimi-k2.5",
        config={
            **EAGLE3,
            **KIMI,
            "intermediate_size": 12288,
            "max_position_embeddings": 262144,
            "draft_vocab_size": 163840,
        },
        layout=MIDLAYER_EMBEDDING,
        cases=(
            Case("sglang==0.5.10", "the first that serves KimiK25"),
            Case(SGLANG, NEWEST),
            Case("vllm==0.18.0", "the first that serves KimiK25"),
            Case(VLLM, NEWEST),
        ),
        assumed="sizes of TorchSpec's template; draft_vocab_size, which its converter adds; no ids",
    ),
    Published(
        name="lightseekorg/kimi-k2.5-eagle3-mla",
        source="sglang PR 25454 (0.10 of acceptance length lost); its card: not for SGLang then",
        model="kimi-k2.5",
        config={**KIMI_MLA, **ids(2, 30, 58, use_aux_hidden_state=True)},
        layout=TORCHSPEC_VLLM,
        cases=(
            fails(
                "sglang==0.5.11",
                "the last without the class",
                "refused",
                E3L109="no models/kimi_k25_eagle3.py before 0.5.12; transformers 5.6 knows no "
                "kimi_k2",
            ),
            fails(
                "sglang==0.5.12",
                "the first with the class",
                "degraded",
                E3L301="models/deepseek_v2.py adds one to every id",
            ),
            Case(
                "sglang==0.5.13",
                "sglang PR 25454: ids that do not begin with 1 are taken as they are",
            ),
            Case(SGLANG, NEWEST),
            Case("vllm==0.18.0", "the first that serves KimiK25"),
            Case(VLLM, NEWEST),
        ),
        assumed="sizes of the target, its rope, the ids 2, 30, 58, the names of TorchSpec's "
        "export for "
        "vLLM",
    ),
    Published(
        name="lightseekorg/kimi-k2.6-eagle3-mla",
        source="sglang issue 25673: SGLang 0.5.11, transformers 5.6, KeyError in CONFIG_MAPPING",
        model="kimi-k2.6",
        config={**KIMI_MLA, **ids(2, 30, 58, use_aux_hidden_state=True)},
        layout=TORCHSPEC_VLLM,
        cases=(
            fails(
                "sglang==0.5.11",
                "sglang issue 25673",
                "refused",
                E3L109="no models/kimi_k25_eagle3.py before 0.5.12; transformers 5.6 knows no "
                "kimi_k2",
            ),
            Case("sglang==0.5.13", "the first that knows both and takes the ids as they are"),
            Case(SGLANG, NEWEST),
            Case(VLLM, NEWEST),
        ),
        assumed="model_type kimi_k2; all else as for K2.5",
    ),
    Published(
        name="lightseekorg/kimi-k2.6-eagle3.1-mla",
        source="Automodel PR 2322: model.fc_norm.0.weight to .2, norm_output",
        model="kimi-k2.6",
        config={**KIMI_MLA, "fc_norm": True, "norm_output": True},
        layout=NEMO,
        cases=(
            *(
                fails(
                    target,
                    why,
                    "broken",
                    E3L201="0.5.12 models/kimi_k25_eagle3.py:398 puts `model.` before every name, "
                    "also where it is already",
                )
                for target, why in (
                    ("sglang==0.5.13", "the first whose class has fc_norm"),
                    (SGLANG, NEWEST),
                )
            ),
            fails(
                VLLM,
                NEWEST,
                "refused",
                E3L205="model_executor/models/deepseek_eagle3.py:381 puts `model.` before every "
                "name",
            ),
        ),
        assumed="`model.` before all other names too; published for another engine",
    ),
    Published(
        name="amd/kimi-k2.5-eagle3-fp8",
        source="mirror of its card: quark, ptpc_fp8, exclude fc and lm_head",
        model="kimi-k2.5",
        config={
            **EAGLE3,
            **KIMI,
            "intermediate_size": 12288,
            "max_position_embeddings": 262144,
            "draft_vocab_size": 163840,
            "quantization_config": {
                "quant_method": "quark",
                "exclude": ["re:.*fc.*", "re:.*lm_head.*"],
                "export": {"kv_cache_group": [], "pack_method": "reorder"},
                "global_quant_config": {
                    "weight": {
                        "dtype": "fp8_e4m3",
                        "qscheme": "per_channel",
                        "is_dynamic": False,
                        "ch_axis": 0,
                    },
                    "input_tensors": {
                        "dtype": "fp8_e4m3",
                        "qscheme": "per_channel",
                        "is_dynamic": True,
                        "ch_axis": 1,
                    },
                },
            },
        },
        layout=Layout(embedding=True, linear="fp8"),
        cases=(
            Case(
                VLLM,
                "the newest known; Quark's tensors are described in no contract",
                "unknown",
                says=("E3L701",),
            ),
        ),
        assumed="the draft it was made from; names and shapes of the scales; exclude spelled as "
        "patterns, "
        "which its card says vLLM needs",
    ),
)

OTHER_DRAFTS: tuple[Published, ...] = (
    Published(
        name="Inferact/MiniMax-M3-EAGLE3",
        source="tokenspeed PR 751 (fc_norm, norm_output)",
        model="minimax-m3",
        config={**MINIMAX_M3, "draft_vocab_size": 32000, "fc_norm": True, "norm_output": True},
        layout=MIDLAYER_EMBEDDING,
        cases=(
            Case("vllm==0.24.0", "the first that serves MiniMaxM3Sparse"),
            Case(VLLM, NEWEST),
            *(
                Case(target, why)
                for target, why in (
                    ("sglang==0.5.18", "models/minimax_m3_vl.py is written for this draft"),
                    (SGLANG, NEWEST),
                )
            ),
        ),
        assumed="class, sizes, 32000 tokens; that it names no ids stands in SGLang's source",
    ),
    Published(
        name="Inferact/MiniMax-M3-EAGLE3-GQA",
        source="vllm PR 53458 (the draft's vocabulary is the target's, no d2t)",
        model="minimax-m3",
        config={**MINIMAX_M3, "draft_vocab_size": 200064},
        layout=MIDLAYER_EMBEDDING,
        cases=(
            Case("vllm==0.24.0", "the first that serves MiniMaxM3Sparse"),
            Case(VLLM, NEWEST),
        ),
        assumed="class, sizes, no ids",
    ),
    Published(
        name="Inferact/MiniMax-M3-EAGLE3-GQA-NVFP4",
        source="vllm PR 48068: ignore embed_tokens, fc, self_attn, lm_head",
        model="minimax-m3",
        config={
            **MINIMAX_M3,
            "draft_vocab_size": 200064,
            "quantization_config": {
                "quant_method": "modelopt",
                "quant_algo": "NVFP4",
                "ignore": ["embed_tokens", "fc", "self_attn", "lm_head"],
            },
        },
        layout=Layout(embedding=True, mlp="nvfp4"),
        cases=(
            Case(
                "vllm==0.26.0",
                "vllm PR 48068; ModelOpt's tensors are described in no contract",
                "unknown",
                says=("E3L701",),
            ),
            Case(VLLM, NEWEST, "unknown", says=("E3L701",)),
        ),
        assumed="class, sizes, no ids; names and shapes of the packed tensors as ModelOpt writes "
        "them",
    ),
    Published(
        name="thomaskiefer/EAGLE3-Apertus-8B-Instruct-2509",
        source="mirror of its card",
        model="apertus-8b",
        config={
            **EAGLE3,
            **LLAMA,
            "hidden_size": 4096,
            "intermediate_size": 21504,
            "max_position_embeddings": 4096,
            "num_attention_heads": 32,
            "num_key_value_heads": 8,
            "rms_norm_eps": 1e-05,
            "vocab_size": 131072,
            "draft_vocab_size": 32000,
        },
        layout=MIDLAYER,
        cases=(
            Case("sglang==0.5.3", "the first that serves ApertusForCausalLM"),
            Case(SGLANG, NEWEST),
        ),
        assumed="rope, epsilon; no embedding, with which it would have half again as many "
        "parameters",
    ),
    *(
        Published(
            name=f"Dogacel/specdrift-gpt-oss-{size}-eagle3",
            source="TensorRT-LLM PR 14988; sglang PR 24620 (norm_output, fc_norm for each state)",
            model=f"gpt-oss-{size}",
            config={
                **EAGLE3,
                **GPT_OSS,
                "draft_vocab_size": 32000,
                "fc_norm": True,
                "norm_output": True,
            },
            layout=MIDLAYER_EMBEDDING,
            cases=(
                Case("sglang==0.5.12", "sglang PR 24620"),
                Case(SGLANG, NEWEST),
                Case("vllm==0.22.0", "the first with both switches"),
                Case(VLLM, NEWEST),
            ),
            assumed="class, sizes, 32000 tokens, the embedding, three states",
        )
        for size in ("20b", "120b")
    ),
    Published(
        name="Dogacel/specdrift-gpt-oss-20b-eagle3 with four states",
        source="sglang PR 24620 (other numbers of states than three)",
        model="gpt-oss-20b",
        config={
            **EAGLE3,
            **GPT_OSS,
            "draft_vocab_size": 32000,
            "fc_norm": True,
            "norm_output": True,
            **ids(1, 8, 15, 20),
        },
        layout=MIDLAYER_EMBEDDING,
        cases=(
            fails(
                "sglang==0.5.12",
                "sglang PR 24620",
                "refused",
                E3L312="speculative/eagle_info.py:890 takes the number of states from the target's "
                "configuration, which has none: a buffer of three, and an fc of four at capture",
            ),
            Case("sglang==0.5.15", "speculative/eagle_utils.py:440 asks the draft's configuration"),
            Case(SGLANG, NEWEST),
        ),
        assumed="the number of states and which; all else as above",
    ),
    Published(
        name="asherszhang/MiniMax-M2.7-EAGLE3-draft-vocab32k",
        source="llama.cpp PR 25604",
        model="minimax-m2.7",
        config={
            **EAGLE3,
            **LLAMA,
            "head_dim": 128,
            "hidden_size": 3072,
            "intermediate_size": 8192,
            "max_position_embeddings": 204800,
            "num_attention_heads": 24,
            "num_key_value_heads": 8,
            "rms_norm_eps": 1e-06,
            "rope_theta": 5000000,
            "vocab_size": 200064,
            "draft_vocab_size": 32000,
        },
        layout=MIDLAYER,
        cases=(
            Case("sglang==0.5.5.post3", "the first that serves MiniMaxM2ForCausalLM"),
            Case(SGLANG, NEWEST),
            Case("vllm==0.20.0", "the first that serves it"),
            Case(VLLM, NEWEST),
        ),
        assumed="all but the vocabularies",
    ),
)

LLAMA_8B_LAYER: Config = {
    **LLAMA_8B,
    **LLAMA_ROPE,
    "attention_bias": False,
    "attention_dropout": 0.0,
    "head_dim": 128,
    "max_position_embeddings": 131072,
    "mlp_bias": False,
}
LLAMA_VERIFIER = ("LlamaForCausalLM", "meta-llama/Meta-Llama-3.1-8B-Instruct")

SPECULATORS_DRAFTS: tuple[Published, ...] = (
    Published(
        name="eagle3-llama3.1-8b-instruct-speculators, nm-testing/SpeculatorLlama3-1-8B-Eagle3",
        source="speculators PR 53 (its output, 0.1.0.dev21), PR 50 (d2t, t2d)",
        model=None,
        config=speculators(
            LLAMA_8B_LAYER,
            LLAMA_VERIFIER,
            auto_map={"": "eagle3.Eagle3SpeculatorConfig"},
            has_no_defaults_at_init=False,
            speculators_version="0.1.0.dev21",
        ),
        layout=SPECULATORS,
        cases=(
            fails("sglang==0.4.9", "July 2025", "refused", E3L104=SPECULATORS_UNREAD),
            fails(SGLANG, NEWEST, "refused", E3L104=SPECULATORS_UNREAD),
            fails(
                "vllm==0.10.0",
                "the last that does not know the form",
                "refused",
                E3L104="transformers_utils/config.py hands it to AutoConfig, which wants a "
                "model_type",
            ),
            Case("vllm==0.10.1", "the first that knows the form"),
            Case(VLLM, NEWEST),
        ),
        assumed="what is cut off in the middle of transformer_layer_config: the target's",
    ),
    Published(
        name="nm-testing/Llama4-Maverick-Eagle3-Speculators",
        source="mirror of its card; vllm PR 25961 and 29926; speculators PR 142: made of "
        "nvidia/Llama-4-Maverick-17B-128E-Eagle3, ids 1, 23, 44",
        model="llama-4-maverick",
        config=speculators(
            {
                **LLAMA,
                **LLAMA_ROPE,
                "head_dim": 128,
                "hidden_size": 5120,
                "intermediate_size": 16384,
                "max_position_embeddings": 1048576,
                "num_attention_heads": 40,
                "num_key_value_heads": 8,
                "rms_norm_eps": 1e-05,
                "vocab_size": 202048,
                "draft_vocab_size": 202048,
            },
            (
                "Llama4ForConditionalGeneration",
                "meta-llama/Llama-4-Maverick-17B-128E-Instruct",
            ),
            eagle_aux_hidden_state_layer_ids=[1, 23, 44],
            inference_type="text",
            speculators_version="0.2.0",
        ),
        layout=SPECULATORS,
        cases=(
            fails(SGLANG, NEWEST, "refused", E3L104=SPECULATORS_UNREAD),
            *(
                Case(
                    target,
                    why,
                    "degraded",
                    {"E3L301": "0.11.1 v1/worker/gpu_model_runner.py:3395 takes them for inputs"},
                )
                for target, why in (
                    ("vllm==0.11.1", "the first that serves Llama4ForConditionalGeneration"),
                    (VLLM, NEWEST),
                )
            ),
        ),
        assumed="heads, intermediate size, rope, the version, norm_before_residual, the embedding",
    ),
    Published(
        name="an embedding-free speculators checkpoint",
        source="a public test (levanter)",
        model=None,
        config=speculators(
            LLAMA_8B_LAYER,
            LLAMA_VERIFIER,
            architectures=["Eagle3DraftModel"],
            fc_norm=False,
            norm_before_fc=True,
            norm_before_residual=True,
            norm_output=True,
            speculators_version="0.9.0",
            target_hidden_size=None,
        ),
        layout=Layout(layer="layers.0."),
        cases=(
            fails(SGLANG, NEWEST, "refused", E3L104=SPECULATORS_UNREAD),
            fails(
                "vllm==0.24.0",
                "the last whose reader of the form leaves norm_output out",
                "degraded",
                E3L503="transformers_utils/configs/speculators/algos.py:16 copies norm_output from "
                "0.25.0 on; every draft step after the first gets the state before the norm",
            ),
            Case("vllm==0.25.0", "the first that reads all its switches"),
            Case(VLLM, NEWEST),
        ),
        assumed="the sizes: Llama 3.1 8B's; version 0.9.0, ids left out",
    ),
)

SPECFORGE_BACKEND = (
    "SpecForge at 507da3e5 (specforge/modeling/target/eagle3_target_model.py:204, :344, sglang "
    "0.5.6) "
    "trains on the output of layer 2, 30, 58, and SGLang feeds just that up to 0.5.12"
)


TEMPLATES: tuple[Published, ...] = (
    Published(
        name="SpecForge configs/qwen3-30B-A3B-eagle3.1.json",
        source="the file",
        model="qwen3-30b-a3b",
        config={
            **EAGLE3,
            **QWEN3,
            "fc_norm": True,
            "hidden_size": 2048,
            "intermediate_size": 12288,
            "max_position_embeddings": 2048,
            "max_window_layers": 48,
            "norm_output": True,
            "num_attention_heads": 32,
            "num_key_value_heads": 4,
            "sliding_window": None,
            "transformers_version": "4.53.2",
            "use_sliding_window": False,
        },
        layout=MIDLAYER,
        # specforge 0.2.0 modeling/draft/llama3_eagle.py:1772 norms for the head and hands on the
        # state before it; models/llama_eagle3.py:268 hands on the normed one. Who wrote the draft
        # is only likely, so that it is said for information.
        cases=(
            Case(
                "sglang==0.5.12",
                "the first with fc_norm and norm_output",
                says=("E3L501", "E3L505"),
            ),
            Case(SGLANG, NEWEST, says=("E3L501", "E3L505")),
        ),
    ),
    Published(
        name="SpecForge configs/kimi-k2-eagle3.json",
        source="the file, at 03ebe2cd",
        model="kimi-k2-instruct",
        config={
            **EAGLE3,
            **KIMI,
            "model_type": "kimi_k2",
            "max_window_layers": 48,
            "sliding_window": None,
            "transformers_version": "4.53.2",
            "use_sliding_window": False,
            **ids(2, 30, 58, use_aux_hidden_state=True),
        },
        layout=MIDLAYER,
        cases=(
            fails(
                "sglang==0.5.4.post2",
                "the first that serves DeepseekV3ForCausalLM",
                "refused",
                E3L105="transformers 4.57.1 knows no kimi_k2; SGLang's own table has it from "
                "0.5.12 on",
            ),
            Case(
                "sglang==0.5.12",
                "the first that knows the model_type",
            ),
            Case(
                "vllm==0.17.1",
                "the last before vLLM knew kimi_k2",
                "refused",
                {
                    "E3L105": "transformers_utils/config.py: AutoConfig knows no kimi_k2 (4.57.1)",
                    "E3L601": "config/speculative.py:786: kimi_k2 is not in the list",
                },
            ),
        ),
    ),
    Published(
        name="SpecForge configs/kimi-k25-eagle3.json",
        source="the file, at 3f9b5fca",
        model="kimi-k2.5",
        config={
            **EAGLE3,
            **{name: value for name, value in KIMI.items() if name != "torch_dtype"},
            "dtype": "bfloat16",
            "max_window_layers": 48,
            "mlp_bias": False,
            "pretraining_tp": 1,
            "sliding_window": None,
            "transformers_version": "4.57.0",
            "use_sliding_window": False,
            **ids(2, 30, 58, use_aux_hidden_state=True),
        },
        layout=MIDLAYER,
        cases=(
            Case(
                "sglang==0.5.11",
                "the first that serves KimiK25 and captures by the ids in its graphs",
            ),
            Case(
                SGLANG,
                NEWEST,
                "degraded",
                {
                    "E3L301": "models/deepseek_v2.py:3467 takes ids that do not begin with 1 as "
                    "they are"
                },
                missed="nothing is said of it: " + SPECFORGE_BACKEND,
            ),
        ),
    ),
    Published(
        name="SpecForge configs/gpt-oss-20B-eagle3.json of a pull request",
        source="the file, at ca803a5b",
        model="gpt-oss-20b",
        config={
            "architectures": ["GptOssForCausalLMEagle3"],
            **GPT_OSS,
            "model_type": "gpt_oss",
            "draft_vocab_size": 32000,
            "experts_per_token": 4,
            "max_position_embeddings": 4096,
            "num_local_experts": 16,
            "pad_token_id": 0,
            "transformers_version": "4.52.3",
            **ids(1, 11, 21),
        },
        layout=MIDLAYER,
        cases=tuple(
            fails(target, why, "refused", E3L101="no release registers such a class")
            for target, why in (
                ("sglang==0.5.1", "the first that serves GptOssForCausalLM"),
                (SGLANG, NEWEST),
                ("vllm==0.11.0", "the first that serves GptOssForCausalLM"),
                (VLLM, NEWEST),
            )
        ),
        assumed="a dense MLP: the experts' names are not known, and nothing gets as far as that",
    ),
    Published(
        name="SpecForge configs/gpt-oss-20B-eagle3-dense.json",
        source="the file, at 4e7a1d98",
        model="gpt-oss-20b",
        config={
            **EAGLE3,
            **GPT_OSS,
            "model_type": "gpt_oss",
            "draft_vocab_size": 32000,
            "experts_per_token": 4,
            "max_position_embeddings": 4096,
            "num_local_experts": 16,
            "pad_token_id": 0,
            "transformers_version": "4.52.3",
            **ids(1, 11, 21),
        },
        layout=MIDLAYER,
        cases=(
            fails(
                "sglang==0.5.1",
                "the first that serves GptOssForCausalLM",
                "refused",
                E3L107="layers/rotary_embedding.py:1800: the rope_scaling of GptOssConfig has no "
                "original_max_position_embeddings in transformers 4.55.2",
            ),
            fails(
                "sglang==0.5.2",
                "the first that reads the configuration",
                "broken",
                E3L209="GptOssConfig has attention_bias true (transformers 4.56.1 "
                "configuration_gpt_oss.py:108): models/llama.py makes a bias that nothing fills",
            ),
            Case(
                SGLANG, "the bias that nothing fills is zero from 0.5.9 on (layers/linear.py:1356)"
            ),
        ),
    ),
    Published(
        name="SpecForge configs/gpt-oss-20B-eagle3.json",
        source="the file, at 94d67101 and ever since: model_type llama",
        model="gpt-oss-20b",
        config={
            **EAGLE3,
            **GPT_OSS,
            "draft_vocab_size": 32000,
            "max_position_embeddings": 4096,
            "pad_token_id": 0,
            "transformers_version": "4.52.3",
            **ids(1, 11, 21),
        },
        layout=MIDLAYER,
        cases=(
            Case("sglang==0.5.1", "the first that serves GptOssForCausalLM"),
            Case("sglang==0.5.11", "the first that captures by the ids in its graphs"),
            Case(SGLANG, NEWEST),
        ),
    ),
    Published(
        name="SpecForge configs/deepseek-v3-671b-eagle3.json",
        source="the file",
        model="deepseek-v3",
        config={
            **EAGLE3,
            **LLAMA,
            "bos_token_id": 128000,
            "eos_token_id": 128001,
            "hidden_size": 7168,
            "intermediate_size": 40960,
            "max_position_embeddings": 163840,
            "num_attention_heads": 56,
            "num_key_value_heads": 8,
            "rms_norm_eps": 1e-05,
            "torch_dtype": "float16",
            "transformers_version": "4.28.1",
            "vocab_size": 129280,
            "draft_vocab_size": 32000,
            **ids(1, 29, 57, use_aux_hidden_state=True),
        },
        layout=MIDLAYER,
        cases=(
            Case("sglang==0.5.4.post2", "the first that serves DeepseekV3ForCausalLM"),
            Case("sglang==0.5.10", "graphs keep the default, which these ids are"),
            Case("sglang==0.5.13", "ids that begin with 1 count outputs, still"),
            Case(SGLANG, NEWEST),
        ),
    ),
    Published(
        name="SpecForge configs/llama4-scout-17B-16E-eagle3.json",
        source="the file",
        model="llama-4-scout",
        config={
            **EAGLE3,
            **LLAMA,
            "hidden_size": 5120,
            "intermediate_size": 32768,
            "max_position_embeddings": 4096,
            "num_attention_heads": 40,
            "num_key_value_heads": 8,
            "rms_norm_eps": 1e-05,
            "vocab_size": 202048,
            "draft_vocab_size": 32000,
        },
        layout=MIDLAYER,
        cases=(
            Case("sglang==0.4.9", "the first that serves Llama4ForConditionalGeneration"),
            Case(SGLANG, NEWEST),
        ),
    ),
    Published(
        name="SpecForge configs/gemma3-27b-eagle3.json",
        source="the file, at 078d71c2; sglang PR 23976",
        model="gemma-3-27b",
        config={
            **EAGLE3,
            **LLAMA,
            "attention_bias": False,
            "bos_token_id": 2,
            "eos_token_id": 1,
            "pad_token_id": 0,
            "head_dim": 128,
            "hidden_size": 5376,
            "intermediate_size": 21504,
            "max_position_embeddings": 4096,
            "num_attention_heads": 32,
            "num_key_value_heads": 16,
            "rms_norm_eps": 1e-06,
            "rope_scaling": None,
            "rope_theta": 1000000,
            "sliding_window": 512,
            "target_model_type": "gemma3_text",
            "transformers_version": "4.50.0",
            "use_sliding_window": False,
            "vocab_size": 262208,
            "draft_vocab_size": 262208,
            "additional_fc": False,
            "reuse_target_lm_head": True,
            **ids(1, 29, 61),
        },
        layout=MIDLAYER,
        cases=(
            *(
                Case(
                    target,
                    why,
                )
                for target, why in (
                    ("sglang==0.5.12", "the first that serves Gemma3ForConditionalGeneration"),
                    ("sglang==0.5.16", "the last that captures whole states"),
                )
            ),
            Case(
                SGLANG,
                NEWEST,
                "broken",
                {"E3L601": "0.5.17 models/gemma3_causal.py:661: a part of each state is captured"},
            ),
        ),
        assumed="that the target's head is saved with the draft",
    ),
    Published(
        name="SpecForge configs/qwen3-4b-eagle3.json, old",
        source="the file, at 7c83c0a2",
        model="qwen3-4b",
        config={
            **EAGLE3,
            **QWEN3,
            "head_dim": 80,
            "hidden_size": 2560,
            "intermediate_size": 9728,
            "num_attention_heads": 32,
            "tie_word_embeddings": True,
        },
        layout=MIDLAYER,
        cases=(
            Case(
                "sglang==0.4.9",
                "the first that serves Qwen3ForCausalLM",
                "broken",
                {"E3L201": TIED},
            ),
            Case(
                SGLANG,
                NEWEST,
                "broken",
                {"E3L201": TIED},
            ),
        ),
    ),
    Published(
        name="TorchSpec configs/draft_models/glm4_moe_eagle3.json",
        source="the file, at 3bd756e7",
        model="glm-4.5-air",
        config={
            "architectures": ["Glm4MoeForCausalLMEagle3"],
            "model_type": "glm4_moe",
            "use_moe": True,
            "hidden_size": 4096,
            "intermediate_size": 10944,
            "num_hidden_layers": 1,
            "num_attention_heads": 96,
            "num_key_value_heads": 8,
            "head_dim": 128,
            "partial_rotary_factor": 0.5,
            "hidden_act": "silu",
            "rms_norm_eps": 1e-05,
            "vocab_size": 151552,
            "draft_vocab_size": 151552,
            "torch_dtype": "bfloat16",
            "rope_theta": 10000.0,
            "n_routed_experts": 128,
            "num_experts_per_tok": 8,
            "moe_intermediate_size": 1408,
            "n_shared_experts": 1,
            "n_group": 1,
            "topk_group": 1,
            "norm_topk_prob": True,
            "routed_scaling_factor": 1.0,
            "scoring_func": "sigmoid",
            "first_k_dense_replace": 0,
            "train_router": True,
            **ids(
                1,
                21,
                42,
                use_aux_hidden_state=True,
                use_input_layernorm_in_first_layer=True,
                use_last_layernorm=True,
            ),
            "pad_token_id": 0,
        },
        layout=MIDLAYER_EMBEDDING,
        cases=(
            *(
                fails(target, why, "refused", E3L101="no release registers such a class")
                for target, why in (
                    ("sglang==0.5.5", "the first that serves Glm4MoeForCausalLM"),
                    (SGLANG, NEWEST),
                )
            ),
            fails(
                VLLM,
                NEWEST,
                "refused",
                E3L101="no release registers such a class",
                E3L601="no release hands out Glm4MoeForCausalLM's states",
            ),
        ),
        assumed="a dense MLP: the experts' names are not known, and nothing gets as far as that",
    ),
    Published(
        name="TorchSpec configs/draft_models/kimi_k3_eagle3_mla.json",
        source="the file, at a31111ee",
        model="kimi-k3",
        config={
            **{name: value for name, value in KIMI_MLA.items() if name != "tie_word_embeddings"},
            "mla_use_nope": True,
            "max_position_embeddings": 1048576,
            "rope_scaling": {
                "type": "yarn",
                "factor": 32.0,
                "original_max_position_embeddings": 32768,
                "beta_fast": 32,
                "beta_slow": 1,
                "mscale": 1.0,
                "mscale_all_dim": 1.0,
            },
            **ids(
                1,
                45,
                89,
                use_aux_hidden_state=True,
                use_input_layernorm_in_first_layer=True,
                use_last_layernorm=True,
                use_mtp_layernorm=False,
            ),
            "bos_token_id": 163584,
            "eos_token_id": 163586,
            "pad_token_id": 0,
        },
        layout=MIDLAYER_EMBEDDING,
        cases=(
            fails(
                SGLANG,
                NEWEST,
                "refused",
                E3L601="no release has set_eagle3_layers_to_capture for "
                "KimiK3ForConditionalGeneration",
            ),
            Case("vllm==0.27.0", "the first that serves KimiK3ForConditionalGeneration"),
            Case(VLLM, NEWEST),
        ),
    ),
    Published(
        name="ModelOpt default_config of eagle",
        source="modelopt's default_config, nested as its exporter does",
        model="llama-3.1-8b",
        config={
            **EAGLE3,
            **LLAMA,
            **LLAMA_ROPE,
            "hidden_size": 4096,
            "initializer_range": 0.01,
            "intermediate_size": 14336,
            "max_position_embeddings": 131072,
            "num_attention_heads": 32,
            "num_key_value_heads": 8,
            "rms_norm_eps": 1e-05,
            "vocab_size": 128256,
            "draft_vocab_size": 128256,
            **ids(
                use_aux_hidden_state=False,
                use_input_layernorm_in_first_layer=True,
                use_last_layernorm=False,
                use_mtp_layernorm=False,
            ),
        },
        layout=Layout(layer="layers.0.", fc=False, tables=()),
        cases=(
            *(
                Case(
                    target,
                    why,
                    "degraded",
                    {"E3L503": "models/llama_eagle3.py:263 always norms, whatever is said of it"},
                )
                for target, why in (
                    ("sglang==0.5.12", "the first that reads layers.0"),
                    (SGLANG, NEWEST),
                )
            ),
            *(
                fails(
                    target,
                    why,
                    "degraded",
                    E3L503="model_executor/models/llama_eagle3.py:283 always norms",
                )
                for target, why in (
                    ("vllm==0.12.0", "the first that reads use_aux_hidden_state"),
                    (VLLM, NEWEST),
                )
            ),
        ),
        assumed="the vocabulary, the positions, a copy of the target's head, an EAGLE-3 layer; the "
        "default is that of EAGLE-1, the one of EAGLE-3 is not known",
    ),
    Published(
        name="SpecForge configs/qwen3-vl-8b-eagle3.json",
        source="the file, at cc26bedc; SpecForge PR 542",
        model="qwen3-vl-8b",
        config={
            **EAGLE3,
            **{name: value for name, value in QWEN3.items() if name != "torch_dtype"},
            "dtype": "bfloat16",
            "hidden_size": 4096,
            "intermediate_size": 12288,
            "max_position_embeddings": 262144,
            "num_attention_heads": 32,
            "pretraining_tp": 1,
            "rope_scaling": {
                "rope_type": "default",
                "mrope_section": [24, 20, 20],
                "mrope_interleaved": True,
            },
            "rope_theta": 5000000,
            "target_model_type": "qwen3_vl",
            "transformers_version": "4.57.1",
            "use_sliding_window": False,
        },
        layout=MIDLAYER,
        cases=(
            Case("sglang==0.5.11", "the first that serves Qwen3VLForConditionalGeneration"),
            Case(SGLANG, NEWEST),
        ),
    ),
    Published(
        name="SpecForge configs/qwen2-5-vl-7b-eagle3.json",
        source="the file",
        model="qwen2.5-vl-7b",
        config={
            **EAGLE3,
            **QWEN3,
            "hidden_size": 3584,
            "intermediate_size": 18944,
            "max_position_embeddings": 8192,
            "max_window_layers": 28,
            "num_attention_heads": 28,
            "num_key_value_heads": 4,
            "pretraining_tp": 1,
            "rope_scaling": {"type": "mrope", "mrope_section": [16, 24, 24]},
            "sliding_window": 32768,
            "target_model_type": "qwen2_5_vl",
            "transformers_version": "4.51.0",
            "use_sliding_window": False,
            "vocab_size": 152064,
        },
        layout=MIDLAYER,
        cases=(
            Case("sglang==0.5.2", "the first that serves Qwen2_5_VLForConditionalGeneration"),
            Case(SGLANG, NEWEST),
        ),
    ),
)

PUBLISHED: tuple[Published, ...] = (
    *EAGLE_AUTHORS,
    *QWEN3_DRAFTS,
    *NVIDIA_DRAFTS,
    *KIMI_DRAFTS,
    *OTHER_DRAFTS,
    *SPECULATORS_DRAFTS,
    *TEMPLATES,
)


def by_name(name: str) -> Published:
    """The entry of that name."""
    return next(entry for entry in PUBLISHED if entry.name == name)


# --- EAGLE heads of the first kind ----------------------------------------------------------------

#: One layer without input_layernorm, an fc of two widths and neither head nor tables.
NO_DRAFTS: tuple[NoDraft, ...] = (
    NoDraft(
        name="yuhuili/EAGLE-LLaMA3.1-Instruct-8B",
        source="speculators PR 31",
        config={
            "architectures": ["LlamaForCausalLM"],
            "bias": False,
            **{name: value for name, value in LLAMA_8B.items() if name != "draft_vocab_size"},
            "rope_theta": 500000,
        },
        shapes={
            "embed_tokens.weight": (128256, 4096),
            "fc.weight": (4096, 2 * 4096),
            "layers.0.self_attn.q_proj.weight": (4096, 4096),
            "layers.0.self_attn.k_proj.weight": (1024, 4096),
            "layers.0.self_attn.v_proj.weight": (1024, 4096),
            "layers.0.self_attn.o_proj.weight": (4096, 4096),
            "layers.0.mlp.gate_proj.weight": (14336, 4096),
            "layers.0.mlp.up_proj.weight": (14336, 4096),
            "layers.0.mlp.down_proj.weight": (4096, 14336),
            "layers.0.post_attention_layernorm.weight": (4096,),
        },
    ),
)
