"""A torch checkpoint as the bytes of a safetensors file (needs the ``torch`` extra)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from eagle3_lint.load.pickle import load_state


def as_safetensors(
    files: Sequence[Path],
    names: Mapping[str, str],
    values: Mapping[str, Sequence[int]],
    parts: Mapping[str, Sequence[tuple[str, int]]],
) -> bytes:
    """The tensors of torch files in one safetensors file, under other names.

    Args:
        names: name in the torch files → new name; what is neither in it nor in ``parts`` is left
            out.
        values: name in the torch files → new values, in the dtype of the old.
        parts: name in the torch files → new name and number of rows of each part.

    Raises:
        NeedsTorchError: torch cannot be imported.
        Exception: whatever torch raises for a damaged file.
    """
    state = {name: value for file in files for name, value in load_state(file).items()}

    from safetensors.torch import save

    # Views of one storage become tensors of their own, as the format wants them.
    tensors = {new: state[old].clone().contiguous() for old, new in names.items()}
    for old, into in parts.items():
        rows = state[old].split([count for _, count in into])
        tensors.update((new, t.clone()) for (new, _), t in zip(into, rows, strict=True))
    for name, numbers in values.items():
        tensors[names[name]] = state[name].new_tensor(numbers)
    return save(tensors, metadata={"format": "pt"})
