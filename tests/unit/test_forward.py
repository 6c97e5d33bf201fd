"""How a draft's forward pass is meant, and what a release makes of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from eagle3_lint.checking import check, read_draft
from eagle3_lint.contract.model import SwitchStatement
from eagle3_lint.contract.read import contract_file
from eagle3_lint.forward import Need, needs, scaling, switches
from eagle3_lint.simulate.switches import taken, windowed
from tests.drafts import write_case


def need(folder: Path, name: str, **case: Any) -> Need:
    draft = write_case({"base": "llama", **case}, folder / "draft")
    return next(n for n in needs(read_draft(draft)) if n.switch.name == name)


def test_a_field_a_tensor_and_nothing(tmp_path: Path) -> None:
    said = need(tmp_path / "a", "norm_before_fc", config={"eagle_config": {"norm_before_fc": True}})
    assert (said.value, said.stated) == (True, "/eagle_config/norm_before_fc")
    shown = need(tmp_path / "b", "norm_before_fc", add={"input_norm.weight": ["BF16", 192]})
    assert (shown.value, shown.stated, shown.tensor) == (True, None, "input_norm.weight")
    silent = need(tmp_path / "c", "norm_before_fc")
    assert (silent.value, silent.stated, silent.tensor) == (False, None, None)


def test_a_nested_field_has_the_pointer_that_leads_to_it(tmp_path: Path) -> None:
    found = need(tmp_path, "rope_theta", base="speculators")
    assert (found.value, found.stated) == (10000, "/transformer_layer_config/rope_theta")


def test_a_window_that_no_layer_has_is_none(tmp_path: Path) -> None:
    field = {"sliding_window": 512}
    assert need(tmp_path / "a", "sliding_window", config=field).value is None
    field["layer_types"] = ["sliding_attention"]
    assert need(tmp_path / "b", "sliding_window", config=field).value == 512


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({}, False),
        ({"layer_types": ["sliding_attention"]}, True),
        ({"layer_types": ["full_attention", "sliding_attention"]}, False),
        ({"layer_types": ["full_attention"], "use_sliding_window": True}, False),
        ({"use_sliding_window": True}, True),
    ],
)
def test_windowed(config: dict[str, object], expected: bool) -> None:
    assert windowed(config) is expected


def test_scalings_in_their_spellings() -> None:
    yarn = {"rope_type": "yarn", "factor": 32.0}
    assert (
        scaling(yarn)
        == scaling({"type": "yarn", "factor": 32})
        == scaling({**yarn, "rope_theta": 150000.0, "beta_fast": None})
    )
    assert scaling(yarn) != scaling({**yarn, "factor": 16.0})
    for plain in (None, {}, {"rope_type": "default", "rope_theta": 1e6}, {"mrope_section": [1]}):
        assert scaling(plain) is None


def test_what_is_taken() -> None:
    config = {"a": {"b": None}, "c": 3}
    first = SwitchStatement("x", "s", read=("a.b", "c"))
    assert taken(first, config, {}) is None, "null is there"
    assert taken(SwitchStatement("x", "s", read=("a.z", "c")), config, {}) == 3
    assert taken(SwitchStatement("x", "s", absent="7"), config, {}) == 7
    assert (
        taken(SwitchStatement("x", "s", read=("c",), absent="0", when="n"), config, {"n": 0}) == 0
    )
    assert taken(SwitchStatement("x", "s", value="n + 1"), config, {"n": 1}) == 2


@pytest.mark.parametrize(
    ("runtime", "draft_class", "release", "name", "read"),
    [
        # models/llama_eagle3.py of both, read beside each other
        ("sglang", "LlamaForCausalLMEagle3", "0.5.16", "norm_before_fc", ()),
        (
            "sglang", "LlamaForCausalLMEagle3", "0.5.17", "norm_before_fc",
            ("eagle_config.norm_before_fc", "norm_before_fc"),
        ),
        ("vllm", "Eagle3LlamaForCausalLM", "0.21.0", "norm_before_fc", ("norm_before_fc",)),
        ("vllm", "Eagle3LlamaForCausalLM", "0.10.0", "norm_before_residual", ()),
        ("vllm", "Eagle3LlamaForCausalLM", "0.10.1", "norm_before_residual",
         ("norm_before_residual",)),
    ],
)  # fmt: skip
def test_where_a_release_looks(
    runtime: str, draft_class: str, release: str, name: str, read: tuple[str, ...]
) -> None:
    assert contract_file(runtime, draft_class).switches(release)[name].read == read


def test_the_message_names_the_releases_that_know_a_switch(tmp_path: Path) -> None:
    draft = write_case({"base": "llama", "config": {"norm_output": True}}, tmp_path / "draft")
    result = check(draft, ["vllm==0.21.0"]).checkpoints[0].results[0]
    (finding,) = (d for d in result.diagnostics if d.rule == "E3L503")
    # 0.5.12 and 0.22.0 are the first of each (models/llama_eagle3.py).
    assert "SGLang 0.5.12 to 0.5.23" in finding.message
    assert "vLLM 0.22.0 to 0.33.0" in finding.message
    assert finding.fix is None


def test_every_switch_has_words() -> None:
    for switch in switches():
        assert switch.about
        assert switch.read
