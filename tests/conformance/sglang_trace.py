"""Watching stored tensors go into a model's parameters.

Parameters are filled with NaN first and every stored tensor holds a constant of its own, so
counting constants, zeros and NaNs tells which tensor reached which place, whole or not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Trace:
    """What was seen of one draft on its way in."""

    stage: str = "config"
    values: dict[str, float] = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=dict)
    reached: set[str] = field(default_factory=set)
    padded: set[str] = field(default_factory=set)
    copies: dict[str, int] = field(default_factory=dict)
    shapes: dict[str, list[int]] = field(default_factory=dict)
    map_from: str | None = None
    loaded: dict[str, Any] = field(default_factory=dict)


def poison(model: Any) -> None:
    import torch

    for name, parameter in model.named_parameters():
        if name.endswith((".k_scale", ".v_scale")):
            continue  # -1 there means "not given" to the runtime itself
        if parameter.is_floating_point():
            parameter.data.fill_(float("nan"))
        else:
            parameter.data.fill_(torch.iinfo(parameter.dtype).max)


def watch(model: Any, load: Callable[..., Any], trace: Trace) -> Callable[..., Any]:
    def watched(weights: Iterable[tuple[str, Any]]) -> Any:
        try:
            result = load(_observed(model, weights, trace))
        finally:
            # A reader that is left half way holds threads; do not leave its end to the collector.
            getattr(weights, "close", lambda: None)()
        trace.loaded = {name: p.detach().clone() for name, p in model.named_parameters()}
        return result

    return watched


def leave_as_loaded(model: Any) -> None:
    """Keep quantised layers from repacking their weights, which is done by kernels."""
    for module in model.modules():
        method = getattr(module, "quant_method", None)
        if method is not None:
            method.process_weights_after_loading = lambda layer: None


def _observed(
    model: Any, weights: Iterable[tuple[str, Any]], trace: Trace
) -> Iterator[tuple[str, Any]]:
    """Hand on each tensor and look, when the loader asks for the next, where it went."""
    zeros = _zeros(model)
    for name, tensor in weights:
        value = float(tensor.flatten()[0]) if tensor.numel() else float("nan")
        plain = name.rpartition(".")[2] not in ("d2t", "t2d") and tensor.dtype.is_floating_point
        if plain:
            trace.values[name] = value
            trace.sizes[name] = tensor.numel()
        before = getattr(model, "hot_token_id", None)
        yield name, tensor
        if getattr(model, "hot_token_id", None) is not before:
            trace.map_from = name
        if plain:
            copied = counts([p.data for p in model.parameters()], {name: value})[name]
            trace.copies[name] = copied
            if copied:
                trace.reached.add(name)
        elif name.rpartition(".")[2] not in ("d2t", "t2d"):
            trace.values[name] = float("nan")
            trace.sizes[name] = tensor.numel()
        now = _zeros(model)
        if now > zeros:
            trace.padded.add(name)
        zeros = now


def _zeros(model: Any) -> int:
    """Zeros in all parameters, the padding rows of vocabulary tables aside. No stored constant is
    0."""
    return sum(
        int((_own_rows(model, name, p).float() == 0).sum()) for name, p in model.named_parameters()
    )


def _own_rows(model: Any, name: str, parameter: Any) -> Any:
    """A vocabulary table without the rows that round it up to a multiple of 64."""
    owner = model.get_submodule(name.rpartition(".")[0])
    rows = getattr(owner, "org_vocab_size", None)
    data = parameter.data
    return data[:rows] if rows is not None and name.endswith(".weight") else data


def holes(model: Any, name: str, parameter: Any) -> bool:
    import torch

    data = _own_rows(model, name, parameter)
    if data.is_floating_point():
        return bool(torch.isnan(data.float()).any())
    return bool((data == torch.iinfo(data.dtype).max).any())


def counts(tensors: Iterable[Any], values: dict[str, float]) -> dict[str, int]:
    """How often each stored tensor's constant occurs in ``tensors``."""
    held = [t.float() for t in tensors]
    return {name: sum(int((t == value).sum()) for t in held) for name, value in values.items()}


def judge(trace: Trace, final: dict[str, int]) -> dict[str, Any]:
    """Dropped, altered and replaced tensors, from constants counted during and after loading."""
    dropped, altered, replaced = [], {}, []
    for name in trace.values:
        if "rotary_emb" in name:
            continue
        if not final[name] and name not in trace.reached:
            dropped.append(name)
        elif not final[name]:
            replaced.append(name)
        copies = max(final[name], trace.copies.get(name, 0))
        if copies and copies != trace.sizes[name]:
            altered[name] = "cut" if copies < trace.sizes[name] else "spread"
        if name in trace.padded:
            altered[name] = "padded"
    return {
        "dropped": sorted(dropped),
        "altered": sorted(altered),
        "altered_how": dict(sorted(altered.items())),
        "replaced": sorted(replaced),
    }
