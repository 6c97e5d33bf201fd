"""The report: frozen objects with the fields of the JSON format ``eagle3-lint/report/1``."""

from __future__ import annotations

from collections import Counter
from typing import Literal

from eagle3_lint.diagnostic import SEVERITIES, Diagnostic, Severity
from eagle3_lint.frozen import frozen
from eagle3_lint.version import __version__

SCHEMA = "eagle3-lint/report/1"
Verdict = Literal["serves", "degraded", "broken", "refused", "unknown"]
#: From best to worst, for sorting and for "the worst of these".
VERDICTS: tuple[Verdict, ...] = ("serves", "unknown", "degraded", "broken", "refused")


@frozen
class TargetReport:
    """What was checked against.

    Attributes:
        model: the target model's name, if one is known.
        sources: where the runtime's sources are, when the target was given as sources; the
            runtime's own name for the installed package.
    """

    runtime: str
    release: str
    model: str | None
    sources: str | None = None

    def __str__(self) -> str:
        where = "installed" if self.sources == self.runtime else self.sources
        sources = f" ({where})" if where is not None else ""
        model = f" serving {self.model}" if self.model is not None else ""
        return f"{self.runtime} {self.release}{sources}{model}"

    def to_json(self) -> dict[str, object]:
        named = {"runtime": self.runtime, "release": self.release, "model": self.model}
        return {**named, "sources": self.sources} if self.sources is not None else {**named}


@frozen
class ErrorReport:
    """The exception that stops the runtime."""

    type: str
    message: str

    def to_json(self) -> dict[str, object]:
        return {"type": self.type, "message": self.message}


@frozen
class LoadReport:
    """What the loader does; names as the runtime (unfilled) or the checkpoint has them, sorted."""

    outcome: Literal["ok", "silent", "error"]
    draft_class: str | None
    unfilled: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    altered: tuple[str, ...] = ()
    error: ErrorReport | None = None

    def to_json(self) -> dict[str, object]:
        return {
            "outcome": self.outcome,
            "draft_class": self.draft_class,
            "unfilled": list(self.unfilled),
            "dropped": list(self.dropped),
            "altered": list(self.altered),
            "error": self.error.to_json() if self.error is not None else None,
        }


@frozen
class AuxReport:
    """Aux states the runtime feeds, and those the draft was trained on, as far as known."""

    ids: tuple[int, ...]
    read_from: Literal["nested", "top", "default"]
    states: tuple[int, ...] | None
    trained_on: tuple[int, ...] | None
    basis: Literal["user", "producer", "default", "ambiguous"]

    def to_json(self) -> dict[str, object]:
        return {
            "ids": list(self.ids),
            "read_from": self.read_from,
            "states": None if self.states is None else list(self.states),
            "trained_on": None if self.trained_on is None else list(self.trained_on),
            "basis": self.basis,
        }


@frozen
class Result:
    """One draft before one target.

    Attributes:
        loads_in: spans of the runtime's known releases that load the draft whole, as it is; worked
            out only when this release does not.
    """

    target: TargetReport
    verdict: Verdict
    load: LoadReport | None
    aux: AuxReport | None
    diagnostics: tuple[Diagnostic, ...]
    loads_in: tuple[str, ...] = ()

    def to_json(self) -> dict[str, object]:
        return {
            "target": self.target.to_json(),
            "verdict": self.verdict,
            "load": self.load.to_json() if self.load is not None else None,
            "aux": self.aux.to_json() if self.aux is not None else None,
            "loads_in": list(self.loads_in),
            "diagnostics": [d.to_json() for d in self.diagnostics],
        }


@frozen
class ProducerReport:
    """Who wrote the draft, and how sure that is."""

    name: str
    version: str | None
    confidence: Literal["certain", "likely", "unknown"]

    def to_json(self) -> dict[str, object]:
        return {"name": self.name, "version": self.version, "confidence": self.confidence}


@frozen
class CheckpointReport:
    """One draft before every target asked for.

    Attributes:
        error: why nothing is known of it, where many were checked and this one cannot be read:
            what, where and what to do, in one line. There are no results then.
    """

    path: str
    producer: ProducerReport
    dialect: str
    results: tuple[Result, ...]
    error: str | None = None

    def to_json(self) -> dict[str, object]:
        return {
            "path": self.path,
            "producer": self.producer.to_json(),
            "dialect": self.dialect,
            **({"error": self.error} if self.error is not None else {}),
            "results": [r.to_json() for r in self.results],
        }


@frozen
class Summary:
    """Findings counted once per checkpoint, rule, place and target.

    Attributes:
        unreadable: checkpoints that nothing is known of.
    """

    errors: int
    warnings: int
    fixable: int
    unreadable: int = 0

    def to_json(self) -> dict[str, object]:
        found = {"errors": self.errors, "warnings": self.warnings, "fixable": self.fixable}
        return {**found, "unreadable": self.unreadable} if self.unreadable else {**found}


@frozen
class Report:
    """Everything that was checked. Picklable; ``to_json`` gives the stable JSON form."""

    checkpoints: tuple[CheckpointReport, ...]

    def diagnostics(self) -> list[Diagnostic]:
        """All findings of all targets."""
        return [d for c in self.checkpoints for r in c.results for d in r.diagnostics]

    @property
    def summary(self) -> Summary:
        count: Counter[str] = Counter(d.severity for d in self.diagnostics())
        fixable = sum(
            d.fix is not None and d.fix.applicability == "safe" for d in self.diagnostics()
        )
        unreadable = sum(c.error is not None for c in self.checkpoints)
        return Summary(count["error"], count["warning"], fixable, unreadable)

    def fails(self, fail_on: Literal["error", "warning", "never"]) -> bool:
        """Whether a finding is at or above ``fail_on``."""
        if fail_on == "never":
            return False
        least = SEVERITIES.index(fail_on)
        return any(SEVERITIES.index(d.severity) >= least for d in self.diagnostics())

    def to_json(self) -> dict[str, object]:
        return {
            "schema": SCHEMA,
            "tool": {"version": __version__},
            "checkpoints": [c.to_json() for c in self.checkpoints],
            "summary": self.summary.to_json(),
        }


__all__ = [
    "SCHEMA", "VERDICTS", "AuxReport", "CheckpointReport", "ErrorReport", "LoadReport",
    "ProducerReport", "Report", "Result", "Severity", "Summary", "TargetReport", "Verdict",
]  # fmt: skip
