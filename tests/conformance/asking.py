"""An oracle is asked: drafts are written, their folders handed over, its lines read."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from tests.conformance.corpus import Case, write

Answer = dict[str, Any]


def run(command: list[str], asked: list[Case], title: str) -> dict[str, Answer]:
    """Case name → answer.

    Args:
        command: reads folders, one a line, and prints an answer a line, with the line's number.
        title: what is asked, for the error.

    Raises:
        RuntimeError: the oracle itself fails.
    """
    with tempfile.TemporaryDirectory() as room:
        folders = [str(write(case, Path(room) / f"{i:04d}")) for i, case in enumerate(asked)]
        done = subprocess.run(
            command,
            input="\n".join(folders),
            capture_output=True,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            check=False,
        )
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    if done.returncode or len(lines) != len(asked):
        raise RuntimeError(f"{title}: {len(lines)} answers; {done.stderr[-2000:]}")
    return {asked[int(line.pop("case"))].name: line for line in lines}
