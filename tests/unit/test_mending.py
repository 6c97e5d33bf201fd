"""Changes of config.json that the tensors ask for: tried on the load, and found by a fix."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from eagle3_lint.diagnostic import Edit
from eagle3_lint.fixing import fix
from tests.drafts import DRAFT_VOCAB, HIDDEN, write_case

FP8 = {"quant_method": "fp8", "activation_scheme": "dynamic"}
CASES: list[tuple[str, dict[str, Any], str, Edit]] = [
    # models/llama_eagle3.py 0.5.9 and models/llama.py 0.5.9:197: sizes of what is built
    ("intermediate", {"config": {"intermediate_size": 96}}, "sglang==0.5.9",
     Edit.set_config("/intermediate_size", 160)),
    ("hidden", {"config": {"hidden_size": 48}}, "sglang==0.5.9",
     Edit.set_config("/hidden_size", HIDDEN)),
    ("no draft vocabulary", {"unset": ["draft_vocab_size"]}, "sglang==0.5.9",
     Edit.set_config("/draft_vocab_size", DRAFT_VOCAB)),
    ("two layers", {"config": {"num_hidden_layers": 2}}, "sglang==0.5.9",
     Edit.set_config("/num_hidden_layers", 1)),
    ("null width", {"config": {"target_hidden_size": None}}, "sglang==0.5.9",
     Edit.remove_config("/target_hidden_size")),
    ("promised bias", {"config": {"attention_bias": True}}, "sglang==0.5.7",
     Edit.set_config("/attention_bias", False)),
    ("tied head", {"config": {"tie_word_embeddings": True}}, "sglang==0.5.1",
     Edit.set_config("/tie_word_embeddings", False)),
    ("wider target", {"shape": {"fc.weight": [HIDDEN, 3 * 96]}}, "sglang==0.5.9",
     Edit.set_config("/target_hidden_size", 96)),
    ("quantisation left over", {"config": {"quantization_config": FP8}}, "sglang==0.5.9",
     Edit.remove_config("/quantization_config")),
]  # fmt: skip


@pytest.mark.parametrize(
    ("case", "target", "edit"), [c[1:] for c in CASES], ids=[c[0] for c in CASES]
)
def test_the_field_is_mended(case: dict[str, Any], target: str, edit: Edit, tmp_path: Path) -> None:
    draft = write_case({"base": "llama", **case}, tmp_path / "draft")
    result = fix(draft, [target], diff=True)
    assert result.edits == (edit,)
    assert result.before.summary.errors > 0
    assert result.after.summary.errors == 0


NEAR = [
    ({"midlayer.hidden_norm.weight": "midlayer.hiddennorm.weight"}, True),
    ({"midlayer.mlp.gate_proj.weight": "midlayer.mlp.gateproj.weight"}, True),
    # k and v have one shape: with both gone, only likeness tells, and that is not safe.
    (
        {
            "midlayer.self_attn.k_proj.weight": "midlayer.self_attn.k_prj.weight",
            "midlayer.self_attn.v_proj.weight": "midlayer.self_attn.v_prj.weight",
        },
        False,
    ),
]


@pytest.mark.parametrize(("names", "safe"), NEAR)
@pytest.mark.parametrize("target", ["sglang==0.5.9", "vllm==0.32.0"])
def test_names_that_are_nearly_right(
    names: dict[str, str], safe: bool, target: str, tmp_path: Path
) -> None:
    draft = write_case({"base": "llama", "rename": names}, tmp_path / "draft")
    meant = {Edit.rename(new, old) for old, new in names.items()}
    assert set(fix(draft, [target], diff=True).edits) == (meant if safe else set())
    assert set(fix(draft, [target], diff=True, unsafe=True).edits) == meant


def test_what_does_not_fit_is_not_renamed_away(tmp_path: Path) -> None:
    # Under a name that nothing reads, a tensor of a wrong shape would only be missed.
    case = {"base": "llama", "shape": {"midlayer.self_attn.o_proj.weight": [10, 64]}}
    result = fix(write_case(case, tmp_path / "draft"), ["sglang==0.5.9"], diff=True)
    assert result.edits == ()
    assert result.after.summary.errors == 1
