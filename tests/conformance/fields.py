"""Config fields that are absent, null, in another place, or at odds with the tensors."""

from __future__ import annotations

from collections.abc import Iterator

from tests.conformance.draft import (
    ABSENT,
    HEAD_DIM,
    HEADS,
    HIDDEN,
    INTERMEDIATE,
    KV_HEADS,
    Draft,
    attention,
    llama,
)


def aux() -> Iterator[tuple[str, Draft]]:
    """Layer ids nested, at the top, or counted, against the width of fc."""
    key = "eagle_aux_hidden_state_layer_ids"
    lists: dict[str, list[int]] = {
        "no ids": [],
        "one id": [12],
        "two ids": [1, 12],
        "three ids": [1, 12, 20],
        "three ids unsorted": [20, 1, 12],
        "three ids repeated": [1, 1, 12],
        "four ids": [1, 8, 12, 20],
    }
    for words, ids in lists.items():
        for blocks in sorted({3, max(1, len(ids))}):
            draft = llama().put("fc.weight", HIDDEN, blocks * HIDDEN)
            yield f"{words} nested, fc of {blocks}", draft.eagle(**{key: ids})
            yield f"{words} at the top, fc of {blocks}", draft.config(**{key: ids})
    for count in (2, 3, 4):
        draft = llama().put("fc.weight", HIDDEN, count * HIDDEN)
        yield f"num_aux_hidden_states {count}", draft.config(num_aux_hidden_states=count)
        yield f"num_aux_hidden_states {count}, fc of 3", llama().config(num_aux_hidden_states=count)
    wide = llama().put("fc.weight", HIDDEN, 4 * HIDDEN)
    yield "num_aux_hidden_states null", llama().config(num_aux_hidden_states=None)
    yield (
        "num_aux_hidden_states 4 against three nested ids",
        wide.config(num_aux_hidden_states=4).eagle(**{key: [1, 12, 20]}),
    )
    yield (
        "three nested, four at the top, fc of 3",
        llama().config(**{key: [1, 8, 12, 20]}).eagle(**{key: [1, 12, 20]}),
    )
    yield "ids null nested", llama().eagle(**{key: None})
    yield "eagle_config null", llama().config(eagle_config=None)
    yield "eagle_config empty", llama().config(eagle_config={})
    yield "eagle_config a list", llama().config(eagle_config=[1, 12, 20])
    yield "use_aux_hidden_state true", llama().eagle(use_aux_hidden_state=True)
    for words, draft in (
        ("fc of 3", llama()),
        ("no fc", llama().drop("fc.weight")),
        ("square fc", llama().put("fc.weight", HIDDEN, HIDDEN)),
    ):
        yield f"use_aux_hidden_state false, {words}", draft.eagle(use_aux_hidden_state=False)
    yield "use_aux_hidden_state false at the top", llama().config(use_aux_hidden_state=False)
    yield (
        "use_aux_hidden_state false, no fc, no ids needed",
        (llama().drop("fc.weight").eagle(use_aux_hidden_state=False, **{key: []})),
    )
    yield (
        "four ids nested, layers.0, fc_norm of four",
        (
            wide.rename("midlayer.", "layers.0.")
            .put("fc_norm.0.weight", HIDDEN)
            .put("fc_norm.1.weight", HIDDEN)
            .put("fc_norm.2.weight", HIDDEN)
            .put("fc_norm.3.weight", HIDDEN)
            .config(fc_norm=True)
            .eagle(**{key: [1, 8, 12, 20]})
        ),
    )


