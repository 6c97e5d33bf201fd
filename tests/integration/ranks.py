"""One rank of a training that gates drafts: ``python -m tests.integration.ranks OUT DRAFT...``.

Writes what each gate returned or raised, and how long the longest took, to ``OUT/<rank>.json``,
then raises the last error again. A word in the place of a draft makes the check on rank 0 fail in a
way of its own. ``RENDEZVOUS`` is a file by which ranks find each other; without it, torchrun has
said how.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any, NoReturn

import torch
import torch.distributed as dist

import eagle3_lint
import eagle3_lint.gating

TARGETS = ["sglang==0.5.9"]


class UnpicklableError(Exception):
    def __init__(self) -> None:
        super().__init__("it holds a lock")
        self.lock = threading.Lock()


class OtherwiseError(Exception):
    """pickle brings it back as something else."""

    def __init__(self, number: int) -> None:
        super().__init__(f"number {number}")


def _raise(error: BaseException) -> Callable[..., NoReturn]:
    def check(*_: Any, **__: Any) -> NoReturn:
        raise error

    return check


FAILURES: dict[str, BaseException] = {
    "value": ValueError("a bug"),
    "unpicklable": UnpicklableError(),
    "otherwise": OtherwiseError(7),
    "interrupt": KeyboardInterrupt(),
}


def gated(draft: str, rank: int) -> tuple[list[str], BaseException | None]:
    right = eagle3_lint.gating.check
    if rank == 0 and draft in FAILURES:
        eagle3_lint.gating.check = _raise(FAILURES[draft])
    try:
        # What other ranks call the draft does not matter: they do not look.
        report = eagle3_lint.gate(draft if rank == 0 else "nowhere", targets=TARGETS)
    except BaseException as error:
        return [type(error).__name__, str(error)], error
    finally:
        eagle3_lint.gating.check = right
    return ["Report", json.dumps(report.to_json())], None


def main(out: str, *drafts: str) -> None:
    eagle3_lint.gate(drafts[0], targets=TARGETS, fail_on="never")  # a process by itself, so far
    if "RENDEZVOUS" in os.environ:
        rank = int(os.environ["RANK"])
        how = {"init_method": os.environ["RENDEZVOUS"], "rank": rank, "world_size": 2}
    else:
        how = {}
    dist.init_process_group("gloo", timeout=timedelta(seconds=60), **how)
    rank = dist.get_rank()
    told, last, longest = [], None, 0.0
    for draft in drafts:
        begun = time.monotonic()
        words, last = gated(draft, rank)
        told.append(words)
        longest = max(longest, time.monotonic() - begun)
    Path(out, f"{rank}.json").write_text(json.dumps({"told": told, "longest": longest}))
    # The group is as it was: the ranks still meet in the same operation.
    if last is None:
        number = torch.ones(1)
        dist.all_reduce(number)
        assert number.item() == 2
        dist.destroy_process_group()
    else:
        raise last


if __name__ == "__main__":
    main(*sys.argv[1:])
