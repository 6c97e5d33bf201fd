"""A path → a Checkpoint, or one line on why there is none."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from pathlib import Path

from eagle3_lint.errors import InputError
from eagle3_lint.load import is_address, lies_elsewhere
from eagle3_lint.load.checkpoint import Checkpoint, Problem
from eagle3_lint.load.document import Document, DocumentError, load_document
from eagle3_lint.load.weights import WeightsReader

CONFIG = "config.json"
_WEIGHTS = (".safetensors", ".bin")
_KNOWN_FILES = (*_WEIGHTS, ".index.json")


def open_checkpoint(path: str | Path) -> Checkpoint:
    """Read a draft's config.json and the headers of its weights.

    Args:
        path: the folder, or a file in it; or the address of one (``load.remote``), or ``org/name``
            on the Hub when there is no such path.

    Raises:
        InputError: nothing can be read there. What is wrong with the weights alone is a Problem.
    """
    if lies_elsewhere(path):
        from eagle3_lint.load.remote import open_draft

        return open_draft(os.fspath(path))
    return read_folder(folder_of(path))


def read_folder(folder: Path) -> Checkpoint:
    """The same for a folder on this disk."""
    names = _names(folder)
    config = _config(folder, names)
    reader = WeightsReader(folder, names)
    weights_format = reader.read()
    if weights_format == "none":
        state = _training_state(names)
        message = f"the folder has a configuration and no weights{state and f': {state}'}"
        reader.problems.append(Problem("no-weights", CONFIG, message))
    return Checkpoint(
        path=folder,
        config=config,
        tensors=tuple(reader.tensors),
        problems=tuple(reader.problems),
        files=tuple(names),
        weights_format=weights_format,
        metadata=reader.metadata,
        index=reader.index,
    )


def folder_of(path: str | Path) -> Path:
    """The draft's folder: the path itself, or the one that a known file is in.

    Raises:
        InputError: there is nothing, or nothing of a draft, or it lies elsewhere.
    """
    if is_address(path):
        raise InputError(
            f"{path}: this needs the files themselves, and they are not on this machine: download"
            " them first (from the Hub: hf download ORG/NAME --local-dir DIR) and give that folder"
        )
    path = Path(path)
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        what = "a link to nothing" if path.is_symlink() else "no such file or folder"
        raise InputError(f"{path}: {what}; give the draft's folder") from None
    except NotADirectoryError:
        raise InputError(f"{path}: a part of this path is a file, not a folder") from None
    except (OSError, ValueError) as error:  # ValueError: a null byte in the path
        raise InputError(f"{path}: cannot be read: {_reason(error)}") from None
    if stat.S_ISDIR(mode):
        return path
    if stat.S_ISREG(mode) and (path.name == CONFIG or path.name.endswith(_KNOWN_FILES)):
        return path.parent
    state = _training_state([path.name])
    raise InputError(
        f"{path}: no draft{state and f' ({state})'}; give its folder, or the config.json or a"
        " weights file in it"
    )


def _names(folder: Path) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError as error:
        raise InputError(f"{folder}: cannot be listed: {_reason(error)}") from None


def _config(folder: Path, names: Sequence[str]) -> Document:
    path = folder / CONFIG
    if CONFIG not in names:
        raise InputError(_why_no_config(folder, names))
    try:
        return load_document(path)
    except DocumentError as error:
        raise InputError(f"{error.where}: {error.message}; repair it or export it anew") from None
    except FileNotFoundError:
        raise InputError(f"{path}: a link to nothing; fetch it anew") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {_reason(error)}") from None


def _why_no_config(folder: Path, names: Sequence[str]) -> str:
    state = _training_state(names)
    inner = _inner_draft(folder, names)
    if inner is not None:
        return f"{folder}: no config.json; did you mean {inner}?"
    if any(n.endswith(_WEIGHTS) and not n.startswith(("optimizer", "training_")) for n in names):
        return f"{folder}: no config.json beside the weights; copy the one that the trainer used"
    if state:
        return f"{folder}: not an exported draft: {state}"
    return f"{folder}: no draft: neither config.json nor weights are in it"


def _inner_draft(folder: Path, names: Sequence[str]) -> Path | None:
    """A draft one or two levels down, if exactly one is there."""
    below = [folder / name for name in names[:200]]
    found = [path for path in (*below, folder / "model/consolidated") if _holds_draft(path)]
    return found[0] if len(found) == 1 else None


def _holds_draft(folder: Path) -> bool:
    try:
        names = os.listdir(folder)
    except OSError:
        return False
    return CONFIG in names and any(name.endswith(_WEIGHTS) for name in names)


def _training_state(names: Sequence[str]) -> str:
    """What training state the names show and how to export it; empty when none."""
    from eagle3_lint.unfinished import unfinished_files

    return unfinished_files(names)


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)
