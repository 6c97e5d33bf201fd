"""Classes of an unpacked Python package, read by AST: who inherits what, who defines which method.

Nothing of the package is imported. A name is followed through imports (of modules inside the
package only), re-exports in ``__init__`` and plain aliases. Where a package picks a class by
platform, the CUDA branch is followed, because that is where these runtimes serve.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache

from eagle3_lint.probe.files import Files

#: ``current_platform.is_xxx()``: what the tests answer on CUDA.
_PLATFORM = {"is_cuda": True, "is_cuda_alike": True}
#: Methods whose bodies are kept; of all others only the line is.
_KEPT = frozenset(
    {
        "__init__",
        "forward",
        "set_eagle3_layers_to_capture",
        "get_embed_and_head",
        "set_aux_hidden_state_layers",
        "get_eagle3_aux_hidden_state_layers",
        "get_eagle3_default_aux_hidden_state_layers",
        "get_language_model",
        "_init_model",
        "_verify_args",
    }
)


@dataclass(frozen=True, slots=True)
class ClassSource:
    """One class statement.

    Attributes:
        module: dotted name of its module, with the package.
        bases: base classes as they are written (``llama.LlamaModel``).
        methods: name → line, also of attributes assigned in the class body.
        aliases: attributes that the class body sets to a name (``model_cls = LlamaModel``).
        bodies: the functions of :data:`_KEPT`.
    """

    name: str
    module: str
    line: int
    bases: tuple[str, ...]
    methods: dict[str, int]
    aliases: dict[str, str]
    bodies: dict[str, ast.FunctionDef]


@dataclass(slots=True)
class ModuleSource:
    """Top-level names of one file: classes, imports, aliases and literal assignments."""

    classes: dict[str, ClassSource] = field(default_factory=dict)
    imports: dict[str, tuple[str, str | None]] = field(default_factory=dict)
    aliases: dict[str, str] = field(default_factory=dict)
    values: dict[str, ast.expr] = field(default_factory=dict)
    stars: list[str] = field(default_factory=list)
    lazy: list[str] = field(default_factory=list)


def dotted(node: ast.expr) -> str:
    """``a.b.c`` of a name, an attribute or a subscripted generic; empty for anything else."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        inner = dotted(node.value)
        return f"{inner}.{node.attr}" if inner else ""
    if isinstance(node, ast.Subscript):
        return dotted(node.value)
    return ""


def _holds_on_cuda(test: ast.expr) -> bool | None:
    """The value of a platform test on CUDA; None for any other test."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        inner = _holds_on_cuda(test.operand)
        return None if inner is None else not inner
    if isinstance(test, ast.BoolOp):
        values = [_holds_on_cuda(value) for value in test.values]
        if isinstance(test.op, ast.Or):
            return True if True in values else None if None in values else False
        return False if False in values else None if None in values else True
    if isinstance(test, ast.Call) and dotted(test.func).startswith("current_platform.is_"):
        return _PLATFORM.get(dotted(test.func).rpartition(".")[2], False)
    if isinstance(test, ast.Compare) and dotted(test.left) == "current_platform.device_type":
        return False
    if dotted(test) == "TYPE_CHECKING":
        return False
    return None


class _Reader:
    """Fills a :class:`ModuleSource` from statements; branches for other platforms are left out."""

    def __init__(self, name: str, is_package: bool) -> None:
        self.name = name
        self.package = name if is_package else name.rpartition(".")[0]
        self.found = ModuleSource()

    def read(self, body: list[ast.stmt]) -> None:
        for node in body:
            self._statement(node)

    def _statement(self, node: ast.stmt) -> None:
        if isinstance(node, ast.ClassDef):
            self.found.classes[node.name] = self._class(node)
        elif isinstance(node, ast.ImportFrom):
            self._import_from(node)
        elif isinstance(node, ast.Import):
            for alias in node.names:
                self.found.imports[alias.asname or alias.name] = (alias.name, None)
        elif isinstance(node, ast.If):
            holds = _holds_on_cuda(node.test)
            if holds is not True:
                self.read(node.orelse)
            if holds is not False:
                self.read(node.body)
        elif isinstance(node, ast.Try):
            for handler in node.handlers:
                self.read(handler.body)
            self.read(node.body)
        elif isinstance(node, ast.FunctionDef) and node.name == "__getattr__":
            # A package that imports its classes, or the modules that have them, when asked.
            before = set(self.found.imports)
            self.read(node.body)
            new = [self.found.imports[name] for name in self.found.imports if name not in before]
            self.found.lazy += [f"{base}.{name}" for base, name in new if name is not None]
        elif isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                if isinstance(target, ast.Name):
                    self.found.values[target.id] = node.value
                    if dotted(node.value):
                        self.found.aliases[target.id] = dotted(node.value)

    def _import_from(self, node: ast.ImportFrom) -> None:
        base = node.module or ""
        if node.level:
            parts = self.package.split(".")
            kept = parts[: len(parts) - node.level + 1]
            base = ".".join([*kept, node.module] if node.module else kept)
        for alias in node.names:
            if alias.name == "*":
                self.found.stars.append(base)
            else:
                self.found.imports[alias.asname or alias.name] = (base, alias.name)

    def _class(self, node: ast.ClassDef) -> ClassSource:
        methods: dict[str, int] = {}
        aliases: dict[str, str] = {}
        bodies: dict[str, ast.FunctionDef] = {}
        for item in node.body:
            if isinstance(item, ast.FunctionDef):
                methods[item.name] = item.lineno
                if item.name in _KEPT:
                    bodies[item.name] = item
            elif isinstance(item, (ast.Assign, ast.AnnAssign)):
                targets = item.targets if isinstance(item, ast.Assign) else [item.target]
                for target in targets:
                    if isinstance(target, ast.Name):
                        methods[target.id] = item.lineno
                        if item.value is not None and dotted(item.value):
                            aliases[target.id] = dotted(item.value)
        bases = tuple(filter(None, map(dotted, node.bases)))
        return ClassSource(node.name, self.name, node.lineno, bases, methods, aliases, bodies)


def below(path: str) -> str:
    """A path as the rules write it: below the package, without SGLang's ``srt/``."""
    return path.partition("/")[2].removeprefix("srt/")


