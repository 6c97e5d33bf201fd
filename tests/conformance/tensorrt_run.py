"""Ask TensorRT-LLM's own loader about every case, for the releases whose sources are in the cache.

    python -m tests.conformance.tensorrt_run --python VENV/bin/python --out DIR [RELEASE...]

``VENV`` is the Python of the other oracles (README.md). Writes ``DIR/<release>.json``: case name →
answer. The sources are put there by hand: ``tensorrt_runtime.py`` says where.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from tests.conformance import sources, tensorrt_cases, tensorrt_runtime
from tests.conformance.asking import Answer, run
from tests.conformance.corpus import Case, cases

RUNTIME = "tensorrt-llm"


def folder(release: str) -> Path | None:
    """Where a release's sources are; None when nobody put them there."""
    found = sources.cache() / RUNTIME / release
    return found if (found / tensorrt_runtime.PACKAGE).is_dir() else None


def releases() -> list[str]:
    """The releases whose sources are there, oldest first."""
    return [r for r in tensorrt_runtime.RUN if folder(r) is not None]


def asked_of(corpus: list[Case]) -> list[Case]:
    """What of the corpus the contracts describe, and some drafts more.

    Left out are quantised drafts, and those with code of their own, which is run, since remote code
    is trusted. A draft that is no part of the corpus (a fixture) is asked about alone.
    """
    left_out = ("quantization_config", "auto_map")
    asked = [case for case in corpus if not any(field in case.config for field in left_out)]
    whole = {"spelling", "class"} & {tag for case in corpus for tag in case.tags}
    return [*asked, *tensorrt_cases.cases()] if whole else asked


def ask(python: Path, release: str, asked: list[Case]) -> dict[str, Answer]:
    """One release's answers, case name → answer.

    Raises:
        FileNotFoundError: its sources are not in the cache.
        RuntimeError: the oracle itself fails.
    """
    found = folder(release)
    if found is None:
        raise FileNotFoundError(sources.cache() / RUNTIME / release / tensorrt_runtime.PACKAGE)
    sources.fetch_transformers(tensorrt_runtime.transformers_for(release))
    command = [
        str(python), "-W", "ignore", "-m", "tests.conformance.tensorrt_oracle",
        "--sources", str(found), "--release", release, "-",
    ]  # fmt: skip
    return run(command, asked_of(asked), f"{RUNTIME} {release}")


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--python", type=Path, default=Path(sys.executable))
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("releases", nargs="*")
    given = parser.parse_args(argv)
    given.out.mkdir(parents=True, exist_ok=True)
    for release in given.releases or releases():
        answers = ask(given.python, release, cases())
        text = json.dumps(answers, separators=(",", ":"))
        (given.out / f"{release}.json").write_text(text + "\n", encoding="utf-8")
        print(release, flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
