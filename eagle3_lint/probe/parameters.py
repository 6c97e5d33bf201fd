"""Which modules with parameters a draft class builds, by reading its constructors.

A superset: what a constructor builds under a condition is in it. Names are those of
``named_parameters()`` without the last part (``model.fc`` for ``model.fc.weight``), with ``*`` for
the place in a list.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator

from eagle3_lint.frozen import frozen
from eagle3_lint.probe.construction import built_by
from eagle3_lint.probe.source_tree import ClassSource, SourceTree, dotted

#: Classes of the runtimes' layers, and of torch, that hold parameters.
_HOLDS = re.compile(r"(Linear\w*|(?<!Rotary)Embedding|LMHead|Norm|^Parameter|\bnn\.Parameter)$")
_LISTS = ("ModuleList", "make_layers", "make_layers_non_pp")
_DEPTH = 6


@frozen
class Built:
    """A module with parameters.

    Attributes:
        name: as above.
        place: file and line of the statement that builds it.
        module: dotted name of the Python module that has the statement.
    """

    name: str
    place: str
    module: str


def parameters(tree: SourceTree, cls: ClassSource) -> Iterator[Built]:
    """What building ``cls`` builds; a name can come more than once."""
    yield from _of(tree, cls, "", 0)


def _of(tree: SourceTree, cls: ClassSource, prefix: str, depth: int) -> Iterator[Built]:
    if depth > _DEPTH:
        return
    models = cls.module.rpartition(".")[0]
    for owner, init in _constructors(tree, cls):
        for path, value in _attributes(init):
            listed = any(dotted(call.func).endswith(_LISTS) for call in _calls(value))
            name = f"{prefix}{path}{'.*' if listed else ''}"
            line = value.lineno
            for call in _calls(value):
                called = _meant(init, dotted(call.func))
                inner = [c for n in called for c in built_by(tree, cls, owner, init, n)]
                for held in inner:
                    if held.module.startswith(models):
                        yield from _of(tree, held, f"{name}.", depth + 1)
                if any(map(_HOLDS.search, [*called, *(h.name for h in inner)])):
                    yield Built(name, tree.place(owner, line), owner.module)


def _constructors(
    tree: SourceTree, cls: ClassSource
) -> Iterator[tuple[ClassSource, ast.FunctionDef]]:
    """The constructors that run, as far as each calls the next with ``super()``."""
    for owner in tree.lineage(cls):
        init = owner.bodies.get("__init__")
        if init is None:
            continue
        yield owner, init
        if not any(ast.unparse(call.func) == "super().__init__" for call in _calls(init)):
            return


def _attributes(init: ast.FunctionDef) -> Iterator[tuple[str, ast.expr]]:
    """Assignments to attributes of self: dotted path, and the value."""
    for node in _on_one_rank(init):
        if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None:
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                path = dotted(target)
                if path.startswith("self."):
                    yield path.removeprefix("self."), node.value


def _on_one_rank(node: ast.AST) -> Iterator[ast.AST]:
    """All nodes below one, without what is built only when a pipeline has several stages."""
    parts: Iterable[ast.AST] = ast.iter_child_nodes(node)
    if isinstance(node, ast.If) and "get_pp_group().world_size > 1" in ast.unparse(node.test):
        parts = node.orelse
    for part in parts:
        yield part
        yield from _on_one_rank(part)


def _calls(node: ast.AST) -> Iterator[ast.Call]:
    return (part for part in ast.walk(node) if isinstance(part, ast.Call))


def _meant(init: ast.FunctionDef, name: str) -> list[str]:
    """The names that a local variable stands for (``cls = A if fast else B``), or the name."""
    values = [
        node.value
        for node in ast.walk(init)
        if isinstance(node, ast.Assign) and dotted(node.targets[0]) == name
    ]
    chosen = [part for v in values if isinstance(v, ast.IfExp) for part in (v.body, v.orelse)]
    return [dotted(part) for part in chosen] or [name]
