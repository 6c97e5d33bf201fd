"""A safetensors header's JSON with other names or without some tensors."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from eagle3_lint.frozen import frozen
from eagle3_lint.load.strict_json import Number, Pairs, parse
from eagle3_lint.write.change import Kept, Made, Piece

_METADATA = "__metadata__"
#: The widest number of a tensor, in bytes; the data of others start at a multiple of their own.
_ALIGNED = 8
Members = Sequence[tuple[str, Any]]
#: New bytes, or spans of the old ones, from the tensor's first, in their new order.
NewData = bytes | Sequence[tuple[int, int]]


@frozen
class Added:
    """A tensor that was not in the file."""

    dtype: str
    shape: tuple[int, ...]
    data: bytes


def renamed(
    text: str,
    names: Mapping[str, str],
    made: Mapping[str, NewData] | None = None,
    added: Mapping[str, Added] | None = None,
    parts: Mapping[str, Sequence[tuple[str, int]]] | None = None,
) -> tuple[bytes, tuple[Piece, ...] | None]:
    """The header under other names, and what becomes of the data.

    Order, metadata and fields that the format does not know stay. Names that are neither in
    ``names`` nor in ``parts`` are dropped, and the data of the others move together.

    Args:
        text: the header's JSON, as the library accepts it.
        names: name in the file → new name.
        made: name in the file → new data, of the size of the old.
        added: new name → a tensor; it comes before the others' data, so that eight-byte numbers
            stay aligned.
        parts: name in the file → new name and number of rows of each tensor that takes its place.
            Rows follow each other in the data, so that these stay where they are.

    Returns:
        The new JSON without padding, and the pieces of data it speaks of; None for those when they
        stay as they are.
    """
    members: Members = parse(text)
    parts = parts or {}
    last = {name: place for place, (name, _) in enumerate(members)}
    kept = [
        (name, entry)
        for place, (name, entry) in enumerate(members)
        # Of equal names the last one counts, so an earlier one must not become a tensor.
        if name == _METADATA or ((name in names or name in parts) and last[name] == place)
    ]
    dropped = len(kept) < len(last)
    pieces: tuple[Piece, ...] | None = None
    if dropped or made or added:
        front = [Made(a.data) for a in (added or {}).values()]
        kept, moved = _moved_together(kept, made or {}, sum(len(p.content) for p in front))
        pieces = (*front, *moved)
    new = [
        member
        for name, entry in kept
        for member in (
            _apart(name, entry, parts[name]) if name in parts else [(names.get(name, name), entry)]
        )
    ]
    return _dumped([*new, *_entries(added or {})]).encode("utf-8"), pieces


def _entries(added: Mapping[str, Added]) -> Iterator[tuple[str, Any]]:
    at = 0
    for name, tensor in added.items():
        if len(tensor.data) % _ALIGNED:
            raise ValueError(f"{name}: its {len(tensor.data)} bytes would move the others apart")
        span = [at, at + len(tensor.data)]
        yield (
            name,
            Pairs([("dtype", tensor.dtype), ("shape", list(tensor.shape)), ("data_offsets", span)]),
        )
        at += len(tensor.data)


def _moved_together(
    members: Members, made: Mapping[str, NewData], at: int
) -> tuple[list[tuple[str, Any]], tuple[Piece, ...]]:
    """The members with new places and the pieces of their data, the first at ``at``."""
    spans = {name: _span(entry) for name, entry in members if name != _METADATA}
    pieces: list[Piece] = []
    moved: dict[str, list[int]] = {}
    for name, (begin, end) in sorted(spans.items(), key=lambda pair: pair[1]):
        if name in made:
            pieces.extend(_pieces(name, made[name], begin, end))
        elif end > begin:
            pieces.append(Kept(begin, end))
        moved[name] = [at, at + end - begin]
        at += end - begin
    new = [(n, _placed(e, moved[n]) if n in moved else e) for n, e in members]
    return new, tuple(pieces)


def _apart(name: str, entry: Any, parts: Sequence[tuple[str, int]]) -> Iterator[tuple[str, Any]]:
    """One entry as several, each with its rows.

    Raises:
        ValueError: the parts are not all of its rows.
    """
    shape = dict(entry)["shape"] if isinstance(entry, Pairs) else entry[1]
    (begin, end), rows = _span(entry), sum(count for _, count in parts)
    if rows != int(_text(shape[0])) or (end - begin) % rows:
        raise ValueError(f"{name}: no {rows} rows of whole bytes")
    row = (end - begin) // rows
    for new, count in parts:
        span = [begin, begin + count * row]
        yield new, _placed(entry, span, [count, *shape[1:]])
        begin += count * row


def _text(number: Any) -> str:
    return number.text if isinstance(number, Number) else str(number)


def _pieces(name: str, data: NewData, begin: int, end: int) -> list[Piece]:
    new: list[Piece] = (
        [Made(data)] if isinstance(data, bytes) else [Kept(begin + a, begin + b) for a, b in data]
    )
    size = len(data) if isinstance(data, bytes) else sum(b - a for a, b in data)
    if size != end - begin:
        raise ValueError(f"{name}: {size} bytes for {end - begin}")
    return new


def _span(entry: Any) -> tuple[int, int]:
    """Begin and end of a tensor's data; its entry may be an object or a positional list."""
    fields = dict(entry)["data_offsets"] if isinstance(entry, Pairs) else entry[2]
    begin, end = (int(_text(offset)) for offset in fields)
    return begin, end


def _placed(entry: Any, span: list[int], shape: list[Any] | None = None) -> Any:
    """An entry with other offsets or another shape; everything else as it was written."""
    if isinstance(entry, Pairs):
        new = {"data_offsets": span} if shape is None else {"data_offsets": span, "shape": shape}
        return Pairs((key, new.get(key, value)) for key, value in entry)
    return [entry[0], entry[1] if shape is None else shape, span]


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
