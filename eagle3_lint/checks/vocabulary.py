"""E3L4xx: the draft vocabulary, its map to the target's, and the head."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from eagle3_lint.checks.subject import Subject
from eagle3_lint.diagnostic import Edit, Finding, Fix, Place
from eagle3_lint.vocabulary import VocabularyMap, marked_tokens


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
        yield _absolute(subject, table, outside, values, where)
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
            fix=_from_marks(subject, table),
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
    subject: Subject,
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
    fix = _from_tokens(subject, table)
    if outside:
        return Finding("E3L403", told, where, fix=fix)
    return Finding("E3L403", told, where, fix=fix, variant="inside", effect="broken")


def _from_tokens(subject: Subject, table: VocabularyMap) -> Fix:
    """Offsets from the tokens that stand in their place; sure when t2d marks the same ones."""
    assert subject.load is not None and subject.load.vocabulary_map is not None
    marks = subject.facts.t2d
    agrees = marks is not None and marked_tokens(marks) == list(table.offsets)
    edit = Edit.rebuild_d2t(subject.load.vocabulary_map, "absolute")
    return Fix("subtract each row from the token it holds", "safe" if agrees else "unsafe", (edit,))


def _from_marks(subject: Subject, table: VocabularyMap) -> Fix | None:
    """Offsets from t2d, where it marks one token a row; sure when d2t was never filled in."""
    assert subject.load is not None and subject.load.vocabulary_map is not None
    if table.marked != table.rows:
        return None
    edit = Edit.rebuild_d2t(subject.load.vocabulary_map, "t2d")
    title = "rebuild d2t from the tokens that t2d marks, in ascending order"
    return Fix(title, "safe" if table.all_zero else "unsafe", (edit,))
