"""E3L306 to E3L311: how the ids of the aux hidden states are written, before what they mean."""

from __future__ import annotations

from collections.abc import Iterator

from eagle3_lint.checks.aux import listed
from eagle3_lint.checks.subject import Subject
from eagle3_lint.contract.model import Raise
from eagle3_lint.diagnostic import Edit, Finding, Fix
from eagle3_lint.simulate.configure import look_up
from eagle3_lint.trained import NESTED, TOP, UNREAD, ids_at

_SWITCH = "use_aux_hidden_state"
_ABSENT = object()


def check_aux_ids(subject: Subject) -> Iterator[Finding]:
    """Findings about ids as they are written. None before a target that does not serve at all."""
    if subject.resolution.failure is not None or subject.load is None:
        return
    yield from _malformed(subject)
    yield from _unread(subject)
    yield from _two_places(subject)
    yield from _switched_off(subject)
    yield from _no_room(subject)
    yield from _narrow_buffer(subject)
    yield from _without_fc(subject)
    yield from _skipped(subject)
    yield from _linear(subject)


def _pointer(path: str) -> str:
    return "/" + path.replace(".", "/")


def _malformed(subject: Subject) -> Iterator[Finding]:
    """Ids that a target reads and cannot capture one state each of."""
    if not subject.fed.enabled:
        return  # nothing is captured, and nobody looks at them
    statement = subject.release.aux
    for path in statement["read"]:
        value = look_up(subject.resolution.config, path, _ABSENT)
        if value is _ABSENT or value is None:
            continue
        what = _what_is_wrong(value)
        if value == [] and "empty" not in statement:
            return  # taken for no ids at all
        if what is None:
            return
        error = Raise.parse(statement["empty"]) if value == [] else None
        yield Finding(
            "E3L308",
            {
                "target": str(subject.target),
                "path": path,
                "what": what,
                "then": f"{error.type}: {error.message}"
                if error is not None
                else "fewer states are captured than fc has columns for, or none",
            },
            subject.field(_pointer(path)),
            subject.cite(statement["source"]),
            Fix(f"remove {path}: an empty list", "safe", (Edit.remove_config(_pointer(path)),))
            if value == []
            else None,
        )
        return


def _what_is_wrong(value: object) -> str | None:
    if not isinstance(value, list):
        return f"no list of layer ids but {value!r:.40}"
    if not value:
        return "an empty list"
    if not all(isinstance(i, (int, float)) and i == int(i) for i in value):
        return "a list of something else than integers"
    if min(value) < 0:
        return f"a list with the negative id {min(value)}"
    twice = sorted({i for i in value if value.count(i) > 1})
    return f"a list that has {listed(tuple(twice))} more than once" if twice else None


def _unread(subject: Subject) -> Iterator[Finding]:
    """Fields that look like ids or like the switch, where no runtime looks."""
    config = subject.facts.config
    for path in UNREAD:
        ids = ids_at(config, path)
        differs = subject.fed.states not in (ids, tuple(i + 1 for i in ids))
        # Without other ids these are the draft's own, and E3L301 says what it comes to.
        if ids and (path != subject.trained.path or not differs):
            yield Finding(
                "E3L306",
                {"target": str(subject.target), "path": path, "ids": listed(ids)},
                subject.field(_pointer(path)),
            )
    if config.get(_SWITCH) is False and subject.fed.enabled:
        yield Finding(
            "E3L306",
            {"target": str(subject.target), "path": _SWITCH},
            subject.field(_pointer(_SWITCH)),
            variant="switch",
            severity="warning",
        )


def _two_places(subject: Subject) -> Iterator[Finding]:
    """Ids at the top level and nested, each in the convention of those who read it there."""
    config, fed = subject.facts.config, subject.fed
    top, nested = ids_at(config, TOP), ids_at(config, NESTED)
    if not top or not nested:
        return
    # Whoever reads nested ids as outputs has its own policy; this target's, if it is one.
    states = fed.states if fed.read_from == "nested" else tuple(sorted(i + 1 for i in nested))
    if states == tuple(sorted(top)) or (fed.read_from == "top" and top == nested):
        return
    yield Finding(
        "E3L307",
        {
            "target": str(subject.target),
            "top": listed(top),
            "nested": listed(nested),
            "states": listed(states or ()),
        },
        (*subject.field(_pointer(TOP)), *subject.field(_pointer(NESTED))),
    )


