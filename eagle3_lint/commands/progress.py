"""A progress bar for the rare case that data must be copied."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import click

#: Below this nobody waits long enough to look.
_WORTH_IT = 64 * 2**20


@contextmanager
def bar() -> Iterator[Callable[[int, int], None]]:
    """A function that takes bytes done and bytes to do; it draws on a terminal only."""
    shown: Any = None
    at = 0

    def step(done: int, of: int) -> None:
        nonlocal shown, at
        if of < _WORTH_IT or not sys.stderr.isatty():
            return
        if shown is None:
            shown = click.progressbar(length=of, label="copying", file=sys.stderr)
            shown.__enter__()
        shown.update(done - at)
        at = done

    try:
        yield step
    finally:
        if shown is not None:
            shown.__exit__(None, None, None)
