"""Which aux hidden states every SGLang release captures, asked of its own code and of our data.

    python -m tests.conformance.sglang_aux --out FILE.json [RELEASE...]
    python -m tests.conformance.sglang_aux --table FILE.json
    python -m tests.conformance.sglang_aux --bad-ids FILE.json

The first lets each unpacked release answer (``sglang_aux_oracle``) every case of ``aux_cases`` for
every target model that our data say can feed a draft, or could but for a defect. The second holds
the answers against ``aux_states`` as a lint computes it, prints a Markdown table and then every
disagreement. The third lists what happens with ids that no trainer should write.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Any, Final, Literal

from eagle3_lint.config_classes import ConfigClassTable
from eagle3_lint.contract.ranges import covers
from eagle3_lint.contract.rules_folder import read_json, rules_folder
from eagle3_lint.contract.runtime import runtime_file
from eagle3_lint.releases import Target
from eagle3_lint.simulate.aux_states import AuxStates, aux_states
from eagle3_lint.simulate.resolve import resolve
from eagle3_lint.support import SupportTable
from eagle3_lint.target_model import Support, TargetModel
from tests.conformance import sources
from tests.conformance.aux_cases import aux_cases
from tests.conformance.draft import LLAMA_CONFIG
from tests.conformance.sglang_aux_oracle import Answer, Captured, Release
from tests.conformance.sglang_aux_target import States
from tests.conformance.wheel_code import Raised

LAYERS: Final = 24
"""Decoder layers of the target models."""

NOT_ASKED: Final[Mapping[str, str]] = {
    "MindSporeForCausalLM": "its decoder is not in the wheel",
    "EmbeddingGemmaModel": "an embedding model: it has no logits processor to hand states to",
}

DEFECTS: Final = ("nothing-captured", "states-dropped", "states-partial")
"""States of a target model that has the hook and yet hands nothing over."""

About = Literal["ids", "read_from", "enabled", "states", "graphs", "beside graphs", "defect"]


@dataclass(frozen=True)
class Flaw:
    """What a release gets wrong and our data have no word for."""

    architectures: tuple[str, ...]
    releases: str
    about: frozenset[About]
    why: str


FLAWS: Final = (
    Flaw(
        ("Qwen3MoeForCausalLM", "Qwen3NextForCausalLM"),
        ">=0.5.4.post2,<0.5.11",
        frozenset({"beside graphs"}),
        "layers marked for the graphs stay marked when the ids of the draft are set, and what "
        "runs without a graph captures both",
    ),
)


# --- our side -------------------------------------------------------------------------------------


@cache
def _tables() -> tuple[ConfigClassTable, SupportTable]:
    return ConfigClassTable(), SupportTable()


@cache
def support(release: str, architecture: str) -> Support:
    """What our data say of a target model."""
    model = TargetModel(architecture, architecture, None, None, LAYERS, None)
    return _tables()[1].of(Target("sglang", release), model)


def architectures(release: str) -> list[str]:
    """The target models to ask a release about."""
    known = read_json(rules_folder() / "targets" / "sglang.json")["architectures"]
    states = {name: support(release, name).state for name in sorted(known)}
    asked = (name for name, state in states.items() if state in ("yes", *DEFECTS))
    return [name for name in asked if name not in NOT_ASKED]


def draft_config(fragment: Mapping[str, Any]) -> dict[str, Any]:
    """A whole config.json with the keys of a case."""
    return {**LLAMA_CONFIG, **fragment}


def ours(release: str, architecture: str, config: Mapping[str, Any]) -> AuxStates:
    """What a lint says, by the steps of ``examine``."""
    classes, table = _tables()
    known = runtime_file("sglang").release(release)
    resolution = resolve(
        known,
        config,
        classes.lookup("sglang", release),
        table.registered("sglang", release),
        (),
    )
    policy = support(release, architecture).policy
    return aux_states(known.aux, policy, resolution.config, LAYERS)


# --- holding both against each other --------------------------------------------------------------


@dataclass(frozen=True)
class Difference:
    """A point on which a release and our data differ."""

    release: str
    architecture: str
    case: str
    about: About
    theirs: str
    ours: str

    @property
    def flaw(self) -> Flaw | None:
        """The known flaw of the release that explains it."""
        return next(
            (
                flaw
                for flaw in FLAWS
                if self.architecture in flaw.architectures
                and self.about in flaw.about
                and covers(flaw.releases, self.release)
            ),
            None,
        )


def plain_ids(answer: Answer) -> bool:
    """Whether the ids are none or integers: the configurations that our data speak of."""
    return answer.ids is None or (
        isinstance(answer.ids, list)
        and bool(answer.ids)
        and all(type(i) is int for i in answer.ids)
    )


def sound(ids: Sequence[int], states: States | None) -> bool:
    """Whether ids name different states that every decoder can hand over.

    Aux state 0 is the embedding and ``LAYERS`` what comes out of the last layer: not every decoder
    captures those.
    """
    return len(set(ids)) == len(ids) and all(0 < k < LAYERS for k in states or ())


def differences(
    release: str, architecture: str, case: str, answer: Answer, said: AuxStates
) -> Iterator[Difference]:
    """Where our data differ from a release's answer."""

    def differ(about: About, theirs: object, mine: object) -> Difference:
        return Difference(release, architecture, case, about, str(theirs), str(mine))

    if support(release, architecture).state in DEFECTS:
        if answer.eager.states is not None:
            yield differ("defect", answer.eager.states, support(release, architecture).state)
        return
    if answer.enabled != said.enabled:
        yield differ("enabled", answer.enabled, said.enabled)
    if not answer.enabled or not plain_ids(answer):
        return
    if tuple(answer.ids or ()) != said.ids:
        yield differ("ids", answer.ids, said.ids)
    if answer.read_from != said.read_from:
        yield differ("read_from", answer.read_from, said.read_from)
    well = sound(said.ids, said.states)
    yield from _compare(differ, "states", answer.eager, said.states, well)
    if _graphs_use_default(release):
        default = _default_states(release, architecture)
        yield from _compare(differ, "graphs", answer.graphs, default, True)
    else:
        yield from _compare(differ, "graphs", answer.graphs, said.states, well)
    yield from _compare(differ, "beside graphs", answer.beside_graphs, said.states, well)


