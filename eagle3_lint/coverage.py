"""How a draft's vocabulary covers the target model's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from eagle3_lint.facts import Facts
from eagle3_lint.frozen import frozen
from eagle3_lint.vocabulary import marked_tokens, vocabulary_map


@frozen
class SpecialToken:
    """A token that ends, begins or structures a text.

    Attributes:
        covered: whether the draft can propose it.
    """

    token: int
    name: str
    covered: bool


@frozen
class Coverage:
    """Which tokens a draft can propose.

    Attributes:
        source: ``d2t``, ``t2d``, or ``all`` for a draft of the whole vocabulary.
        vocab_size: tokens of the target model. covered: how many of them the draft can propose.
        outside: rows of the head that stand for no token of the target model.
        shares: covered share of consecutive, equally long ranges of token ids.
        special: by token id.
    """

    source: str
    vocab_size: int
    covered: int
    outside: int
    shares: tuple[float, ...]
    special: tuple[SpecialToken, ...]

    @property
    def share(self) -> float:
        return self.covered / self.vocab_size


def coverage(
    facts: Facts, vocab_size: int, special: Mapping[int, str], cells: int = 512
) -> Coverage | None:
    """The coverage of a target vocabulary; None when nothing says which tokens the draft has.

    Args:
        special: token id → name.
        cells: how many ranges to give shares for.
    """
    found = _tokens(facts, vocab_size)
    if found is None:
        return None
    source, tokens = found
    inside = {t for t in tokens if 0 <= t < vocab_size}
    cells = min(cells, vocab_size)
    counts, sizes = [0] * cells, [0] * cells
    for cell in range(cells):
        sizes[cell] = (cell + 1) * vocab_size // cells - cell * vocab_size // cells
    for token in inside:
        # The range that starts at or before the token: floor of (token + 1) * cells - 1 over size.
        counts[((token + 1) * cells - 1) // vocab_size] += 1
    return Coverage(
        source=source,
        vocab_size=vocab_size,
        covered=len(inside),
        outside=len([t for t in tokens if not 0 <= t < vocab_size]),
        shares=tuple(c / s for c, s in zip(counts, sizes, strict=True)),
        special=tuple(SpecialToken(t, n, t in inside) for t, n in sorted(special.items())),
    )


def _tokens(facts: Facts, vocab_size: int) -> tuple[str, Sequence[int]] | None:
    table = vocabulary_map(facts)
    if table is not None:
        return "d2t", table.goals
    if facts.t2d is not None and any(facts.t2d):
        return "t2d", marked_tokens(facts.t2d)
    if facts.d2t is None and facts.shown.draft_vocab_size in (None, vocab_size):
        return "all", range(vocab_size)
    return None
