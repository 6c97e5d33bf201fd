"""An SGLang target model whose own code captures aux hidden states, without weights or torch.

From the release: ``set_eagle3_layers_to_capture`` of the target class, and the forward passes of it
and of its decoder. Stand-ins: the decoder layers, which only count, the tensors, which know how
many layers they have been through, and whatever else is mentioned.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from eagle3_lint.probe.construction import held
from eagle3_lint.probe.source_tree import ClassSource, dotted
from tests.conformance.wheel_code import ANYTHING, Anything, Passing, WheelCode

MODELS: Final = "sglang.srt.models"

#: What collects the captured states, and what adds them up; the release's own.
REAL: Final = frozenset({"AuxHiddenStateList", "AuxHiddenStatePacker", "snapshot"})

#: Parts of a decoder that the models in question do without: Gemma 4's per-layer embeddings.
ABSENT: Final = frozenset({"per_layer_model_projection"})

#: Attributes in which a model holds another.
INSIDE: Final = frozenset({"model", "language_model"})

States = tuple[int, ...]


class NotTheStreamError(Exception):
    """A model captured a part of the residual stream."""


class Tokens(Anything, Passing):
    """Token ids; what is computed from them is their embedding, aux state 0."""

    def through(self, others: Sequence[Passing], named: Mapping[str, Any]) -> Any:
        return Stream(0)


@dataclass(frozen=True)
class Stream(Passing):
    """The residual stream after some layers, or one of two parts that add up to it.

    A decoder that fuses the addition with the next norm hands on two tensors: what its last
    block added, and the residual.
    """

    layers: int
    part: Literal["whole", "added", "residual"] = "whole"
    shape: tuple[int, int] = (1, 1)
    dtype: str = "bfloat16"

    def through(self, others: Sequence[Passing], named: Mapping[str, Any]) -> Any:
        """What is given both parts, as a norm is, returns two tensors, everything else one."""
        self.capture(named)
        residual = next((other for other in others if _is_residual(other)), None)
        return self if residual is None else (self, residual)

    def capture(self, named: Mapping[str, Any]) -> None:
        """A callee that is told to capture takes the whole stream as it comes in.

        0.5.9 layers/communicator.py prepare_attn_and_capture_last_layer_outputs and 0.5.23
        layers/layer_boundary: the residual is added up first.
        """
        for name in ("capture_output", "capture"):
            if callable(named.get(name)):
                named[name](Stream(self.layers))
        collector = named.get("captured_last_layer_outputs")
        if collector is not None:
            collector.append(Stream(self.layers))

    def __iter__(self) -> Iterator[Any]:
        # A tensor has as many rows as there are tokens.
        raise ValueError("too many values to unpack (expected 2)")

    def __len__(self) -> int:
        return 1

    def __getitem__(self, index: object) -> Stream:
        return self

    def __add__(self, other: Any) -> Stream:
        if isinstance(other, Stream) and {self.part, other.part} == {"added", "residual"}:
            assert self.layers == other.layers
            return Stream(self.layers)
        return self if isinstance(other, Anything) else NotImplemented

    def clone(self) -> Stream:
        return self

    def new_empty(self, shape: tuple[int, ...]) -> Packed:
        return Packed(shape, self.dtype)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return ANYTHING


class Packed:
    """The buffer of an ``AuxHiddenStatePacker``: remembers what is copied into it."""

    def __init__(self, shape: tuple[int, ...], dtype: str) -> None:
        self.shape, self.dtype = shape, dtype
        self.states: list[Stream] = []

    def __getitem__(self, index: object) -> Packed:
        return self

    def copy_(self, stream: Stream) -> None:
        self.states.append(stream)

    def __iter__(self) -> Iterator[Stream]:
        return iter(self.states)


def _is_residual(value: object) -> bool:
    return isinstance(value, Stream) and value.part == "residual"


class Layer:
    """A decoder layer.

    Args:
        index: its place in the decoder.
        returns: names that the decoder gives to what the layer returns; if one of them is
            ``residual``, the layer leaves its last addition to whoever comes next.
    """

    def __init__(self, index: int, returns: Sequence[str]) -> None:
        self.index = index
        after = index + 1
        split = "residual" in returns
        values = {
            "hidden_states": Stream(after, "added" if split else "whole"),
            "residual": Stream(after, "residual"),
        }
        self.returned: Any = tuple(values.get(name, ANYTHING) for name in returns)
        if not returns:
            self.returned = values["hidden_states"]

    def __call__(self, *given: Any, **named: Any) -> Any:
        streams = (named.get("hidden_states"), *given)
        entering = next(value for value in streams if isinstance(value, Stream))
        assert entering.layers == self.index
        entering.capture(named)
        return self.returned

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return ANYTHING


def returned_names(forward: ast.FunctionDef) -> tuple[str, ...]:
    """Names that a decoder's forward pass gives to the values that a layer returns.

    Empty when it takes what is returned as one value.
    """
    for node in ast.walk(forward):
        if (
            isinstance(node, ast.Assign)
            and isinstance(node.targets[0], ast.Tuple)
            and isinstance(node.value, ast.Call)
            and ast.unparse(node.value.func).split("[")[0] in ("layer", "self.layers")
        ):
            return tuple(map(dotted, node.targets[0].elts))
    return ()


class Config(Anything):
    """A target model's configuration; that of its text model is the same object."""

    def __init__(self, layers: int) -> None:
        self.num_hidden_layers = layers

    def __getattr__(self, name: str) -> Any:
        return self if name == "text_config" else super().__getattr__(name)


