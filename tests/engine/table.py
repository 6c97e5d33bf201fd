"""Print what the engine measured beside what eagle3-lint says, as a Markdown table.

    python -m tests.engine.table [RESULTS.jsonl]
    python -m tests.engine.table --write

RESULTS is what ``serve.py`` wrote; the run that is kept here when none is given. ``--write`` puts
the table of that run into docs/acceptance.md instead.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from tests.engine.outcome import Measurement, Run, agrees, our_verdict, read_run
from tests.engine.variants import VARIANTS, write_variants

STORED: Final = Path(__file__).with_name("results-vllm-0.32.0.jsonl")
DOCUMENT: Final = Path(__file__).parents[2] / "docs" / "acceptance.md"
BEGIN: Final = "<!-- output of: python -m tests.engine.table -->\n"
END: Final = "\n<!-- end of output -->"

_HEAD: Final = (
    "variant", "what is done", "engine", "length", "per position", "drafts", "we say", "",
)  # fmt: skip
_LONGEST_MESSAGE: Final = 90


def _outcome(measured: Measurement) -> str:
    error = measured.error
    if error is None:
        return "runs"
    when = {"load": "while loading", "generate": "at the first batch", None: "at some time"}
    message = " ".join(error.message.split()).replace("|", "\\|")
    if len(message) > _LONGEST_MESSAGE:
        message = message[: _LONGEST_MESSAGE - 1] + "…"
    return f"{error.type} {when[error.stage]}: {message}"


def _figures(measured: Measurement) -> tuple[str, str, str]:
    if measured.acceptance_length is None:
        return "", "", ""
    per_position = " ".join(f"{share:.3f}" for share in measured.accepted_per_position)
    return f"{measured.acceptance_length:.3f}", per_position, str(measured.drafts)


def table(run: Run, verdicts: Mapping[str, str]) -> Iterator[str]:
    """The table, line by line, and a sum; ``verdicts`` are ours, by variant."""
    yield f"| {' | '.join(_HEAD)} |"
    yield f"| {' | '.join('---' for _ in _HEAD)} |"
    agreeing = 0
    for variant in VARIANTS:
        measured, verdict = run.of(variant), verdicts[variant.name]
        agree = agrees(run, variant, verdict)
        agreeing += agree
        mark = "" if agree else "**differs**"
        cells = (variant.name, variant.what, _outcome(measured), *_figures(measured))
        yield f"| {' | '.join((*cells, verdict, mark))} |"
    yield ""
    yield f"{agreeing} of {len(VARIANTS)} verdicts agree."


def printed(results: Path) -> str:
    """The table of the run in ``results``, with what we say now."""
    with TemporaryDirectory() as room:
        folders = write_variants(Path(room))
        verdicts = {v.name: our_verdict(v, folders[v.name]) for v in VARIANTS}
    return "\n".join(table(read_run(results), verdicts))


def renewed(page: str, output: str) -> str:
    """The page with ``output`` between its two markers."""
    before, _, rest = page.partition(BEGIN)
    _, found, after = rest.partition(END)
    if not found:
        raise ValueError(f"{DOCUMENT.name} has no {BEGIN.strip()} with an {END.strip()}")
    return f"{before}{BEGIN}{output}{END}{after}"


def main() -> None:
    """Parse the command line; print or write."""
    parser = argparse.ArgumentParser(prog="python -m tests.engine.table")
    parser.add_argument("results", nargs="?", type=Path, default=STORED)
    parser.add_argument("--write", action="store_true", help="renew docs/acceptance.md")
    options = parser.parse_args()
    if options.write:
        page = DOCUMENT.read_text(encoding="utf-8")
        DOCUMENT.write_text(renewed(page, printed(STORED)), encoding="utf-8")
    else:
        print(printed(options.results))


if __name__ == "__main__":
    main()
