"""Which aux hidden states a draft was trained on, as far as anything says so.

Two conventions exist: id i is the output of layer i (aux state i + 1), or its input (aux state i).
In this order: the user says; the producer is certain, and its convention is data; the draft names
no ids, so that it was trained on what every trainer takes then; or its ids are those of that choice
in one of the conventions and not in the other.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from eagle3_lint.frozen import frozen
from eagle3_lint.producer import convention, likely_convention, states_without_ids
from eagle3_lint.report.model import ProducerReport
from eagle3_lint.simulate.configure import look_up

Ids = tuple[int, ...]
Basis = Literal["user", "producer", "default", "ambiguous"]

#: Where drafts have their ids. The last of these are read by no runtime: AngelSlim's own key,
#: SpecForge's override of a run, and a plural that is written by mistake.
NESTED = "eagle_config.eagle_aux_hidden_state_layer_ids"
TOP = "eagle_aux_hidden_state_layer_ids"
UNREAD = (
    "aux_hidden_states_layer_ids",
    "aux_hidden_state_layer_ids",
    "eagle_aux_hidden_states_layer_ids",
)
_PLACES = (NESTED, TOP, *UNREAD)


@frozen
class Trained:
    """What a draft was trained on.

    Attributes:
        states: aux states in the order of the fc's columns; None when that is not known.
        basis: who says so.
        ids: the draft's own ids, wherever they are; empty when it names none.
        path: where those are.
        sure: False when it rests on what a version of the producer does by default, which the
            user of it may have changed.
    """

    states: Ids | None
    basis: Basis
    ids: Ids = ()
    path: str = ""
    sure: bool = True


def stated_ids(config: Mapping[str, object]) -> tuple[Ids, str]:
    """The draft's own ids and where they are; empty when it names none."""
    for path in _PLACES:
        ids = ids_at(config, path)
        if ids:
            return ids, path
    return (), ""


def ids_at(config: Mapping[str, object], path: str) -> Ids:
    """The ids at a path; empty when there is no list of integers."""
    value = look_up(config, path)
    if isinstance(value, list) and all(type(i) is int for i in value):
        return tuple(value)
    return ()


def default_states(layers: int) -> Ids:
    """What trainers and runtimes take when nothing is said: early, middle, late."""
    return (2, layers // 2, layers - 3)


def trained_states(
    config: Mapping[str, object],
    producer: ProducerReport,
    layers: int | None,
    *,
    trained_on: Ids | None = None,
    ids_mean: str | None = None,
    rules: Path | None = None,
) -> Trained:
    """What the draft was trained on.

    Args:
        layers: decoder layers of the target model, if they are known.
        trained_on, ids_mean: what the user says.
    """
    ids, path = stated_ids(config)
    if trained_on is not None:
        return Trained(trained_on, "user", ids, path)
    if ids_mean is not None and ids:
        return Trained(_read(ids, ids_mean), "user", ids, path)
    if not ids:
        own = states_without_ids(producer, layers, rules) if layers is not None else None
        if own is not None:
            return Trained(own, "producer", sure=False)
        states = default_states(layers) if layers is not None else None
        return Trained(states, "default")
    means = convention(producer, rules)
    if means is not None:
        return Trained(_read(ids, means), "producer", ids, path)
    top, nested = ids_at(config, TOP), ids_at(config, NESTED)
    if top and top == _read(nested, "output"):
        # Each runtime finds the same states where it looks, each in its own convention.
        return Trained(top, "default", ids, path)
    means = _usual(ids, layers)
    likely = likely_convention(producer, rules)
    # Ids that look usual in one convention, by a trainer that uses the other: nobody can tell.
    if means is None or likely not in (None, means):
        return Trained(None, "ambiguous", ids, path)
    return Trained(_read(ids, means), "default", ids, path)


def _read(ids: Ids, means: str) -> Ids:
    return tuple(i + 1 for i in ids) if means == "output" else ids


def _usual(ids: Ids, layers: int | None) -> str | None:
    """The convention in which the ids are the usual choice, when they are that in one only."""
    if layers is None:
        return None
    if max(ids) == layers:
        return "input"  # no layer has that output
    early, _, late = default_states(layers)
    if (ids[0], ids[-1]) == (early - 1, late - 1):
        return "output"
    return "input" if (ids[0], ids[-1]) == (early, late) else None