def _switched_off(subject: Subject) -> Iterator[Finding]:
    """A draft with an fc for several states that says it takes none."""
    fc_in, width = subject.facts.shown.fc_in, subject.known.get("target_hidden")
    if subject.fed.enabled or fc_in is None or not isinstance(width, int) or width <= 0:
        return
    blocks = fc_in // width
    if fc_in % width or blocks < 2:
        return
    switch = subject.release.aux["switch"]
    # A class that has the fc all the same applies it, unless the width of what comes in says no.
    has_fc = subject.load is not None and any(
        p.role == "aux.fc" for p in subject.load.parameters.values()
    )
    applied = has_fc and "fc_skipped" not in subject.release.aux
    yield Finding(
        "E3L310",
        {"target": str(subject.target), "path": switch, "columns": fc_in, "blocks": blocks},
        subject.field(_pointer(switch)),
        subject.cite(subject.release.aux["source"]),
        Fix(f"set {switch} to true", "safe", (Edit.set_config(_pointer(switch), True),)),
        variant="applied" if applied else "message",
        effect="refused" if applied else None,
    )


def _no_room(subject: Subject) -> Iterator[Finding]:
    """More or fewer states than the buffers on the way have room for."""
    room = subject.release.aux.get("buffer_states")
    fc_in, width = subject.facts.shown.fc_in, subject.known.get("target_hidden")
    if room is None or fc_in is None or not isinstance(width, int) or width <= 0:
        return
    if subject.load is None or subject.load.error is not None or fc_in % width:
        return
    if subject.fed.enabled and fc_in // width != room:
        yield Finding(
            "E3L312",
            {"target": str(subject.target), "room": room, "blocks": fc_in // width},
            subject.field("/num_aux_hidden_states", "/eagle_config"),
            subject.cite(subject.release.aux["source"]),
        )


def _narrow_buffer(subject: Subject) -> Iterator[Finding]:
    """States of the target model's width in buffers of the draft's."""
    trait = subject.release.traits.get("buffer_of_draft_width")
    width, hidden = subject.known.get("target_hidden"), subject.facts.stated.hidden_size
    if trait is None or hidden is None or not isinstance(width, int) or width == hidden:
        return
    if subject.load is not None and subject.load.error is None:
        yield Finding(
            "E3L312",
            {"target": str(subject.target), "width": width, "hidden": hidden},
            subject.field("/target_hidden_size", "/hidden_size"),
            subject.cite(trait["source"]),
            variant="width",
        )


def _without_fc(subject: Subject) -> Iterator[Finding]:
    """A draft class without an fc, and a model runner that captures several states all the same."""
    load, states = subject.load, subject.fed.states
    if load is None or load.error is not None or not subject.fed.enabled:
        return
    off = subject.resolution.config.get("eagle_config")
    if not isinstance(off, dict) or off.get(_SWITCH) is not False:
        return
    if any(p.role == "aux.fc" for p in load.parameters.values()):
        return
    yield Finding(
        "E3L310",
        {
            "target": str(subject.target),
            "path": f"eagle_config.{_SWITCH}",
            "count": len(states) if states else "several",
            "runner": subject.release.runner,
        },
        subject.field(f"/eagle_config/{_SWITCH}"),
        subject.cite(subject.release.aux["source"]),
        variant="captured",
        effect="refused",
    )


def _skipped(subject: Subject) -> Iterator[Finding]:
    """States that are together as wide as the draft: the fc is taken for done."""
    source = subject.release.aux.get("fc_skipped")
    width, hidden = subject.known.get("target_hidden"), subject.facts.stated.hidden_size
    states = subject.fed.states
    if source is None or states is None or not isinstance(width, int) or hidden is None:
        return
    if subject.fed.enabled and subject.facts.shown.fc_in and len(states) * width == hidden:
        yield Finding(
            "E3L309",
            {
                "target": str(subject.target),
                "count": len(states),
                "width": width,
                "hidden": hidden,
            },
            subject.field("/hidden_size"),
            subject.cite(source),
        )


def _linear(subject: Subject) -> Iterator[Finding]:
    """States after layers of a hybrid target model that do not attend."""
    model = subject.model
    if model is None or model.attention_layers is None or not subject.fed.ids:
        return
    states = subject.fed.states or ()
    after = tuple(s for s in states if s > 0 and s - 1 not in model.attention_layers)
    if not after:
        return
    yield Finding(
        "E3L311",
        {
            "target": str(subject.target),
            "model": model.name,
            "states": listed(after),
            "layers": listed(tuple(s - 1 for s in after)),
        },
        subject.field(_pointer(subject.trained.path) if subject.trained.path else "/eagle_config"),
    )
