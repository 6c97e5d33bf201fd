"""What two matrices of one row per token have in common."""

from __future__ import annotations

from math import sqrt
from random import Random

import pytest

from eagle3_lint.geometry import agreement, likeness
from tests.weights import gauss, mixed, turned

TOKENS = 64
PAIRS = TOKENS * (TOKENS - 1) / 2


def test_a_matrix_agrees_with_itself_entirely() -> None:
    rows = gauss(TOKENS, 1)
    # A correlation of 1, in units of 1 / sqrt(pairs).
    assert agreement(rows, rows) == pytest.approx(sqrt(PAIRS))
    assert likeness(rows, rows) == pytest.approx(1)


def test_an_orthogonal_map_changes_no_angle() -> None:
    rows = gauss(TOKENS, 1)
    assert agreement(rows, turned(rows)) == pytest.approx(sqrt(PAIRS))
    assert abs(likeness(rows, turned(rows)) or 0) < 0.1


def test_noise_takes_some_of_it() -> None:
    rows = gauss(TOKENS, 1)
    noisy = mixed(turned(rows), gauss(TOKENS, 2), 0.5)
    assert 10 < (agreement(rows, noisy) or 0) < sqrt(PAIRS)


@pytest.mark.parametrize("seed", range(20))
def test_unrelated_rows_stay_near_chance(seed: int) -> None:
    found = agreement(gauss(TOKENS, 100 + seed), gauss(TOKENS, 200 + seed))
    assert found is not None
    assert abs(found) < 5


@pytest.mark.parametrize("seed", range(20))
def test_rows_in_another_order_stay_near_chance(seed: int) -> None:
    rows = gauss(TOKENS, 300 + seed)
    shuffled = list(rows)
    Random(seed).shuffle(shuffled)
    found = agreement(rows, shuffled)
    assert found is not None
    assert abs(found) < 5


@pytest.mark.parametrize(
    "rows",
    [
        pytest.param([[0.0] * 8] * 16, id="zeros"),
        pytest.param([[1.0] * 8] * 16, id="all alike"),
        pytest.param([[float("nan")] * 8] * 16, id="not a number"),
        pytest.param([[float("inf")] * 8] * 16, id="infinite"),
        pytest.param(gauss(4, 1, 8), id="too few"),
    ],
)
def test_nothing_can_be_said(rows: list[list[float]]) -> None:
    assert agreement(rows, gauss(len(rows), 1, 8)) is None