def dimensions() -> Iterator[tuple[str, Draft]]:
    """Head and width fields that are absent, null or disagree with the tensors."""
    wide = Draft(
        llama().fields,
        {**llama().tensors, **attention("midlayer.", inputs=2 * HIDDEN, head_dim=16)},
        llama().d2t,
    )
    many = Draft(
        llama().fields,
        {**llama().tensors, **attention("midlayer.", inputs=2 * HIDDEN, kv_heads=HEADS)},
        llama().d2t,
    )
    yield "head_dim absent", llama().config(head_dim=ABSENT)
    yield "head_dim null", llama().config(head_dim=None)
    yield "head_dim 16, wide heads", wide.config(head_dim=16)
    yield "head_dim absent, wide heads", wide.config(head_dim=ABSENT)
    yield "head_dim null, wide heads", wide.config(head_dim=None)
    yield "head_dim 16, narrow heads", llama().config(head_dim=16)
    yield "head_dim 4", llama().config(head_dim=4)
    yield "num_key_value_heads absent", llama().config(num_key_value_heads=ABSENT)
    yield "num_key_value_heads absent, all kv heads", many.config(num_key_value_heads=ABSENT)
    yield "num_key_value_heads null", llama().config(num_key_value_heads=None)
    yield "num_key_value_heads 1", llama().config(num_key_value_heads=1)
    yield "num_key_value_heads 4", llama().config(num_key_value_heads=4)
    yield "num_key_value_heads 3", llama().config(num_key_value_heads=3)
    yield "num_attention_heads 4", llama().config(num_attention_heads=4)
    yield (
        "num_attention_heads 4, head_dim absent",
        llama().config(num_attention_heads=4, head_dim=ABSENT),
    )
    yield "num_attention_heads 16", llama().config(num_attention_heads=16)
    yield "num_attention_heads 6", llama().config(num_attention_heads=6)
    yield "intermediate_size larger", llama().config(intermediate_size=INTERMEDIATE + 32)
    yield "intermediate_size smaller", llama().config(intermediate_size=INTERMEDIATE - 32)
    yield "intermediate_size absent", llama().config(intermediate_size=ABSENT)
    yield "hidden_size larger", llama().config(hidden_size=96)
    yield "hidden_size smaller", llama().config(hidden_size=48)
    yield "hidden_size absent", llama().config(hidden_size=ABSENT)
    yield "vocab_size absent", llama().config(vocab_size=ABSENT)
    yield (
        "small kv heads in the file",
        Draft(
            llama().fields,
            {
                **llama().tensors,
                "midlayer.self_attn.k_proj.weight": (
                    "BF16",
                    (KV_HEADS * HEAD_DIM // 2, 2 * HIDDEN),
                ),
            },
            llama().d2t,
        ),
    )
    yield (
        "q of wide heads alone",
        llama().put("midlayer.self_attn.q_proj.weight", HEADS * HEAD_DIM * 2, 2 * HIDDEN),
    )
    yield "num_attention_heads absent", llama().config(num_attention_heads=ABSENT)
    yield "num_attention_heads null", llama().config(num_attention_heads=None)


def leftovers() -> Iterator[tuple[str, Draft]]:
    """Fields that change how the draft is built, or that came along from somewhere else."""
    yield "hidden_act gelu", llama().config(hidden_act="gelu")
    yield "hidden_act absent", llama().config(hidden_act=ABSENT)
    yield "torch_dtype absent", llama().config(torch_dtype=ABSENT)
    yield "torch_dtype float32", llama().config(torch_dtype="float32")
    yield "torch_dtype float16", llama().config(torch_dtype="float16")
    yield "dtype instead of torch_dtype", llama().config(torch_dtype=ABSENT, dtype="bfloat16")
    yield "torch_dtype auto", llama().config(torch_dtype="auto")
    yield "rms_norm_eps absent", llama().config(rms_norm_eps=ABSENT)
    yield "rope_theta absent", llama().config(rope_theta=ABSENT)
    yield "rope_scaling null", llama().config(rope_scaling=None)
    yield (
        "rope_parameters instead",
        llama().config(
            rope_theta=ABSENT, rope_parameters={"rope_type": "default", "rope_theta": 10000.0}
        ),
    )
    yield "rope_parameters null", llama().config(rope_parameters=None)
    yield (
        "rope_scaling llama3",
        llama().config(
            rope_scaling={
                "rope_type": "llama3",
                "factor": 8.0,
                "low_freq_factor": 1.0,
                "high_freq_factor": 4.0,
                "original_max_position_embeddings": 1024,
            }
        ),
    )
    yield (
        "rope_scaling yarn",
        llama().config(
            rope_scaling={
                "rope_type": "yarn",
                "factor": 4.0,
                "original_max_position_embeddings": 1024,
            }
        ),
    )
    yield (
        "rope_scaling mrope",
        llama().config(
            rope_scaling={"type": "default", "rope_type": "default", "mrope_section": [2, 1, 1]}
        ),
    )
    yield (
        "rope_scaling of an unknown type",
        llama().config(rope_scaling={"rope_type": "no_such_rope", "factor": 2.0}),
    )
    yield "rope_scaling without a type", llama().config(rope_scaling={"factor": 2.0})
    yield "max_position_embeddings absent", llama().config(max_position_embeddings=ABSENT)
    yield "max_position_embeddings 2048", llama().config(max_position_embeddings=2048)
    yield "partial_rotary_factor", llama().config(partial_rotary_factor=0.5)
    yield "pretraining_tp 2", llama().config(pretraining_tp=2)
    yield (
        "quantization_config fp8",
        llama().config(quantization_config={"quant_method": "fp8", "activation_scheme": "dynamic"}),
    )
    yield (
        "quantization_config fp8 blocks",
        llama().config(
            quantization_config={
                "quant_method": "fp8",
                "activation_scheme": "dynamic",
                "fmt": "e4m3",
                "weight_block_size": [128, 128],
            }
        ),
    )
    yield "quantization_config null", llama().config(quantization_config=None)
    yield (
        "quantization_config of an unknown method",
        llama().config(quantization_config={"quant_method": "no_such_method"}),
    )
    yield (
        "float16 tensors",
        Draft(
            llama().fields,
            {n: ("F16" if s[0] == "BF16" else s[0], s[1]) for n, s in llama().tensors.items()},
            llama().d2t,
        ),
    )
    yield (
        "float32 tensors",
        Draft(
            llama().fields,
            {n: ("F32" if s[0] == "BF16" else s[0], s[1]) for n, s in llama().tensors.items()},
            llama().d2t,
        ),
    )
    yield "target_model_type", llama().config(target_model_type="qwen3")
    yield (
        "null leftovers",
        llama().config(
            bos_token_id=None, pad_token_id=None, id2label=None, top_k=None, sliding_window=None
        ),
    )
    yield (
        "token ids outside the vocabulary",
        llama().config(bos_token_id=151643, eos_token_id=151645),
    )
    yield "pad_token_id outside the vocabulary", llama().config(pad_token_id=5000)
    yield (
        "ModelOpt template",
        llama("layers.0.")
        .drop("t2d")
        .config(
            bos_token_id=1,
            eos_token_id=[2],
            initializer_range=0.01,
            pad_token_id=None,
            use_cache=True,
            attention_bias=False,
            mlp_bias=False,
            attention_dropout=0.0,
            pretraining_tp=1,
        )
        .eagle(
            eagle_aux_hidden_state_layer_ids=[1, 15, 28],
            use_aux_hidden_state=True,
            use_input_layernorm_in_first_layer=True,
            use_last_layernorm=True,
            use_mtp_layernorm=False,
            next_layer_regular=True,
            parallel_draft_step=1,
            parallel_draft_heads_num_layers=1,
        ),
    )
