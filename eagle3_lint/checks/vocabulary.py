"""E3L4xx: the head and the embedding beside the target model's."""

from __future__ import annotations

from collections.abc import Iterator

from eagle3_lint.checks.subject import Subject
from eagle3_lint.checks.vocabulary_map import check_vocabulary_map, map_from_marks
from eagle3_lint.diagnostic import Finding
from eagle3_lint.facts import bare
from eagle3_lint.load.target_weights import EMBEDDING

#: Mean cosines of rows of an embedding below which nothing is left of the target model's, and above
#: which nothing but rounding differs.
_UNRELATED, _EQUAL = 0.3, 0.995


def check_vocabulary(subject: Subject) -> Iterator[Finding]:
    """Findings about d2t and the head, of a draft that loads."""
    load, facts = subject.load, subject.facts
    if load is None or load.error is not None:
        return
    rows = load.parameters["lm_head.weight"].shape[0] if "lm_head.weight" in load.parameters else 0
    vocab = load.environment.get("target_vocab")
    if not isinstance(vocab, int) or not rows:
        return
    yield from check_vocabulary_map(subject, rows, vocab)
    yield from _lent_embedding(subject)
    yield from _replaced_head(subject, rows)
    yield from _embedding(subject)
    yield from _repeated(subject)
    if rows == vocab:
        return
    values: dict[str, object] = {"target": str(subject.target), "rows": rows, "vocab": vocab}
    if load.vocabulary_map is None:
        variant = "message" if facts.d2t is None else "thrown-away"
        yield Finding(
            "E3L401",
            values,
            subject.field("/draft_vocab_size"),
            fix=map_from_marks(subject, rows),
            variant=variant,
        )
    if "lm_head.weight" in load.borrowed and "lm_head.weight" not in facts.tensors:
        yield Finding("E3L402", values, subject.field("/draft_vocab_size"))


def _lent_embedding(subject: Subject) -> Iterator[Finding]:
    """A target model's embedding in a draft of another width."""
    load, model = subject.load, subject.model
    assert load is not None
    theirs = model.hidden_size if model is not None else subject.facts.stated.target_hidden_size
    hidden = subject.facts.stated.hidden_size
    own = any(bare(name) == EMBEDDING for name in subject.facts.tensors)
    if own or not _borrows_embedding(subject) or None in (theirs, hidden) or theirs == hidden:
        return
    yield Finding(
        "E3L414",
        {"target": str(subject.target), "theirs": theirs, "hidden": hidden},
        subject.field("/hidden_size"),
    )


def _borrows_embedding(subject: Subject) -> bool:
    load = subject.load
    return load is not None and EMBEDDING in {p.removeprefix("model.") for p in load.borrowed}


def _replaced_head(subject: Subject, rows: int) -> Iterator[Finding]:
    """A head of the draft's own that the target model's is put in the place of."""
    load = subject.load
    assert load is not None
    names = [name for name in subject.facts.tensors if bare(name) == "lm_head.weight"]
    if names and "lm_head.weight" in load.borrowed and rows == subject.facts.shown.draft_vocab_size:
        yield Finding("E3L415", {"target": str(subject.target)}, subject.all_at(names))


def _repeated(subject: Subject) -> Iterator[Finding]:
    """A head that was cut out of a whole one by the wrong numbers."""
    load, count = subject.load, subject.facts.repeated_rows
    assert load is not None
    if count and "lm_head.weight" not in load.borrowed:
        names = [name for name in subject.facts.tensors if bare(name) == "lm_head.weight"]
        values: dict[str, object] = {"target": str(subject.target), "count": count}
        yield Finding("E3L413", values, subject.all_at(names))


def _embedding(subject: Subject) -> Iterator[Finding]:
    """The draft's own embedding beside the target model's."""
    comparison, load = subject.comparison, subject.load
    assert load is not None
    if comparison is None or comparison.embedding is None:
        return
    cosine = comparison.embedding
    values: dict[str, object] = {"target": str(subject.target), "cosine": f"{cosine:.2f}"}
    where = subject.all_at([name for name in subject.facts.tensors if bare(name) == EMBEDDING])
    replaced = _borrows_embedding(subject)
    if cosine < _UNRELATED and not replaced:
        yield Finding("E3L409", values, where)
    elif _UNRELATED <= cosine < _EQUAL and replaced:
        yield Finding("E3L409", values, where, variant="replaced", effect="degraded")
