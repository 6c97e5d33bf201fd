"""Drafts and target models where they lie: on the Hub (``hf://``), in a store (``s3://``, …).

An address becomes a mirror (``mirror``), a folder that the readers of ``load`` read like any other.
All of it is safe to use from many threads; a folder is opened once in a process, however many ask.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections import OrderedDict
from itertools import count
from multiprocessing.util import Finalize
from pathlib import Path
from threading import Lock, RLock

from eagle3_lint import load
from eagle3_lint.errors import InputError
from eagle3_lint.load.checkpoint import Checkpoint
from eagle3_lint.load.folder import read_folder
from eagle3_lint.load.remote.address import Address, is_hub, parse
from eagle3_lint.load.remote.mirror import Mirror, Source

#: Seconds after which a branch is asked for its commit again; a check is over long before.
FRESH = 300.0
#: Mirrors that are kept; one takes some 0.5 MB of disk. Must be more than are read at one time.
_KEPT = 256


def open_folder(text: str) -> Path:
    """The folder on this disk that stands for an address; its files fill as they are read.

    Raises:
        InputError: nothing is there, or it cannot be reached; one line that says what to do.
    """
    return _OPENED.open(text).folder


def open_draft(text: str) -> Checkpoint:
    """The draft at an address, read from its config.json and the headers of its weights.

    Raises:
        InputError: as :func:`open_folder`, and where a folder on this disk would be refused.
    """
    mirror = _OPENED.open(text)
    try:
        checkpoint = read_folder(mirror.folder)
    except InputError as error:
        raise InputError(str(error).replace(str(mirror.folder), mirror.address)) from None
    if not isinstance(mirror, Mirror):
        _see_that_all_is_cached(text, checkpoint)
    return checkpoint


def _see_that_all_is_cached(text: str, checkpoint: Checkpoint) -> None:
    """A shard that the cache lacks says nothing of the draft; without the network, ask for it."""
    from eagle3_lint.load.remote.hub import not_in_cache

    for problem in checkpoint.problems:
        if problem.kind in ("no-weights", "missing-shard"):
            missing = "the weights are" if problem.kind == "no-weights" else f"{problem.file} is"
            raise InputError(f"{text}: {not_in_cache(parse(text), f'{missing} not')}")


class _Opened:
    """What was opened in this process."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._locks: dict[str, RLock] = {}
        self._found: dict[str, tuple[load.Mirror, float]] = {}
        self._kept: OrderedDict[str, load.Mirror] = OrderedDict()
        self._numbers = count()
        self._root: Path | None = None

    def open(self, text: str) -> load.Mirror:
        """The mirror of an address; the one that there is, unless it may be out of date.

        Raises:
            InputError: it cannot be had.
        """
        address = parse(text) if is_hub(text) else None
        key = text if address is None else address.key
        with self._lock_of(key):
            mirror, when = self._found.get(key, (None, 0.0))
            if mirror is not None and time.monotonic() - when < FRESH and self._keep(mirror):
                return mirror
            mirror = self._of_store(text) if address is None else self._of_hub(address)
            self._found[key] = (mirror, time.monotonic())
            return mirror

    def _lock_of(self, text: str) -> RLock:
        with self._lock:
            return self._locks.setdefault(text, RLock())

    def _of_store(self, text: str) -> load.Mirror:
        from eagle3_lint.load.remote.store import StoreFolder

        return self._add(self._mirror(StoreFolder(text)))

    def _of_hub(self, address: Address) -> load.Mirror:
        from eagle3_lint.load.remote import hub

        hub.need_hub(address)
        if hub.offline():
            return self._add(hub.CachedFolder(address))
        source = hub.HubFolder(address, hub.describe(address))
        with self._lock_of(source.address):
            # A commit does not change.
            there = load.MIRRORS.get(source.address)
            if there is not None and self._keep(there):
                return there
            return self._add(self._mirror(source))

    def _mirror(self, source: Source) -> Mirror:
        try:
            with self._lock:
                if self._root is None:
                    self._root = Path(tempfile.mkdtemp(prefix="eagle3-lint-"))
                    # Runs at the end of multiprocessing's children too, where atexit may not.
                    Finalize(None, shutil.rmtree, (self._root, True), exitpriority=0)
                folder = self._root / str(next(self._numbers))
            return Mirror(source, folder)
        except OSError as error:
            raise InputError(
                f"{source.address}: no temporary folder for it: {error.strerror}; TMPDIR names"
                " another place"
            ) from None

    def _keep(self, mirror: load.Mirror) -> bool:
        """Count a mirror as used last; False when it is not kept any more."""
        with self._lock:
            kept = str(mirror.folder) in self._kept
            if kept:
                self._kept.move_to_end(str(mirror.folder))
            return kept

    def _add(self, mirror: load.Mirror) -> load.Mirror:
        with self._lock:
            self._kept[str(mirror.folder)] = mirror
            load.MIRRORS[mirror.address] = load.MIRRORS[str(mirror.folder)] = mirror
            old = [self._kept.popitem(last=False)[1] for _ in range(len(self._kept) - _KEPT)]
            for one in old:
                del load.MIRRORS[str(one.folder)]
                if load.MIRRORS.get(one.address) is one:
                    del load.MIRRORS[one.address]
        for one in old:
            if isinstance(one, Mirror):
                shutil.rmtree(one.folder, ignore_errors=True)
        return mirror


_OPENED = _Opened()


def _begin_anew() -> None:
    """A forked child has its parent's mirrors, and so do its sisters: it makes its own."""
    global _OPENED
    _OPENED = _Opened()
    load.MIRRORS.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_anew)
