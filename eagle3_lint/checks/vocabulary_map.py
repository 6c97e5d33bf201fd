"""E3L4xx: d2t and t2d, the map from rows of the draft's head to tokens of the target model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from eagle3_lint.checks.subject import Subject
from eagle3_lint.comparison import AGREES
from eagle3_lint.diagnostic import Edit, Finding, Fix, Place
from eagle3_lint.facts import bare
from eagle3_lint.simulate.load import VOCABULARY_MAP
from eagle3_lint.vocabulary import VocabularyMap, marked_tokens


def check_vocabulary_map(subject: Subject, rows: int, vocab: int) -> Iterator[Finding]:
    """Findings about the values of d2t and the size of t2d, of a draft that loads.

    Args:
        rows: of the head. vocab: tokens of the target model.
    """
    load, table = subject.load, subject.vocabulary
    mapped = load is not None and load.vocabulary_map is not None
    if mapped and table is not None and table.rows == rows:
        yield from _values(subject, table, vocab)
    elif mapped and subject.facts.d2t is not None and table is None:
        yield from _no_integers(subject)
    elif mapped and table is not None:
        yield _another_length(subject, table, rows)
    yield from _marks_of_another(subject, vocab)


def _another_length(subject: Subject, table: VocabularyMap, rows: int) -> Finding:
    assert subject.load is not None and subject.load.vocabulary_map is not None
    return Finding(
        "E3L416",
        {"target": str(subject.target), "entries": table.rows, "rows": rows},
        subject.all_at([subject.load.vocabulary_map]),
    )


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
    if (
        table.ascending_offsets
        and table.offsets[0] >= 0
        and table.offsets[-1] > vocab - table.rows
        and not _agrees_but_for(table, subject)
    ):
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
    elif table.all_zero and table.rows < vocab:
        yield from _identity(subject, table, values, where)
    elif table.distinct < table.rows:
        twice = [token for token, count in Counter(table.goals).items() if count > 1]
        yield Finding(
            "E3L406",
            {**values, "count": len(twice), "token": min(twice), "distinct": table.distinct},
            where,
        )
    elif not _proved(subject):
        yield from _order(subject, table, values, where)


def _agrees_but_for(table: VocabularyMap, subject: Subject) -> bool:
    """Whether most entries lead, as offsets, to tokens that t2d marks: then some are damaged."""
    marks = subject.facts.t2d
    if marks is None:
        return False
    agree = sum(1 for goal in table.goals if 0 <= goal < len(marks) and marks[goal])
    held = sum(1 for token in table.offsets if 0 <= token < len(marks) and marks[token])
    return agree > held


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


def _identity(
    subject: Subject, table: VocabularyMap, values: dict[str, object], where: tuple[Place, ...]
) -> Iterator[Finding]:
    """Zeros give row i token i: what a map is before it is filled in."""
    if _proved(subject):
        return
    if table.marked is None:
        yield Finding("E3L410", values, where)
    else:
        # t2d says the same: a vocabulary of the first tokens, unless both were never filled in.
        yield Finding("E3L410", values, where, variant="marked", effect="none", severity="warning")


def _order(
    subject: Subject, table: VocabularyMap, values: dict[str, object], where: tuple[Place, ...]
) -> Iterator[Finding]:
    """A map that is one, to rows in another order than they were trained in."""
    comparison = subject.comparison
    if comparison is not None and comparison.head is not None:
        told = {**values, "deviations": round(comparison.head, 1), "need": AGREES}
        if (comparison.head_by_t2d or 0) < AGREES:
            yield Finding("E3L411", told, (*where, *subject.all_at(["lm_head.weight"])))
            return
        told["by_t2d"] = round(comparison.head_by_t2d or 0, 1)
        yield Finding("E3L407", told, where, fix=_from_marks(subject, table), variant="shown")
    elif table.marked is not None and not table.ascending and subject.sorts_rows:
        yield Finding(
            "E3L407",
            values,
            where,
            fix=_from_marks(subject, table),
            effect="none",
            severity="warning",
        )


def _proved(subject: Subject) -> bool:
    """Whether the target model's head shows that each row stands for its token."""
    comparison = subject.comparison
    return comparison is not None and (comparison.head or 0) >= AGREES


def _no_integers(subject: Subject) -> Iterator[Finding]:
    """A d2t that was cast to floating point."""
    load = subject.load
    assert load is not None and load.vocabulary_map is not None
    dtype = subject.facts.tensors[load.vocabulary_map].dtype
    where = subject.all_at([load.vocabulary_map])
    values: dict[str, object] = {"target": str(subject.target), "dtype": dtype}
    # A parameter of integers takes whole numbers back; a table that is kept stays what it is.
    loaded = any(p.role == VOCABULARY_MAP for p in load.parameters.values())
    if loaded and dtype in ("F32", "F64"):
        yield Finding("E3L408", values, where, variant="exact", effect="none", severity="warning")
    else:
        yield Finding("E3L408", values, where, variant="message" if loaded else "kept")


def _marks_of_another(subject: Subject, vocab: int) -> Iterator[Finding]:
    """A t2d that was made for a vocabulary of another size."""
    marks = subject.facts.t2d
    if marks is None or len(marks) == vocab:
        return
    names = [name for name in subject.facts.tensors if bare(name) == "t2d"]
    own = subject.facts.stated.vocab_size
    padded = own is not None and min(own, vocab) <= len(marks) <= max(own, vocab)
    if padded:
        return  # the target model pads its vocabulary, and E3L605 speaks of that
    values: dict[str, object] = {
        "target": str(subject.target), "marks": len(marks), "vocab": vocab,
    }  # fmt: skip
    yield Finding("E3L412", values, subject.all_at(names))


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
    comparison = subject.comparison
    shown = comparison is not None and (comparison.head_by_t2d or 0) >= AGREES
    return Fix(title, "safe" if table.all_zero or shown else "unsafe", (edit,))


def map_from_marks(subject: Subject, rows: int) -> Fix | None:
    """A d2t that is missing: from a trainer's list, or from t2d, where it marks one token a row.

    t2d alone does not say in which order the rows are; heads that agree do.
    """
    facts = subject.facts
    names = [name for name in facts.tensors if bare(name) == "t2d"]
    if facts.token_list is not None and len(facts.token_list) == rows:
        title = "add d2t, from the tokens that a file beside the weights lists"
        return Fix(title, "safe", (Edit.add_d2t("d2t", "list"),))
    if facts.d2t is not None or facts.t2d is None or len(names) != 1:
        return None
    if len(marked_tokens(facts.t2d)) != rows:
        return None
    comparison = subject.comparison
    shown = comparison is not None and (comparison.head_by_t2d or 0) >= AGREES
    edit = Edit.add_d2t(names[0].removesuffix("t2d") + "d2t")
    title = "add d2t, from the tokens that t2d marks, in ascending order"
    return Fix(title, "safe" if shown or subject.sorts_rows else "unsafe", (edit,))
