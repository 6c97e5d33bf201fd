"""What a runtime's sources change in the contract of their release, as far as a check needs it."""

from __future__ import annotations

from pathlib import Path

from eagle3_lint.contract.runtime import known_runtimes
from eagle3_lint.frozen import frozen
from eagle3_lint.probe.compare import Difference, Prober
from eagle3_lint.probe.origin import find_origin
from eagle3_lint.probe.reading import Reading
from eagle3_lint.releases import Target


@frozen
class Patch:
    """Sources beside the contract of their release.

    Attributes:
        target_model: what the sources say of the target model; None when they do not register it,
            or none was named.
        differences: what else they do differently, about the draft and its ids.
    """

    target_model: Reading | None
    differences: tuple[Difference, ...]


def read_patch(target: Target, architecture: str | None, rules: Path | None = None) -> Patch:
    """Read the sources of a target.

    Args:
        architecture: of the target model, if it is known.

    Raises:
        InputError: they cannot be read.
    """
    assert target.sources is not None
    origin = find_origin(target.sources, known_runtimes(rules), target.runtime)
    prober = Prober(origin, target.release, rules)
    found = prober.targets(only=architecture) if architecture is not None else {}
    return Patch(found.get(architecture or ""), tuple(prober.drafts_and_ids()))
