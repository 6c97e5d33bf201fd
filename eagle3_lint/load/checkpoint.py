"""The checkpoint as it was read: frozen, nothing interpreted."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from eagle3_lint.frozen import frozen
from eagle3_lint.load.document import Document

WeightsFormat = Literal["safetensors", "torch", "none"]


@frozen
class Tensor:
    """One tensor of a checkpoint.

    Attributes:
        dtype: as safetensors spells it (``BF16``, ``I64``, …).
        file: name of the file in the folder.
        offset: first byte in that file; -1 in a torch file, which only torch can address.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    file: str
    offset: int
    nbytes: int


@frozen
class Problem:
    """Something wrong with the container: a record, since one bad shard does not hide the rest."""

    kind: str
    file: str
    message: str
    tensor: str | None = None


@frozen
class Checkpoint:
    """A draft's folder.

    Attributes:
        tensors: in the order of the files, then of each header.
        files: every name in the folder, sorted.
        metadata: ``__metadata__`` of the headers, later files last.
    """

    path: Path
    config: Document
    tensors: tuple[Tensor, ...]
    problems: tuple[Problem, ...]
    files: tuple[str, ...]
    weights_format: WeightsFormat
    metadata: Mapping[str, str]
