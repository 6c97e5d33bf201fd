"""Folders with weights, made and looked at in a line each."""

from __future__ import annotations

import json
from pathlib import Path

from eagle3_lint.load.checkpoint import Checkpoint
from eagle3_lint.load.weights import INDEX
from tests.drafts import safetensors_bytes


def put(folder: Path, name: str, *tensors: str) -> None:
    """A safetensors file with the given tensors, two bytes each."""
    (folder / name).write_bytes(safetensors_bytes(dict.fromkeys(tensors, ("BF16", (1,)))))


def index(folder: Path, weight_map: object, name: str = INDEX) -> None:
    """An index with the given map of tensor to shard."""
    (folder / name).write_text(json.dumps({"metadata": {}, "weight_map": weight_map}))


def kinds(checkpoint: Checkpoint) -> list[tuple[str, str, str | None]]:
    """Kind, file and tensor of each problem."""
    for problem in checkpoint.problems:
        assert problem.message.isprintable()
        assert problem.tensor is None or repr(problem.tensor) in problem.message
    return [(p.kind, p.file, p.tensor) for p in checkpoint.problems]


def held(checkpoint: Checkpoint) -> list[tuple[str, str]]:
    """File and name of each tensor."""
    return [(t.file, t.name) for t in checkpoint.tensors]