def _compare(
    differ: Callable[[About, object, object], Difference],
    about: About,
    captured: Captured,
    states: States | None,
    well: bool,
) -> Iterator[Difference]:
    """The states handed over where ids are ``well``, and otherwise the marks."""
    if not well:
        marks = tuple(sorted(set(captured.marked)))
        if captured.marked and marks != states:
            yield differ(about, f"marks {marks}", states)
    elif captured.error is not None:
        yield differ(about, captured.error, states)
    elif captured.states != states:
        yield differ(about, captured.states, states)


def _graphs_use_default(release: str) -> bool:
    aux = runtime_file("sglang").release(release).aux
    return bool(aux.get("graphs_use_default", False))


@cache
def _default_states(release: str, architecture: str) -> States | None:
    return ours(release, architecture, LLAMA_CONFIG).states


# --- asking ---------------------------------------------------------------------------------------

#: Architecture → groups of cases with the same answer.
Answers = dict[str, list[dict[str, Any]]]


def unpacked() -> list[str]:
    """The known releases that are in the cache, oldest first."""
    folder = sources.cache() / "sglang"
    releases = runtime_file("sglang").releases
    return [r for r in releases if (folder / r / ".complete").is_file()]


def ask(release: str, names: Iterable[str]) -> Iterator[tuple[str, str, Answer]]:
    """Architecture, case and answer of every question to a release about these architectures."""
    asked = Release(sources.fetch("sglang", release))
    cases = [(case.name, draft_config(case.fragment)) for case in aux_cases(LAYERS)]
    for architecture in names:
        for name, config in cases:
            yield architecture, name, asked.fed(architecture, config, LAYERS)


def answers(release: str) -> Answers:
    """All answers of a release, ready for JSON."""
    groups: dict[str, dict[str, dict[str, Any]]] = defaultdict(dict)
    for architecture, case, answer in ask(release, architectures(release)):
        fields = _slim(answer)
        key = json.dumps(fields)
        groups[architecture].setdefault(key, {"cases": [], **fields})["cases"].append(case)
    return {architecture: list(group.values()) for architecture, group in groups.items()}


def _slim(answer: Answer) -> dict[str, Any]:
    """The fields of an answer, without the ways of running that are like ``eager``."""
    fields = asdict(answer)
    for way in ("graphs", "beside_graphs"):
        if fields[way] == fields["eager"]:
            del fields[way]
    return fields


def told(answered: Answers) -> Iterator[tuple[str, str, Answer]]:
    """The reverse of ``answers``."""
    for architecture, groups in answered.items():
        for group in groups:
            eager = _captured(group["eager"])
            answer = Answer(
                enabled=group["enabled"],
                ids=group["ids"],
                read_from=group["read_from"],
                eager=eager,
                graphs=_captured(group["graphs"]) if "graphs" in group else eager,
                beside_graphs=_captured(group["beside_graphs"])
                if "beside_graphs" in group
                else eager,
                worker_error=_raised(group["worker_error"]),
            )
            for case in group["cases"]:
                yield architecture, case, answer


def _captured(fields: Mapping[str, Any]) -> Captured:
    states = fields["states"]
    return Captured(
        None if states is None else tuple(states), tuple(fields["marked"]), _raised(fields["error"])
    )


