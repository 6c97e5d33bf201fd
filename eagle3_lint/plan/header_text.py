"""A safetensors header's JSON with other names or without some tensors."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from eagle3_lint.write.change import Kept, Piece

_METADATA = "__metadata__"
Members = list[tuple[str, Any]]


def renamed(text: str, names: Mapping[str, str]) -> tuple[bytes, tuple[Piece, ...] | None]:
    """The header under other names, and what becomes of the data.

    Order, metadata and fields that the format does not know stay. Names that are not in ``names``
    are dropped, and the data of the others move together.

    Args:
        text: the header's JSON, as the library accepts it.
        names: name in the file → new name.

    Returns:
        The new JSON without padding, and the pieces of data it speaks of; None for those when they
        stay as they are.
    """
    members: Members = json.loads(text, object_pairs_hook=list)
    last = {name: place for place, (name, _) in enumerate(members)}
    kept = [
        (name, entry)
        for place, (name, entry) in enumerate(members)
        # Of equal names the last one counts, so an earlier one must not become a tensor.
        if name == _METADATA or (name in names and last[name] == place)
    ]
    dropped = len(kept) < len(last)
    pieces: tuple[Piece, ...] | None = None
    if dropped:
        kept, pieces = _moved_together(kept)
    new = [(names.get(name, name), entry) for name, entry in kept]
    return _dumped(new).encode("utf-8"), pieces


def _moved_together(members: Members) -> tuple[Members, tuple[Piece, ...]]:
    tensors = [(name, dict(entry)) for name, entry in members if name != _METADATA]
    at = 0
    pieces: list[Piece] = []
    moved: dict[str, dict[str, Any]] = {}
    for name, entry in sorted(tensors, key=lambda pair: pair[1]["data_offsets"]):
        begin, end = entry["data_offsets"]
        if end > begin:
            pieces.append(Kept(begin, end))
        moved[name] = {**entry, "data_offsets": [at, at + end - begin]}
        at += end - begin
    return [(n, moved.get(n, e)) for n, e in members], tuple(pieces)


def _dumped(members: Members) -> str:
    """Members as JSON, as short as the library writes it."""
    parts = (f"{_json(name)}:{_value(entry)}" for name, entry in members)
    return "{" + ",".join(parts) + "}"


def _value(entry: Any) -> str:
    if isinstance(entry, list) and all(isinstance(e, tuple) for e in entry):
        return _dumped(entry)
    return _json(entry)


def _json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
