"""What a draft was trained on, for a target of 61 layers: usual states 2, 30, 58."""

from __future__ import annotations

from typing import Any

import pytest

from eagle3_lint.report.model import ProducerReport
from eagle3_lint.trained import NESTED, TOP, Trained, trained_states

LAYERS = 61
UNKNOWN = ProducerReport("unknown", None, "unknown")


def nested(*ids: int) -> dict[str, Any]:
    return {"eagle_config": {"eagle_aux_hidden_state_layer_ids": list(ids)}}


def top(*ids: int) -> dict[str, Any]:
    return {TOP: list(ids)}


def trained(config: dict[str, Any], **how: Any) -> Trained:
    producer = how.pop("producer", UNKNOWN)
    return trained_states(config, producer, how.pop("layers", LAYERS), **how)


def test_the_user_is_right() -> None:
    found = trained(nested(1, 29, 57), trained_on=(3, 31, 59))
    assert (found.states, found.basis, found.path) == ((3, 31, 59), "user", NESTED)
    assert trained(nested(5, 9, 20), ids_mean="output").states == (6, 10, 21)
    assert trained(nested(5, 9, 20), ids_mean="input").states == (5, 9, 20)


@pytest.mark.parametrize(
    ("name", "states"),
    [
        # rules/producers: ModelOpt hooks the output of a layer, speculators hands ids to vLLM.
        ("modelopt", (6, 10, 21)),
        ("speculators", (5, 9, 20)),
    ],
)
def test_a_certain_producer_has_one_convention(name: str, states: tuple[int, ...]) -> None:
    sure, likely = (ProducerReport(name, "0.5.0", c) for c in ("certain", "likely"))
    found = trained(nested(5, 9, 20), producer=sure)
    assert (found.states, found.basis) == (states, "producer")
    assert trained(nested(5, 9, 20), producer=likely).basis == "ambiguous"


def test_a_version_that_only_converts_has_none() -> None:
    old = ProducerReport("speculators", "0.2.0", "certain")
    assert trained(nested(5, 9, 20), producer=old).basis == "ambiguous"


def test_usual_ids_of_a_trainer_with_the_other_convention_are_ambiguous() -> None:
    # [2, 30, 58] are the usual inputs of 61 layers; SpecForge trains on outputs.
    likely = ProducerReport("specforge", None, "likely")
    assert trained(nested(2, 30, 58), producer=likely).states is None
    assert trained(nested(1, 29, 57), producer=likely).states == (2, 30, 58)


def test_no_ids_mean_the_usual_states() -> None:
    found = trained({})
    assert (found.states, found.basis, found.path) == ((2, 30, 58), "default", "")
    assert trained({}, layers=None).states is None


@pytest.mark.parametrize(
    ("ids", "states"),
    [
        ((1, 29, 57), (2, 30, 58)),  # outputs: layers n // 2 - 1 and n - 4
        ((2, 30, 58), (2, 30, 58)),  # inputs
        ((20, 40, 61), (20, 40, 61)),  # no layer 61 has an output
        ((1, 12, 57), (2, 13, 58)),
    ],
)
def test_usual_values_tell_their_convention(ids: tuple[int, ...], states: tuple[int, ...]) -> None:
    found = trained(nested(*ids))
    assert (found.states, found.basis) == (states, "default")


@pytest.mark.parametrize("ids", [(5, 9, 20), (1, 30, 58), (2, 29, 57), (0, 1, 2)])
def test_other_values_do_not(ids: tuple[int, ...]) -> None:
    found = trained(nested(*ids))
    assert (found.states, found.basis, found.ids) == (None, "ambiguous", ids)


def test_both_places_in_their_own_conventions() -> None:
    found = trained({**nested(7, 11, 19), **top(8, 12, 20)})
    assert (found.states, found.basis) == ((8, 12, 20), "default")


@pytest.mark.parametrize(
    "config", [{"eagle_config": None}, {TOP: "2,30"}, {TOP: [2, None]}, {TOP: [True, False]}]
)
def test_what_is_no_list_of_ids_is_none(config: dict[str, Any]) -> None:
    assert trained(config).ids == ()


def test_a_key_that_no_runtime_reads_still_says_it() -> None:
    # AngelSlim's own spelling.
    found = trained({"aux_hidden_states_layer_ids": [1, 29, 57]})
    assert found.states == (2, 30, 58)
