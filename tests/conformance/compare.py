"""Hold what a runtime's own loaders did against what the contracts say they do.

    python -m tests.conformance.compare RUNTIME RESULTS_DIR [--release R]... [--full] [--table]

RESULTS_DIR has one ``<release>.json`` per release, as the oracles write it: case name → answer.
Prints every disagreement, those that differ in the same way together, and returns 1 if there is
one.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final, Literal

from eagle3_lint.config_classes import ConfigClassTable
from eagle3_lint.contract.read import contract_file
from eagle3_lint.contract.runtime import runtime_file
from eagle3_lint.simulate.load import simulate_load
from eagle3_lint.simulate.resolve import resolve
from eagle3_lint.simulate.result import Failure, Load
from eagle3_lint.support import SupportTable
from tests.conformance import tensorrt_run, vllm_run
from tests.conformance.corpus import Case, cases
from tests.conformance.draft import VOCAB

TARGET_LAYERS: Final = 24
"""Decoder layers of the target model that the oracles pair every draft with."""

#: Of several things that are wrong, the contracts of these do not say which raises first.
UNORDERED: Final = frozenset({"tensorrt-llm"})
LISTS: Final = ("unfilled", "dropped", "altered")
About = Literal["outcome", "error type", "unfilled", "dropped", "altered"]


@dataclass(frozen=True)
class Disagreement:
    """One point on which a release and its contract differ."""

    runtime: str
    release: str
    case: str
    about: About
    theirs: str
    ours: str

    @property
    def kind(self) -> tuple[str, str, str]:
        """Equal for disagreements of the same cause."""
        return (self.about, self.theirs, self.ours)


@cache
def _tables(rules: Path | None) -> tuple[ConfigClassTable, SupportTable]:
    return ConfigClassTable(rules), SupportTable(rules)


def play(case: Case, runtime: str, release: str, rules: Path | None = None) -> Failure | Load:
    """What the contracts of ``release`` say of ``case``: why it is refused, or what is loaded."""
    ours = _whole(case, runtime, release, rules)
    return ours.error or ours if isinstance(ours, Load) else ours


def _whole(case: Case, runtime: str, release: str, rules: Path | None) -> Failure | Load:
    """The same with everything that loading would raise."""
    classes, support = _tables(rules)
    resolution = resolve(
        runtime_file(runtime, rules).release(release),
        case.config,
        classes.lookup(runtime, release),
        support.registered(runtime, release),
        case.tensors,
    )
    if resolution.failure is not None:
        return resolution.failure
    assert resolution.draft_class is not None
    contract = contract_file(runtime, resolution.draft_class, rules).contract(release)
    known = {
        "config_class": resolution.config_class,
        "target_hidden": case.target_hidden,
        "target_vocab": VOCAB,
        "target_layers": TARGET_LAYERS,
        "tp": 1,
    }
    shapes = {name: shape for name, (_, shape) in sorted(case.tensors.items())}
    return simulate_load(contract, resolution.config, shapes, known)


def _text(error: Mapping[str, Any] | Failure) -> str:
    if isinstance(error, Failure):
        return f"{error.type}: {error.message}"
    return f"{error['type']}: {error['message']}"


def _lists(load: Load) -> dict[str, list[str]]:
    return {
        "unfilled": list(load.unfilled),
        "dropped": list(load.dropped),
        "altered": sorted({alteration.tensor for alteration in load.altered}),
    }


def _differences(
    answer: Mapping[str, Any], ours: Failure | Load, ordered: bool
) -> Iterator[tuple[About, str, str]]:
    """Each point on which ``ours`` is not what the runtime did, theirs first.

    ``ordered``: of several failures the first one is meant to be the runtime's.
    """
    failed = answer["outcome"] == "error"
    failures = (ours,) if isinstance(ours, Failure) else ours.failures
    if failures:
        possible = failures[:1] if ordered else failures
        if not failed:
            yield "outcome", answer["outcome"], _text(failures[0])
        elif answer["error"]["type"] not in {failure.type for failure in possible}:
            yield "error type", _text(answer["error"]), _text(failures[0])
        return
    assert isinstance(ours, Load)
    if failed:
        yield "outcome", _text(answer["error"]), ours.outcome
        return
    if answer["outcome"] != ours.outcome:
        yield "outcome", answer["outcome"], ours.outcome
    for about, names in _lists(ours).items():
        theirs = set(answer[about])
        if about == "dropped":
            theirs |= set(answer["replaced"])  # overwritten by others: lost as well
        only_theirs, only_ours = sorted(theirs - set(names)), sorted(set(names) - theirs)
        if only_theirs or only_ours:
            assert about in LISTS
            yield about, f"also {only_theirs}", f"also {only_ours}"  # type: ignore[misc]


def compare(
    runtime: str,
    release: str,
    answers: Mapping[str, Mapping[str, Any]],
    wanted: Iterable[Case],
    rules: Path | None = None,
) -> list[Disagreement]:
    """Disagreements about the cases that have an answer; ``rules``: not the built-in ones."""
    return [
        Disagreement(runtime, release, case.name, about, theirs, ours)
        for case in wanted
        if case.name in answers
        for about, theirs, ours in _differences(
            answers[case.name], _whole(case, runtime, release, rules), runtime not in UNORDERED
        )
    ]


def asked_of(runtime: str, release: str, corpus: list[Case]) -> list[Case]:
    """What of the corpus, under which names, a release is asked about."""
    if runtime == "vllm":
        return vllm_run.asked_of(release, corpus)
    return tensorrt_run.asked_of(corpus) if runtime == tensorrt_run.RUNTIME else corpus


def compare_folder(
    runtime: str, folder: Path, releases: Sequence[str] | None = None
) -> tuple[list[Disagreement], list[str]]:
    """All disagreements with the results in ``folder``, and the releases that have none there."""
    found: list[Disagreement] = []
    missing: list[str] = []
    corpus = cases()
    for release in releases or runtime_file(runtime).releases:
        results = folder / f"{release}.json"
        if results.is_file():
            answers = json.loads(results.read_text(encoding="utf-8"))
            found.extend(compare(runtime, release, answers, asked_of(runtime, release, corpus)))
        else:
            missing.append(release)
    return found, missing


def _shortened(text: str, width: int) -> str:
    line = " ".join(text.split())
    return line if len(line) <= width else line[: width - 1] + "…"


def report(found: Iterable[Disagreement], width: int) -> Iterator[str]:
    """Lines about all disagreements, most frequent kind first."""
    kinds: dict[tuple[str, str, str], list[Disagreement]] = defaultdict(list)
    for one in found:
        kinds[tuple(_shortened(part, 120) for part in one.kind)].append(one)  # type: ignore[index]
    for same in sorted(kinds.values(), key=len, reverse=True):
        first = same[0]
        releases = list(dict.fromkeys(one.release for one in same))
        names = list(dict.fromkeys(one.case for one in same))
        span = releases[0] if len(releases) == 1 else f"{releases[0]} … {releases[-1]}"
        yield f"{len(same)} × {first.about}, {len(releases)} releases ({span})"
        yield f"    the runtime: {_shortened(first.theirs, width)}"
        yield f"    we:          {_shortened(first.ours, width)}"
        yield f"    {len(names)} cases: {_shortened(', '.join(names), width)}"


def table(runtime: str, folder: Path, found: Iterable[Disagreement]) -> Iterator[str]:
    """The results as a Markdown table, a line per release: what the runtime's own loader did."""
    disagreeing = Counter(one.release for one in found)
    yield "| release | drafts | raises | starts, not whole | loads whole | disagreements |"
    yield "| --- | --- | --- | --- | --- | --- |"
    for release in runtime_file(runtime).releases:
        results = folder / f"{release}.json"
        if results.is_file():
            answers = json.loads(results.read_text(encoding="utf-8"))
            said = Counter(answer["outcome"] for answer in answers.values())
            counts = (len(answers), said["error"], said["silent"], said["ok"])
            yield f"| {release} | {' | '.join(map(str, counts))} | {disagreeing[release]} |"


def main(arguments: Sequence[str] | None = None) -> int:
    """Parse the command line, compare, print."""
    parser = argparse.ArgumentParser(prog="python -m tests.conformance.compare")
    parser.add_argument("runtime")
    parser.add_argument("results", type=Path)
    parser.add_argument("--release", action="append", help="only this one (repeatable)")
    parser.add_argument("--full", action="store_true", help="do not shorten")
    parser.add_argument("--table", action="store_true", help="print a Markdown table first")
    options = parser.parse_args(arguments)
    found, missing = compare_folder(options.runtime, options.results, options.release)
    if options.table:
        print("\n".join(table(options.runtime, options.results, found)))
    for line in report(found, 100_000 if options.full else 160):
        print(line)
    if missing:
        print(f"no results for {len(missing)} releases: {' '.join(missing)}")
    print(f"{len(found)} disagreements")
    return 1 if found else 0


if __name__ == "__main__":
    raise SystemExit(main())
