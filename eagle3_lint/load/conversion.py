"""A torch checkpoint as the bytes of a safetensors file (needs the ``torch`` extra)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from pathlib import Path

from eagle3_lint.frozen import frozen
from eagle3_lint.load.pickle import load_state


@frozen
class Recast:
    """What becomes of the tensors of torch files; those that it does not name are left out.

    Attributes:
        names: name in the torch files → new name.
        parts: name in the torch files → new name and number of rows of each part.
        values: name in the torch files → new values, in the dtype of the old.
        added: name of a tensor that is not in the torch files → its values, as int64.
        blocks: name in the torch files → the order of its column blocks: block j is what was block
            ``order[j]``.
    """

    names: Mapping[str, str]
    parts: Mapping[str, Sequence[tuple[str, int]]] = field(default_factory=dict)
    values: Mapping[str, Sequence[int]] = field(default_factory=dict)
    added: Mapping[str, Sequence[int]] = field(default_factory=dict)
    blocks: Mapping[str, Sequence[int]] = field(default_factory=dict)


def as_safetensors(files: Sequence[Path], recast: Recast) -> bytes:
    """The tensors of torch files in one safetensors file.

    Raises:
        NeedsTorchError: torch cannot be imported.
        Exception: whatever torch raises for a damaged file.
    """
    state = {name: value for file in files for name, value in load_state(file).items()}

    import torch
    from safetensors.torch import save

    # Views of one storage become tensors of their own, as the format wants them.
    tensors = {new: state[old].clone().contiguous() for old, new in recast.names.items()}
    for old, into in recast.parts.items():
        rows = state[old].split([count for _, count in into])
        made = zip(into, rows, strict=True)
        tensors.update((new, t.clone().contiguous()) for (new, _), t in made)
    for name, numbers in recast.values.items():
        tensors[recast.names[name]] = state[name].new_tensor(numbers)
    for name, order in recast.blocks.items():
        blocks = state[name].chunk(len(order), dim=1)
        tensors[recast.names[name]] = torch.cat([blocks[i] for i in order], dim=1)
    for name, numbers in recast.added.items():
        tensors[name] = torch.tensor(numbers, dtype=torch.int64)
    return save(tensors, metadata={"format": "pt"})
