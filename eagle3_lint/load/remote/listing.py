"""From the paths of a repository or a bucket to one folder and the names in it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from eagle3_lint.errors import InputError
from eagle3_lint.frozen import frozen

#: A draft is given by its folder or by one of these; ``folder.folder_of`` takes the same.
CONFIG, _ENDINGS = "config.json", (".safetensors", ".bin", ".index.json")
#: As far down as a draft is looked for when there is none in the folder itself.
_DEPTH = 3


@frozen
class Listing:
    """A folder of a larger whole.

    Attributes:
        folder: its path; empty for the root.
        files: names in it → bytes; None where that is not known.
        inner: paths, from this folder, of the files further down that make a draft.
    """

    folder: str
    files: Mapping[str, int | None]
    inner: tuple[str, ...]

    def path(self, file: str) -> str:
        """The path of a file from the root."""
        return f"{self.folder}/{file}" if self.folder else file


def is_drafts_file(name: str) -> bool:
    """Whether a name alone says that it is a file of a draft."""
    return name == CONFIG or name.endswith(_ENDINGS)


def folder_in(files: Mapping[str, int | None], path: str, given: str) -> Listing:
    """The folder at a path, or the folder of the draft's file at a path.

    Raises:
        InputError: neither is there.
    """
    folder = path
    if path and path in files:
        folder, _, name = path.rpartition("/")
        if not is_drafts_file(name):
            raise InputError(
                f"{given}: no draft; give its folder, or the config.json or a weights file in it"
            )
    start = f"{folder}/" if folder else ""
    below = {p.removeprefix(start): s for p, s in files.items() if p.startswith(start) and _safe(p)}
    if not below:
        where = f"no folder {folder!r} in it" if folder else "it is empty"
        found = _folders(files)
        hint = f"; there are {', '.join(found)}" if folder and found else ""
        raise InputError(f"{given}: {where}{hint}")
    return Listing(
        folder=folder,
        files={name: size for name, size in below.items() if "/" not in name},
        inner=tuple(p for p in below if "/" in p and _inner(p)),
    )


def _inner(path: str) -> bool:
    return path.count("/") < _DEPTH and is_drafts_file(path.rpartition("/")[2])


def _safe(path: str) -> bool:
    """Whether a path, made on this disk, stays where it is put; a server can send anything."""
    if any(character in path for character in "\\:\0"):
        return False
    return all(part not in ("", ".", "..") for part in path.split("/"))


def _folders(files: Iterable[str]) -> list[str]:
    """A few folders with weights in them."""
    found = {p.rpartition("/")[0] for p in files if p.endswith((".safetensors", ".bin"))}
    return sorted(f or "the root" for f in found)[:5]
