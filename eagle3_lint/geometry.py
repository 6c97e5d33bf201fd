"""What two matrices of one row per token have in common, by a sample of their rows.

Heads of two models that were trained apart have no direction in common, but they agree about which
tokens are alike: the cosines between the rows of one and those between the same tokens' rows of the
other rise and fall together. Rows that stand for other tokens lose all of that.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import fsum, sqrt
from operator import mul

Rows = Sequence[Sequence[float]]


def likeness(one: Rows, other: Rows) -> float | None:
    """The mean cosine between rows of the same place: 1 for equal directions, 0 for unrelated.

    Returns:
        None when a row is all zeros or not finite: nothing can be said.
    """
    ours, theirs = _directions(one), _directions(other)
    if ours is None or theirs is None or not ours:
        return None
    return fsum(_dot(a, b) for a, b in zip(ours, theirs, strict=True)) / len(ours)


def agreement(one: Rows, other: Rows) -> float | None:
    """How far the alikeness of the rows agrees, in standard deviations from chance.

    For unrelated rows the correlation of ``p`` pairs of cosines is 0 with a standard deviation of
    ``1 / sqrt(p)``; what is returned is the correlation in this unit. The mean row is taken away
    first, since all rows of a head have one direction in common.

    Returns:
        None when nothing can be said: too few rows, all alike, zeros, or not finite.
    """
    if len(one) < 8:
        return None
    ours, theirs = _directions(_centred(one)), _directions(_centred(other))
    if ours is None or theirs is None:
        return None
    correlation = _correlation(_cosines(ours), _cosines(theirs))
    pairs = len(one) * (len(one) - 1) / 2
    return None if correlation is None else correlation * sqrt(pairs)


def _dot(a: Sequence[float], b: Sequence[float]) -> float:
    return float(sum(map(mul, a, b)))


def _centred(rows: Rows) -> list[list[float]]:
    mean = [sum(column) / len(rows) for column in zip(*rows, strict=True)]
    return [[x - m for x, m in zip(row, mean, strict=True)] for row in rows]


def _directions(rows: Rows) -> list[list[float]] | None:
    found: list[list[float]] = []
    for row in rows:
        length = sqrt(_dot(row, row))
        if not 0 < length < float("inf"):
            return None
        found.append([x / length for x in row])
    return found


def _cosines(rows: Sequence[Sequence[float]]) -> list[float]:
    return [_dot(rows[i], rows[j]) for i in range(len(rows)) for j in range(i)]


def _correlation(a: Sequence[float], b: Sequence[float]) -> float | None:
    mean_a, mean_b = sum(a) / len(a), sum(b) / len(b)
    off_a, off_b = [x - mean_a for x in a], [x - mean_b for x in b]
    spread = sqrt(_dot(off_a, off_a) * _dot(off_b, off_b))
    return _dot(off_a, off_b) / spread if spread > 0 else None
