"""Which aux hidden states every vLLM release hands over, asked of its own code and of our data.

    python -m tests.conformance.vllm_aux --python VENV/bin/python --out FILE.json [RELEASE...]
    python -m tests.conformance.vllm_aux --table FILE.json

``VENV`` is that of ``vllm_run``. The first lets each release answer (``vllm_aux_oracle``) and
writes ``{release: [answer, ...]}``; releases that the file has already are kept. The second holds
the answers against ``resolve`` and ``aux_states`` with the data of the two runners, prints a
Markdown table and then every disagreement, those of the same cause together.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

from eagle3_lint.config_classes import ConfigClassTable
from eagle3_lint.contract.ranges import covers
from eagle3_lint.contract.runtime import runtime_file
from eagle3_lint.releases import Target
from eagle3_lint.simulate.aux_states import aux_states
from eagle3_lint.simulate.resolve import Resolution, resolve
from eagle3_lint.support import SupportTable
from eagle3_lint.target_model import Support, TargetModel
from tests.conformance import sources, vllm_run, vllm_runtime
from tests.conformance.vllm_aux_cases import TARGETS, plain, questions, well_formed

Answer = Mapping[str, Any]

RUNNERS: Final = ("v1", "v2")

SECOND_SINCE: Final = "0.29.0"
"""``[[aux]]`` of ``runtime.toml`` is the second runner from here on."""

NOT_STARTED: Final = ("refused", "unregistered")
"""States of target models that a list of model types refuses, or that the release does not know,
before anything that is asked here."""

FEWEST_LAYERS: Final = 7
"""With fewer, 2, n // 2 and n - 3 are not three states in ascending order."""


@dataclass(frozen=True)
class Difference:
    """A question that a release and our data answer differently.

    ``settled`` is False for configurations that no trainer writes (``well_formed``), and for target
    models of so few layers that the layers captured without ids fall together: what happens there
    is looked at, and our data do not claim to know it.
    """

    release: str
    runner: str
    target: str
    case: str
    theirs: str
    ours: str
    settled: bool


def fed(python: Path, release: str) -> list[Answer]:
    """The release's own answers, for both runners. Raises RuntimeError when it cannot be asked."""
    folder = sources.fetch("vllm", release)
    sources.fetch_transformers(vllm_runtime.transformers_for(release))
    done = subprocess.run(
        [
            str(python), "-W", "ignore", "-m", "tests.conformance.vllm_aux_oracle",
            "--sources", str(folder), "--release", release,
        ],
        capture_output=True,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        check=False,
    )  # fmt: skip
    if done.returncode:
        raise RuntimeError(f"vllm {release}: {done.stderr[-2000:]}")
    return [json.loads(line) for line in done.stdout.splitlines()]


def statement(release: str, runner: str) -> Mapping[str, Any]:
    """What ``runtime.toml`` says of one runner: ``[[aux]]`` is the one that a plain start takes."""
    file = runtime_file("vllm")
    own: Iterable[Mapping[str, Any]] = file.raw.get(f"aux_{runner}", ())
    for entry in own:
        if covers(entry.get("in", ""), release):
            return entry
    return file.release(release).aux


@cache
def _configs() -> dict[str, dict[str, Any]]:
    return {"place/none": plain(), **{q.name: q.config for q in questions()}}


@cache
def _resolution(release: str, case: str) -> Resolution:
    classes, support = ConfigClassTable(), SupportTable()
    return resolve(
        runtime_file("vllm").release(release),
        _configs()[case],
        classes.lookup("vllm", release),
        support.registered("vllm", release),
        (),
    )


def ours(release: str, runner: str, layers: int, case: str) -> str:
    """What our data say, in the words of ``theirs``."""
    resolution = _resolution(release, case)
    if resolution.failure is not None:
        return f"raises {resolution.failure.type}"
    found = aux_states(statement(release, runner), None, resolution.config, layers)
    return str(list(found.states or ())) if found.enabled else "off"


def theirs(answer: Answer) -> str:
    """An answer of a release in short."""
    if "error" in answer:
        return f"raises {answer['error']['type']}"
    return str(answer["states"]) if answer["enabled"] else "off"


@cache
def support(release: str, target: str) -> Support:
    """What our table says of a target model (``llama-24``)."""
    name, _, layers = target.rpartition("-")
    fields = next(t.make(int(layers)) for t in TARGETS if t.name == name)
    model = TargetModel(
        name=name,
        architecture=fields["architectures"][0],
        model_type=fields["model_type"],
        hidden_size=fields["hidden_size"],
        num_hidden_layers=int(layers),
        vocab_size=fields["vocab_size"],
    )
    return SupportTable().of(Target("vllm", release), model)


