"""Play ``load_weights``: where each tensor of a checkpoint goes, step by step, shape by shape."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from eagle3_lint.contract.expression import compile_expression
from eagle3_lint.contract.model import Contract, KeyStatement, LookupStatement, Raise
from eagle3_lint.simulate.configure import ConfigurationFailure, configure, fill
from eagle3_lint.simulate.parameters import build_parameters, filled_by_target
from eagle3_lint.simulate.result import Alteration, Failure, Load, Parameter, Shape
from eagle3_lint.simulate.shapes import fit

#: Role of the parameter that holds d2t where a runtime loads it like any other.
VOCABULARY_MAP = "vocabulary.map"
#: How many parameters a text names.
_SHOWN = 3


class _Held(NamedTuple):
    """A part that waits for its partners.

    Attributes:
        source: what makes it wait.
    """

    tensor: str
    shape: Shape
    source: str


class _Player:
    """The state of one load: what has arrived so far."""

    def __init__(self, contract: Contract, names: Mapping[str, object]) -> None:
        self.contract = contract
        self.names = names
        self.parameters = build_parameters(contract, names)
        self.modules = _modules(self.parameters)
        self.steps = [s for s in contract.keys if self._applies(s)]
        self.filled: dict[str, dict[str, str]] = {}
        self.gathered: dict[str, dict[str, _Held]] = {}
        self.reached: dict[str, str] = {}
        self.keys: list[str] = []
        self.dropped: dict[str, str] = {}
        self.ignored: list[str] = []
        self.altered: list[Alteration] = []
        self.failures: list[Failure] = []
        self.vocabulary_map: str | None = None

    def _applies(self, statement: KeyStatement) -> bool:
        return statement.when is None or bool(compile_expression(statement.when)(self.names))

    # -- one tensor -------------------------------------------------------------------------------

    def play(self, tensor: str, shape: Shape) -> None:
        """Follow one tensor to its end."""
        key = tensor
        for step in self.steps:
            if not step.condition.holds(key):
                continue
            if step.do == "replace":
                key = _replace(key, step)
            elif step.do == "prefix":
                key = step.into + key
            elif self._ends(step, tensor, key, shape):
                return
        self.dropped[tensor] = "no step of the loader takes it"

    def _ends(self, step: KeyStatement, tensor: str, key: str, shape: Shape) -> bool:
        """Take a step that may end the tensor's way; say whether it did."""
        if step.do == "ignore":
            self.ignored.append(tensor)
        elif step.do == "discard":
            self.dropped[tensor] = step.source
        elif step.do == "map":
            self.vocabulary_map = tensor
        elif step.do == "mistake":
            self.vocabulary_map = tensor
            self.dropped[tensor] = step.source
        elif step.do == "load":
            self.keys.append(key)
            return self._look_up(step, tensor, key, shape)
        elif step.find not in key:
            return False
        elif step.do == "fuse":
            self.keys.append(key)
            return self._look_up(step, tensor, _replace(key, step), shape)
        else:
            self._gather(step, tensor, key, shape)
        return True

    def _look_up(self, step: KeyStatement, tensor: str, key: str, shape: Shape) -> bool:
        unknown = self._unknown(key)
        lookup = self._lookup_for(key, unknown)
        for template in lookup.tries:
            parameter = self.parameters.get(template.replace("{key}", key))
            if parameter is not None:
                self._fit(parameter, step.part, tensor, shape)
                return True
        missing = lookup.missing if step.do == "load" else lookup.fused_missing
        if isinstance(missing, Raise):
            inner = lookup.within
            known = {
                "key": key.removeprefix(inner),
                "tensor": tensor,
                "unknown": unknown.removeprefix(inner),
            }
            text = fill(missing.message, known)
            self.failures.append(
                Failure(missing.type, text, "loading", lookup.source, tensor, "name")
            )
        elif missing == "ignore":
            self.ignored.append(tensor)
        elif missing == "discard":
            self.dropped[tensor] = lookup.source
        else:
            return False
        return True

    def _lookup_for(self, key: str, unknown: str) -> LookupStatement:
        """The last statement that speaks of ``key``: special ones stand after the general one."""
        for lookup in reversed(self.contract.lookups):
            if lookup.condition.holds(key) and lookup.unknown.holds(unknown):
                return lookup
        raise ValueError(f"{self.contract.draft_class}: no [[lookup]] speaks of {key!r}")

    def _unknown(self, key: str) -> str:
        """The shortest beginning of ``key`` that no module and no parameter is called."""
        steps = key.split(".")
        for count in range(1, len(steps) + 1):
            start = ".".join(steps[:count])
            if start not in self.modules and start not in self.parameters:
                return start
        return key

    # -- arrival ----------------------------------------------------------------------------------

    def _fit(self, parameter: Parameter, part: str, tensor: str, shape: Shape) -> None:
        rows = parameter.parts[part] if part else None
        expected = parameter.shape if rows is None else (rows, *parameter.shape[1:])
        statement = self.contract.shapes[parameter.loader]
        whole: tuple[int, ...] = ()
        if parameter.parts and not part:
            whole = tuple(parameter.parts.values())
            statement = self.contract.shapes_of_whole.get(parameter.loader, statement)
        fitted = fit(statement, shape, expected, whole)
        source = statement.source
        if isinstance(fitted, Raise):
            self.failures.append(
                Failure(fitted.type, fitted.message, "loading", source, tensor, "shape")
            )
            # It is meant for this parameter, so the parameter is not missing besides.
            self._arrive(parameter, part, tensor)
            return
        for how in fitted:
            self.altered.append(Alteration(tensor, parameter.name, how, shape, expected, source))
        self._arrive(parameter, part, tensor)

    def _arrive(self, parameter: Parameter, part: str, tensor: str) -> None:
        arrived = self.filled.setdefault(parameter.name, {})
        for earlier in [p for p in arrived if p == part or not part]:
            # A second tensor for the same place: what was there is overwritten, so it is lost.
            overwritten = arrived.pop(earlier)
            if overwritten != tensor:
                self.dropped[overwritten] = f"overwritten by {tensor}"
                self.reached.pop(overwritten, None)
        arrived[part] = tensor
        self.reached[tensor] = parameter.name
        if part and "" in arrived and set(parameter.parts) <= set(arrived):
            whole = arrived.pop("")
            self.dropped[whole] = f"overwritten part by part, last by {tensor}"
            self.reached.pop(whole, None)
        if parameter.role == VOCABULARY_MAP:
            self.vocabulary_map = tensor

    def _gather(self, step: KeyStatement, tensor: str, key: str, shape: Shape) -> None:
        """Hold a part back until its partners have come, then load them as one tensor."""
        place = key.replace(step.find, step.into)
        held = self.gathered.setdefault(place, {})
        held[step.find] = _Held(tensor, shape, step.source)
        if not all(partner in held for partner in step.partners):
            return
        parts = [held.pop(partner) for partner in step.partners]
        shapes = [part.shape for part in parts]
        if step.differs is not None and len({shape[1:] for shape in shapes}) > 1:
            text = fill(step.differs.message, {"shapes": shapes})
            self.failures.append(
                Failure(step.differs.type, text, "loading", step.source, tensor, "shape")
            )
        parameter = self.parameters.get(place)
        if parameter is None:
            self.dropped.update((part.tensor, step.source) for part in parts)
            return
        whole = (sum(shape[0] for shape in shapes if shape), *shapes[0][1:])
        self._fit(parameter, "", parts[0].tensor, whole)
        for part in parts:
            self.reached[part.tensor] = parameter.name

    def close(self) -> None:
        """Parts whose partners never came are lost without a word."""
        for held in self.gathered.values():
            for part in held.values():
                self.dropped[part.tensor] = part.source

    def empty(self) -> set[str]:
        """Parameters that are not filled, or not in full."""
        found = set()
        for name, parameter in self.parameters.items():
            arrived = self.filled.get(name, {})
            if "" not in arrived and not (parameter.parts and set(parameter.parts) <= set(arrived)):
                found.add(name)
        return found


