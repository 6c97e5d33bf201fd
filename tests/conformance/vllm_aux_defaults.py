"""The layers that each target class of a vLLM release names when a draft has no ids.

Every method of that purpose is cut out of the release's model files and run with a model of n
layers as ``self``; nothing of the release is imported.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

GETTERS: Final = (
    "get_eagle3_aux_hidden_state_layers",
    "get_eagle3_default_aux_hidden_state_layers",
)

DELEGATED: Final = "whatever the inner model says"


class _Model:
    """Has n layers, whatever way one asks; an inner model is asked in its place."""

    def __init__(self, layers: int) -> None:
        self._layers = layers

    def __getattr__(self, name: str) -> Any:
        if name in ("num_hidden_layers", "num_layers", "n_layer"):
            return self._layers
        if name in ("layers", "h"):
            return range(self._layers)
        if name in GETTERS:
            return lambda: DELEGATED
        return self

    def __call__(self, *_: Any, **__: Any) -> _Model:
        return self


def defaults(sources: Path, layers: int) -> Iterator[tuple[str, object]]:
    """``file:line class`` of each method, and what it returns for a model of so many layers.

    ``...`` (of the protocol class in ``interfaces.py``, up to 0.17) returns None and is left out.
    """
    for folder in ("model_executor/models", "models"):
        for path in sorted((sources / "vllm" / folder).rglob("*.py")):
            text = path.read_text(encoding="utf-8")
            if any(name in text for name in GETTERS):
                place = path.relative_to(sources / "vllm")
                yield from _of_file(ast.parse(text), str(place), layers)


def _of_file(tree: ast.Module, place: str, layers: int) -> Iterator[tuple[str, object]]:
    for owner in ast.walk(tree):
        if not isinstance(owner, ast.ClassDef):
            continue
        for method in owner.body:
            if isinstance(method, ast.FunctionDef) and method.name in GETTERS:
                said = _run(method, place, layers)
                if said is not None:
                    yield f"{place}:{method.lineno} {owner.name}", said


def _run(method: ast.FunctionDef, place: str, layers: int) -> object:
    """What the method returns; names of other modules are models too."""
    method.decorator_list, method.returns = [], None
    names = {node.id for node in ast.walk(method) if isinstance(node, ast.Name)}
    space: dict[str, Any] = {n: _Model(layers) for n in names if not hasattr(builtins, n)}
    exec(compile(ast.Module(body=[method], type_ignores=[]), place, "exec"), space)
    return space[method.name](_Model(layers))
