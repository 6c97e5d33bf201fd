"""A torch checkpoint as the bytes of a safetensors file (needs the ``torch`` extra)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from eagle3_lint.load.pickle import load_state


def as_safetensors(files: Sequence[Path], names: Mapping[str, str]) -> bytes:
    """The tensors of torch files in one safetensors file, under other names.

    Args:
        names: name in the torch files → new name; what is not in it is left out.

    Raises:
        NeedsTorchError: torch cannot be imported.
        Exception: whatever torch raises for a damaged file.
    """
    from safetensors.torch import save

    tensors = {
        # Views of one storage become tensors of their own, as the format wants them.
        names[name]: value.contiguous().clone()
        for file in files
        for name, value in load_state(file).items()
        if name in names
    }
    return save(tensors, metadata={"format": "pt"})
