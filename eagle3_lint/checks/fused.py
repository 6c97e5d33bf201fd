"""Would a draft load better if matrices that are stored as one stood alone?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from eagle3_lint.checks.spelling import badness, misfits
from eagle3_lint.checks.subject import Subject
from eagle3_lint.frozen import frozen
from eagle3_lint.fused import Fused, Part, parts_of
from eagle3_lint.simulate.result import Failure, Load


@frozen
class Apart:
    """Fused tensors that a target does not read, each with its parts, which it does.

    Attributes:
        parts: tensor → its parts.
        failure: what the target raises because of them; None where it says nothing.
        source: what drops the first of them, or raises.
        load: the load with the parts in their places.
    """

    parts: Mapping[str, tuple[Part, ...]]
    failure: Failure | None
    source: str
    load: Load


def taken_apart(subject: Subject, known: Sequence[Fused]) -> Apart | None:
    """The fused tensors that a target loses or refuses, where it loads their parts.

    The parts must fit where they go: shapes say that each is what its name says.
    """
    load = subject.load
    assert load is not None
    refused = (f.tensor for f in load.failures if f.tensor is not None and f.about == "name")
    parts: dict[str, tuple[Part, ...]] = {}
    for name in (*load.dropped, *refused):
        found = parts_of(subject.facts.tensors[name], subject.resolution.config, known)
        if found is not None and not any(p.name in subject.facts.tensors for p in found):
            parts[name] = found
    if not parts:
        return None
    alone = subject.played(parts=parts)
    if badness(alone) >= badness(load) or misfits(alone) > misfits(load):
        return None
    failure = next((f for f in load.failures if f not in alone.failures), None)
    source = failure.source if failure is not None else load.dropped_by[next(iter(parts))]
    return Apart(parts, failure, source, alone)
