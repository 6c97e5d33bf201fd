"""E3L6xx: does this release run the target model, and can that model feed this draft?"""

from __future__ import annotations

from collections.abc import Iterator

from eagle3_lint.checks.subject import Subject
from eagle3_lint.diagnostic import Effect, Finding
from eagle3_lint.simulate.configure import fill

#: Differences of patched sources that one message names.
_TOLD = 3


def check_target(subject: Subject) -> Iterator[Finding]:
    """Findings about the target model before this release."""
    yield from _patched(subject)
    model = subject.model
    if model is None:
        yield Finding("E3L603", {"target": str(subject.target)}, subject.field())
        return
    yield from _support(subject)
    yield from _sizes(subject)


def _patched(subject: Subject) -> Iterator[Finding]:
    if subject.patch is None or not subject.patch.differences:
        return
    told = [str(one) for one in subject.patch.differences]
    more = f" and {len(told) - _TOLD} more" if len(told) > _TOLD else ""
    values: dict[str, object] = {
        "target": str(subject.target),
        "sources": subject.target.sources,
        "differences": "; ".join(told[:_TOLD]) + more,
    }
    yield Finding("E3L608", values)


def _support(subject: Subject) -> Iterator[Finding]:
    support, model = subject.support, subject.model
    if support is None or model is None or support.state == "yes":
        return
    raises = bool(support.error_type)
    values: dict[str, object] = {
        "target": str(subject.target),
        "runtime": subject.runtime.title,
        "model": model.name,
        "architecture": model.architecture,
        "model_type": model.model_type,
        "error": f"{support.error_type}: {support.error_message}"
        if raises
        else "nothing is raised",
        "since": _since(subject),
        "note": support.note,
        "hint": _hint(subject),
    }
    rule = {"unregistered": "E3L602", "unknown": "E3L607"}.get(support.state, "E3L601")
    variant = "whitelist" if support.state == "refused" else "message"
    source = subject.cite(support.source) if support.source else None
    # A model that captures the states and then loses them starts, and feeds the draft nothing.
    effect: Effect | None = "broken" if rule == "E3L601" and not raises else None
    yield Finding(rule, values, (), source, variant=variant, effect=effect)


def _hint(subject: Subject) -> str:
    """The hint in this draft's numbers; none for a draft without an fc."""
    assert subject.support is not None
    hidden, fc_in = subject.facts.stated.hidden_size, subject.facts.shown.fc_in
    if hidden is None or fc_in is None:
        return ""
    return fill(subject.support.hint, {"hidden": hidden, "fc_in": fc_in})


def _since(subject: Subject) -> str:
    support = subject.support
    assert support is not None
    title = subject.runtime.title
    if support.since is None:
        return f"No known release of {title} supports it."
    if support.until is not None:
        return f"{title} {support.since} to {support.until} support it."
    return f"{title} supports it from {support.since} on."


def _sizes(subject: Subject) -> Iterator[Finding]:
    model, facts = subject.model, subject.facts
    assert model is not None
    named = {"target": str(subject.target), "model": model.name}
    vocab = facts.shown.vocab_size or facts.stated.vocab_size
    if vocab is not None and model.vocab_size is not None and vocab != model.vocab_size:
        yield Finding(
            "E3L605",
            {**named, "draft": vocab, "theirs": model.vocab_size},
            subject.field("/vocab_size", "/transformer_layer_config/vocab_size"),
        )
    width = facts.stated.target_hidden_size or facts.stated.hidden_size
    if width is not None and model.hidden_size is not None and width != model.hidden_size:
        yield Finding(
            "E3L604",
            {**named, "draft": width, "theirs": model.hidden_size},
            subject.field("/target_hidden_size", "/hidden_size"),
        )