def _raised(fields: Mapping[str, str] | None) -> Raised | None:
    return None if fields is None else Raised(**fields)


def compare(
    release: str, answered: Iterable[tuple[str, str, Answer]]
) -> Iterator[tuple[Answer, list[Difference]]]:
    """Each answer of a release and where our data differ from it."""
    configs = {case.name: draft_config(case.fragment) for case in aux_cases(LAYERS)}
    for architecture, case, answer in answered:
        said = ours(release, architecture, configs[case])
        yield answer, list(differences(release, architecture, case, answer, said))


# --- printing -------------------------------------------------------------------------------------


def table(results: Mapping[str, Answers]) -> Iterator[str]:
    """The results as a Markdown table, a line per release, and all disagreements after it."""
    found: list[Difference] = []
    yield "| release | target models | questions | raises | flaws of the release | disagreements |"
    yield "| --- | --- | --- | --- | --- | --- |"
    for release, answered in results.items():
        compared = list(compare(release, told(answered)))
        raised = sum(answer.eager.error is not None for answer, _ in compared)
        differing = [one for _, several in compared for one in several]
        unexplained = [one for one in differing if one.flaw is None]
        counts = (
            len(answered),
            len(compared),
            raised,
            len(differing) - len(unexplained),
            len(unexplained),
        )
        yield f"| {release} | {' | '.join(map(str, counts))} |"
        found += unexplained
    yield ""
    yield from report(found)


def report(found: Iterable[Difference]) -> Iterator[str]:
    """Lines about all disagreements, those of the same kind together."""
    kinds: dict[tuple[str, str, str, str], list[Difference]] = defaultdict(list)
    for one in found:
        kinds[one.about, one.case, one.theirs, one.ours].append(one)
    for (about, case, theirs, mine), same in kinds.items():
        releases = _span([one.release for one in same])
        names = " ".join(sorted({one.architecture for one in same}))
        yield f"{about}, {case}, {releases}: {theirs}; we say {mine} ({names})"


def _span(releases: Iterable[str]) -> str:
    """``0.5.9 to 0.5.11, 0.5.23``: known releases as ranges."""
    wanted = set(releases)
    known = runtime_file("sglang").releases
    spans: list[str] = []
    for there, group in groupby(known, key=wanted.__contains__):
        names = list(group)
        if there:
            spans.append(names[0] if len(names) == 1 else f"{names[0]} to {names[-1]}")
    return ", ".join(spans)


def bad_ids(results: Mapping[str, Answers]) -> Iterator[str]:
    """What happens with ids that are none, or that name no state: a line per behaviour."""
    where: dict[tuple[str, str], dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for release, answered in results.items():
        for architecture, case, answer in told(answered):
            if support(release, architecture).state == "yes" and answer.read_from != "default":
                said = _behaviour(answer)
                if said:
                    where[case, said][architecture].append(release)
    for (case, said), places in where.items():
        alike: dict[str, list[str]] = defaultdict(list)
        for architecture, releases in places.items():
            alike[_span(releases)].append(architecture)
        for span, names in alike.items():
            yield f"{case}: {said}: {span}: {' '.join(names)}"


def _behaviour(answer: Answer) -> str:
    """Empty when every id is captured, each once."""
    captured = answer.eager
    if captured.error is not None:
        error = captured.error
        file = error.where.rpartition(":")[0]
        marked = f"marks {list(captured.marked)}, " if captured.marked else ""
        return f"{marked}{error.type}: {error.message} ({file})"
    numbers = [mark for mark in captured.marked if isinstance(mark, (int, float))]
    if captured.states != tuple(sorted(numbers)) or len(numbers) < len(captured.marked):
        return f"marks {list(captured.marked)}, captures {list(captured.states or ())}"
    return ""


def main(arguments: Sequence[str] | None = None) -> int:
    """Parse the command line, ask or print."""
    parser = argparse.ArgumentParser(prog="python -m tests.conformance.sglang_aux")
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--out", type=Path, help="ask and write answers here")
    what.add_argument("--table", type=Path, help="print a table of the answers in this file")
    what.add_argument("--bad-ids", type=Path, help="print what bad ids do, from this file")
    parser.add_argument("releases", nargs="*", help="all that are unpacked, if none is named")
    options = parser.parse_args(arguments)
    if options.out is not None:
        results = {}
        for release in options.releases or unpacked():
            results[release] = answers(release)
            print(release, flush=True)
        options.out.write_text(json.dumps(results) + "\n", encoding="utf-8")
        return 0
    path = options.table or options.bad_ids
    lines = table if options.table is not None else bad_ids
    for line in lines(json.loads(path.read_text(encoding="utf-8"))):
        print(line)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
