"""Would a draft load better if matrices that are stored as one stood alone?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from eagle3_lint.checks.spelling import badness, misfits
from eagle3_lint.checks.subject import Subject
from eagle3_lint.frozen import frozen
from eagle3_lint.fused import Fused, Part, parts_of
from eagle3_lint.simulate.result import Failure, Load

Parts = Mapping[str, tuple[Part, ...]]


@frozen
class Apart:
    """Fused tensors that a target does not read, each with its parts, which it does.

    Attributes:
        parts: tensor → its parts.
        failure: what the target raises because of them; None where that is not known, or it says
            nothing.
        source: what drops the first of them, or raises.
        load: the load with the parts in their places.
    """

    parts: Parts
    failure: Failure | None
    source: str
    load: Load


def taken_apart(subject: Subject, known: Sequence[Fused]) -> Apart | None:
    """The fused tensors that a target loses or refuses, where it loads their parts.

    A matrix is taken with its bias, and only if the load is better for it. The parts must fit where
    they go: shapes say that each is what its name says.
    """
    load = subject.load
    assert load is not None
    parts: dict[str, tuple[Part, ...]] = {}
    best = load
    for found in _candidates(subject, load, known):
        made = [p.name for whole in found.values() for p in whole]
        taken = {*subject.facts.tensors, *(p.name for whole in parts.values() for p in whole)}
        if len(set(made)) < len(made) or taken & set(made):
            continue
        alone = subject.played(parts={**parts, **found})
        if badness(alone) < badness(best) and misfits(alone) <= misfits(best):
            parts, best = {**parts, **found}, alone
    if not parts:
        return None
    failure = _because_of(parts, load, best)
    source = failure.source if failure is not None else None
    dropped = (load.dropped_by[name] for name in parts if name in load.dropped_by)
    return Apart(parts, failure, source or next(dropped), best)


def _candidates(subject: Subject, load: Load, known: Sequence[Fused]) -> Iterator[Parts]:
    """The fused tensors that are lost or refused, by module."""
    tensors = subject.facts.tensors
    refused = (f.tensor for f in load.failures if f.tensor is not None and f.about == "name")
    modules: dict[str, dict[str, tuple[Part, ...]]] = {}
    for name in (*load.dropped, *refused):
        found = parts_of(tensors[name], subject.resolution.config, known)
        if found is not None:
            modules.setdefault(name.rpartition(".")[0], {})[name] = found
    for module, held in modules.items():
        inside = [n for n in tensors if n.rpartition(".")[0] == module]
        # A scale beside them is one for the whole.
        if all(n.endswith((".weight", ".bias")) for n in inside):
            yield held


def _because_of(parts: Parts, before: Load, after: Load) -> Failure | None:
    """The failure that the parts mend; None when others look like it."""
    for failure in before.failures:
        if failure.tensor in parts:
            return failure
    return before.failures[0] if before.failures and not after.failures else None
