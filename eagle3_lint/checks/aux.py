"""E3L3xx: the aux hidden states that the target feeds, and those that the draft was trained on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from eagle3_lint.checks.subject import Subject
from eagle3_lint.diagnostic import Edit, Finding, Fix
from eagle3_lint.facts import bare
from eagle3_lint.simulate.aux_states import aux_states
from eagle3_lint.trained import NESTED, TOP, Ids, ids_at

#: Numbers without a scale of their own, whose columns can be moved.
_WHOLE = ("BF16", "F16", "F32", "F64")


def check_aux(subject: Subject) -> Iterator[Finding]:
    """Findings about layer ids. None before a target that does not serve the draft at all."""
    if subject.resolution.failure is not None or subject.load is None or not subject.fed.enabled:
        return
    yield from _out_of_range(subject)
    yield from _differ(subject)
    yield from _ambiguous(subject)
    yield from _in_graphs(subject)


def listed(states: Ids) -> str:
    """Numbers as a list in words: ``2, 30, 58``."""
    return ", ".join(map(str, states))


def _where(subject: Subject) -> str:
    path = subject.trained.path
    return "/" + path.replace(".", "/") if path else "/eagle_config"


def _values(subject: Subject) -> dict[str, object]:
    fed, trained = subject.fed, subject.trained
    return {
        "target": str(subject.target),
        "ids": listed(trained.ids) if trained.ids else "none",
        "fed": listed(fed.states or ()),
        "trained": listed(trained.states or ()),
        "option": subject.release.aux.get("option", ""),
        "option_ids": listed(tuple(s - 1 for s in trained.states or ())),
        "read": {
            "nested": f"it reads its ids {listed(fed.ids)} in eagle_config",
            "top": f"it reads its ids {listed(fed.ids)} at top level",
            "default": "it finds no ids and takes its default",
        }[fed.read_from],
    }


def _out_of_range(subject: Subject) -> Iterator[Finding]:
    """Ids of states that the target model does not have: fewer are captured than fc takes."""
    layers, model = subject.layers, subject.model
    if model is None or layers is None or subject.fed.states is None:
        return
    can = subject.release.last_state
    last = layers if can is None or model.architecture in can else layers - 1
    beyond = tuple(s for s in subject.fed.states if not 0 <= s <= last)
    if beyond:
        yield Finding(
            "E3L305",
            {**_values(subject), "beyond": listed(beyond), "layers": layers, "last": last},
            subject.field(_where(subject)),
            subject.cite(subject.release.aux["source"]),
        )


def _differ(subject: Subject) -> Iterator[Finding]:
    fed, trained = subject.fed.states, subject.trained.states
    if fed is None or trained is None or fed == trained:
        return
    source = subject.cite(subject.release.aux["source"])
    where = subject.field(_where(subject))
    if set(fed) == set(trained):
        yield Finding("E3L302", _values(subject), where, source, _in_order(subject, trained))
        return
    if not subject.fed.ids and not subject.trained.ids and subject.trained.basis == "default":
        # Neither says anything, and this target model is counted otherwise than others.
        yield Finding(
            "E3L301",
            _values(subject),
            where,
            source,
            variant="default",
            effect="none",
            severity="warning",
        )
        return
    variant = "message" if subject.fed.ids or not subject.trained.ids else "unread"
    if not subject.trained.sure:
        variant = "producer"
    # An option names layers by their outputs, so that the embedding (state 0) cannot be asked for.
    if subject.release.aux.get("option") and min(trained) > 0:
        variant = "option" if subject.trained.sure else "option-producer"
    yield Finding(
        "E3L301", _values(subject), where, source, _spelled(subject, trained), variant=variant
    )


def _in_order(subject: Subject, trained: Ids) -> Fix | None:
    """The column blocks of fc in the order of the layers, and the ids with them."""
    names = [n for n in subject.facts.tensors if bare(n) == "fc.weight"]
    fc = subject.facts.tensors[names[0]] if len(names) == 1 else None
    if fc is None or fc.dtype not in _WHOLE or len(fc.shape) != 2 or fc.shape[1] % len(trained):
        return None
    order = sorted(range(len(trained)), key=lambda i: trained[i])
    edits = [Edit.sort_fc(fc.name, order)]
    for path in (NESTED, TOP):
        ids = ids_at(subject.facts.config, path)
        if len(ids) == len(trained):
            pointer = "/" + path.replace(".", "/")
            edits.append(Edit.set_config(pointer, [ids[i] for i in order]))
    title = (
        f"sort the column blocks of fc, and the ids with them, to {listed(tuple(sorted(trained)))}"
    )
    return Fix(title, "safe", tuple(edits))


def _spelled(subject: Subject, states: Ids) -> Fix | None:
    """The ids with which the target feeds these states, written where it looks first."""
    paths = subject.release.aux["read"]
    if not paths or states != tuple(sorted(set(states))):
        return None
    # Where a target reads several places, the first is read before what stands elsewhere.
    path: str = paths[0]
    for ids in (states, tuple(s - 1 for s in states)):
        if min(ids, default=0) < 0:
            continue
        config = _with(subject.resolution.config, path, list(ids))
        if _fed(subject, config) == states:
            pointer = "/" + path.replace(".", "/")
            edits = (Edit.set_config(pointer, list(ids)),)
            title = f"set {path} to {listed(ids)}, by which {subject.target} means {listed(states)}"
            return Fix(title, "safe" if subject.trained.sure else "unsafe", edits)
    return None


def _fed(subject: Subject, config: Mapping[str, object]) -> Ids | None:
    """What the target would feed with another configuration."""
    return aux_states(subject.release.aux, subject.policy, config, subject.layers).states


def _with(config: object, path: str, ids: list[int]) -> dict[str, object]:
    """A configuration with ids at a path; what is in the way is replaced."""
    head, _, rest = path.partition(".")
    held = dict(config) if isinstance(config, dict) else {}
    held[head] = _with(held.get(head), rest, ids) if rest else ids
    return held


def _ambiguous(subject: Subject) -> Iterator[Finding]:
    trained = subject.trained
    if trained.basis != "ambiguous" or trained.states is not None:
        return
    yield Finding(
        "E3L303",
        {
            **_values(subject),
            "as_output": listed(tuple(i + 1 for i in trained.ids)),
            "as_input": listed(trained.ids),
        },
        subject.field(_where(subject)),
        subject.cite(subject.release.aux["source"]),
        variant="message" if subject.fed.states is not None else "layers-unknown",
    )


def _in_graphs(subject: Subject) -> Iterator[Finding]:
    """CUDA graphs that were captured with the default layers feed those, whatever the ids are."""
    if not subject.release.aux.get("graphs_use_default") or subject.fed.states is None:
        return
    default = _fed(subject, {})
    trained = subject.trained.states
    if default is None or trained is None or default == trained or default == subject.fed.states:
        return
    yield Finding(
        "E3L304",
        {**_values(subject), "default": listed(default)},
        subject.field(_where(subject)),
        subject.cite(subject.release.aux["source"]),
    )
