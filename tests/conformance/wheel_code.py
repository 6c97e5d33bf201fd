"""Runs classes, functions and statements of a release without importing it.

Code is cut out of the release's files by AST and compiled as it stands, with its own file names
and line numbers; nothing is typed anew. What a body mentions and the question does not depend on
(kernels, process groups, configurations) is an :data:`ANYTHING`. Classes keep their bases inside
the package and with them Python's own method resolution; bases outside of it, such as
``nn.Module``, are :class:`Bare`.
"""

from __future__ import annotations
import __future__

import ast
import builtins
import traceback
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import CodeType, FunctionType, MappingProxyType
from typing import Any, Final

from eagle3_lint.probe.files import FolderFiles
from eagle3_lint.probe.source_tree import ClassSource, SourceTree, dotted

#: Attributes of :data:`ANYTHING` that are true: there is one rank, which is the first and the last.
_TRUE: Final = frozenset({"is_first_rank", "is_last_rank"})

_COMPILE_FLAGS: Final = __future__.annotations.compiler_flag


class Anything:
    """Stands in for what a body mentions and the question does not depend on.

    It is false, has every attribute, holds nothing, and can be called, indexed, compared and
    entered. A call with :class:`Passing` values returns what the first makes of it; given a
    function, as a decorator is, it returns that.
    """

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return name in _TRUE or ANYTHING

    def __call__(self, *given: Any, **named: Any) -> Any:
        values = (*given, *named.values())
        passed = [v for v in values if isinstance(v, Passing)]
        if passed:
            return passed[0].through(passed[1:], named)
        return given[0] if given and isinstance(given[0], FunctionType) else ANYTHING

    def __bool__(self) -> bool:
        return False

    def __len__(self) -> int:
        return 0

    def __iter__(self) -> Iterator[Any]:
        return iter((ANYTHING, ANYTHING))

    def __enter__(self) -> Anything:
        return self

    def __exit__(self, *raised: object) -> None:
        return None

    def __instancecheck__(self, value: object) -> bool:
        return False

    def __setitem__(self, index: Any, value: Any) -> None:
        return None

    def _other(self, *others: Any) -> Any:
        return ANYTHING

    __getitem__ = __add__ = __radd__ = __sub__ = __mul__ = __rmul__ = __or__ = _other

    def _not(self, other: object) -> bool:
        return False

    __lt__ = __le__ = __gt__ = __ge__ = _not


ANYTHING: Final[Any] = Anything()


class Passing:
    """A value that the question follows, and that passes through what it is handed to."""

    def through(self, others: Sequence[Passing], named: Mapping[str, Any]) -> Any:
        """What a stand-in returns that got this, others after it, and these named arguments."""
        return self


class Bare:
    """Base of classes out of a release whose own base lies outside of it.

    Its instances have the attributes that ``__init__`` of their class would have set, each an
    :data:`ANYTHING` unless it was given a literal there; others are missing, so that ``hasattr``
    answers as it would.
    """

    assigned: frozenset[str] = frozenset()

    def __call__(self, *given: Any, **named: Any) -> Any:
        return self.forward(*given, **named)

    def __getattr__(self, name: str) -> Any:
        if name in type(self).assigned:
            return ANYTHING
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")


@dataclass(frozen=True)
class Raised:
    """An exception, and the file and line of the release (below its package) that raised it."""

    type: str
    message: str
    where: str

    @classmethod
    def of(cls, error: BaseException) -> Raised:
        frames = [f for f in traceback.extract_tb(error.__traceback__) if _below(f.filename)]
        place = f"{_below(frames[-1].filename)}:{frames[-1].lineno}" if frames else ""
        return cls(type(error).__name__, str(error), place)


def _below(filename: str) -> str:
    return filename.removeprefix(_MARK) if filename.startswith(_MARK) else ""


#: Begins the file names of compiled code, to know its frames by.
_MARK: Final = "<release>/"


