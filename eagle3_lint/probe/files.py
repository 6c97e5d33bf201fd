"""The Python files of a runtime, wherever they are: a folder or a wheel.

Paths are relative to the folder that holds the package, with ``/`` between the parts
(``sglang/srt/models/llama.py``).
"""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import Protocol
from zipfile import ZipFile


class Files(Protocol):
    """What the readers of sources need of a place."""

    def exists(self, path: str) -> bool:
        """Whether a file has that path."""

    def read(self, path: str) -> str:
        """The text of a file.

        Raises:
            KeyError, OSError: there is no such file.
        """

    def listing(self, folder: str) -> list[str]:
        """Paths of the Python files that lie in a folder itself, sorted."""


class FolderFiles:
    """Files below a folder."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def exists(self, path: str) -> bool:
        return (self.root / path).is_file()

    def read(self, path: str) -> str:
        return (self.root / path).read_text(encoding="utf-8-sig")

    def listing(self, folder: str) -> list[str]:
        found = (self.root / folder).glob("*.py")
        return sorted(path.relative_to(self.root).as_posix() for path in found)


class WheelFiles:
    """Files in a wheel, read without unpacking it."""

    def __init__(self, path: Path) -> None:
        self._archive = ZipFile(path)

    @cached_property
    def names(self) -> frozenset[str]:
        """Every path in the wheel."""
        return frozenset(self._archive.namelist())

    def exists(self, path: str) -> bool:
        return path in self.names

    def read(self, path: str) -> str:
        return self._archive.read(path).decode("utf-8-sig")

    def listing(self, folder: str) -> list[str]:
        start = folder.rstrip("/") + "/"
        inside = (n for n in self.names if n.startswith(start) and n.endswith(".py"))
        return sorted(name for name in inside if "/" not in name[len(start) :])
