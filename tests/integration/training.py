"""The Python that trains in tests: one with torch and transformers, beside what this package needs.

``EAGLE3_LINT_TRAINING_PYTHON`` names it; without that it is the one that runs the tests, and what
it lacks is skipped.
"""

from __future__ import annotations

import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PYTHON = os.environ.get("EAGLE3_LINT_TRAINING_PYTHON", sys.executable)
#: A rank that waits for another one waits longer than any of this takes.
TIMEOUT = 240


def environment(**more: str) -> dict[str, str]:
    """This checkout's code, one thread a process, and no rank of an outer launcher."""
    outer = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
    kept = {name: value for name, value in os.environ.items() if name not in outer}
    return {**kept, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", **more}


@cache
def _has(module: str) -> bool:
    find = f"import importlib.util, sys; sys.exit(importlib.util.find_spec({module!r}) is None)"
    return subprocess.run([PYTHON, "-c", find]).returncode == 0


def need(*modules: str) -> None:
    """Skip the test where the training Python lacks one of these."""
    for module in modules:
        if not _has(module):
            pytest.skip(f"{module} is not installed (EAGLE3_LINT_TRAINING_PYTHON)")


def python(
    *words: str | Path, cwd: Path | None = None, **more: str
) -> subprocess.CompletedProcess[str]:
    """Run the training Python and wait for it."""
    return subprocess.run(
        [PYTHON, *map(str, words)],
        cwd=cwd,
        env=environment(**more),
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
    )
