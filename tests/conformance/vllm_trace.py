"""Watching stored tensors go into a vLLM model's parameters.

Parameters hold NaN first and every stored tensor holds a constant of its own. Each copy into a
parameter is seen as it happens (which constant, how much of it), and the parameters are looked at
again when loading is done: vLLM's wrapper classes collect all tensors before they load any.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

ASIDE = ("d2t", "t2d")
"""Last parts of tensor names that are judged by themselves, not as weights."""

_OPTIONAL = ("k_scale", "v_scale", "q_scale", "prob_scale")


@dataclass
class Trace:
    """What was seen of one draft on its way in."""

    stage: str = "config"
    model: Any = None
    names: list[str] = field(default_factory=list)
    values: dict[str, float] = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=dict)
    integers: set[str] = field(default_factory=set)
    written: dict[str, int] = field(default_factory=dict)
    spread: set[str] = field(default_factory=set)
    shapes: dict[str, list[int]] = field(default_factory=dict)
    loaded: dict[str, torch.Tensor] = field(default_factory=dict)


def poison(model: torch.nn.Module) -> None:
    """Fill every parameter with NaN, or with the largest integer of its dtype.

    Scales of the attention layer keep their -1, which means "not given" to the runtime itself.
    """
    for name, parameter in model.named_parameters():
        if name.rpartition(".")[2] in _OPTIONAL:
            continue
        fill = float("nan") if parameter.is_floating_point() else torch.iinfo(parameter.dtype).max
        parameter.data.fill_(fill)


class _Copies(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Notes how many elements of a parameter each stored tensor was copied to."""

    def __init__(self, model: torch.nn.Module, trace: Trace) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.owners = {p.untyped_storage()._cdata for p in model.parameters()}
        self.trace = trace

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        name = str(func)
        if name == "aten.copy_.default" and self._owned(args[0]) and args[1].numel():
            self._note(float(args[1].flatten()[0]), args[0], args[1].numel())
        elif name == "aten.fill_.Scalar" and self._owned(args[0]):
            self._note(float(args[1]), args[0], 1)
        return result

    def _owned(self, tensor: torch.Tensor) -> bool:
        return tensor.untyped_storage()._cdata in self.owners

    def _note(self, value: float, target: torch.Tensor, source: int) -> None:
        integer = not target.is_floating_point()
        for name, known in self.trace.values.items():
            if known == value and integer == (name in self.trace.integers):
                self.trace.written[name] = self.trace.written.get(name, 0) + target.numel()
                if source < target.numel():
                    self.trace.spread.add(name)


def watch(
    model: torch.nn.Module, load: Callable[..., Any], trace: Trace
) -> Callable[[Iterable[tuple[str, torch.Tensor]]], Any]:
    """``load_weights`` of ``model``, watched."""

    def watched(weights: Iterable[tuple[str, torch.Tensor]], *rest: Any, **named: Any) -> Any:
        trace.stage = "load"
        with _Copies(model, trace):
            result = load(_observed(weights, trace), *rest, **named)
        trace.loaded = {n: p.detach().clone() for n, p in model.named_parameters()}
        return result

    return watched


def _observed(
    weights: Iterable[tuple[str, torch.Tensor]], trace: Trace
) -> Iterator[tuple[str, torch.Tensor]]:
    for name, tensor in weights:
        trace.names.append(name)
        if name.rpartition(".")[2] not in ASIDE:
            trace.sizes[name] = tensor.numel()
            constant = tensor.dtype != torch.bool and tensor.numel()
            trace.values[name] = float(tensor.flatten()[0]) if constant else float("nan")
            if not tensor.is_floating_point():
                trace.integers.add(name)
        yield name, tensor


def own_rows(model: torch.nn.Module, name: str, data: torch.Tensor) -> torch.Tensor:
    """A vocabulary table without the rows that round it up to a multiple of 64."""
    try:
        owner = model.get_submodule(name.rpartition(".")[0])
    except AttributeError:
        return data
    rows = getattr(owner, "org_vocab_size", None)
    return data[:rows] if isinstance(rows, int) and name.endswith(".weight") else data


def has_holes(data: torch.Tensor) -> bool:
    """Whether any element still has the value that ``poison`` gave it."""
    if data.is_floating_point():
        return bool(torch.isnan(data.float()).any())
    return bool((data == torch.iinfo(data.dtype).max).any())


def judge(trace: Trace, final: dict[str, torch.Tensor]) -> dict[str, Any]:
    """Dropped, altered and replaced tensors.

    ``final`` holds the parameters after loading, without padding rows. Where all of them can
    represent every constant, a tensor that was written and is nowhere to be seen was overwritten.
    """
    exact = all(t.dtype.itemsize > 1 for t in final.values())
    floats = {n: t.float() for n, t in final.items() if t.is_floating_point()}
    integers = {n: t.float() for n, t in final.items() if not t.is_floating_point()}
    dropped, replaced, altered = [], [], {}
    for name, size in trace.sizes.items():
        if "rotary_emb" in name:
            continue
        value = trace.values[name]
        held = integers if name in trace.integers else floats
        holding = [t for t in held.values() if bool((t == value).any())]
        written = trace.written.get(name, 0)
        if not written and not holding:
            dropped.append(name)
            continue
        if exact and not holding:
            replaced.append(name)
        count = max(written, sum(int((t == value).sum()) for t in holding))
        if name in trace.spread and count > size:
            altered[name] = "spread"
        elif count < size:
            altered[name] = "cut"
        elif held is floats and any(bool((t == 0).any()) for t in holding):
            altered[name] = "padded"
    return {
        "dropped": sorted(dropped),
        "altered": sorted(altered),
        "altered_how": dict(sorted(altered.items())),
        "replaced": sorted(replaced),
    }
