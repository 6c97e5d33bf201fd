"""What d2t and t2d come to, worked out once for all targets.

Row i of the draft's head stands for token i + d2t[i] of the target model; t2d marks the tokens that
the draft can propose. Written for tables of a hundred thousand entries in a few milliseconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from operator import add, itemgetter, lt

from eagle3_lint.facts import Facts
from eagle3_lint.frozen import frozen


@frozen
class VocabularyMap:
    """A draft's d2t.

    Attributes:
        offsets: as stored, one per draft row.
        goals: the token that each row stands for.
        marked: how many tokens t2d has; None without a t2d of the target's size that has any.
        unmarked: tokens that d2t leads to and t2d has not, ascending; empty when all agree.
    """

    offsets: Sequence[int]
    goals: Sequence[int]
    lowest: int
    highest: int
    distinct: int
    marked: int | None
    unmarked: tuple[int, ...]

    @property
    def rows(self) -> int:
        return len(self.goals)

    @property
    def all_zero(self) -> bool:
        """The table was never filled in, or says that the draft has the first tokens."""
        return not any(self.offsets)

    @property
    def ascending(self) -> bool:
        """Whether the rows stand for ascending tokens, as most trainers have them."""
        return all(map(lt, self.goals, islice(self.goals, 1, None)))

    @property
    def ascending_offsets(self) -> bool:
        """Whether the stored values themselves are an increasing list, as token ids are."""
        values = self.offsets
        return len(values) > 1 and all(map(lt, values, islice(values, 1, None)))

    def outside(self, vocab: int) -> tuple[int, ...]:
        """The rows that lead outside a vocabulary."""
        if self.lowest >= 0 and self.highest < vocab:
            return ()
        return tuple(row for row, goal in enumerate(self.goals) if not 0 <= goal < vocab)


def vocabulary_map(facts: Facts) -> VocabularyMap | None:
    """The draft's d2t, when it has one of integers."""
    offsets = facts.d2t
    if offsets is None or not len(offsets) or isinstance(offsets[0], float):
        return None
    values: list[int] = list(offsets)  # type: ignore[arg-type]
    goals = list(map(add, values, range(len(values))))
    lowest, highest = min(goals), max(goals)
    marked, unmarked = _marks(facts.t2d, goals, lowest, highest)
    return VocabularyMap(values, goals, lowest, highest, len(set(goals)), marked, unmarked)


def _marks(
    t2d: Sequence[int | float] | None, goals: Sequence[int], lowest: int, highest: int
) -> tuple[int | None, tuple[int, ...]]:
    """How many tokens t2d marks, and which goals it does not."""
    if t2d is None or lowest < 0 or highest >= len(t2d) or len(goals) < 2:
        return None, ()
    raw = t2d.tobytes() if isinstance(t2d, memoryview) and t2d.itemsize == 1 else None
    marked = len(raw) - raw.count(0) if raw is not None else sum(1 for mark in t2d if mark)
    if not marked:
        return None, ()  # never filled in, and no runtime reads it
    found = itemgetter(*goals)(t2d)
    if all(found):
        return marked, ()
    return marked, tuple(sorted({g for g, mark in zip(goals, found, strict=True) if not mark}))


def offsets_of(tokens: Sequence[int]) -> list[int]:
    """d2t of a list of tokens, one per draft row."""
    return [token - row for row, token in enumerate(tokens)]


def marked_tokens(t2d: Sequence[int | float]) -> list[int]:
    """The tokens that t2d marks, ascending, which is the order that trainers give draft rows."""
    return [token for token, mark in enumerate(t2d) if mark]
