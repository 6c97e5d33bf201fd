"""What a draft is, whatever producer and form say it: the same names for all of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from eagle3_lint.contract.rules_folder import read_toml, rules_folder
from eagle3_lint.facts import Facts
from eagle3_lint.forward import needs
from eagle3_lint.frozen import frozen
from eagle3_lint.simulate.configure import look_up


@frozen
class Dialects:
    """The forms of config.json (``rules/dialects.toml``).

    Attributes:
        fields: name in the spec → where it stands, the first that is there.
        absent: what absence means, for fields of which that is the same everywhere.
        layer_fields: what the nested form keeps in transformer_layer_config.
        nested_only: what makes a configuration a nested one.
        nested_layers: model types of layers that the nested form has.
    """

    fields: Mapping[str, tuple[str, ...]]
    absent: Mapping[str, object]
    layer_fields: tuple[str, ...]
    nested_only: tuple[str, ...]
    nested_layers: tuple[str, ...]
    nested_architecture: str


@cache
def dialects(rules: Path | None = None) -> Dialects:
    folder = rules_folder()
    if rules is not None and (rules / "dialects.toml").is_file():
        folder = rules
    raw: Mapping[str, Any] = read_toml(folder / "dialects.toml")
    return Dialects(
        fields={entry["name"]: tuple(entry["read"]) for entry in raw["field"]},
        absent={entry["name"]: entry["absent"] for entry in raw["field"] if "absent" in entry},
        layer_fields=tuple(raw["layer_fields"]),
        nested_only=tuple(raw["nested_only"]),
        nested_layers=tuple(raw["nested_layers"]),
        nested_architecture=raw["nested_architecture"],
    )


@frozen
class DraftSpec:
    """A draft in canonical fields.

    Attributes:
        values: field → value, for the fields that something is said about; the switches of the
            forward pass (``rules/switches.toml``) always.
        states: aux states in the order of the fc's columns, as far as they are known.
    """

    values: Mapping[str, object]
    states: tuple[int, ...] | None

    def lost_in(self, other: DraftSpec) -> Iterator[str]:
        """The fields that ``other`` says otherwise or no more, in words."""
        for name, value in self.values.items():
            if name not in other.values:
                yield f"{name} ({value!r}) is said nowhere any more"
            elif other.values[name] != value:
                yield f"{name} was {value!r} and is {other.values[name]!r}"
        if self.states is not None and other.states != self.states:
            yield f"the aux states were {self.states} and are {other.states}"


def draft_spec(
    facts: Facts, states: tuple[int, ...] | None, rules: Path | None = None
) -> DraftSpec:
    """The draft as its files have it.

    Args:
        states: what it was trained on (:func:`eagle3_lint.trained.trained_states`).
    """
    values: dict[str, object] = {}
    form = dialects(rules)
    for name, paths in form.fields.items():
        for path in paths:
            found = look_up(facts.config, path, None)
            if found is not None:
                values[name] = found
                break
        else:
            if name in form.absent:
                values[name] = form.absent[name]
    for need in needs(facts, rules):
        # As a sentence has it: two spellings of one scaling are one value.
        values[need.switch.name] = (
            need.value if need.switch.like is None else need.switch.shown(need.value)
        )
    return DraftSpec(values, states)