@cache
def _parse(name: str, is_package: bool, text: str) -> ModuleSource:
    # Most files do not change from one release to the next; each text is parsed once.
    reader = _Reader(name, is_package)
    reader.read(ast.parse(text).body)
    return reader.found


class SourceTree:
    """The sources of one release of one package.

    Args:
        files: where they are.
        package: the package's name.
    """

    def __init__(self, files: Files, package: str) -> None:
        self.files = files
        self.package = package
        self._modules: dict[str, ModuleSource | None] = {}

    def path(self, module: str) -> str | None:
        """The file of a dotted module name, or None when the package has no such module."""
        base = module.replace(".", "/")
        for candidate in (f"{base}.py", f"{base}/__init__.py"):
            if self.files.exists(candidate):
                return candidate
        return None

    def module(self, name: str) -> ModuleSource | None:
        """The module's names, or None when it lies outside the package."""
        if name not in self._modules:
            path = self.path(name) if name.split(".")[0] == self.package else None
            if path is None:
                self._modules[name] = None
            else:
                is_package = path.endswith("/__init__.py")
                self._modules[name] = _parse(name, is_package, self.files.read(path))
        return self._modules[name]

    def find(self, module: str, name: str, _depth: int = 0) -> ClassSource | None:
        """The class that ``name`` (may be dotted) means in ``module``."""
        source = self.module(module)
        if source is None or _depth > 12:
            return None
        head, _, rest = name.partition(".")
        if rest:
            base, attribute = source.imports.get(head, (f"{module}.{head}", None))
            inner = base if attribute is None else f"{base}.{attribute}"
            return self.find(inner, rest, _depth + 1)
        if name in source.classes:
            return source.classes[name]
        if name in source.imports:
            base, attribute = source.imports[name]
            return None if attribute is None else self.find(base, attribute, _depth + 1)
        if source.aliases.get(name, name) != name:
            return self.find(module, source.aliases[name], _depth + 1)
        for star in [*source.stars, *source.lazy]:
            found = self.find(star, name, _depth + 1)
            if found is not None:
                return found
        return None

    def lineage(self, cls: ClassSource) -> Iterator[ClassSource]:
        """The class and its bases inside the package, depth first, left to right, each once."""
        seen: set[tuple[str, str]] = set()
        stack = [cls]
        while stack:
            here = stack.pop(0)
            if (here.module, here.name) in seen:
                continue
            seen.add((here.module, here.name))
            yield here
            bases = [self._base(here, base) for base in here.bases]
            stack = [base for base in bases if base is not None] + stack

    def _base(self, cls: ClassSource, name: str) -> ClassSource | None:
        """The base that a class names; a class may have the name of the one it is derived from."""
        source = self.module(cls.module)
        if source is not None and name == cls.name and name in source.imports:
            module, attribute = source.imports[name]
            return None if attribute is None else self.find(module, attribute)
        return self.find(cls.module, name)

    def provider(self, cls: ClassSource, attribute: str) -> ClassSource | None:
        """The class in the lineage whose body defines ``attribute``."""
        return next((c for c in self.lineage(cls) if attribute in c.methods), None)

    def place(self, cls: ClassSource, line: int | None = None) -> str:
        """``models/llama.py:12`` of a class or of a line in its file, below the package.

        As everywhere in the rules, SGLang's ``srt/`` is left out.
        """
        path = self.path(cls.module)
        assert path is not None
        return f"{below(path)}:{cls.line if line is None else line}"
