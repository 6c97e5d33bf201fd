"""Ask every vLLM release about every case, and say where answers change.

    python -m tests.conformance.vllm_run --python VENV/bin/python --out DIR [RELEASE...]

``VENV`` needs torch and the small packages that vLLM imports, not vllm. Writes
``DIR/<release>.json`` (case name -> answer) and ``DIR/changes.txt``. Beside the corpus as it is,
the drafts are asked again under other names (``DRESSES``), so that releases and classes which its
own names do not reach are covered too; those case names end in `` @ dress``.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from tests.conformance import sources, vllm_runtime
from tests.conformance.asking import Answer, run
from tests.conformance.corpus import Case, cases

Dress = Callable[[dict[str, Any]], dict[str, Any] | None]


def _named(architecture: str) -> Dress:
    def dress(config: dict[str, Any]) -> dict[str, Any] | None:
        if config.get("architectures") != ["LlamaForCausalLMEagle3"]:
            return None
        return {**config, "architectures": [architecture]}

    return dress


def _latent(**changes: Any) -> Dress:
    def dress(config: dict[str, Any]) -> dict[str, Any] | None:
        if config.get("model_type") != "deepseek_v3" or "kv_lora_rank" not in config:
            return None
        return {**config, **changes}

    return dress


YARN: Final = {
    "type": "yarn",
    "factor": 4.0,
    "original_max_position_embeddings": 1024,
    "mscale": 1.0,
    "mscale_all_dim": 1.0,
    "beta_fast": 32.0,
    "beta_slow": 1.0,
}


# Name, first and last release that is asked (None: no end), and the change of config.json.
# LlamaForCausalLMEagle3 is registered from 0.10.2 on, the Qwen3 class from 0.24.0 and the MLA class
# from 0.18.0 (model_executor/models/registry.py); model_type deepseek_v3 leads to an MTP class, and
# from 0.19.1 to 0.27.1 the MLA class is not made without yarn (deepseek_eagle3.py).
DRESSES: Final[tuple[tuple[str, str, str | None, Dress], ...]] = (
    ("Eagle3LlamaForCausalLM", "0.8.5", "0.10.1.1", _named("Eagle3LlamaForCausalLM")),
    ("Eagle3Qwen3ForCausalLM", "0.24.0", None, _named("Eagle3Qwen3ForCausalLM")),
    ("deepseek_v2", "0.18.0", None, _latent(model_type="deepseek_v2")),
    ("kimi_k2, yarn", "0.18.0", None, _latent(model_type="kimi_k2", rope_scaling=YARN)),
)


def releases() -> list[str]:
    """The unpacked vLLM releases with EAGLE-3 (from 0.8.5 on), oldest first."""
    found = [p.parent.name for p in (sources.cache() / "vllm").glob("*/.complete")]
    return sorted(found, key=vllm_runtime.order)


def asked_of(release: str, corpus: list[Case]) -> list[Case]:
    """The corpus, and what of it is asked again under another name."""
    asked = list(corpus)
    for name, first, last, dress in DRESSES:
        here = vllm_runtime.order(release)
        if here < vllm_runtime.order(first) or (last and here > vllm_runtime.order(last)):
            continue
        for case in corpus:
            config = dress(case.config)
            if config is not None:
                asked.append(replace(case, name=f"{case.name} @ {name}", config=config))
    return asked


def ask(python: Path, release: str, corpus: list[Case]) -> dict[str, Answer]:
    """One release's answers, case name -> answer. Raises RuntimeError when the oracle itself
    fails."""
    folder = sources.fetch("vllm", release)
    sources.fetch_transformers(vllm_runtime.transformers_for(release))
    command = [
        str(python), "-W", "ignore", "-m", "tests.conformance.vllm_oracle",
        "--sources", str(folder), "--release", release, "-",
    ]  # fmt: skip
    return run(command, asked_of(release, corpus), f"vllm {release}")


def signature(answer: Answer) -> str:
    """An answer in one line, the same for releases that word or order alike things differently."""
    error = answer["error"]
    if error is not None:
        words = error["message"].replace("\n", " ")
        for listing in ("Supported architectures", "The available parameters", "Must be one of"):
            words = words.partition(listing)[0]
        words = re.sub(r"\[type=.*", "", words)
        return f"error in {answer['stage']}: {error['type']}: {words[:160]}".rstrip()
    parts = [answer["outcome"]]
    for name in ("unfilled", "dropped", "misfit"):
        if answer[name]:
            parts.append(f"{name} {' '.join(answer[name])}")
    if answer["altered"]:
        parts.append("altered " + " ".join(f"{n}:{h}" for n, h in answer["altered_how"].items()))
    if answer["from_target"]:
        parts.append("from target " + " ".join(answer["from_target"]))
    return "; ".join(parts)


def changes(answers: dict[str, dict[str, Answer]], names: Iterable[str]) -> str:
    """For each case the spans of releases that answer alike; above them, which releases differ."""
    order = list(answers)
    lines = []
    turning: dict[str, int] = {}
    for name in names:
        spans: list[tuple[str, str, str]] = []
        for release in order:
            if name not in answers[release]:
                continue
            said = signature(answers[release][name])
            if spans and spans[-1][2] == said:
                spans[-1] = (spans[-1][0], release, said)
            else:
                if spans:
                    turning[release] = turning.get(release, 0) + 1
                spans.append((release, release, said))
        lines.append(name)
        lines += [f"    {first} .. {last}: {said}" for first, last, said in spans]
    head = ["Cases whose answer differs from the release before:"]
    head += [f"    {release}: {turning[release]}" for release in order if release in turning]
    return "\n".join([*head, "", *lines]) + "\n"


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--python", type=Path, default=Path(sys.executable))
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("releases", nargs="*")
    given = parser.parse_args(argv)
    corpus = cases()
    wanted = given.releases or releases()
    given.out.mkdir(parents=True, exist_ok=True)
    answers: dict[str, dict[str, Answer]] = {}
    with ThreadPoolExecutor(given.jobs) as pool:
        running = {release: pool.submit(ask, given.python, release, corpus) for release in wanted}
        for release, job in running.items():
            answers[release] = job.result()
            text = json.dumps(answers[release], separators=(",", ":"))
            (given.out / f"{release}.json").write_text(text + "\n", encoding="utf-8")
            print(release, flush=True)
    names = dict.fromkeys(name for found in answers.values() for name in found)
    (given.out / "changes.txt").write_text(changes(answers, names), encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