def _replace(key: str, step: KeyStatement) -> str:
    if step.at_start:
        return step.into + key[len(step.find) :] if key.startswith(step.find) else key
    return key.replace(step.find, step.into)


def _modules(parameters: Iterable[str]) -> set[str]:
    """The dotted beginnings of parameter names: the modules that hold them."""
    found: set[str] = set()
    for name in parameters:
        steps = name.split(".")
        found.update(".".join(steps[:count]) for count in range(1, len(steps)))
    return found


def _emptiness(player: _Player, empty: set[str]) -> dict[str, object]:
    """What statements about the time after loading may ask of the parameters that are empty."""
    parameters = player.parameters
    filled = {name.rpartition(".")[0] for name in parameters.keys() - empty}
    counts = {f"empty_{loader}": 0 for loader in player.contract.shapes}
    for name in empty:
        counts[f"empty_{parameters[name].loader}"] += 1
    modules = [name.rpartition(".")[0] for name in sorted(empty)]
    return {
        **counts,
        "halved": sum(module in filled for module in modules),
        "shadowed": sum(
            _shadowed(module, player.keys) for module in modules if module not in filled
        ),
        "lacking": _some(sorted(empty)),
    }


def _shadowed(module: str, keys: Iterable[str]) -> bool:
    """Whether a key begins as the module's own do, but is none of them."""
    return any(key.startswith(module) and not key.startswith(f"{module}.") for key in keys)


