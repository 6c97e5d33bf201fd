"""The only code that writes: it changes a draft's folder as a whole or not at all.

>>> from eagle3_lint.write import FolderChange, TextChange, apply, seen, undo
>>> was = seen(folder, "config.json")                         # before it is read
>>> change = FolderChange(folder, texts=(TextChange("config.json", b"{}"),), seen=(was,))
>>> apply(change).lines
('config.json: replaced (2 bytes)', …)
>>> undo(folder).files
('config.json',)

It knows bytes, headers and files, and nothing of rules. :func:`recover` belongs at the start of
every command: it costs a system call or two unless something was interrupted.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from eagle3_lint.write.change import FolderChange as FolderChange
    from eagle3_lint.write.change import Kept as Kept
    from eagle3_lint.write.change import Made as Made
    from eagle3_lint.write.change import Piece as Piece
    from eagle3_lint.write.change import Seen as Seen
    from eagle3_lint.write.change import TextChange as TextChange
    from eagle3_lint.write.change import WeightsChange as WeightsChange
    from eagle3_lint.write.disk import Disk as Disk
    from eagle3_lint.write.errors import Refused as Refused
    from eagle3_lint.write.errors import WriteFailed as WriteFailed
    from eagle3_lint.write.look import seen as seen
    from eagle3_lint.write.result import FileWritten as FileWritten
    from eagle3_lint.write.result import Recovered as Recovered
    from eagle3_lint.write.result import Undone as Undone
    from eagle3_lint.write.result import Written as Written

__all__ = [
    "Disk", "FileWritten", "FolderChange", "Kept", "Made", "Piece", "Recovered", "Refused", "Seen",
    "TextChange", "Undone", "WeightsChange", "WriteFailed", "Written", "apply", "pending",
    "recover", "seen", "undo",
]  # fmt: skip

#: Public name → module; imported when first asked for, since every command imports this package
#: and few of them write.
_HOMES = {
    **dict.fromkeys(
        ("FolderChange", "Kept", "Made", "Piece", "Seen", "TextChange", "WeightsChange"), "change"
    ),
    **dict.fromkeys(("FileWritten", "Recovered", "Undone", "Written"), "result"),
    **dict.fromkeys(("Refused", "WriteFailed"), "errors"),
    "Disk": "disk",
    "seen": "look",
}


def apply(
    change: FolderChange,
    *,
    output: Path | None = None,
    journal: bool = True,
    progress: Callable[[int, int], None] | None = None,
    disk: Disk | None = None,
) -> Written:
    """Carry out a change: all of it, or nothing.

    Weights whose data stay whole cost a few kilobytes, or a copy where their file system cannot
    move them; nothing but kilobytes stays. Weights whose data change are written anew, and the old
    file is kept in ``.eagle3-lint`` until the next fix or an undo: as many bytes again.

    Args:
        output: write the whole draft to this new folder instead, and only read the old one.
        journal: keep what :func:`undo` needs, of this fix alone. Without it, nothing stays beside
            the draft and nothing can be undone; the fix itself is protected all the same.
        progress: called with bytes copied and bytes to copy, when there are any.
        disk: the calls that write, for tests.

    Raises:
        Refused: nothing was written; one line says why and what to do.
        WriteFailed: the system failed; the line says whether the old state is back, which it is
            unless that failed too. Then the next command tries again (:func:`recover`).
        ValueError: the change contradicts itself.
    """
    from eagle3_lint.write.disk import Disk
    from eagle3_lint.write.errors import refusing

    disk = disk or Disk()
    with refusing(change.folder):
        if output is not None:
            from eagle3_lint.write.output import write_output

            return write_output(change, output, progress=progress, disk=disk)
        from eagle3_lint.write.fix import apply_in_place

        return apply_in_place(change, keep_journal=journal, progress=progress, disk=disk)


def undo(
    folder: Path,
    *,
    progress: Callable[[int, int], None] | None = None,
    disk: Disk | None = None,
) -> Undone:
    """Take the last fix back, byte for byte, and remove what was kept for that.

    Raises:
        Refused: there is no fix to take back, or a file was changed since; nothing was written.
        WriteFailed: the system failed; the line says in which state the folder is.
    """
    from eagle3_lint.write.disk import Disk
    from eagle3_lint.write.errors import refusing
    from eagle3_lint.write.restore import undo_last

    with refusing(folder):
        return undo_last(folder, progress=progress, disk=disk or Disk())


def recover(folder: Path, *, disk: Disk | None = None) -> Recovered | None:
    """Take back a fix (or finish an undo) that was interrupted; None when none was.

    Raises:
        Refused: it cannot be taken back as things are; the line says what to do.
        WriteFailed: the system failed; the fix is still pending.
    """
    if not os.path.exists(os.path.join(folder, ".eagle3-lint")):
        return None
    from eagle3_lint.write.disk import Disk
    from eagle3_lint.write.errors import refusing
    from eagle3_lint.write.restore import recover_pending

    with refusing(folder):
        return recover_pending(folder, disk=disk or Disk())


def pending(folder: Path) -> bool:
    """Whether a fix or an undo was interrupted (or is at work) in a folder."""
    if not os.path.exists(os.path.join(folder, ".eagle3-lint")):
        return False
    from eagle3_lint.write.workshop import read_state

    return read_state(folder).pending is not None


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
