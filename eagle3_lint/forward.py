"""How the forward pass of a draft is meant: its switches, as its trainer set them.

Which switches there are is data (``rules/switches.toml``), and so is what a producer means by one
whatever it writes (``[[forward]]`` in ``rules/producers``).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from eagle3_lint.contract.expression import compile_expression
from eagle3_lint.contract.rules_folder import read_toml, rules_folder
from eagle3_lint.diagnostic import Effect, Severity
from eagle3_lint.facts import Facts, bare
from eagle3_lint.frozen import frozen
from eagle3_lint.simulate.configure import look_up
from eagle3_lint.simulate.switches import windowed

_ABSENT = object()
_OFF = (None, False)
#: Kinds of rotary embedding that leave the usual one as it is for text.
_UNSCALED = (None, "default", "mrope")
_NOT_SCALING = ("rope_theta", "partial_rotary_factor", "rope_type", "type")


@frozen
class Switch:
    """One switch of a forward pass.

    Attributes:
        read: where trainers write it, the first that is there.
        absent: expression for what they mean by nothing.
        tensor: ending of a tensor that is there only when the switch is on.
        when: expression over ``windowed``; the switch is ``absent`` unless it holds.
        like: ``rope``: values are compared as scalings of a rotary embedding; ``presence``: only
            whether there is one.
        about: the switch in words, after "was trained with".
    """

    name: str
    read: tuple[str, ...]
    absent: str
    about: str
    effect: Effect
    severity: Severity
    tensor: str | None = None
    when: str | None = None
    like: str | None = None

    def same(self, one: object, other: object) -> bool:
        """Whether two values come to the same."""
        if self.like == "rope":
            return scaling(one) == scaling(other)
        if self.like == "presence":
            return (one in _OFF) == (other in _OFF)
        numbers = (int, float)
        if isinstance(one, numbers) and isinstance(other, numbers):
            return float(one) == float(other)
        return one == other or (not one and not other)

    def shown(self, value: object) -> str:
        """A value in a sentence."""
        if self.like == "rope":
            found = scaling(value)
            return "none" if found is None else str(dict(found)["rope_type"])
        if isinstance(value, bool) or value is None:
            return {True: "true", False: "false", None: "none"}[value]
        return str(value)


@frozen
class Need:
    """What a draft was trained with.

    Attributes:
        stated: where config.json says so (JSON pointer); None when a tensor or nothing does.
        tensor: the tensor that says so, if one does.
    """

    switch: Switch
    value: object
    stated: str | None = None
    tensor: str | None = None


@cache
def switches(rules: Path | None = None) -> tuple[Switch, ...]:
    """The switches of ``rules/switches.toml``, in the order of the file."""
    folder = rules_folder() if rules is None else rules
    path = folder / "switches.toml"
    if not path.is_file():  # a rule folder of a user's own may have contracts alone
        return ()
    return tuple(map(_switch, read_toml(path)["switch"]))


def _switch(raw: Mapping[str, Any]) -> Switch:
    return Switch(
        name=raw["name"],
        read=tuple(raw["read"]),
        absent=raw["absent"],
        about=raw["about"],
        effect=raw["effect"],
        severity=raw.get("severity", "error"),
        tensor=raw.get("tensor"),
        when=raw.get("when"),
        like=raw.get("like"),
    )


def needs(facts: Facts, rules: Path | None = None) -> tuple[Need, ...]:
    """What the draft's own files say that its forward pass does, switch by switch."""
    nested = facts.config.get("transformer_layer_config")
    layer: Mapping[str, object] = nested if isinstance(nested, Mapping) else {}
    return tuple(_need(facts, layer, switch) for switch in switches(rules))


def _need(facts: Facts, layer: Mapping[str, object], switch: Switch) -> Need:
    config = {**layer, **facts.config}
    if switch.when is not None and not compile_expression(switch.when)(
        {"windowed": windowed(config)}
    ):
        return Need(switch, compile_expression(switch.absent)({}))
    for path in switch.read:
        found = look_up(config, path, _ABSENT)
        if found is _ABSENT or (found is None and switch.like is None):
            continue
        inside = look_up(facts.config, path, _ABSENT) is _ABSENT
        pointer = "/" + path.replace(".", "/")
        return Need(switch, found, f"/transformer_layer_config{pointer}" if inside else pointer)
    if switch.tensor is not None:
        for name in facts.tensors:
            if bare(name) == switch.tensor:
                return Need(switch, True, tensor=name)
    return Need(switch, compile_expression(switch.absent)({}))


def scaling(value: object) -> tuple[tuple[str, object], ...] | None:
    """A rotary embedding's scaling in one spelling; None when there is none."""
    if not isinstance(value, Mapping):
        return None
    kind = value.get("rope_type", value.get("type"))
    if kind in _UNSCALED:
        return None
    rest = {k: v for k, v in value.items() if k not in _NOT_SCALING and v is not None}
    rest = {k: float(v) if type(v) in (int, float) else str(v) for k, v in rest.items()}
    return tuple(sorted({**rest, "rope_type": str(kind)}.items()))
