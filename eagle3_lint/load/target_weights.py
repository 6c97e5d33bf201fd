"""One tensor of a target model's checkpoint, without reading the headers of all its shards."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from eagle3_lint.load.checkpoint import Tensor
from eagle3_lint.load.document import DocumentError, load_document
from eagle3_lint.load.header import HeaderError, read_header
from eagle3_lint.load.weights import INDEX

#: The text model's own embedding and head, whatever wraps the text model.
EMBEDDING = "embed_tokens.weight"
HEAD = "lm_head.weight"


def find_matrix(folder: Path, ending: str) -> Tensor | None:
    """The matrix whose name ends so; the shortest name, which is the text model's, if several do.

    Returns:
        None when the folder has no readable safetensors that hold one.
    """
    found: list[Tensor] = []
    for name in _files(folder, ending):
        try:
            header = read_header(folder / name)
        except (HeaderError, OSError):
            continue
        found.extend(
            Tensor(t.name, t.dtype, t.shape, name, header.data_start + t.begin, t.end - t.begin)
            for t in header.tensors
            if _ends(t.name, ending) and len(t.shape) == 2
        )
    return min(found, key=lambda t: len(t.name), default=None)


def _ends(name: str, ending: str) -> bool:
    return name == ending or name.endswith("." + ending)


def _files(folder: Path, ending: str) -> Sequence[str]:
    """The files that can hold such a tensor: those that an index names, or all."""
    try:
        weight_map = load_document(folder / INDEX).data.get("weight_map")
    except (DocumentError, OSError):
        weight_map = None
    if isinstance(weight_map, dict):
        named = {f for n, f in weight_map.items() if _ends(n, ending) and isinstance(f, str)}
        # A name with a slash would lead out of the folder.
        return sorted(f for f in named if "/" not in f and "\\" not in f)
    try:
        return sorted(p.name for p in folder.glob("*.safetensors"))
    except OSError:
        return []
