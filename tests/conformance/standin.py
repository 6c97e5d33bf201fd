"""Stand-ins for packages that a runtime declares as dependencies and that a CPU-only test does
without.

Kernels, servers and tokenizer grammars are imported all over a runtime's sources but are not called
while a draft's config is read, its module built and its weights loaded. Any such package that is
not installed is replaced by modules whose every attribute is ``Standin``: importable, callable,
usable as a decorator, as a base class and in an annotation, and never a real result. What is *not*
declared by the release stays missing, so that ``try: import x`` branches go the way they go on a
plain install.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import sys
from abc import ABCMeta
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from types import FrameType, FunctionType, ModuleType
from typing import Any


class _Meta(ABCMeta):
    """Makes the class ``Standin`` answer to anything that module level code does with an import."""

    def __new__(mcs, name: str, bases: tuple[type, ...], space: dict[str, Any], **_: Any) -> _Meta:
        return super().__new__(mcs, name, bases, space)

    def __init__(cls, name: str, bases: tuple[type, ...], space: dict[str, Any], **_: Any) -> None:
        super().__init__(name, bases, space)

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        return Standin

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        if cls is not Standin:
            return super().__call__(*args, **kwargs)
        # A decorator gives back what it decorates; anything else gives a stand-in.
        if len(args) == 1 and not kwargs and isinstance(args[0], (FunctionType, type)):
            return args[0]
        return Standin

    def __getitem__(cls, _: Any) -> Any:
        return Standin

    def __iter__(cls) -> Iterator[Any]:
        return iter(())

    def __lt__(cls, _: Any) -> bool:
        return False

    __le__ = __gt__ = __ge__ = __lt__

    def __instancecheck__(cls, instance: Any) -> bool:
        return cls is not Standin and super().__instancecheck__(instance)


class Standin(metaclass=_Meta):
    """See the module."""

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> dict[str, Any]:
        """A pydantic field annotated with a stand-in takes anything."""
        return {"type": "any"}


class _Module(ModuleType):
    __path__: list[str]

    def __getattr__(self, name: str) -> Any:
        if name == "__version__":
            return "0.0.0"
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        return Standin


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Comes last: whatever is installed wins."""

    def __init__(self, runtime: str, packages: Iterable[str]) -> None:
        self.runtime = runtime
        self.packages = frozenset(packages)

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name.partition(".")[0] not in self.packages or not self._asked_by_runtime():
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def _asked_by_runtime(self) -> bool:
        """Whether the runtime itself imports; other libraries are to see what is really
        installed."""
        frame: FrameType | None = sys._getframe(2)
        while frame is not None:
            module = str(frame.f_globals.get("__name__", ""))
            if not module.startswith(("importlib", "_frozen_importlib")):
                return module.partition(".")[0] == self.runtime
            frame = frame.f_back
        return False

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        return _Module(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        module.__path__ = []


def module(name: str) -> ModuleType:
    """Put a stand-in in the place of the one module ``name``; its parents are imported as they
    are."""
    made = _Module(name)
    made.__path__ = []
    made.__spec__ = importlib.machinery.ModuleSpec(name, None, is_package=True)
    sys.modules[name] = made
    parent, _, last = name.rpartition(".")
    if isinstance(sys.modules.get(parent), _Module):
        vars(sys.modules[parent])[last] = made  # what ``import parent.name as n`` looks at
    return made


def install(runtime: str, packages: Iterable[str]) -> None:
    """Let modules of ``runtime`` import the top-level ``packages`` as stand-ins if not
    installed."""
    sys.meta_path.append(_Finder(runtime, packages))


class _Whole(importlib.machinery.SourceFileLoader):
    """Executes a source; what it turns out to lack is a stand-in, since it may be an excerpt."""

    def exec_module(self, module: ModuleType) -> None:
        super().exec_module(module)
        vars(module).setdefault("__getattr__", _lacking)


def _lacking(name: str) -> Any:
    if name.startswith("__") and name.endswith("__"):
        raise AttributeError(name)
    return Standin


class _Parts(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Comes first: some modules of one package from its sources, all others as stand-ins."""

    def __init__(self, folder: Path, package: str, real: Iterable[str]) -> None:
        self.folder = folder
        self.package = package
        self.real = frozenset(f"{package}.{name}" for name in real)

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name.partition(".")[0] != self.package:
            return None
        file = self.folder / f"{name.replace('.', '/')}.py"
        if name in self.real and file.is_file():
            loader = _Whole(name, str(file))
            return importlib.util.spec_from_file_location(name, file, loader=loader)
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        return _Module(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        module.__path__ = []


def install_parts(folder: Path, package: str, real: Iterable[str]) -> None:
    """Let ``package`` be imported from ``folder``, its modules ``real`` alone.

    The others, and those of ``real`` that are not there, are stand-ins.
    """
    sys.meta_path.insert(0, _Parts(folder, package, real))
