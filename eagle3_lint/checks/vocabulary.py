"""E3L4xx: the draft vocabulary, its map to the target's, and the head."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from eagle3_lint.checks.subject import Subject
from eagle3_lint.diagnostic import Finding, Place
from eagle3_lint.vocabulary import VocabularyMap


def check_vocabulary(subject: Subject) -> Iterator[Finding]:
    """Findings about d2t and the head, of a draft that loads."""
    load, facts = subject.load, subject.facts
    if load is None or load.error is not None:
        return
    rows = load.parameters["lm_head.weight"].shape[0] if "lm_head.weight" in load.parameters else 0
    vocab = load.environment.get("target_vocab")
    if not isinstance(vocab, int) or not rows:
        return
    table = subject.vocabulary
    if load.vocabulary_map is not None and table is not None and table.rows == rows:
        yield from _values(subject, table, vocab)
    if rows == vocab:
        return
    values: dict[str, object] = {"target": str(subject.target), "rows": rows, "vocab": vocab}
    if load.vocabulary_map is None:
        variant = "message" if facts.d2t is None else "thrown-away"
        yield Finding("E3L401", values, subject.field("/draft_vocab_size"), variant=variant)
    if "lm_head.weight" in load.borrowed and "lm_head.weight" not in facts.tensors:
        yield Finding("E3L402", values, subject.field("/draft_vocab_size"))


def _values(subject: Subject, table: VocabularyMap, vocab: int) -> Iterator[Finding]:
    """What the numbers in d2t say; the first thing that is wrong, since others follow from it."""
    load = subject.load
    assert load is not None and load.vocabulary_map is not None
    where = subject.all_at([load.vocabulary_map])
    values: dict[str, object] = {
        "target": str(subject.target), "rows": table.rows, "vocab": vocab,
    }  # fmt: skip
    outside = table.outside(vocab)
    # Offsets of an ascending list of tokens never fall and never pass vocab - rows; the tokens
    # themselves rise with every row.
    if table.ascending_offsets and table.offsets[0] >= 0 and table.offsets[-1] > vocab - table.rows:
        yield _absolute(table, outside, values, where)
    elif outside:
        row = outside[0]
        yield Finding(
            "E3L404",
            {**values, "count": len(outside), "row": row, "token": table.goals[row]},
            where,
        )
    elif table.marked is not None and (table.unmarked or table.marked != table.distinct):
        only_t2d = table.marked - (table.distinct - len(table.unmarked))
        first = table.unmarked[0] if table.unmarked else table.goals[0]
        yield Finding(
            "E3L405",
            {**values, "only_d2t": len(table.unmarked), "only_t2d": only_t2d, "first": first},
            where,
            variant="unfilled" if table.all_zero else "message",
        )
    elif table.distinct < table.rows:
        twice = [token for token, count in Counter(table.goals).items() if count > 1]
        yield Finding(
            "E3L406",
            {**values, "count": len(twice), "token": min(twice), "distinct": table.distinct},
            where,
        )


def _absolute(
    table: VocabularyMap,
    outside: tuple[int, ...],
    values: dict[str, object],
    where: tuple[Place, ...],
) -> Finding:
    first, second = table.offsets[0], table.offsets[1]
    told = {
        **values,
        "first": first,
        "second": second,
        "adds": f"row 1 becomes token {table.goals[1]}",
        "beyond": len(outside),
    }
    if outside:
        return Finding("E3L403", told, where)
    return Finding("E3L403", told, where, variant="inside", effect="broken")
