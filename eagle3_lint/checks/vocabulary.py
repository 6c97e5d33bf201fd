"""E3L4xx: the draft vocabulary and the head, as far as names and shapes say it."""

from __future__ import annotations

from collections.abc import Iterator

from eagle3_lint.checks.subject import Subject
from eagle3_lint.diagnostic import Finding


def check_vocabulary(subject: Subject) -> Iterator[Finding]:
    """Findings about d2t and the head."""
    load, facts = subject.load, subject.facts
    if load is None or load.error is not None:
        return
    rows = load.parameters["lm_head.weight"].shape[0] if "lm_head.weight" in load.parameters else 0
    vocab = load.environment.get("target_vocab")
    if not isinstance(vocab, int) or not rows or rows == vocab:
        return
    values: dict[str, object] = {"target": str(subject.target), "rows": rows, "vocab": vocab}
    if load.vocabulary_map is None:
        yield Finding("E3L401", values, subject.field("/draft_vocab_size"))
    if "lm_head.weight" in load.borrowed and "lm_head.weight" not in facts.tensors:
        yield Finding("E3L402", values, subject.field("/draft_vocab_size"))
