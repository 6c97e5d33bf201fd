"""What the runtimes' own loaders answer, asked once per test session.

The oracles need a Python of their own (README.md), named by ``EAGLE3_LINT_ORACLE_PYTHON``.
``EAGLE3_LINT_ORACLE_ANSWERS`` names a folder of answers that are kept, one
``<runtime>/<release>.json`` each; without it every session asks anew.
``EAGLE3_LINT_ORACLE_EVERY=4`` asks about every fourth draft only.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from tests.conformance import sglang_run, tensorrt_run, vllm_run
from tests.conformance.compare import asked_of
from tests.conformance.corpus import Case, cases

PYTHON = os.environ.get("EAGLE3_LINT_ORACLE_PYTHON")
EVERY = int(os.environ.get("EAGLE3_LINT_ORACLE_EVERY", "1"))
Answers = Mapping[str, Mapping[str, Any]]


_ASK: Mapping[str, Callable[[Path, str, list[Case]], Answers]] = {
    "sglang": sglang_run.ask,
    tensorrt_run.RUNTIME: tensorrt_run.ask,
    "vllm": vllm_run.ask,
}


def asked(runtime: str, release: str) -> list[Case]:
    """The drafts that a release is asked about."""
    return asked_of(runtime, release, cases()[::EVERY])


@cache
def answers(runtime: str, release: str) -> Answers:
    """Case name → answer of one release, executed out of its wheel."""
    assert PYTHON is not None, "EAGLE3_LINT_ORACLE_PYTHON is not set"
    kept = os.environ.get("EAGLE3_LINT_ORACLE_ANSWERS")
    path = Path(kept) / runtime / f"{release}.json" if kept else None
    if path is not None and path.is_file():
        found: Answers = json.loads(path.read_text(encoding="utf-8"))
        return found
    given = _ASK[runtime](Path(PYTHON), release, cases()[::EVERY])
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(given, separators=(",", ":")) + "\n", encoding="utf-8")
    return given
