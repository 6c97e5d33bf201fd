"""The checkpoint as it was read: frozen, nothing interpreted."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from eagle3_lint.frozen import frozen
from eagle3_lint.load.document import Document
from eagle3_lint.load.foreign import ForeignKind
from eagle3_lint.load.header import HeaderKind

WeightsFormat = Literal["safetensors", "torch", "none"]

#: What can be wrong with a folder, beyond what can be wrong with one file's header.
FolderKind = Literal[
    "duplicate-key", "unreadable", "missing-shard", "tensor-in-wrong-shard",
    "tensor-in-two-shards", "path-leaves-folder", "not-in-index", "named-but-absent", "bad-index",
    "needs-torch", "bad-torch-file", "no-weights", "weights-twice",
]  # fmt: skip
ProblemKind = HeaderKind | ForeignKind | FolderKind


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
    """Something wrong with the container: a record, since one bad shard does not hide the rest.

    Attributes:
        kind: what is wrong, in a stable word.
        file: name of the file to blame; a shard that is missing has one too.
        message: one sentence that names the culprit, without a full stop.
        tensor: the tensor to blame, if it is one.
    """

    kind: ProblemKind
    file: str
    message: str
    tensor: str | None = None


@frozen
class Checkpoint:
    """A draft's folder.

    Attributes:
        tensors: in the order of the files, then of each header; a name can occur twice.
        files: every name in the folder, sorted.
        metadata: ``__metadata__`` of the headers, later files last.
        index: the index of the shards; None when there is none or it cannot be read.
    """

    path: Path
    config: Document
    tensors: tuple[Tensor, ...]
    problems: tuple[Problem, ...]
    files: tuple[str, ...]
    weights_format: WeightsFormat
    metadata: Mapping[str, str]
    index: Document | None = None
