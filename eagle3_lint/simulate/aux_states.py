"""Which aux hidden states a runtime feeds to the draft.

Aux state k is the residual stream of the target model after k decoder layers (``hidden_states[k]``
of Hugging Face; 0 is the embedding). The runtimes disagree about what an id means; the policies
below are the ways that exist, each named in the data that say where it holds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal

from eagle3_lint.contract.expression import compile_expression
from eagle3_lint.frozen import frozen
from eagle3_lint.simulate.configure import look_up

Ids = tuple[int, ...]
ReadFrom = Literal["nested", "top", "default"]


def _as_input(ids: Ids, layers: int | None) -> Ids:
    """Id i is the input of layer i: aux state i."""
    return ids


def _as_output(ids: Ids, layers: int | None) -> Ids:
    """Id i is the output of layer i: aux state i + 1."""
    return tuple(i + 1 for i in ids)


def _output_if_first_is_1(ids: Ids, layers: int | None) -> Ids:
    """The output reading only when the first id is 1, as in [1, n // 2 - 1, n - 4]."""
    return _as_output(ids, layers) if ids[:1] == (1,) else ids


def _output_unless_max_is_n(ids: Ids, layers: int | None) -> Ids:
    """The output reading unless an id names the state after the last layer."""
    return ids if ids and layers is not None and max(ids) == layers else _as_output(ids, layers)


POLICIES: Mapping[str, Callable[[Ids, int | None], Ids]] = {
    "input": _as_input,
    "plus1": _as_output,
    "plus1-also-on-default": _as_output,
    "plus1-if-first-is-1": _output_if_first_is_1,
    "plus1-unless-max-is-n": _output_unless_max_is_n,
}


@frozen
class AuxStates:
    """What one runtime feeds.

    Attributes:
        ids: as the configuration has them where the runtime looks; empty when it finds none.
        read_from: ``nested`` (in eagle_config), ``top``, or ``default``.
        states: aux states in the order in which they are concatenated; None when the number of
            target layers is needed and not known.
        enabled: False when the configuration switches aux hidden states off.
    """

    ids: Ids
    read_from: ReadFrom
    states: Ids | None
    enabled: bool = True


def _found(config: Mapping[str, object], statement: Mapping[str, Any]) -> tuple[Ids, str]:
    """The first ids that one of the paths leads to, and that path; empty when none does."""
    hidden_by: Mapping[str, str] = statement.get("hidden_by", {})
    for path in statement["read"]:
        if path in hidden_by and look_up(config, hidden_by[path], None):
            continue
        value = look_up(config, path)
        if isinstance(value, list) and value and all(type(i) is int for i in value):
            return tuple(value), path
    return (), ""


def aux_states(
    statement: Mapping[str, Any],
    policy: str | None,
    config: Mapping[str, object],
    layers: int | None,
) -> AuxStates:
    """The aux states that a release feeds.

    Args:
        statement: the ``[[aux]]`` statement of the release. The ids of the paths that it has under
            ``shifted`` are raised by one, as outputs of layers are, whatever its policy; a path
            under ``hidden_by`` is not read when there is something at the path named with it.
        policy: how it reads ids for this target model; None for its usual way.
        config: the draft's configuration as the runtime sees it.
        layers: decoder layers of the target model.
    """
    switch = statement.get("switch")
    # Asked for its truth, as the runtimes do: null and 0 switch off too, "false" does not.
    enabled = switch is None or bool(look_up(config, switch, True))
    ids, path = _found(config, statement)
    named: str = statement.get("policy", "plus1")
    if policy in POLICIES:
        named = policy or named
    if ids:
        read_from: ReadFrom = "nested" if "." in path else "top"
        if path in statement.get("shifted", ()):
            named = "plus1"
        # Layers are captured in the order in which they run, each once, whatever the list says.
        states = tuple(sorted(set(POLICIES[named](ids, layers))))
        return AuxStates(ids, read_from, states, enabled)
    if layers is None:
        return AuxStates((), "default", None, enabled)
    default = [compile_expression(e)({"layers": layers}) for e in statement["default"]]
    states = tuple(sorted({int(s) for s in default if isinstance(s, int)}))
    if named == "plus1-also-on-default":
        states = _as_output(states, layers)
    return AuxStates((), "default", states, enabled)
