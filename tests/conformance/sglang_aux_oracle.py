"""One SGLang release's answer for one draft configuration and one target model.

The release's own code runs, cut out of its files (``wheel_code``): what reads the configuration
and tells the target model (``sglang_aux_runner``), and what the target model does with that
(``sglang_aux_target``). Neither torch nor SGLang is imported.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal

from tests.conformance.aux_cases import IDS
from tests.conformance.sglang_aux_runner import Asked, Runner
from tests.conformance.sglang_aux_target import States, Target, release_code
from tests.conformance.wheel_code import Raised

Place = Literal["nested", "top", "default"]


@dataclass(frozen=True)
class Captured:
    """What one way of running a target model hands to the draft.

    Attributes:
        states: in the order of concatenation; None when none are handed over.
        marked: what the decoder was told to look for, as it was told.
        error: what was raised on the way, if anything was.
    """

    states: States | None = None
    marked: tuple[Any, ...] = ()
    error: Raised | None = None


@dataclass(frozen=True)
class Answer:
    """What a release does with the configuration of a draft.

    Attributes:
        enabled: False when the target model is not told to capture anything.
        ids: as they are handed to the target model, whatever they are; None for its default.
        read_from: where they stand in the configuration.
        eager: a server without CUDA graphs.
        graphs: CUDA graphs, which verify the draft's tokens.
        beside_graphs: what runs without a graph in a server that has some, such as prefill.
        worker_error: raised by the draft worker, which reads the configuration again.
    """

    enabled: bool
    ids: Any
    read_from: Place
    eager: Captured
    graphs: Captured
    beside_graphs: Captured
    worker_error: Raised | None


@dataclass(frozen=True)
class _Asked:
    """How the hook was called, where the ids stood, and what the draft worker raised."""

    calls: list[Any]
    ids: Any
    place: Place
    worker_error: Raised | None


class Release:
    """One unpacked release, ready to be asked."""

    def __init__(self, folder: Path) -> None:
        self.code = release_code(folder)
        self.runner = Runner(self.code)
        self._targets: dict[str, Target] = {}
        self._read: dict[str, _Asked] = {}
        self._captured: dict[tuple[str, int, str], tuple[Captured, Captured, Captured]] = {}

    def fed(self, architecture: str, draft_config: Mapping[str, Any], layers: int) -> Answer:
        """What the release does with a draft for a target model of that class and depth.

        Raises KeyError when it registers no such class.
        """
        asked = self._asked(draft_config)
        # What is captured depends on nothing of the configuration but this.
        key = (architecture, layers, repr(asked.calls))
        if key not in self._captured:
            hf_config = SimpleNamespace(**draft_config)
            self._captured[key] = self._run(self._target(architecture), hf_config, layers)
        return Answer(
            bool(asked.calls), asked.ids, asked.place, *self._captured[key], asked.worker_error
        )

    def _asked(self, draft_config: Mapping[str, Any]) -> _Asked:
        """What the target model is told, whichever it is."""
        key = repr(draft_config)
        if key not in self._read:
            hf_config = SimpleNamespace(**draft_config)
            target = Asked()
            self.runner.set(self.runner.read(hf_config), target, hf_config)
            error = None
            try:
                self.runner.read_by_worker(hf_config)
            except Exception as raised:
                error = Raised.of(raised)
            ids = target.calls[-1] if target.calls else None
            self._read[key] = _Asked(target.calls, ids, _place(draft_config, ids), error)
        return self._read[key]

    def _target(self, architecture: str) -> Target:
        if architecture not in self._targets:
            self._targets[architecture] = Target(self.code, architecture)
        return self._targets[architecture]

    def _run(
        self, target: Target, hf_config: Any, layers: int
    ) -> tuple[Captured, Captured, Captured]:
        runner = self.runner

        def eager() -> Any:
            model = target.build(layers)
            runner.set(runner.read(hf_config), model, hf_config)
            return model

        def graphs() -> Any:
            model = target.build(layers)
            state = runner.read(hf_config)
            if runner.sets_before_graphs:
                runner.set(state, model, hf_config)
            else:
                runner.set_for_graphs(state, model)
            return model

        def beside_graphs() -> Any:
            model = target.build(layers)
            state = runner.read(hf_config)
            runner.set_for_graphs(state, model)
            runner.set(state, model, hf_config)
            return model

        return _captured(target, eager), _captured(target, graphs), _captured(target, beside_graphs)


def _captured(target: Target, prepared: Callable[[], Any]) -> Captured:
    """Prepares a model and runs it."""
    marked: tuple[Any, ...] = ()
    try:
        model = prepared()
        marked = target.marked(model)
        return Captured(target.captured(model), marked)
    except Exception as error:
        return Captured(None, marked, Raised.of(error))


def _place(config: Mapping[str, Any], ids: Any) -> Place:
    """Where the very object stands that was handed over."""
    nested = config.get("eagle_config")
    if ids is None:
        return "default"
    if isinstance(nested, Mapping) and nested.get(IDS) is ids:
        return "nested"
    assert config.get(IDS) is ids
    return "top"


@cache
def _release(folder: Path) -> Release:
    return Release(folder)


def fed(folder: Path, architecture: str, draft_config: Mapping[str, Any], layers: int) -> Answer:
    """What the release unpacked in ``folder`` does with a draft, for a target model of that class
    and depth.

    Raises KeyError when the release registers no such class.
    """
    return _release(folder).fed(architecture, draft_config, layers)
