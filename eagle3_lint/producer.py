"""Who wrote a draft: fingerprints are data in ``rules/producers``."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from eagle3_lint.contract.expression import compile_expression
from eagle3_lint.contract.ranges import covers
from eagle3_lint.contract.rules_folder import read_toml, rules_folder
from eagle3_lint.facts import Facts
from eagle3_lint.report.model import ProducerReport
from eagle3_lint.simulate.configure import look_up

UNKNOWN_PRODUCER = ProducerReport("unknown", None, "unknown")


def _present(facts: Facts, path: str) -> bool:
    steps: object = facts.config
    for step in path.split("."):
        if not isinstance(steps, Mapping) or step not in steps:
            return False
        steps = steps[step]
    return True


def _matches(facts: Facts, mark: Mapping[str, Any]) -> bool:
    """Whether every condition of one mark holds."""
    named = facts.config.get("architectures")
    architectures = named if isinstance(named, list) else []
    conditions = (
        all(_present(facts, path) for path in mark.get("has", ())),
        not any(_present(facts, path) for path in mark.get("lacks", ())),
        all(look_up(facts.config, p) == v for p, v in mark.get("equals", {}).items()),
        not mark.get("architectures") or any(a in mark["architectures"] for a in architectures),
        all(any(text in n for n in facts.tensors) for text in mark.get("tensors", ())),
        not any(text in n for text in mark.get("no_tensors", ()) for n in facts.tensors),
        all(name in facts.files for name in mark.get("files", ())),
        all(name in facts.metadata for name in mark.get("metadata", ())),
        mark.get("weights_format", facts.weights_format) == facts.weights_format,
    )
    return all(conditions)


@cache
def _producers(rules: Path | None) -> tuple[Mapping[str, Any], ...]:
    folder = (rules_folder() if rules is None else rules) / "producers"
    return tuple(read_toml(path) for path in sorted(folder.glob("*.toml")))


def recognise(facts: Facts, rules: Path | None = None) -> ProducerReport:
    """The producer with the surest mark that fits; certain marks before likely ones."""
    likely: ProducerReport | None = None
    for raw in _producers(rules):
        for mark in raw["mark"]:
            if not _matches(facts, mark):
                continue
            found = look_up(facts.config, mark.get("version", "-"))
            version = found if isinstance(found, str) else None
            report = ProducerReport(raw["producer"], version, mark["confidence"])
            if report.confidence == "certain":
                return report
            likely = likely or report
    return likely or UNKNOWN_PRODUCER


def _said_of(producer: ProducerReport, rules: Path | None) -> Mapping[str, Any]:
    return next((raw for raw in _producers(rules) if raw["producer"] == producer.name), {})


def convention(producer: ProducerReport, rules: Path | None = None) -> str | None:
    """What a producer's layer ids mean (``output`` or ``input``); None unless it is certain."""
    return _convention(producer, rules) if producer.confidence == "certain" else None


def likely_convention(producer: ProducerReport, rules: Path | None = None) -> str | None:
    """The same for a producer that is only likely: enough to doubt, not to rely on."""
    return _convention(producer, rules) if producer.confidence == "likely" else None


def _convention(producer: ProducerReport, rules: Path | None) -> str | None:
    said = _said_of(producer, rules)
    versions = said.get("ids_versions")
    if versions is not None and (
        producer.version is None or not covers(versions, producer.version)
    ):
        return None
    means: str | None = said.get("ids_mean")
    return means


def states_without_ids(
    producer: ProducerReport, layers: int, rules: Path | None = None
) -> tuple[int, ...] | None:
    """The aux states that a version of a producer trains on when it writes no ids.

    Returns:
        None for the choice that all others make, and unless the producer is certain.
    """
    if producer.confidence != "certain" or producer.version is None:
        return None
    for entry in _said_of(producer, rules).get("without_ids", ()):
        if covers(entry["in"], producer.version):
            states = [compile_expression(e)({"layers": layers}) for e in entry["states"]]
            return tuple(state for state in states if isinstance(state, int))
    return None


def token_lists(rules: Path | None = None) -> list[tuple[str, str | None]]:
    """Side files that hold the tokens of a draft's vocabulary, and the key they are under."""
    return [
        (entry["file"], entry.get("key"))
        for raw in _producers(rules)
        for entry in raw.get("token_list", ())
    ]


def sorts_rows(producer: ProducerReport, rules: Path | None = None) -> bool:
    """Whether a producer numbers the rows of the head by ascending token, as most do."""
    return bool(_said_of(producer, rules).get("head_rows", "ascending") == "ascending")


def trains_with(
    producer: ProducerReport, rules: Path | None = None
) -> Mapping[str, Mapping[str, Any]]:
    """What a producer means by switches of the forward pass, whatever it writes, by name."""
    return {entry["switch"]: entry for entry in _said_of(producer, rules).get("forward", ())}
