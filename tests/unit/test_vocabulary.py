"""d2t and t2d in numbers."""

from __future__ import annotations

from pathlib import Path

import pytest

from eagle3_lint.checking import read_draft
from eagle3_lint.vocabulary import VocabularyMap, vocabulary_map
from tests.drafts import DRAFT_VOCAB, VOCAB, offsets, spread, write_case


def table(folder: Path, **case: object) -> VocabularyMap:
    found = vocabulary_map(read_draft(write_case({"base": "llama", **case}, folder / "draft")))
    assert found is not None
    return found


def test_a_good_map(tmp_path: Path) -> None:
    found = table(tmp_path)
    assert found.goals == spread()
    assert (found.lowest, found.highest) == (0, max(spread()))
    assert found.distinct == found.marked == found.rows == DRAFT_VOCAB
    assert found.unmarked == ()
    assert found.outside(VOCAB) == ()
    assert not found.all_zero


def test_absolute_ids(tmp_path: Path) -> None:
    found = table(tmp_path, d2t="absolute")
    assert found.ascending_offsets
    assert found.goals[5] == spread()[5] + 5
    assert found.outside(VOCAB) == tuple(
        row for row, token in enumerate(spread()) if token + row >= VOCAB
    )


@pytest.mark.parametrize(("kind", "distinct"), [("duplicate", DRAFT_VOCAB - 1), ("zeros", 320)])
def test_how_many_tokens(tmp_path: Path, kind: str, distinct: int) -> None:
    assert table(tmp_path, d2t=kind).distinct == distinct


def test_goals_that_t2d_does_not_have(tmp_path: Path) -> None:
    found = table(tmp_path, d2t="zeros")
    assert found.unmarked == tuple(sorted(set(range(DRAFT_VOCAB)) - set(spread())))


def test_no_map(tmp_path: Path) -> None:
    draft = write_case({"base": "llama", "remove": ["d2t"]}, tmp_path / "draft")
    assert vocabulary_map(read_draft(draft)) is None


def test_the_offsets_of_the_tests_are_offsets() -> None:
    assert [row + offset for row, offset in enumerate(offsets())] == spread()
