"""The aux hidden states of every unpacked SGLang release: its own code against our data.

Nothing of a release is imported, and no torch is needed. A few releases are asked about a few
target models in every test run, if they are unpacked; all of them only with ``-m conformance``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from eagle3_lint.contract.runtime import runtime_file
from eagle3_lint.simulate.result import Failure
from tests.conformance import sglang_aux, sources
from tests.conformance.aux_cases import IDS, aux_cases
from tests.conformance.compare import play
from tests.conformance.corpus import Case
from tests.conformance.draft import llama
from tests.conformance.sglang_aux import LAYERS, Difference, draft_config
from tests.conformance.sglang_aux_oracle import Answer, fed

RELEASES = runtime_file("sglang").releases

#: The graphs' default ids; ids that are read otherwise by one target model; functions apart.
EVERY_RUN = ("0.5.9", "0.5.13", "0.5.23")
FAMILIES = (
    "DeepseekV3ForCausalLM",
    "GptOssForCausalLM",
    "KimiK25ForConditionalGeneration",
    "LlamaForCausalLM",
    "Qwen3MoeForCausalLM",
)


def need(release: str) -> None:
    """Skips when the release is not unpacked."""
    if release not in sglang_aux.unpacked():
        pytest.skip(f"not unpacked: sources.fetch('sglang', '{release}')")


@pytest.fixture(name="opted_in")
def _opted_in(request: pytest.FixtureRequest) -> None:
    if "conformance" not in request.config.getoption("-m"):
        pytest.skip("opt-in: -m conformance")


def answer(
    release: str, architecture: str, fragment: Mapping[str, Any], layers: int = LAYERS
) -> Answer:
    need(release)
    folder = sources.cache() / "sglang" / release
    return fed(folder, architecture, draft_config(fragment), layers)


def unexplained(release: str, names: Iterable[str]) -> list[Difference]:
    asked = sglang_aux.ask(release, names)
    compared = (found for _, found in sglang_aux.compare(release, asked))
    return [one for found in compared for one in found if one.flaw is None]


@pytest.mark.parametrize("release", EVERY_RUN)
def test_families(release: str) -> None:
    need(release)
    known = sglang_aux.architectures(release)
    assert unexplained(release, [name for name in FAMILIES if name in known]) == []


@pytest.mark.parametrize(
    ("release", "architecture", "policy"),
    [
        ("0.5.9", "LlamaForCausalLM", "input"),
        ("0.5.13", "KimiK25ForConditionalGeneration", "plus1"),
        ("0.5.23", "GptOssForCausalLM", "plus1"),
    ],
)
def test_a_wrong_policy_is_noticed(
    release: str, architecture: str, policy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    need(release)
    wrong = replace(sglang_aux.support(release, architecture), policy=policy)
    monkeypatch.setattr(sglang_aux, "support", lambda *asked: wrong)
    found = unexplained(release, [architecture])
    assert {one.about for one in found} >= {"states"}


@pytest.mark.conformance
@pytest.mark.usefixtures("opted_in")
@pytest.mark.parametrize("release", RELEASES)
def test_release(release: str) -> None:
    need(release)
    assert unexplained(release, sglang_aux.architectures(release)) == []


@pytest.mark.conformance
@pytest.mark.usefixtures("opted_in")
@pytest.mark.parametrize("release", RELEASES)
def test_what_the_draft_worker_raises_is_known(release: str) -> None:
    """Some workers read ``eagle_config`` again, where nothing is swallowed."""
    draft = llama()
    for case in aux_cases(LAYERS):
        error = answer(release, "LlamaForCausalLM", case.fragment).worker_error
        if error is not None:
            config = draft_config(case.fragment)
            whole = Case(case.name, config, dict(draft.tensors), draft.d2t, frozenset())
            said = play(whole, "sglang", release)
            assert isinstance(said, Failure), (case.name, error)


# (release, target model, target layers, keys of the draft, states): read off the sources by hand
BY_HAND: list[tuple[str, str, int, dict[str, Any], tuple[int, ...] | None]] = [
    # models/llama.py 0.4.8.post1:706, whatever the draft says
    ("0.4.8.post1", "LlamaForCausalLM", 32, {"eagle_config": {IDS: [5, 6, 7]}}, (2, 16, 29)),
    # [val + 1 for val in layer_ids]; layers capture what comes in
    ("0.5.9", "LlamaForCausalLM", 32, {"eagle_config": {IDS: [1, 15, 28]}}, (2, 16, 29)),
    ("0.5.9", "LlamaForCausalLM", 32, {IDS: [5, 6, 7]}, (2, 16, 29)),
    # models/deepseek_v2.py 0.5.13:2740 through models/kimi_k25.py
    (
        "0.5.13",
        "KimiK25ForConditionalGeneration",
        61,
        {"eagle_config": {IDS: [2, 30, 58]}},
        (2, 30, 58),
    ),
    # models/gpt_oss.py 0.5.23:1349 and :732
    ("0.5.23", "GptOssForCausalLM", 36, {"eagle_config": {IDS: [2, 18, 36]}}, (2, 18, 36)),
    # models/minimax_m3_vl.py 0.5.23:262
    ("0.5.23", "MiniMaxM3SparseForConditionalGeneration", 60, {}, (3, 31, 58)),
    ("0.5.23", "LlamaForCausalLM", 32, {"eagle_config": {"use_aux_hidden_state": 0}}, None),
]


@pytest.mark.parametrize(("release", "architecture", "layers", "keys", "states"), BY_HAND)
def test_by_hand(
    release: str,
    architecture: str,
    layers: int,
    keys: dict[str, Any],
    states: tuple[int, ...] | None,
) -> None:
    assert answer(release, architecture, keys, layers).eager.states == states


def test_graphs_keep_the_default_before_0_5_11() -> None:
    ids = {"eagle_config": {IDS: [4, 12, 19]}}
    before = answer("0.5.10.post1", "LlamaForCausalLM", ids)
    assert (before.graphs.states, before.beside_graphs.states) == ((2, 12, 21), (5, 13, 20))
    after = answer("0.5.11", "LlamaForCausalLM", ids)
    assert after.graphs.states == after.beside_graphs.states == (5, 13, 20)


def test_where_ids_are_read() -> None:
    """Twice, because answers are kept."""
    for _ in range(2):
        found = answer("0.5.9", "LlamaForCausalLM", {"eagle_config": {IDS: [4, 12, 19]}})
        assert (found.read_from, found.ids) == ("nested", [4, 12, 19])
        assert answer("0.5.9", "LlamaForCausalLM", {IDS: [4, 12, 19]}).read_from == "default"


def test_marks_of_the_graphs_stay() -> None:
    """models/qwen2_moe.py 0.5.9 sets ``_is_layer_to_capture`` and nothing takes it back."""
    before = answer("0.5.9", "Qwen3MoeForCausalLM", {"eagle_config": {IDS: [4, 12, 19]}})
    assert before.beside_graphs.states == (2, 5, 12, 13, 20, 21)


@pytest.mark.parametrize(
    ("release", "architecture", "ids", "error"),
    [
        # for layer_id in layers: self.layers[layer_id]
        ("0.5.23", "Qwen3MoeForCausalLM", [2, 12, LAYERS - 1], "IndexError"),
        # AuxHiddenStatePacker.finalize counts
        ("0.5.23", "DeepseekV3ForCausalLM", [2, 12, LAYERS], "RuntimeError"),
        ("0.5.9", "LlamaForCausalLM", ["2", "12"], "TypeError"),
        # aux_hidden_states stays empty, and one tensor is unpacked into two
        ("0.5.9", "LlamaForCausalLM", [], "ValueError"),
    ],
)
def test_bad_ids(release: str, architecture: str, ids: list[Any], error: str) -> None:
    raised = answer(release, architecture, {"eagle_config": {IDS: ids}}).eager.error
    assert raised is not None
    assert raised.type == error
    assert raised.where.startswith(("models/", "layers/"))
