"""How an oracle is asked and answers: its command line, the folders, a line of JSON for each."""

from __future__ import annotations

import argparse
import gc
import json
import os
import sys
import traceback
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from tests.conformance import sources

MESSAGE_LIMIT: Final = 600
#: What goes wrong without a word; a replaced tensor arrived and was overwritten by another.
LOST: Final = ("unfilled", "dropped", "altered", "replaced")
Ask = Callable[[Path], dict[str, Any]]


def answer_all(
    text: str | None, prepare: Callable[[Path, str, Path], Ask], argv: list[str] | None
) -> int:
    """Parse the command line, prepare a release, and print what it says of each draft.

    Args:
        text: the module's docstring.
        prepare: sources, release and the folder of transformers versions → what answers for a
            draft folder.
    """
    parser = argparse.ArgumentParser(description=text)
    parser.add_argument("--sources", type=Path, required=True, help="the unpacked release")
    parser.add_argument("--release", required=True)
    parser.add_argument("--transformers", type=Path, default=sources.cache() / "transformers")
    parser.add_argument("drafts", nargs="*", help="folders; - reads one a line from stdin")
    given = parser.parse_args(argv)
    warnings.simplefilter("ignore")
    drafts = given.drafts
    if drafts == ["-"]:
        drafts = [line.strip() for line in sys.stdin if line.strip()]
    # What a runtime prints must not get between the answers.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    ask = prepare(given.sources, given.release, given.transformers)
    gc.freeze()  # what was imported stays; only what a case leaves is looked through after it
    for draft in drafts:
        folder = Path(draft)
        print(json.dumps({"case": folder.name, **ask(folder)}), file=answers, flush=True)
        gc.collect()
    return 0


def told(
    stage: str,
    error: dict[str, str] | None,
    found: Mapping[str, Any],
    shapes: Mapping[str, list[int]],
) -> dict[str, Any]:
    """The answer for one draft, ready for JSON.

    Args:
        stage: how far it came.
        error: what it raised, as ``worded``.
        found: what became of tensors and parameters; nothing where it raised before.
        shapes: the parameters that were made.
    """
    fields: dict[str, Any] = {name: [] for name in LOST} | dict(found)
    silent = any(fields[name] for name in LOST)
    return {
        "outcome": "error" if error else "silent" if silent else "ok",
        "stage": stage,
        "error": error,
        **fields,
        "params": shapes,
    }


def worded(error: BaseException, draft: Path, package: str) -> dict[str, str]:
    """Type and text of an exception, and the innermost place in ``package`` that it went through,
    by file and line."""
    inside = f"/{package}/"
    frames = [f for f in traceback.extract_tb(error.__traceback__) if inside in f.filename]
    place = ""
    if frames:
        place = f"{frames[-1].filename.split(inside, 1)[1]}:{frames[-1].lineno}"
    return {
        "type": type(error).__name__,
        "message": str(error).replace(str(draft), "<draft>")[:MESSAGE_LIMIT],
        "where": place,
    }