def _some(names: Sequence[str]) -> str:
    """The first of the names, and how many more there are."""
    rest = len(names) - _SHOWN
    return ", ".join(names[:_SHOWN]) + (f" and {rest} more" if rest > 0 else "")


def simulate_load(
    contract: Contract,
    config: Mapping[str, object],
    tensors: Mapping[str, Shape],
    known: Mapping[str, object],
) -> Load:
    """Play ``contract`` against a checkpoint.

    Args:
        contract: the contract of one release.
        config: the configuration as the runtime sees it, class defaults included.
        tensors: name → shape, in the order in which the runtime iterates them.
        known: names given from outside (``config_class``, the target model's sizes).
    """
    present = {s.name: sum(map(s.condition.holds, tensors)) for s in contract.present}
    try:
        names = configure(contract, config, {**known, **present})
        player = _Player(contract, names)
    except ConfigurationFailure as stopped:
        return Load(failures=(stopped.failure,))
    for tensor, shape in tensors.items():
        player.play(tensor, shape)
    player.close()
    empty = player.empty()
    untouched = {name for name in empty if name not in player.filled}
    after = {
        **names,
        "mapped": int(player.vocabulary_map is not None),
        "untouched": ", ".join(map(repr, sorted(untouched))),
    }
    borrowed = filled_by_target(contract, after, untouched)
    if contract.after:
        after |= _emptiness(player, empty - borrowed)
    for statement in contract.after:
        if compile_expression(statement.when)(after):
            text = fill(statement.refuse.message, after)
            player.failures.append(
                Failure(
                    type=statement.refuse.type,
                    message=text,
                    stage="after loading",
                    source=statement.source,
                    because=fill(statement.because, after),
                )
            )
    # A parameter that is thrown away again is no longer there for the forward pass to use.
    lost = player.parameters.keys() & {s.name for s in contract.parameters if s.lost}
    unfilled = sorted(n for n in empty - borrowed - lost if player.parameters[n].used)
    map_lost = any(player.parameters[name].role == "vocabulary.map" for name in lost)
    return Load(
        failures=tuple(player.failures),
        unfilled=tuple(unfilled),
        dropped=tuple(sorted(player.dropped)),
        altered=tuple(sorted(player.altered, key=lambda a: a.tensor)),
        ignored=tuple(sorted(player.ignored)),
        borrowed=tuple(sorted(borrowed)),
        reached=player.reached,
        vocabulary_map=None if map_lost else player.vocabulary_map,
        parameters=player.parameters,
        environment=after,
        dropped_by=player.dropped,
    )
