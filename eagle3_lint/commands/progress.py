"""Progress bars: for the rare case that data must be copied, and for many drafts."""

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


@contextmanager
def counted(length: int, label: str) -> Iterator[Callable[[], None]]:
    """A function that says that one more of ``length`` is done; it draws on a terminal only."""
    if not sys.stderr.isatty():
        yield lambda: None
        return
    with click.progressbar(length=length, label=label, file=sys.stderr) as shown:
        yield lambda: shown.update(1)
