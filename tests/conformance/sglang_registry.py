"""SGLang's model registry with every registered name, its classes imported when asked for.

The release's own registry imports some two hundred model files; a draft needs one. Names come from
the ``EntryClass`` of each file under ``sglang/srt/models``, read as syntax.
"""

from __future__ import annotations

import ast
import importlib
import pkgutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock


def entry_classes(models: Path) -> dict[str, str]:
    """Class name -> module name, for each class in an ``EntryClass`` under ``models``.

    A file that does not parse, or whose ``EntryClass`` is not a plain name or list of names, is
    left out.
    """
    found: dict[str, str] = {}
    for path in sorted(models.rglob("*.py")):
        text = path.read_text(encoding="utf-8-sig")
        if "EntryClass" not in text:
            continue
        parts = path.relative_to(models).with_suffix("").parts
        module = ".".join(("sglang", "srt", "models", *parts))
        for node in ast.parse(text).body:
            names = [t.id for t in getattr(node, "targets", []) if isinstance(t, ast.Name)]
            if isinstance(node, ast.Assign) and "EntryClass" in names:
                found.update(dict.fromkeys(_names(node.value), module))
    return found


def _names(value: ast.expr) -> Iterator[str]:
    if isinstance(value, ast.Name):
        yield value.id
    elif isinstance(value, (ast.List, ast.Tuple)):
        for element in value.elts:
            yield from _names(element)


class _Classes(dict[str, Any]):
    """The registry's mapping: keys are all there, a value is imported when it is read."""

    def __getitem__(self, name: str) -> Any:
        value = super().__getitem__(name)
        if isinstance(value, str):
            value = getattr(importlib.import_module(value), name)
            self[name] = value
        return value

    def get(self, name: str, default: Any = None) -> Any:
        return self[name] if name in self else default  # noqa: SIM401 - get would not import


def fill(sources: Path) -> None:
    """Import the release's registry without its models and give it every name."""

    def nothing(*_: Any, **__: Any) -> Iterator[Any]:
        return iter(())

    with (
        mock.patch.object(pkgutil, "iter_modules", nothing),
        mock.patch.object(pkgutil, "walk_packages", nothing),
    ):
        registry = importlib.import_module("sglang.srt.models.registry").ModelRegistry
    registry.models = _Classes(entry_classes(sources / "sglang" / "srt" / "models"))
    if hasattr(registry, "_default_models_loaded"):
        registry._default_models_loaded = True
