"""Which classes a model builds into its attributes, by reading its ``__init__``."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from eagle3_lint.probe.source_tree import ClassSource, SourceTree, dotted


def held(tree: SourceTree, cls: ClassSource, attribute: str) -> list[ClassSource]:
    """The classes that ``self.<attribute>`` may be built from, by ``__init__`` of the lineage.

    A class handed over as a parameter is found through the parameter's default, and a method of
    the class that builds the attribute (``_init_model``) through its calls. Empty when nothing of
    the package is recognised.
    """
    for owner in tree.lineage(cls):
        init = owner.bodies.get("__init__")
        if init is None:
            continue
        built = [
            found
            for name in _built_into(init, attribute)
            for found in built_by(tree, cls, owner, init, name)
        ]
        if built:
            return built
    return []


def built_by(
    tree: SourceTree, cls: ClassSource, owner: ClassSource, init: ast.FunctionDef, name: str
) -> list[ClassSource]:
    """What calling ``name`` inside ``init`` of ``owner`` builds for an instance of ``cls``."""
    if name.startswith("self."):
        return _built_by_method(tree, cls, name.removeprefix("self."))
    if name in _defaults(init):
        for heir in tree.lineage(cls):
            # The most derived default wins: subclasses pass their own class up to __init__.
            heir_init = heir.bodies.get("__init__")
            default = None if heir_init is None else _defaults(heir_init).get(name)
            if default is not None:
                found = tree.find(heir.module, default)
                return [] if found is None else [found]
    found = tree.find(local_imports(init).get(name, owner.module), name)
    return [] if found is None else [found]


def _built_by_method(tree: SourceTree, cls: ClassSource, name: str) -> list[ClassSource]:
    """What ``self.<name>(...)`` builds: a method that builds it, or a class in the class body."""
    maker = tree.provider(cls, name)
    if maker is None:
        return []
    body = maker.bodies.get(name)
    if body is None:
        names = [maker.aliases.get(name, "")]
    else:
        names = [dotted(node.func) for node in ast.walk(body) if isinstance(node, ast.Call)]
    return [found for built in names if (found := tree.find(maker.module, built))]


def _built_into(init: ast.FunctionDef, attribute: str) -> Iterator[str]:
    """Names of what is called in assignments to ``self.<attribute>``."""
    for node in ast.walk(init):
        if not isinstance(node, (ast.Assign, ast.AnnAssign)) or node.value is None:
            continue
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        if any(dotted(target) == f"self.{attribute}" for target in targets):
            for call in ast.walk(node.value):
                if isinstance(call, ast.Call):
                    yield dotted(call.func)
                    yield from (dotted(k.value) for k in call.keywords if k.arg == "model_class")


def local_imports(function: ast.FunctionDef) -> dict[str, str]:
    """Names that a function imports from modules by their full name, with the module."""
    return {
        alias.name: node.module
        for node in ast.walk(function)
        if isinstance(node, ast.ImportFrom) and node.module and not node.level
        for alias in node.names
    }


def _defaults(function: ast.FunctionDef) -> dict[str, str]:
    """Parameters whose default is a name, such as a class."""
    spec = function.args
    positional = [*spec.posonlyargs, *spec.args]
    with_default = positional[len(positional) - len(spec.defaults) :]
    pairs: list[tuple[ast.arg, ast.expr | None]] = [
        *zip(with_default, spec.defaults, strict=True),
        *zip(spec.kwonlyargs, spec.kw_defaults, strict=True),
    ]
    return {a.arg: dotted(d) for a, d in pairs if d is not None and dotted(d)}
