"""E3L2xx: what the loader does with the tensors. One cause gives one finding."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from eagle3_lint.checks.fused import Apart
from eagle3_lint.checks.mending import mend
from eagle3_lint.checks.near_miss import NearMiss, near_misses
from eagle3_lint.checks.spelling import Respelling, badness
from eagle3_lint.checks.subject import Subject
from eagle3_lint.checks.vocabulary_map import map_from_marks
from eagle3_lint.diagnostic import Edit, Effect, Finding, Fix
from eagle3_lint.dialect import is_nested
from eagle3_lint.facts import bare, layer_of
from eagle3_lint.simulate.result import Failure, Load

#: How many names a message spells out; the rest is in ``where`` and in the load itself.
_SHOWN = 4
#: A parameter that starts as one or zero leaves the draft running, only worse.
_MILD = ("ones", "zeros")


#: What biases do that nothing fills, by what they hold.
_OF_BIASES: Mapping[str, Effect] = {"garbage": "broken", "random": "degraded", "zeros": "none"}


def listing(names: Sequence[str]) -> str:
    """A few names in words."""
    shown = ", ".join(f"`{name}`" for name in names[:_SHOWN])
    rest = len(names) - _SHOWN
    return f"{shown} and {rest} more" if rest > 0 else shown


def together(names: Sequence[str]) -> str:
    """The same for names that belong together: ``a, b and c``."""
    if len(names) > _SHOWN or len(names) < 2:
        return listing(names)
    return f"{listing(names[:-1])} and `{names[-1]}`"


def plural(count: int, word: str) -> str:
    """``1 tensor``, ``2 tensors``."""
    return f"{count} {word}" if count == 1 else f"{count} {word}s"


def check_loading(
    subject: Subject, respelling: Respelling | None, apart: Apart | None
) -> Iterator[Finding]:
    """Findings about names, shapes and missing or surplus tensors.

    Args:
        subject: the draft before the target.
        respelling: names under which more of it would load, if there are such.
        apart: fused tensors whose parts would load, if there are such. One thing at a time: names
            come first.
    """
    load = subject.load
    if load is None or not load.parameters:
        return
    if respelling is not None:
        yield _misspelled(subject, load, respelling)
        # Names in what follows are the new ones; the places still need the old.
        names = {new: old for old, new in respelling.names.items()}
        yield from _rest(subject.with_load(respelling.load, respelling.names), names, ())
    elif apart is not None:
        yield _fused(subject, load, apart)
        names = {p.name: whole for whole, parts in apart.parts.items() for p in parts}
        yield from _rest(subject.with_load(apart.load, parts=apart.parts), names, ())
    else:
        misses = near_misses(subject) if load.outcome != "ok" else ()
        yield from _rest(subject, {}, misses)


def _effect_of_unfilled(load: Load) -> Effect:
    mild = all(load.parameters[name].initial in _MILD for name in load.unfilled)
    return "degraded" if mild else "broken"


def _misspelled(subject: Subject, load: Load, respelling: Respelling) -> Finding:
    gone = sorted(set(load.dropped) - set(respelling.load.dropped))
    refused = [f for f in load.failures if f.tensor is not None]
    empty = sorted(set(load.unfilled) - set(respelling.load.unfilled))
    concerned = gone or [f.tensor for f in refused if f.tensor] or list(respelling.names)
    old, new = respelling.beginnings()
    fix = Fix(
        title=f"rename {plural(len(respelling.names), 'tensor')}: `{old}` → `{new}`",
        applicability="safe",
        edits=tuple(Edit.rename(a, b) for a, b in respelling.names.items()),
    )
    values: dict[str, object] = {
        "count": plural(len(concerned), "tensor"),
        "old": old,
        "new": new,
        "target": str(subject.target),
        "unfilled_count": plural(len(empty), "parameter"),
        "unfilled": listing(empty),
        "tensors": listing(concerned),
    }
    if load.failures:
        first = load.failures[0]
        return Finding(
            "E3L205",
            {**values, "error": str(first)},
            subject.all_at(concerned),
            subject.cite(first.source),
            fix,
            variant="prefix",
        )
    source = next((load.dropped_by[name] for name in gone), None)
    return Finding(
        "E3L201",
        values,
        subject.all_at(concerned),
        subject.cite(source) if source else None,
        fix,
        variant="prefix" if empty else "surplus-prefix",
        effect=_effect_of_unfilled(load) if empty else "degraded",
    )


def _fused(subject: Subject, load: Load, apart: Apart) -> Finding:
    whole, parts = list(apart.parts), [p.name for made in apart.parts.values() for p in made]
    empty = sorted(set(load.unfilled) - set(apart.load.unfilled))
    edits = (Edit.split(n, [(p.name, p.rows) for p in made]) for n, made in apart.parts.items())
    return Finding(
        "E3L212",
        {
            "target": str(subject.target),
            "tensors": together(whole),
            "hold": "holds" if len(whole) == 1 else "hold",
            "parts": together(parts),
            "unfilled": together(empty),
            "error": str(apart.failure).rstrip("."),
        },
        subject.all_at(whole),
        subject.cite(apart.source),
        Fix(f"split {plural(len(whole), 'tensor')} into {len(parts)}", "safe", tuple(edits)),
        variant="refused" if apart.failure else "beside" if load.failures else "message",
        effect="refused" if load.failures else _effect_of_unfilled(load),
    )


def _rest(
    subject: Subject, old_name: dict[str, str], misses: Sequence[NearMiss]
) -> Iterator[Finding]:
    """What is wrong beside names and fused tensors.

    Args:
        misses: names that tensors were nearly given.
    """
    load = subject.load
    assert load is not None
    yield from _refused(subject, load, old_name, misses)
    yield from _missing(subject, load)
    yield from _surplus(subject, load, old_name, misses)
    yield from _altered(subject, load, old_name)


def _in_files(names: Iterable[str], old_name: Mapping[str, str]) -> list[str]:
    """Tensors by the names that they have in the files; parts of one are one."""
    return list(dict.fromkeys(old_name.get(name, name) for name in names))


def _better_names(names: Sequence[str], misses: Sequence[NearMiss]) -> Fix | None:
    """The fix that gives tensors the names they were meant to have."""
    meant = [miss for miss in misses if miss.tensor in names]
    if not meant:
        return None
    certain = all(miss.certain for miss in meant)
    return Fix(
        "rename " + ", ".join(f"`{m.tensor}` → `{m.name}`" for m in meant[:_SHOWN]),
        "safe" if certain else "unsafe",
        tuple(Edit.rename(m.tensor, m.name) for m in meant),
    )


def _numbered_norms(subject: Subject, load: Load) -> Fix | None:
    """The norms of aux states by number, where the names that they first had are not known."""
    numbers = {f"aux_norm_{name}.weight": i for i, name in enumerate(("low", "mid", "high"))}
    names = {
        old: f"{old.removesuffix(bare(old))}fc_norm.{numbers[bare(old)]}.weight"
        for old in subject.facts.tensors
        if bare(old) in numbers
    }
    if not names or badness(subject.played(names, {"fc_norm": True})) >= badness(load):
        return None
    edits = [Edit.rename(old, new) for old, new in names.items()]
    title = (
        "rename the norms of the aux states to `fc_norm.0` to `fc_norm.2`, and switch fc_norm on"
    )
    return Fix(title, "safe", (*edits, Edit.set_config("/fc_norm", True)))


def _refused(
    subject: Subject, load: Load, old_name: dict[str, str], misses: Sequence[NearMiss]
) -> Iterator[Finding]:
    """Tensors on which the runtime raises, grouped by what raises."""
    groups: dict[tuple[str, bool], list[Failure]] = {}
    for failure in load.failures:
        if failure.tensor is not None:
            groups.setdefault((failure.source, failure.about == "shape"), []).append(failure)
        elif failure.stage == "after loading":
            yield Finding(
                "E3L211",
                {
                    "target": str(subject.target),
                    "error": str(failure),
                    "because": failure.because,
                },
                subject.field(),
                subject.cite(failure.source),
                _missing_map(subject, load, failure),
                variant="because" if failure.because else "message",
            )
    together = _one_size(subject, groups, old_name)
    if together is not None:
        yield together
        groups = {key: failures for key, failures in groups.items() if not key[1]}
    for (source, is_shape), failures in groups.items():
        names = _in_files((f.tensor or "" for f in failures), old_name)
        values: dict[str, object] = {
            "count": plural(len(names), "tensor"),
            "tensors": listing(names),
            "target": str(subject.target),
            "error": str(failures[0]),
        }
        if is_shape:
            yield from _wrong_shape(subject, names, values, source)
        else:
            fix = _better_names(names, misses) or _numbered_norms(subject, load)
            yield Finding("E3L205", values, subject.all_at(names), subject.cite(source), fix)


def _missing_map(subject: Subject, load: Load, failure: Failure) -> Fix | None:
    """A d2t from what the draft has beside it, where the failure is that there is none."""
    head = load.parameters.get("lm_head.weight")
    if load.vocabulary_map is not None or head is None:
        return None
    rows = head.shape[0]
    fix = map_from_marks(subject, rows)
    if fix is None:
        return None
    name = str(dict(fix.edits[0].fields)["tensor"])
    return fix if failure not in subject.enriched({name: (rows,)}).failures else None


def _one_size(
    subject: Subject,
    groups: Mapping[tuple[str, bool], Sequence[Failure]],
    old_name: Mapping[str, str],
) -> Finding | None:
    """One finding for several tensors of wrong shape, when one field of config.json explains it."""
    failures = [f for (_, is_shape), group in groups.items() if is_shape for f in group]
    fix = mend(subject, "sizes") if len(failures) > 1 else None
    if fix is None:
        return None
    names = _in_files((f.tensor or "" for f in failures), old_name)
    values: dict[str, object] = {
        "target": str(subject.target),
        "count": plural(len(names), "tensor"),
        "tensors": listing(names),
        "error": str(failures[0]).rstrip("."),
    }
    places = (
        *subject.all_at(names),
        *subject.field(*(str(dict(e.fields)["pointer"]) for e in fix.edits)),
    )
    return Finding(
        "E3L204", values, places, subject.cite(failures[0].source), fix, variant="several"
    )


def _wrong_shape(
    subject: Subject, names: Sequence[str], values: dict[str, object], source: str
) -> Iterator[Finding]:
    assert subject.load is not None
    facts = subject.facts
    where = subject.all_at(names)
    for name in names:
        rows = facts.tensors[name].shape[0] if facts.tensors[name].shape else 0
        shown = {**values, "shape": list(facts.tensors[name].shape), "rows": rows, "tensor": name}
        stated = facts.stated.draft_vocab_size
        if name.endswith("lm_head.weight") and rows != stated:
            fix = Fix(
                f"set draft_vocab_size to the {rows} rows of the head",
                "safe",
                (Edit.set_config("/draft_vocab_size", rows),),
            )
            place = (*subject.all_at([name]), *subject.field("/draft_vocab_size"))
            values = {**shown, "stated": stated}
            yield Finding("E3L208", values, place, subject.cite(source), fix)
        elif name.endswith("fc.weight"):
            shown["expected"] = list(subject.load.parameters["model.fc.weight"].shape)
            place = (*where, *subject.field("/eagle_config", "/eagle_aux_hidden_state_layer_ids"))
            yield Finding(
                "E3L210", shown, place, subject.cite(source), mend(subject, "fc", "sizes")
            )
        else:
            at = subject.all_at([name])
            yield Finding("E3L204", shown, at, subject.cite(source), mend(subject, "sizes"))


def _missing(subject: Subject, load: Load) -> Iterator[Finding]:
    """Parameters that nothing fills: surplus layers, promised biases, and plain gaps."""
    found = set(subject.facts.layers)
    layers: list[str] = []
    biases: list[str] = []
    others: list[str] = []
    for name in load.unfilled:
        index = layer_of(name)
        if index is not None and found and index not in found:
            layers.append(name)
        elif name.endswith(".bias"):
            biases.append(name)
        else:
            others.append(name)
    target = str(subject.target)
    if layers:
        built = subject.facts.stated.num_hidden_layers
        nested = "/transformer_layer_config" if is_nested(subject.facts.config) else ""
        pointer = f"{nested}/num_hidden_layers"
        fix = Fix(
            f"set num_hidden_layers to the {len(found)} in the checkpoint",
            "safe",
            (Edit.set_config(pointer, len(found)),),
        )
        yield Finding(
            "E3L207",
            {
                "target": target,
                "stated": built,
                "found": plural(len(found), "layer"),
                "count": plural(len(layers), "parameter"),
            },
            subject.field("/num_hidden_layers", "/transformer_layer_config/num_hidden_layers"),
            subject.cite(load.parameters[layers[0]].source),
            fix,
        )
    if biases:
        held = {load.parameters[name].initial for name in biases}
        kind = "garbage" if "garbage" in held else "random" if "random" in held else "zeros"
        yield Finding(
            "E3L209",
            {"target": target, "parameters": listing(biases)},
            subject.field("/attention_bias", "/bias"),
            subject.cite(load.parameters[biases[0]].source),
            mend(subject, "bias"),
            variant={"garbage": "message", "random": "initial", "zeros": "zeros"}[kind],
            effect=_OF_BIASES[kind],
            severity="info" if kind == "zeros" else None,
        )
    # What raises for a parameter that is missing has said so.
    if others and not any(failure.because for failure in load.failures):
        mild = all(load.parameters[name].initial in _MILD for name in others)
        yield Finding(
            "E3L202",
            {
                "target": target,
                "count": plural(len(others), "parameter"),
                "parameters": listing(others),
                "initial": ", ".join(sorted({load.parameters[n].initial for n in others})),
            },
            (),
            subject.cite(load.parameters[others[0]].source),
            mend(subject, "quantisation", "head", "layers"),
            effect="degraded" if mild else "broken",
        )


def _loses_head(subject: Subject, names: Sequence[str]) -> bool:
    """Whether a head of fewer tokens is lost: what stands in for it has rows of other tokens."""
    facts = subject.facts
    reduced = facts.shown.draft_vocab_size != (facts.shown.vocab_size or facts.stated.vocab_size)
    return reduced and any(name.endswith("lm_head.weight") for name in names)


#: Endings of tensors that take part in a draft's forward pass in some runtime; losing one costs
#: acceptance. What ends otherwise is a left-over of training.
_WEIGHTS = (
    "_proj.weight", "_proj.bias", "norm.weight", "fc.weight", "fc.bias", "lm_head.weight",
    "embed_tokens.weight", "mask_hidden", "_scale", "aux_norm_low.weight", "aux_norm_mid.weight",
    "aux_norm_high.weight",
)  # fmt: skip
_LEFT_OVERS = ("verifier_",)


def _surplus(
    subject: Subject, load: Load, old_name: dict[str, str], misses: Sequence[NearMiss]
) -> Iterator[Finding]:
    weights: dict[str, list[str]] = {}
    left_overs: list[str] = []
    for name in load.dropped:
        is_weight = name.endswith(_WEIGHTS) or ".fc_norm." in f".{name}"
        if is_weight and not name.startswith(_LEFT_OVERS):
            weights.setdefault(load.dropped_by[name], []).append(name)
        else:
            left_overs.append(name)
    for source, lost in weights.items():
        names = _in_files(lost, old_name)
        yield Finding(
            "E3L201",
            {
                "target": str(subject.target),
                "count": plural(len(names), "tensor"),
                "tensors": listing(names),
            },
            subject.all_at(names),
            subject.cite(source),
            _better_names(names, misses) or mend(subject, "bias", "tied", lost=lost),
            effect="broken" if _loses_head(subject, names) else "degraded",
        )
    if left_overs:
        left_overs = _in_files(left_overs, old_name)
        yield Finding(
            "E3L206",
            {
                "target": str(subject.target),
                "count": plural(len(left_overs), "tensor"),
                "tensors": listing(left_overs),
            },
            subject.all_at(left_overs),
            fix=_better_names(left_overs, misses),
        )


def _altered(subject: Subject, load: Load, old_name: dict[str, str]) -> Iterator[Finding]:
    for how in ("cut", "pad"):
        changed = [a for a in load.altered if a.how == how]
        if not changed:
            continue
        names = _in_files((a.tensor for a in changed), old_name)
        first = changed[0]
        yield Finding(
            "E3L203",
            {
                "target": str(subject.target),
                "count": plural(len(names), "tensor"),
                "tensors": listing(names),
                "loaded": list(first.loaded),
                "expected": list(first.expected),
                "parameter": first.parameter,
            },
            subject.all_at(names),
            subject.cite(first.source),
            mend(subject, "sizes", "fc"),
            variant="message" if how == "cut" else "padded",
        )
