"""Bytes → Checkpoint. Besides ``write``, only this package touches disk or network.

What lies on the Hub or in a store is read through a *mirror*: a folder on this disk with the same
names, into whose files the bytes that are asked for are fetched (``load.remote``). Every reader
here says what it is about to read (:func:`bring`) before it opens a file, and is otherwise the same
for a mirror and for a folder of the user's own.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, Protocol

#: What a reader wants of a file: all of it, its safetensors header, or bytes from begin to end.
Part = Literal["whole", "header"] | Sequence[tuple[int, int]]

_ADDRESS = re.compile(r"hf:/|[A-Za-z][A-Za-z0-9+.-]+(::[A-Za-z0-9+.-]+)*://")
_REPOSITORY = re.compile(r"[A-Za-z0-9_][\w.-]*/[A-Za-z0-9_][\w.-]*(@[^@\s]+)?", re.ASCII)
_FILES = (".json", ".safetensors", ".bin")


class Mirror(Protocol):
    """A folder whose files fill as they are read.

    Attributes:
        address: what it mirrors, as reports call it. folder: where it is on this disk.
    """

    address: str
    folder: Path

    def bring(self, file: str, part: Part) -> None:
        """Fetch a part of a file, unless it is there.

        Raises:
            InputError: it cannot be had.
        """


#: The mirrors of this process, by folder and by address.
MIRRORS: dict[str, Mirror] = {}


def bring(path: Path, part: Part) -> None:
    """Make sure that a part of a file is on this disk; to be called before the file is opened.

    Raises:
        InputError: it lies elsewhere and cannot be fetched.
    """
    if MIRRORS:
        mirror = MIRRORS.get(str(path.parent))
        if mirror is not None:
            mirror.bring(path.name, part)


def shown(path: Path) -> str:
    """How people are told of a folder, or of a file in one: a mirror goes by its address."""
    if MIRRORS:
        mirror, outer = MIRRORS.get(str(path)), MIRRORS.get(str(path.parent))
        if mirror is not None:
            return mirror.address
        if outer is not None:
            return f"{outer.address}/{path.name}"
    return str(path)


def folder_shown_as(text: str) -> Path:
    """The folder that :func:`shown` calls so."""
    mirror = MIRRORS.get(text)
    return Path(text) if mirror is None else mirror.folder


def is_address(path: str | os.PathLike[str]) -> bool:
    """Whether a path says itself that it lies elsewhere: ``hf://org/name``, ``s3://bucket/draft``."""
    return _ADDRESS.match(os.fspath(path)) is not None


def lies_elsewhere(path: str | os.PathLike[str]) -> bool:
    """Whether a path is an address, or ``org/name`` when there is no such file or folder."""
    text = os.fspath(path)
    if is_address(text):
        return True
    repository = _REPOSITORY.fullmatch(text) is not None and not text.endswith(_FILES)
    return repository and not os.path.lexists(text)


def repository(address: str) -> tuple[str, str | None] | None:
    """``org/name`` and the commit of what is shown as ``hf://org/name@commit``.

    None for anything that is not a whole repository of the Hub: a folder of one, a path, a store.
    """
    if not is_address(address):
        return None
    from eagle3_lint.load.remote.address import is_hub, parse

    if not is_hub(address):
        return None
    found = parse(address)
    return None if found.path else (found.repository, found.revision)
