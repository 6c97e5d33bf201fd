"""E3L5xx: switches of the forward pass that a runtime reads otherwise than they were meant."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from eagle3_lint.checks.subject import Subject
from eagle3_lint.diagnostic import Edit, Effect, Finding, Fix
from eagle3_lint.forward import scaling
from eagle3_lint.simulate.configure import fill

_POSITIONS = "max_position_embeddings"
#: Positions that a question and its answer do not fit in, with the roles of a chat around them.
_NO_EXCHANGE = 64


def check_switches(subject: Subject) -> Iterator[Finding]:
    """Findings about switches, of a draft that loads."""
    if subject.load is None or subject.load.error is not None:
        return
    yield from _context(subject)
    yield from _residual(subject)
    yield from _targets_rope(subject)


# -- positions -------------------------------------------------------------------------------------


def _context(subject: Subject) -> Iterator[Finding]:
    model = subject.model
    theirs = model.max_position_embeddings if model is not None else None
    statement = next(
        (s for s in subject.release.contexts if s.get("runner") in (None, subject.release.runner)),
        None,
    )
    if model is None or theirs is None or statement is None:
        return
    draft = positions(subject.resolution.config, statement)
    if draft is None or draft >= theirs:
        return
    values: dict[str, object] = {
        "target": str(subject.target),
        "model": model.name,
        "draft": draft,
        "theirs": theirs,
        "error": fill(statement.get("raises", ""), {"draft": draft, "theirs": theirs}),
    }
    nested = "transformer_layer_config" in subject.facts.config
    pointer = f"/transformer_layer_config/{_POSITIONS}" if nested else f"/{_POSITIONS}"
    fix = Fix(
        f"set {_POSITIONS} to the {theirs} of {model.name}: it has no weights",
        "safe",
        (Edit.set_config(pointer, theirs),),
    )
    does = statement["does"]
    yield Finding(
        "E3L501",
        values,
        subject.field(pointer),
        subject.cite(statement["source"]),
        fix if _plain_rope(subject.resolution.config) else None,
        variant={"refuses": "refused", "overruns": "overruns"}.get(does, "message"),
        # Whether it starts, or fails, depends on the lengths that are served, which no file tells.
        effect=_effect_of_length(does, draft),
        severity="error" if _effect_of_length(does, draft) == "broken" else None,
    )


def _effect_of_length(does: str, draft: int) -> Effect:
    if does != "stops-drafting":
        return "none"
    return "broken" if draft <= _NO_EXCHANGE else "degraded"


def positions(config: Mapping[str, Any], statement: Mapping[str, Any]) -> int | None:
    """The draft's length as the runtime derives it."""
    factor = 1.0
    scaling = config.get("rope_scaling") or config.get("rope_parameters")
    if statement.get("scaled") and isinstance(scaling, Mapping):
        given = scaling.get("factor", 1)
        whole = "original_max_position_embeddings" in scaling or (
            scaling.get("rope_type") == "llama3"
        )
        factor = 1.0 if whole or not isinstance(given, (int, float)) else float(given)
    for key in statement["keys"]:
        value = config.get(key)
        if type(value) is int:
            return int(factor * value)
    return statement.get("default")


def _plain_rope(config: Mapping[str, Any]) -> bool:
    """Whether the rotary embedding does not depend on the number of positions."""
    scaling = config.get("rope_scaling") or config.get("rope_parameters") or {}
    kind = scaling.get("rope_type", scaling.get("type")) if isinstance(scaling, Mapping) else None
    return kind in (None, "default", "llama3")


# -- norm_before_residual --------------------------------------------------------------------------


def _residual(subject: Subject) -> Iterator[Finding]:
    """A nested configuration without the switch: its own class takes it for false."""
    taken = subject.resolution.config.get("norm_before_residual")
    if not subject.resolution.speculators or "norm_before_residual" in subject.facts.config:
        return
    if taken is not True:
        return
    edit = Edit.set_config("/norm_before_residual", False)
    yield Finding(
        "E3L502",
        {"target": str(subject.target)},
        subject.field("/speculators_model_type"),
        None,
        Fix("write norm_before_residual: false, which is what its absence means", "safe", (edit,)),
    )


# -- the target model's rotary embedding -----------------------------------------------------------


def _targets_rope(subject: Subject) -> Iterator[Finding]:
    """A draft without scaling that claims positions for which its target model needs one."""
    model = subject.model
    theirs = scaling(model.rope) if model is not None else None
    ours = next((n for n in subject.needs if n.switch.like == "rope"), None)
    if model is None or theirs is None or ours is None or scaling(ours.value) is not None:
        return
    held = dict(theirs)
    original = held.get("original_max_position_embeddings")
    positions = subject.resolution.config.get(_POSITIONS)
    if not isinstance(original, float) or type(positions) is not int or positions <= original:
        return
    yield Finding(
        "E3L506",
        {
            "target": str(subject.target),
            "model": model.name,
            "kind": held["rope_type"],
            "original": int(original),
            "draft": positions,
        },
        subject.field("/rope_scaling", "/rope_parameters", f"/{_POSITIONS}"),
    )
