"""What one published draft is to the tests: its configuration, and what releases do with it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Literal

from eagle3_lint.frozen import frozen
from tests.unit.published.layouts import Config, Layout


@frozen
class Case:
    """One release, and what it does with the draft by its own sources.

    Attributes:
        target: runtime and release.
        why: why this release is asked.
        verdict: None for a release that serves it: no error, and a verdict of serves, or of
            degraded by a warning.
        errors: rule → what in the sources makes it so; exactly these errors are expected.
        missed: what is known to go wrong there and is not said; the test fails once it is.
        says: rules that speak beside errors, as warnings or for information.
    """

    target: str
    why: str
    verdict: Literal["unknown", "degraded", "broken", "refused"] | None = None
    errors: Mapping[str, str] = field(default_factory=dict)
    missed: str = ""
    says: tuple[str, ...] = ()


def fails(
    target: str, why: str, verdict: Literal["degraded", "broken", "refused"], **errors: str
) -> Case:
    """A release in which the draft is known to fail."""
    return Case(target, why, verdict, errors)


@frozen
class Published:
    """One published draft, or a trainer's template for drafts.

    Attributes:
        name: repository, or the template's place.
        source: card, thread or file that the fields come from.
        model: the target model by its known name, its own configuration, or None: not named.
        assumed: what nobody published and was filled in, and from where.
        files: other files that lie beside the weights.
    """

    name: str
    source: str
    model: str | Config | None
    config: Config
    layout: Layout
    cases: tuple[Case, ...]
    assumed: str = ""
    files: tuple[str, ...] = ()


@frozen
class NoDraft:
    """A published EAGLE head that is none of EAGLE-3's: tensors and the configuration."""

    name: str
    source: str
    config: Config
    shapes: Mapping[str, tuple[int, ...]]
