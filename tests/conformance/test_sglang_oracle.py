"""The oracle against answers read off SGLang's sources by hand (release, file and line beside
each).

Needs ``EAGLE3_LINT_ORACLE_PYTHON`` (see README.md); releases that are not unpacked yet are
downloaded.
"""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.conformance import sglang_run
from tests.conformance.corpus import cases

PYTHON = os.environ.get("EAGLE3_LINT_ORACLE_PYTHON")
pytestmark = pytest.mark.skipif(PYTHON is None, reason="EAGLE3_LINT_ORACLE_PYTHON is not set")

GOOD = "spelling/layer under midlayer."
LAYERS = "spelling/layer under layers.0."
LAYER_NAMES = [
    "hidden_norm", "input_layernorm", "mlp.down_proj", "mlp.gate_proj", "mlp.up_proj",
    "post_attention_layernorm", "self_attn.k_proj", "self_attn.o_proj", "self_attn.q_proj",
    "self_attn.v_proj",
]  # fmt: skip

# (release, case, field, value): where it says so
EXPECTED: list[tuple[str, str, str, Any]] = [
    # llama_eagle3.py:112 nn.Linear with its default bias, which no trainer stores
    ("0.4.8.post1", GOOD, "unfilled", ["model.fc.bias"]),
    # llama_eagle3.py:190 puts model. in front; llama.py load_weights looks q/k/v, gate and up up
    ("0.4.8.post1", LAYERS, "outcome", "error"),
    # llama_eagle3.py:127 bias=getattr(config, "bias", False) from 0.4.9 on
    ("0.5.1.post3", GOOD, "outcome", "ok"),
    # llama_eagle3.py load_weights: a name that is no parameter is skipped; the module is midlayer
    ("0.5.9", LAYERS, "dropped", [f"layers.0.{name}.weight" for name in LAYER_NAMES]),
    # llama_eagle3.py 0.5.12 legacy_name_map: both names lead to layers.0
    ("0.5.14", LAYERS, "outcome", "ok"),
    ("0.5.23", GOOD, "outcome", "ok"),
    # llama_eagle3.py:192 ParallelLMHead(None, ...); 0.5.2:205 takes the target's head
    ("0.5.1.post3", "vocabulary/draft_vocab_size null, no head", "outcome", "error"),
    (
        "0.5.2",
        "vocabulary/draft_vocab_size null, no head",
        "from_target",
        ["lm_head.weight", "model.embed_tokens.weight"],
    ),
    # linear.py 0.5.2 narrows beyond the end; 0.5.3:632 pad_or_narrow_weight fills with zeros
    ("0.5.2", "shape/mlp.gate_proj rows -4", "outcome", "error"),
    (
        "0.5.9",
        "shape/mlp.gate_proj rows -4",
        "altered_how",
        {"midlayer.mlp.gate_proj.weight": "padded"},
    ),
    # linear.py QKVParallelLinear.weight_loader narrows the stored rows to the parameter's
    (
        "0.5.23",
        "shape/self_attn.k_proj rows +4",
        "altered_how",
        {"midlayer.self_attn.k_proj.weight": "cut"},
    ),
    # eagle_worker.py 0.5.8:191, eagle_worker_v2.py 0.5.14:193 call .get on the null
    ("0.5.9", "aux/eagle_config null", "stage", "after-load"),
    ("0.5.14", "aux/eagle_config null", "stage", "after-load"),
    ("0.5.23", "aux/eagle_config null", "outcome", "ok"),
    # llama_eagle3.py forward: layers after the first use hidden_norm, never input_layernorm
    (
        "0.5.23",
        "layers/two layers, input_layernorm",
        "unfilled",
        ["model.layers.1.hidden_norm.weight"],
    ),
    ("0.5.9", "layers/two layers, input_layernorm", "stage", "build"),
    # model_runner.py 0.5.9:360 reads use_aux_hidden_state; llama_eagle3.py skips fc by width
    ("0.5.9", "aux/use_aux_hidden_state false, no fc", "outcome", "ok"),
    ("0.5.2", "aux/use_aux_hidden_state false, no fc", "unfilled", ["model.fc.weight"]),
    # kimi_k25_eagle3.py 0.5.23:467: the fused name contains kv_a_proj_with_mqa, waits for a partner
    (
        "0.5.23",
        "mla/fused a-projections",
        "dropped",
        ["layers.0.self_attn.fused_qkv_a_proj_with_mqa.weight"],
    ),
    # kimi_k25_eagle3.py: fc_norm from 0.5.13, input_norm in no release
    ("0.5.23", "mla/norm_before_fc", "dropped", ["input_norm.weight"]),
    # llama_eagle3.py 0.5.17 norm_before_fc; dropped before
    ("0.5.14", "switch/norm_before_fc top", "dropped", ["input_norm.weight"]),
    ("0.5.23", "switch/norm_before_fc top", "outcome", "ok"),
    # llama.py set_embed returns early when the widths differ: the draft's own rows stay unset
    ("0.5.23", "width/wider target, no embedding", "unfilled", ["model.embed_tokens.weight"]),
    # model_config.py _get_and_verify_dtype: float32 becomes float16 under --dtype auto
    ("0.5.23", "config/torch_dtype float32", "dtype", "float16"),
]


@cache
def answers(release: str) -> dict[str, dict[str, Any]]:
    wanted = {name for at, name, _, _ in EXPECTED if at == release}
    asked = [case for case in cases() if case.name in wanted]
    assert {case.name for case in asked} == wanted
    return sglang_run.ask(Path(str(PYTHON)), release, asked)


@pytest.mark.parametrize(("release", "case", "field", "value"), EXPECTED)
def test_answer(release: str, case: str, field: str, value: Any) -> None:
    assert answers(release)[case][field] == value