def _settled(answer: Answer) -> bool:
    layers = int(answer["target"].rpartition("-")[2])
    return layers >= FEWEST_LAYERS and well_formed(_configs()[answer["case"]], layers)


def differences(release: str, answers: Iterable[Answer]) -> Iterator[Difference]:
    """Where the release and our data disagree."""
    for answer in asked(release, answers):
        runner, target, case = answer["runner"], answer["target"], answer["case"]
        layers = int(target.rpartition("-")[2])
        supported = support(release, target)
        one, other = theirs(answer), ours(release, runner, layers, case)
        if supported.state != "yes":
            other = f"raises {supported.error_type}"
        if one != other:
            yield Difference(release, runner, target, case, one, other, _settled(answer))


def asked(release: str, answers: Iterable[Answer]) -> Iterator[Answer]:
    """The answers about states, without those about target models that do not start."""
    for answer in answers:
        if "case" in answer and support(release, answer["target"]).state not in NOT_STARTED:
            yield answer


def second_runner(release: str, answers: Iterable[Answer]) -> list[str]:
    """The target models for which a plain start takes the second runner and our data the first,
    or the other way round."""
    ours = "v2" if vllm_runtime.order(release) >= vllm_runtime.order(SECOND_SINCE) else "v1"
    return [a["target"] for a in answers if a.get("taken", ours) != ours]


def table(answers: Mapping[str, Sequence[Answer]], found: Sequence[Difference]) -> Iterator[str]:
    """Releases × runners: how many questions of each kind, and what came of them."""
    yield (
        "| release | runner | target models | questions | disagreements "
        "| damaged questions | of them raising | our data say otherwise |"
    )
    yield "| --- | --- | --- | --- | --- | --- | --- | --- |"
    for release in sorted(answers, key=vllm_runtime.order):
        everything = list(asked(release, answers[release]))
        for runner in RUNNERS:
            here = [a for a in everything if a["runner"] == runner]
            if here:
                differing = [d for d in found if d.release == release and d.runner == runner]
                damaged = [a for a in here if not _settled(a)]
                counts = (
                    len({a["target"].rpartition("-")[0] for a in here}),
                    len(here) - len(damaged),
                    sum(d.settled for d in differing),
                    len(damaged),
                    sum("error" in a for a in damaged),
                    sum(not d.settled for d in differing),
                )
                yield f"| {release} | {runner} | {' | '.join(map(str, counts))} |"


def listing(found: Iterable[Difference]) -> Iterator[str]:
    """Disagreements with the same answers on the same case together."""
    same: dict[tuple[str, str, str, str], list[Difference]] = defaultdict(list)
    for difference in found:
        key = (difference.runner, difference.case, difference.theirs, difference.ours)
        same[key].append(difference)
    for (runner, case, one, other), where in same.items():
        releases = sorted({d.release for d in where}, key=vllm_runtime.order)
        span = releases[0] if len(releases) == 1 else f"{releases[0]} … {releases[-1]}"
        targets = " ".join(dict.fromkeys(d.target for d in where))
        yield f"{runner}, {case}, {len(releases)} releases ({span}): {one}; we: {other} ({targets})"


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--python", type=Path, default=Path(sys.executable))
    parser.add_argument("--out", type=Path, help="answers to write, or to add to")
    parser.add_argument("--table", type=Path, help="answers to compare")
    parser.add_argument("releases", nargs="*")
    given = parser.parse_args(argv)
    if given.out is not None:
        known: dict[str, Any] = {}
        if given.out.is_file():
            known = json.loads(given.out.read_text(encoding="utf-8"))
        for release in given.releases or vllm_run.releases():
            if release in known and not given.releases:
                continue
            known[release] = fed(given.python, release)
            given.out.write_text(json.dumps(known) + "\n", encoding="utf-8")
            print(release, len(known[release]), flush=True)
        return 0
    if given.table is None:
        parser.error("one of --out and --table")
    answers = json.loads(given.table.read_text(encoding="utf-8"))
    found = [d for release, said in answers.items() for d in differences(release, said)]
    print("\n".join(table(answers, found)))
    settled = [d for d in found if d.settled]
    print("\nDisagreements:", len(settled), *listing(settled), sep="\n")
    print("\nThe other runner than [[aux]] is taken for:")
    for release, said in answers.items():
        if targets := second_runner(release, said):
            print(release, *targets)
    print("\nDamaged configurations:", *listing(d for d in found if not d.settled), sep="\n")
    return 1 if settled else 0


if __name__ == "__main__":
    raise SystemExit(main())
