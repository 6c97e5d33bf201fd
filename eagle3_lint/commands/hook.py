"""Which drafts changed files belong to, for a hook that is given names (``--skip-others``)."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from eagle3_lint.errors import InputError
from eagle3_lint.facts import is_eagle3_draft
from eagle3_lint.load.folder import CONFIG, folder_of, open_checkpoint
from eagle3_lint.load.header import HeaderError, read_header

#: Words that only an EAGLE-3 draft's configuration has, for one that is no JSON.
_WORDS = (b"eagle3", b"peagle", b"eagle_config", b"draft_vocab_size")
_ENOUGH = 2**20


def drafts_among(paths: Iterable[str]) -> tuple[str, ...]:
    """The folders of the EAGLE-3 drafts among files and folders, each once, in their order.

    What cannot be read counts as a draft when anything shows that it is meant as one: a check of
    it then says what is wrong.

    Raises:
        InputError: there is nothing at a path.
    """
    found: dict[Path, str] = {}
    for path in paths:
        folder = _folder(Path(path))
        if folder is not None:
            found.setdefault(folder.resolve(), str(folder))
    return tuple(shown for folder, shown in found.items() if _is_draft(folder))


def _folder(path: Path) -> Path | None:
    """The folder of a draft's file; None of a file that is none of a draft's."""
    try:
        return folder_of(path)
    except InputError:
        if path.is_file():
            return None
        raise


def _is_draft(folder: Path) -> bool:
    try:
        checkpoint = open_checkpoint(folder)
    except InputError:
        return _is_meant_as_draft(folder)
    return is_eagle3_draft(checkpoint.config.data, [t.name for t in checkpoint.tensors])


def _is_meant_as_draft(folder: Path) -> bool:
    """Whether a folder whose config.json is missing or damaged was to hold a draft."""
    config = folder / CONFIG
    with suppress(OSError):
        if config.is_file():
            with config.open("rb") as file:
                text = file.read(_ENOUGH).lower()
            if any(word in text for word in _WORDS):
                return True
    names: list[str] = []
    for weights in sorted(folder.glob("*.safetensors")):
        with suppress(OSError, HeaderError):
            if weights.is_file():
                names += (tensor.name for tensor in read_header(weights).tensors)
    return is_eagle3_draft({}, names)
