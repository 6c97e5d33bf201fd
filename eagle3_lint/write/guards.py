"""What the writer refuses to touch, each with one line that says why and a way out."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from eagle3_lint.write.change import FolderChange, Seen
from eagle3_lint.write.errors import Refused, reason
from eagle3_lint.write.forward import changed
from eagle3_lint.write.look import seen
from eagle3_lint.write.workshop import NAME

_OUTPUT = "write to a new folder with --output DIR"


def check_change(change: FolderChange) -> None:
    """The change makes sense by itself.

    Raises:
        ValueError: a file twice, a name that is none, or weights that the planner did not see.
    """
    names = change.files
    for name in (*names, *(s.file for s in change.seen)):
        if name in ("", ".", "..", NAME) or "/" in name or os.sep in name or "\0" in name:
            raise ValueError(f"{name!r} is no name of a file in a folder")
    if len(set(names)) != len(names):
        raise ValueError(f"a file is changed twice: {sorted(names)}")
    known = {s.file for s in change.seen}
    for item in change.weights:
        if item.file not in known:
            raise ValueError(f"{item.file}: the change does not say how the file was seen")
    for text in change.texts:
        if text.content is None and text.file not in known:
            raise ValueError(f"{text.file}: nothing to remove was seen")


def check_folder(folder: Path, instead: str = _OUTPUT) -> None:
    """The folder can be written to.

    Args:
        instead: what to do when it cannot.

    Raises:
        Refused: it cannot.
    """
    try:
        mode = folder.stat().st_mode
    except OSError as error:
        raise Refused(
            f"{folder}: cannot be opened: {reason(error)}; give the draft's folder"
        ) from (error)
    if not stat.S_ISDIR(mode):
        raise Refused(f"{folder}: not a folder; give the draft's folder")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise Refused(f"{folder}: you may not write there; {instead}")


def check_file(folder: Path, file: str, instead: str = _OUTPUT) -> None:
    """A file can be changed without changing anything else.

    Args:
        instead: what to do when it cannot.

    Raises:
        Refused: it cannot.
    """
    path = folder / file
    try:
        status = path.lstat()
    except OSError as error:
        raise Refused(f"{file}: cannot be opened: {reason(error)}; run the fix again") from error
    if stat.S_ISLNK(status.st_mode):
        target = os.readlink(path)
        if "blobs" in Path(target).parts:
            what = f"a link into a Hub cache ({target}), whose files several revisions share"
        else:
            what = f"a link ({target}), and what it leads to may be in use elsewhere"
        raise Refused(f"{file}: {what}; {instead}")
    if not stat.S_ISREG(status.st_mode):
        raise Refused(f"{file}: not a regular file; {instead}")
    if status.st_nlink > 1:
        names = status.st_nlink
        raise Refused(f"{file}: it has {names} names (hard links), and all would change; {instead}")
    if not os.access(path, os.W_OK):
        raise Refused(f"{file}: you may not write to it; make it writable, or {instead}")


def check_seen(folder: Path, known: tuple[Seen, ...]) -> None:
    """The files are as the planner saw them.

    Raises:
        Refused: one is not.
    """
    for old in known:
        try:
            now = seen(folder, old.file)
        except OSError as error:
            raise Refused(f"{old.file}: cannot be read any more: {reason(error)}") from error
        if now != old:
            raise changed(old.file)


def check_absent(folder: Path, file: str) -> None:
    """A file that is to be created is not there.

    Raises:
        Refused: it is.
    """
    if os.path.lexists(folder / file):
        raise Refused(f"{file}: it was not there when the draft was read; run the fix again")
