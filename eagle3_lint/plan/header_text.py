"""A safetensors header's JSON with other names or without some tensors."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from eagle3_lint.load.strict_json import Number, Pairs, parse
from eagle3_lint.write.change import Kept, Made, Piece

_METADATA = "__metadata__"
Members = Sequence[tuple[str, Any]]


def renamed(
    text: str, names: Mapping[str, str], made: Mapping[str, bytes] | None = None
) -> tuple[bytes, tuple[Piece, ...] | None]:
    """The header under other names, and what becomes of the data.

    Order, metadata and fields that the format does not know stay. Names that are not in ``names``
    are dropped, and the data of the others move together.

    Args:
        text: the header's JSON, as the library accepts it.
        names: name in the file → new name.
        made: name in the file → new data, of the size of the old.

    Returns:
        The new JSON without padding, and the pieces of data it speaks of; None for those when they
        stay as they are.
    """
    members: Members = parse(text)
    last = {name: place for place, (name, _) in enumerate(members)}
    kept = [
        (name, entry)
        for place, (name, entry) in enumerate(members)
        # Of equal names the last one counts, so an earlier one must not become a tensor.
        if name == _METADATA or (name in names and last[name] == place)
    ]
    dropped = len(kept) < len(last)
    pieces: tuple[Piece, ...] | None = None
    if dropped or made:
        kept, pieces = _moved_together(kept, made or {})
    new = [(names.get(name, name), entry) for name, entry in kept]
    return _dumped(new).encode("utf-8"), pieces


def _moved_together(
    members: Members, made: Mapping[str, bytes]
) -> tuple[list[tuple[str, Any]], tuple[Piece, ...]]:
    spans = {name: _span(entry) for name, entry in members if name != _METADATA}
    at = 0
    pieces: list[Piece] = []
    moved: dict[str, list[int]] = {}
    for name, (begin, end) in sorted(spans.items(), key=lambda pair: pair[1]):
        if name in made:
            if len(made[name]) != end - begin:
                raise ValueError(f"{name}: {len(made[name])} bytes for {end - begin}")
            pieces.append(Made(made[name]))
        elif end > begin:
            pieces.append(Kept(begin, end))
        moved[name] = [at, at + end - begin]
        at += end - begin
    new = [(n, _placed(e, moved[n]) if n in moved else e) for n, e in members]
    return new, tuple(pieces)


def _span(entry: Any) -> tuple[int, int]:
    """Begin and end of a tensor's data; its entry may be an object or a positional list."""
    fields = dict(entry)["data_offsets"] if isinstance(entry, Pairs) else entry[2]
    begin, end = (int(offset.text) for offset in fields)
    return begin, end


def _placed(entry: Any, span: list[int]) -> Any:
    """An entry with other offsets; everything else as it was written."""
    if isinstance(entry, Pairs):
        return Pairs((key, span if key == "data_offsets" else value) for key, value in entry)
    return [*entry[:2], span]


def _dumped(members: Members) -> str:
    """Members as JSON, as short as the library writes it."""
    return "{" + ",".join(f"{_json(name)}:{_json(value)}" for name, value in members) + "}"


def _json(value: Any) -> str:
    if isinstance(value, Pairs):
        return _dumped(value)
    if isinstance(value, list):
        return "[" + ",".join(map(_json, value)) + "]"
    if isinstance(value, Number):
        return value.text
    return json.dumps(value, ensure_ascii=False)
