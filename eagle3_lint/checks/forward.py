"""E3L503 to E3L505: switches that a release ignores, misses, or follows where it should not."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from eagle3_lint.checks.subject import Subject
from eagle3_lint.contract.model import SwitchStatement
from eagle3_lint.diagnostic import Edit, Finding, Fix, Place
from eagle3_lint.forward import Need
from eagle3_lint.simulate.switches import taken

#: Says which releases do what a draft needs, in words.
Honoured = Callable[[Need], str]


def check_forward(subject: Subject, honoured: Honoured) -> Iterator[Finding]:
    """Findings about switches, of a draft that loads."""
    load = subject.load
    if load is None or load.error is not None:
        return
    for need in subject.needs:
        statement = subject.switches.get(need.switch.name)
        if statement is None:
            continue
        takes = taken(statement, subject.resolution.config, load.environment)
        meant = subject.trains_with.get(need.switch.name)
        if meant is not None and need.stated is not None:
            if not need.switch.same(need.value, meant["value"]) and need.switch.same(
                takes, need.value
            ):
                yield _unlike(subject, need, meant)
            continue
        said = need.stated is not None or need.tensor is not None
        if said and not need.switch.same(takes, need.value):
            yield _differs(subject, need, statement, takes, honoured)


def _values(subject: Subject, need: Need, takes: object) -> dict[str, object]:
    return {
        "target": str(subject.target),
        "name": need.switch.name,
        "about": need.switch.about,
        "needs": need.switch.shown(need.value),
        "takes": need.switch.shown(takes),
        "says": f"config.json has it at {need.stated}"
        if need.stated
        else f"{need.tensor} is there",
    }


def _where(subject: Subject, need: Need) -> tuple[Place, ...]:
    if need.stated is not None:
        return subject.field(need.stated)
    return subject.all_at([need.tensor or ""])


def _differs(
    subject: Subject, need: Need, statement: SwitchStatement, takes: object, honoured: Honoured
) -> Finding:
    """What the draft needs is not what the release does."""
    values = _values(subject, need, takes)
    fix = _written(subject, need, statement)
    if fix is None:
        values["honoured"] = honoured(need)
        values["reads"] = "" if statement.read else " never looks at it and"
    else:
        values["reads"] = " or ".join(statement.read)
    return Finding(
        "E3L504" if fix is not None else "E3L503",
        values,
        _where(subject, need),
        subject.cite(statement.source),
        fix,
        effect=need.switch.effect,
        severity=need.switch.severity,
    )


def _written(subject: Subject, need: Need, statement: SwitchStatement) -> Fix | None:
    """The value written where the release looks, if that makes it do what the draft needs."""
    load = subject.load
    if load is None or "transformer_layer_config" in subject.facts.config:
        return None
    if need.switch.like == "presence":
        return None  # what has to be written is a number that nothing here tells
    for path in statement.read:
        value = need.value
        if need.switch.like == "rope" and isinstance(value, Mapping):
            value = {k: v for k, v in value.items() if k != "rope_theta"}
        config = with_field(subject.resolution.config, path, value)
        if not need.switch.same(taken(statement, config, load.environment), need.value):
            continue
        after = subject.replayed(config)
        if after.error is not None or set(after.unfilled) - set(load.unfilled):
            continue
        edit = Edit.set_config("/" + path.replace(".", "/"), value)
        return Fix(f"set {path} to {need.switch.shown(need.value)}", "safe", (edit,))
    return None


def with_field(config: Mapping[str, object], path: str, value: object) -> dict[str, object]:
    """A configuration with a value at a dotted path; what is in the way is replaced."""
    head, _, rest = path.partition(".")
    inner = config.get(head)
    below = inner if isinstance(inner, Mapping) else {}
    return {**config, head: with_field(below, rest, value) if rest else value}


def _unlike(subject: Subject, need: Need, meant: Mapping[str, Any]) -> Finding:
    """The configuration says what the producer never trains with, and the release follows it."""
    certain = subject.producer.confidence == "certain"
    assert need.stated is not None
    value = meant["value"]
    edit = Edit.set_config(need.stated, value)
    heavy = certain or meant.get("when_likely") == "degraded"
    return Finding(
        "E3L505",
        {
            **_values(subject, need, need.value),
            "producer": subject.producer.name,
            "sure": "" if certain else ", as far as its marks can be trusted",
            "why": meant["why"],
            "meant": need.switch.shown(value),
        },
        _where(subject, need),
        meant["source"],
        Fix(
            f"set {need.switch.name} to {need.switch.shown(value)}",
            "safe" if certain else "unsafe",
            (edit,),
        ),
        effect="degraded" if heavy else "none",
        severity="warning" if heavy else "info",
    )
