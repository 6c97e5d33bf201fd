"""What the engine measured and what eagle3-lint says, in the same four words.

serves: within 2 % of the acceptance length of the good draft. broken: at most 1.1, where 1 is no
accepted token at all. degraded: between the two. refused: the engine raises, while loading or at
the first batch.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import eagle3_lint
from tests.engine.variants import TARGET_MODEL, VARIANTS, Expectation, Variant

RELEASE: Final = "0.32.0"
"""The vLLM release that is served with."""
RUNNER: Final = "v1"
"""Its model runner on a CPU; a plain start on a GPU takes the other one."""
SERVES_FROM: Final = 0.98
BROKEN_UP_TO: Final = 1.1

_GOOD: Final = {v.base: v.name for v in VARIANTS if v.name in ("good", "alt-good")}


@dataclass(frozen=True)
class EngineError:
    """What the engine raised; ``stage`` is load or generate, None for a hang or a death."""

    type: str
    message: str
    stage: str | None


@dataclass(frozen=True)
class Measurement:
    """One draft on the engine; fields as in ``serve.py``, figures None after an error."""

    draft: str
    sha256: str
    acceptance_length: float | None = None
    accepted_per_position: tuple[float, ...] = ()
    drafts: int | None = None
    same_as_target: bool | None = None
    error: EngineError | None = None


@dataclass(frozen=True)
class Run:
    """All measurements of one run by draft, and its versions and settings."""

    about: Mapping[str, Any]
    measurements: Mapping[str, Measurement]

    def of(self, variant: Variant) -> Measurement:
        return self.measurements[variant.name]

    def good_length(self, variant: Variant) -> float:
        """The acceptance length of the good draft that the variant was made from."""
        good = self.measurements[_GOOD[variant.base]]
        if good.acceptance_length is None:
            raise ValueError(f"{good.draft} does not run: {good.error}")
        return good.acceptance_length


def _measurement(record: Mapping[str, Any]) -> Measurement:
    error = record["error"]
    return Measurement(
        draft=record["draft"],
        sha256=record["sha256"],
        acceptance_length=record.get("acceptance_length"),
        accepted_per_position=tuple(record.get("accepted_per_position") or ()),
        drafts=record.get("drafts"),
        same_as_target=record.get("same_as_target"),
        error=EngineError(**error) if error is not None else None,
    )


def read_run(results: Path) -> Run:
    """The run that ``serve.py`` wrote to ``results``."""
    about, *records = map(json.loads, results.read_text(encoding="utf-8").splitlines())
    measurements = map(_measurement, records)
    return Run(about, {m.draft: m for m in measurements})


def measured_verdict(run: Run, variant: Variant) -> str:
    """The verdict that the measurement gives."""
    measured = run.of(variant)
    if measured.error is not None:
        return "refused"
    assert measured.acceptance_length is not None
    if measured.acceptance_length <= BROKEN_UP_TO:
        return "broken"
    good = run.good_length(variant)
    return "serves" if measured.acceptance_length >= SERVES_FROM * good else "degraded"


#: Verdicts that fit an expectation, and the stage in which the engine raises.
_FITTING: Final[Mapping[Expectation, tuple[set[str], str | None]]] = {
    Expectation.EQUAL: ({"serves"}, None),
    Expectation.LOWER: ({"degraded"}, None),
    Expectation.NEAR_ONE: ({"broken"}, None),
    Expectation.LESS_BY_CHANCE: ({"degraded", "broken"}, None),
    Expectation.REFUSED: ({"refused"}, "load"),
    Expectation.DIES: ({"refused"}, "generate"),
}


def is_as_expected(run: Run, variant: Variant) -> bool:
    """Whether the engine does what the table of variants says."""
    verdicts, stage = _FITTING[variant.expectation]
    error = run.of(variant).error
    return measured_verdict(run, variant) in verdicts and (error.stage if error else None) == stage


def our_verdict(variant: Variant, folder: Path) -> str:
    """What eagle3-lint says of the variant in ``folder``, told what the draft was trained on."""
    report = eagle3_lint.check(
        folder,
        targets=[f"vllm=={RELEASE}"],
        target_model=str(TARGET_MODEL),
        trained_on=variant.make().trained_on,
        runner=RUNNER,
    )
    return str(report.checkpoints[0].results[0].verdict)


def agrees(run: Run, variant: Variant, verdict: str) -> bool:
    """Whether our ``verdict`` is what was measured.

    A parameter that is never written holds whatever the memory held, so that one measurement does
    not tell degraded from broken: then both are right.
    """
    if variant.expectation is Expectation.LESS_BY_CHANCE:
        return is_as_expected(run, variant) and verdict in _FITTING[variant.expectation][0]
    return verdict == measured_verdict(run, variant)
