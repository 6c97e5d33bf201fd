"""What was written, in numbers and in words."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from eagle3_lint.frozen import frozen

Step = Literal[
    "in place",
    "block inserted",
    "streamed",
    "cloned",
    "copied",
    "text replaced",
    "text created",
    "removed",
]


@frozen
class FileWritten:
    """One file of a fix.

    Attributes:
        step: how it was done.
        bytes: bytes of content written for it; shared and moved blocks count nothing.
    """

    file: str
    step: Step
    bytes: int


@frozen
class Written:
    """A complete fix.

    Attributes:
        folder: where the result is.
        files: what was done to each file.
        bytes: everything written, the journal included.
        can_undo: whether :func:`undo` can take it back.
        lines: the same for people, a line for each file and what is good to know.
    """

    folder: Path
    files: tuple[FileWritten, ...]
    bytes: int
    can_undo: bool
    lines: tuple[str, ...]


@frozen
class Undone:
    """A fix that was taken back, byte for byte.

    Attributes:
        title: what the fix had done.
        files: the files that are as before it.
        bytes: everything written to get there.
    """

    folder: Path
    title: str
    files: tuple[str, ...]
    bytes: int
    lines: tuple[str, ...]


@frozen
class Recovered:
    """An interrupted fix or undo that was taken back; the files are as before the fix."""

    folder: Path
    title: str
    files: tuple[str, ...]
    lines: tuple[str, ...]