class Logits:
    """The logits processor, which hands the aux hidden states on to the draft."""

    def __init__(self) -> None:
        self.handed: Any = None

    def __call__(
        self,
        input_ids: Any,
        hidden_states: Any,
        lm_head: Any,
        logits_metadata: Any,
        aux_hidden_states: Any = None,
        *others: Any,
        **named: Any,
    ) -> Any:
        self.handed = aux_hidden_states
        return ANYTHING


def general_mm_embed_routine(
    input_ids: Any, forward_batch: Any, language_model: Any, positions: Any = ANYTHING, **named: Any
) -> Any:
    """managers/mm_utils.py: embeds tokens and images, then runs the language model on that."""
    return language_model(
        input_ids=None, forward_batch=forward_batch, input_embeds=Stream(0), positions=positions
    )


def release_code(folder: Path) -> WheelCode:
    """The code of the release unpacked in a folder."""
    names = {"general_mm_embed_routine": general_mm_embed_routine}
    return WheelCode(folder, "sglang", "sglang/srt/", REAL, names)


@dataclass(frozen=True)
class _Plan:
    """How to build an instance of a class.

    Attributes:
        assigned: attributes that its ``__init__`` sets.
        holds: the models that it holds in some of them.
        returned: names of what its decoder layers return, if it has layers.
    """

    assigned: frozenset[str]
    holds: Mapping[str, ClassSource]
    returned: tuple[str, ...]


class Target:
    """Instances of one target class of one release.

    Raises KeyError when the release registers no such class.
    """

    def __init__(self, code: WheelCode, architecture: str) -> None:
        self.code = code
        self.source = _entry(code, architecture)
        self._plans: dict[tuple[str, str], _Plan] = {}

    def build(self, layers: int) -> Any:
        """The model before anything is set on it."""
        return self._build(self.source, Config(layers))

    def captured(self, model: Any) -> States | None:
        """What a forward pass hands to the logits processor, in its order; None for nothing."""
        logits = Logits()
        for part in _parts(model):
            if "logits_processor" in type(part).assigned:
                part.logits_processor = logits
        model.forward(Tokens(), ANYTHING, ANYTHING)
        if logits.handed is None or logits.handed is ANYTHING:
            return None
        parts = [s for s in logits.handed if s.part != "whole"]
        if parts:
            raise NotTheStreamError(f"what layer {parts[0].layers - 1} {parts[0].part}")
        return tuple(s.layers for s in logits.handed)

    def marked(self, model: Any) -> tuple[Any, ...]:
        """The layers that the decoder was told to capture before."""
        return next(
            (
                tuple(part.layers_to_capture)
                for part in _parts(model)
                if "layers" in vars(part) and "layers_to_capture" in vars(part)
            ),
            (),
        )

    def _build(self, source: ClassSource, config: Config) -> Any:
        plan = self._plan(source)
        inside = {name: self._build(cls, config) for name, cls in plan.holds.items()}
        made = self.code.instance(source, **inside)
        for attribute in plan.assigned & ABSENT:
            setattr(made, attribute, None)
        if "config" in plan.assigned:
            made.config = config
        if "layers" in plan.assigned:
            count = config.num_hidden_layers
            made.layers = [Layer(i, plan.returned) for i in range(count)]
            for name in plan.assigned & {"start_layer", "_start_layer"}:
                setattr(made, name, 0)
            for name in plan.assigned & {"end_layer", "_end_layer"}:
                setattr(made, name, count)
        return made

    def _plan(self, source: ClassSource) -> _Plan:
        """How to build a class, worked out once."""
        key = (source.module, source.name)
        if key not in self._plans:
            assigned = self.code.assigned(source)
            built = {name: held(self.code.tree, source, name) for name in assigned & INSIDE}
            holds = {name: classes[0] for name, classes in built.items() if classes}
            self._plans[key] = _Plan(assigned, holds, self._returned_by_layers(source))
        return self._plans[key]

    def _returned_by_layers(self, decoder: ClassSource) -> tuple[str, ...]:
        """Names of what a layer returns, in the forward pass that calls the layers."""
        for owner in self.code.tree.lineage(decoder):
            forward = owner.bodies.get("forward")
            if forward is not None:
                names = returned_names(forward)
                if names or "super()" not in ast.unparse(forward):
                    return names
        return ()


def _parts(model: Any) -> Iterator[Any]:
    """The model and the models in it."""
    yield model
    for attribute in INSIDE:
        inside = vars(model).get(attribute)
        if inside is not None:
            yield from _parts(inside)


def _entry(code: WheelCode, architecture: str) -> ClassSource:
    """The class of that name in the ``EntryClass`` of a model file."""
    for path in code.files.listing(MODELS.replace(".", "/")):
        text = code.files.read(path)
        if "EntryClass" not in text or architecture not in text:
            continue
        module = f"{MODELS}.{Path(path).stem}"
        source = code.tree.module(module)
        assert source is not None
        entry = source.values.get("EntryClass")
        listed = entry.elts if isinstance(entry, (ast.List, ast.Tuple)) else [entry]
        if architecture in (dotted(name) for name in listed if name is not None):
            found = code.tree.find(module, architecture)
            if found is not None:
                return found
    raise KeyError(architecture)