class WheelCode:
    """Code of one unpacked release, ready to be run.

    Args:
        folder: where it is unpacked.
        package: the package's name.
        root: the part of all paths that is left out in ``Raised.where``, ``sglang/srt/``.
        real: classes and functions of the release that bodies get as they are, not as ANYTHING.
        names: what bodies get under these names, wherever they import them from.
    """

    def __init__(
        self,
        folder: Path,
        package: str,
        root: str,
        real: Collection[str] = frozenset(),
        names: Mapping[str, Any] = MappingProxyType({}),
    ) -> None:
        self.files = FolderFiles(folder)
        self.tree = SourceTree(self.files, package)
        self.root, self.real, self.names = root, frozenset(real), names
        self._classes: dict[tuple[str, str], type] = {}
        self._assigned: dict[tuple[str, str], frozenset[str]] = {}
        self._literals: dict[tuple[str, str], Mapping[str, ast.expr]] = {}

    def parse(self, path: str) -> ast.Module | None:
        """The file below the root, or None when the release has none."""
        full = self.root + path
        return _parsed(self.files.read(full)) if self.files.exists(full) else None

    def function(self, path: str, name: str, names: Mapping[str, Any]) -> Callable[..., Any]:
        """A top-level function of a file."""
        tree = self.parse(path)
        assert tree is not None, path
        node = next(n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == name)
        made: Callable[..., Any] = self._run(node, path, names)[name]
        return made

    def run(self, statement: ast.stmt, path: str, names: Mapping[str, Any]) -> None:
        """Runs one statement out of a file."""
        self._run(statement, path, names)

    def instance(self, cls: ClassSource, **attributes: Any) -> Any:
        """An instance whose ``__init__`` did not run but left the literals that it sets."""
        made: Any = object.__new__(self.cls(cls))
        for name, literal in self.literals(cls).items():
            setattr(made, name, ast.literal_eval(literal))
        for name, value in attributes.items():
            setattr(made, name, value)
        return made

    def assigned(self, cls: ClassSource) -> frozenset[str]:
        """Attributes that ``__init__`` of a class or of its bases sets."""
        key = (cls.module, cls.name)
        if key not in self._assigned:
            inits = (owner.bodies.get("__init__") for owner in self.tree.lineage(cls))
            self._assigned[key] = frozenset(name for init in inits for name in _targets(init))
        return self._assigned[key]

    def literals(self, cls: ClassSource) -> Mapping[str, ast.expr]:
        """Attributes that ``__init__`` sets to literals whatever the configuration is."""
        key = (cls.module, cls.name)
        if key not in self._literals:
            found: dict[str, ast.expr] = {}
            for owner in reversed(list(self.tree.lineage(cls))):
                for name, value in _assignments(owner.bodies.get("__init__")):
                    found.pop(name, None)
                    if _is_literal(value):
                        found[name] = value
            self._literals[key] = found
        return self._literals[key]

    def cls(self, source: ClassSource) -> type:
        """The class itself: all methods but ``__init__``, and its bases inside the package."""
        key = (source.module, source.name)
        if key not in self._classes:
            made = self._class(source, keep_init=source.name in self.real)
            self._classes[key] = made
        return self._classes[key]

    def _class(self, source: ClassSource, keep_init: bool) -> type:
        path = self.tree.path(source.module)
        assert path is not None
        node = _definition(self.files.read(path), source.name)
        bases = self._bases(source, node)
        slim = copy(node)
        slim.bases = [ast.Name(f"_base{i}", ast.Load()) for i in range(len(bases))]
        slim.keywords, slim.decorator_list = [], []
        slim.body = [
            part
            for part in node.body
            if isinstance(part, ast.FunctionDef) and (keep_init or part.name != "__init__")
        ] or [ast.Pass()]
        ast.fix_missing_locations(slim)
        names: dict[str, Any] = {f"_base{i}": base for i, base in enumerate(bases)}
        names |= self._real_names(source.module, node)
        made: type = self._run(slim, path.removeprefix(self.root), names)[source.name]
        if issubclass(made, Bare):
            made.assigned = self.assigned(source)
        return made

    def _bases(self, source: ClassSource, node: ast.ClassDef) -> list[type]:
        found: list[type] = []
        for base in map(dotted, node.bases):
            inside = self.tree.find(source.module, base) if base else None
            outside = getattr(builtins, base, Bare)
            found.append(self.cls(inside) if inside is not None else outside)
        # Python refuses a base that comes before one derived from it, or comes twice.
        return [
            base
            for i, base in enumerate(found)
            if base not in found[:i] and not (base is Bare and len(set(found)) > 1)
        ] or [Bare]

    def _real_names(self, module: str, node: ast.ClassDef) -> dict[str, Any]:
        """What a class gets as it is: classes and functions that its module imports."""
        found: dict[str, Any] = {}
        source = self.tree.module(module)
        for name in {n.id for n in ast.walk(node) if isinstance(n, ast.Name)} & self.real:
            cls = self.tree.find(module, name)
            where = source.imports.get(name) if source is not None else None
            if name == node.name:
                continue
            if cls is not None:
                found[name] = self.cls(cls)
            elif where is not None and (path := self.tree.path(where[0])) is not None:
                found[name] = self.function(path.removeprefix(self.root), name, {})
        return found

    def _run(self, node: ast.stmt, path: str, names: Mapping[str, Any]) -> dict[str, Any]:
        code, mentioned = _compiled(node, path)
        space = dict.fromkeys(mentioned, ANYTHING)
        space |= {"__name__": path.removesuffix(".py").replace("/", "."), **self.names, **names}
        exec(code, space)
        return space


@cache
def _compiled(node: ast.stmt, path: str) -> tuple[CodeType, frozenset[str]]:
    """A statement, compiled, and the names in it that are no builtins."""
    module = ast.Module(body=[node], type_ignores=[])
    code = compile(module, _MARK + path, "exec", flags=_COMPILE_FLAGS, dont_inherit=True)
    names = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
    return code, frozenset(name for name in names if not hasattr(builtins, name))


@cache
def _parsed(text: str) -> ast.Module:
    # Most files do not change from one release to the next.
    return ast.parse(text)


@cache
def _definition(text: str, name: str) -> ast.ClassDef:
    return next(
        node
        for node in ast.walk(_parsed(text))
        if isinstance(node, ast.ClassDef) and node.name == name
    )


def _targets(function: ast.FunctionDef | None) -> Iterator[str]:
    """Attributes of self that a function assigns to or registers as buffers."""
    for node in ast.walk(function) if function is not None else ():
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            if dotted(node.value) == "self":
                yield node.attr
        elif isinstance(node, ast.Call) and dotted(node.func) == "self.register_buffer":
            yield ast.literal_eval(node.args[0])


def _assignments(function: ast.FunctionDef | None) -> Iterator[tuple[str, ast.expr]]:
    """Attributes of self that a function assigns to on every way through it, and the values."""
    for node in function.body if function is not None else ():
        if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None:
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                if dotted(target).startswith("self."):
                    yield dotted(target).removeprefix("self."), node.value


def _is_literal(node: ast.expr) -> bool:
    try:
        ast.literal_eval(node)
    except ValueError:
        return False
    return True
