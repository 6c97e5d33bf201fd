"""Ask every SGLang release about every case, and say where answers change.

    python -m tests.conformance.sglang_run --python VENV/bin/python --out DIR [RELEASE...]

``VENV`` needs torch and the small packages named in README.md, not sglang. Writes
``DIR/<release>.json`` (case name -> answer) and, from all such files there, ``DIR/changes.txt``.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.conformance import sglang_runtime, sources
from tests.conformance.asking import Answer, run
from tests.conformance.corpus import Case, cases


def releases() -> list[str]:
    """The unpacked SGLang releases with EAGLE-3 (from 0.4.4.post2 on), oldest first."""
    folder = sources.cache() / "sglang"
    found = [p.parent.name for p in folder.glob("*/.complete")]
    return sorted(found, key=_order)


def _order(release: str) -> tuple[tuple[int, ...], int]:
    base, _, post = release.partition(".post")
    return tuple(int(n) for n in base.split(".")), int(post or 0)


def ask(python: Path, release: str, asked: list[Case]) -> dict[str, Answer]:
    """One release's answers, case name -> answer. Raises RuntimeError when the oracle itself
    fails."""
    folder = sources.fetch("sglang", release)
    sources.fetch_transformers(sglang_runtime.transformers_pin(folder, release))
    command = [
        str(python), "-W", "ignore", "-m", "tests.conformance.sglang_oracle",
        "--sources", str(folder), "--release", release, "-",
    ]  # fmt: skip
    return run(command, asked, f"sglang {release}")


def signature(answer: Answer) -> str:
    """An answer in one line, the same for releases that call the layer midlayer or layers.0."""
    error = answer["error"]
    if error is not None:
        words = error["message"]
        for listing in ("Supported architectures", "Must be one of", ", or contain one of"):
            words = words.partition(listing)[0]
        return f"error in {answer['stage']}: {error['type']}: {_plain(words)[:160]}".rstrip()
    parts = [answer["outcome"]]
    for name in ("unfilled", "dropped"):
        if answer[name]:
            parts.append(f"{name} {' '.join(_plain(n) for n in answer[name])}")
    if answer["altered"]:
        parts.append("altered " + " ".join(f"{n}:{h}" for n, h in answer["altered_how"].items()))
    return "; ".join(parts)


def _plain(text: str) -> str:
    return text.replace("model.midlayer.", "model.layers.0.").replace("\n", " ")


def changes(answers: dict[str, dict[str, Answer]], names: Iterable[str]) -> str:
    """For each case the spans of releases that answer alike; above them, which releases differ."""
    order = list(answers)
    lines = []
    turning: dict[str, int] = {}
    for name in names:
        spans: list[tuple[str, str, str]] = []
        for release in order:
            said = signature(answers[release][name])
            if spans and spans[-1][2] == said:
                spans[-1] = (spans[-1][0], release, said)
            else:
                spans.append((release, release, said))
                turning[release] = turning.get(release, 0) + 1
        lines.append(name)
        lines += [f"    {first} .. {last}: {said}" for first, last, said in spans]
    head = ["Cases whose answer differs from the release before:"]
    head += [f"    {release}: {turning[release]}" for release in order[1:] if release in turning]
    return "\n".join([*head, "", *lines]) + "\n"


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--python", type=Path, default=Path(sys.executable))
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("releases", nargs="*")
    given = parser.parse_args(argv)
    asked = cases()
    wanted = given.releases or releases()
    given.out.mkdir(parents=True, exist_ok=True)
    with ThreadPoolExecutor(given.jobs) as pool:
        running = {release: pool.submit(ask, given.python, release, asked) for release in wanted}
        for release, job in running.items():
            text = json.dumps(job.result(), separators=(",", ":"))
            (given.out / f"{release}.json").write_text(text + "\n", encoding="utf-8")
            print(release, flush=True)
    kept = sorted((path.stem for path in given.out.glob("*.json")), key=_order)
    answers = {r: json.loads((given.out / f"{r}.json").read_text(encoding="utf-8")) for r in kept}
    text = changes(answers, [case.name for case in asked])
    (given.out / "changes.txt").write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
