"""Which fields of a draft's configuration a function reads layer ids from."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from eagle3_lint.probe.source_tree import dotted

FIELD = "eagle_aux_hidden_state_layer_ids"
_IDS = "layer_ids"
#: Variables that hold the draft's whole configuration.
_WHOLE = ("hf_config", "config", "hf_text_config")


def paths_read(text: str) -> frozenset[str]:
    """Dotted paths (``eagle_config.eagle_aux_hidden_state_layer_ids``) of all ids that are read by
    functions that read :data:`FIELD`."""
    functions = [
        node
        for node in ast.walk(ast.parse(text))
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    ]
    return frozenset(
        path
        for function in functions
        if any(_names(node) == FIELD for node in ast.walk(function))
        for path in _in_function(function)
    )


def _names(node: ast.AST) -> object:
    if isinstance(node, ast.Constant):
        return node.value
    return node.attr if isinstance(node, ast.Attribute) else None


def _in_function(function: ast.AST) -> Iterator[str]:
    named = _configurations(function)
    for node in ast.walk(function):
        access = _access(node)
        if access is None or not access[1].endswith(_IDS):
            continue
        holder = dotted(access[0]).rpartition(".")[2]
        if holder in _WHOLE:
            yield access[1]
        else:
            yield from (f"{name}.{access[1]}" for name in named.get(holder, [holder]))


def _access(node: ast.AST) -> tuple[ast.expr, str] | None:
    """Holder and key of ``getattr(x, "k")``, ``x.get("k")``, ``x["k"]`` and ``config.k``."""
    if isinstance(node, ast.Attribute):
        read = isinstance(node.ctx, ast.Load) and dotted(node.value) in _WHOLE
        return (node.value, node.attr) if read else None
    if isinstance(node, ast.Subscript):
        holder, key = node.value, node.slice
    elif isinstance(node, ast.Call) and dotted(node.func) == "getattr" and len(node.args) > 1:
        holder, key = node.args[0], node.args[1]
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args:
        if node.func.attr != "get":
            return None
        holder, key = node.func.value, node.args[0]
    else:
        return None
    if isinstance(key, ast.Constant) and isinstance(key.value, str):
        return holder, key.value
    return None


def _configurations(function: ast.AST) -> dict[str, list[str]]:
    """Variables that hold a nested configuration → the fields it may come from."""
    loops = {
        dotted(node.target): [e.value for e in node.iter.elts if isinstance(e, ast.Constant)]
        for node in ast.walk(function)
        if isinstance(node, ast.For) and isinstance(node.iter, ast.Tuple)
    }
    found: dict[str, list[str]] = {}
    for node in ast.walk(function):
        if not isinstance(node, ast.Assign):
            continue
        access = _access(node.value)
        if access is not None:
            found[dotted(node.targets[0])] = [access[1]]
        elif isinstance(node.value, ast.Call) and dotted(node.value.func) == "getattr":
            fields = loops.get(dotted(node.value.args[1]))
            if fields:
                found[dotted(node.targets[0])] = [str(field) for field in fields]
    return found
