"""Stretches of a file, as pairs of the first byte and the one after the last."""

from __future__ import annotations

from collections.abc import Iterable

Span = tuple[int, int]


def joined(spans: Iterable[Span], gap: int = 0) -> list[Span]:
    """The spans in order, those together that overlap, touch or are no more than ``gap`` apart."""
    found: list[Span] = []
    for begin, end in sorted(span for span in spans if span[0] < span[1]):
        if found and begin <= found[-1][1] + gap:
            found[-1] = (found[-1][0], max(found[-1][1], end))
        else:
            found.append((begin, end))
    return found


def missing(wanted: Iterable[Span], have: Iterable[Span]) -> list[Span]:
    """What of ``wanted`` is not in ``have``; both as :func:`joined` gives them."""
    found = list(wanted)
    for begin, end in have:
        found = [
            piece
            for first, last in found
            for piece in ((first, min(last, begin)), (max(first, end), last))
            if piece[0] < piece[1]
        ]
    return found
