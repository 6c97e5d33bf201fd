"""What a draft's weights say beside the target model's: a sample of rows of embedding and head.

Names and shapes cannot tell a shuffled head from a good one; the numbers can. Nothing is read
unless the target model's weights are at hand, and then some kilobytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from eagle3_lint.facts import Facts, bare
from eagle3_lint.frozen import frozen
from eagle3_lint.geometry import Rows, agreement, likeness
from eagle3_lint.load import folder_shown_as
from eagle3_lint.load.checkpoint import Tensor
from eagle3_lint.load.rows import read_rows
from eagle3_lint.load.target_weights import EMBEDDING, HEAD, find_matrix
from eagle3_lint.vocabulary import marked_tokens

#: 64 rows give 2016 pairs: the head of a trained draft is then some 20 standard deviations off.
_ROWS, _COLUMNS = 64, 256
#: Heads for the same tokens agree by more standard deviations than this; chance gives 5 once in
#: three million.
AGREES = 5.0


@frozen
class Comparison:
    """A draft's embedding and head beside those of its target model.

    Attributes:
        embedding: mean cosine between the draft's rows and the target's for the same tokens; None
            when the draft has no embedding of its own, or another width.
        head: how far the head's rows agree with the target's rows of the tokens that d2t gives
            them, in standard deviations from chance; None when that cannot be said.
        head_by_t2d: the same for the tokens that t2d marks, in ascending order; looked at only when
            d2t's do not agree.
    """

    embedding: float | None = None
    head: float | None = None
    head_by_t2d: float | None = None


def compare_weights(facts: Facts, target: Path) -> Comparison:
    """The comparison with the target model in a folder; empty where there are no weights.

    Args:
        target: the target model's folder.
    """
    embedding = find_matrix(target, EMBEDDING)
    # A tied model has its embedding for a head.
    head = find_matrix(target, HEAD) or embedding
    folder = folder_shown_as(facts.path)
    found = _head(folder, facts, target, head, _tokens(facts))
    by_t2d = None
    if facts.t2d is not None and (found is None or found < AGREES):
        by_t2d = _head(folder, facts, target, head, marked_tokens(facts.t2d))
    return Comparison(
        embedding=_embedding(folder, facts, target, embedding),
        head=found,
        head_by_t2d=by_t2d,
    )


def _own(facts: Facts, name: str) -> Tensor | None:
    return next((t for n, t in facts.tensors.items() if bare(n) == name), None)


def _sample(count: int) -> list[int]:
    """Rows spread evenly over a matrix."""
    number = min(count, _ROWS)
    return [i * count // number for i in range(number)]


def _embedding(folder: Path, facts: Facts, target: Path, theirs: Tensor | None) -> float | None:
    ours = _own(facts, EMBEDDING)
    if ours is None or theirs is None or ours.shape[1:] != theirs.shape[1:]:
        return None
    rows = _sample(min(ours.shape[0], theirs.shape[0]))
    read = _both(folder, ours, rows, target, theirs, rows)
    return likeness(*read) if read is not None else None


def _tokens(facts: Facts) -> Sequence[int]:
    """The token of each row of the head; empty when d2t gives none that can be read."""
    if facts.d2t is None:
        rows = facts.shown.draft_vocab_size or 0
        return range(rows) if rows == facts.stated.vocab_size else ()
    if any(isinstance(offset, float) for offset in facts.d2t[:1]):
        return ()
    return [row + int(offset) for row, offset in enumerate(facts.d2t)]


def _head(
    folder: Path, facts: Facts, target: Path, theirs: Tensor | None, tokens: Sequence[int]
) -> float | None:
    ours = _own(facts, HEAD)
    if ours is None or theirs is None or len(tokens) != ours.shape[0]:
        return None
    rows = _sample(len(tokens))
    read = _both(folder, ours, rows, target, theirs, [tokens[row] for row in rows])
    return agreement(*read) if read is not None else None


def _both(
    folder: Path,
    ours: Tensor,
    rows: Sequence[int],
    target: Path,
    theirs: Tensor,
    tokens: Sequence[int],
) -> tuple[Rows, Rows] | None:
    mine = read_rows(folder, ours, rows, _COLUMNS)
    other = read_rows(target, theirs, tokens, _COLUMNS) if mine is not None else None
    return (mine, other) if mine is not None and other is not None else None
