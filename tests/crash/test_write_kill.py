"""A real process is killed at a random moment, with SIGKILL, while it fixes and undoes.

Four kills of each kind and place by default, 32 in all; EAGLE3_LINT_PROFILE=thorough makes 480.
"""

from __future__ import annotations

import os
import random
import signal
import time
from pathlib import Path
from typing import NoReturn

import pytest

from eagle3_lint.write import apply, recover, undo
from tests.unit.write.scenes import (
    KINDS,
    assert_readable,
    change,
    contents,
    draft,
    encoded,
    header_of,
)

THOROUGH = os.environ.get("EAGLE3_LINT_PROFILE") == "thorough"
KILLS = 60 if THOROUGH else 4
#: Data that are copied take long enough to be killed at.
LARGE = (64 if THOROUGH else 8) << 20


def fix_and_undo(folder: Path, kind: str) -> NoReturn:
    """What the process does that is going to be killed."""
    parent = os.getppid()
    try:
        while os.getppid() == parent:  # nor may it outlive the test
            apply(change(folder, kind))
            undo(folder)
    finally:
        os._exit(1)


def enlarge(folder: Path) -> None:
    """Append a tensor of many bytes, most of which take no disk."""
    for path in folder.glob("*.safetensors"):
        header = header_of(path)
        end = max(e["data_offsets"][1] for k, e in header.items() if k != "__metadata__")
        header["large"] = {"dtype": "U8", "shape": [LARGE], "data_offsets": [end, end + LARGE]}
        raw = path.read_bytes()
        data = raw[8 + int.from_bytes(raw[:8], "little") :]
        text = encoded(header)
        path.write_bytes(len(text).to_bytes(8, "little") + text + data)
        os.truncate(path, 8 + len(text) + end + LARGE)


@pytest.mark.parametrize("kind", KINDS)
def test_kill(place: Path, kind: str) -> None:
    folder = draft(place / "draft", kind)
    enlarge(folder)
    old = contents(folder)
    apply(change(folder, kind))
    new = contents(folder)
    started = time.perf_counter()
    undo(folder)
    apply(change(folder, kind))
    undo(folder)
    turn = time.perf_counter() - started
    choose = random.Random(kind)
    for _ in range(KILLS):
        child = os.fork()
        if child == 0:
            fix_and_undo(folder, kind)
        time.sleep(choose.random() * 2 * turn)
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        assert os.waitstatus_to_exitcode(status) == -signal.SIGKILL, "it stopped by itself"
        recover(folder)
        found = contents(folder)
        assert found in (old, new)
        assert_readable(folder)
        if found == new:
            undo(folder)
        assert contents(folder) == old
        assert sorted(path.name for path in folder.iterdir()) == sorted(old)
