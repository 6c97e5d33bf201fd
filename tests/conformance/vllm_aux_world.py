"""One imported vLLM release, asked which aux hidden states its target models hand over.

``vllm_runtime.prepare`` and ``vllm_standin.install`` come first.
"""

from __future__ import annotations

import atexit
import json
import os
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.conformance import vllm_aux_target, vllm_standin
from tests.conformance.draft import HIDDEN
from tests.conformance.vllm_aux_cases import (
    LAYERS,
    OTHER_LAYERS,
    TARGETS,
    AuxTarget,
    Config,
    asked_of_every_target,
    plain,
    questions,
)
from tests.conformance.vllm_aux_runner import runners, takes_second
from tests.conformance.vllm_engine import Engine, worded

Answer = dict[str, Any]


@dataclass(frozen=True)
class Seen:
    """What became of a draft's config.json: the engine's config and the first runner's proposer,
    or why there is none."""

    config: Any = None
    config_error: Answer | None = None
    proposer: Any = None
    proposer_error: Answer | None = None


class _Engine(Engine):
    """An engine whose target model can be chosen."""

    chosen: Path | None = None

    def target_folder(self, hidden: int) -> Path:
        return self.chosen or super().target_folder(hidden)

    def config(self, draft: Path) -> Any:
        """The engine's config for a draft in front of the chosen target model."""
        made = self._engine_config(draft, HIDDEN)
        self._process_groups(made)
        return made

    def proposer_of(self, config: Any) -> Any:
        """The first runner's proposer, which reads ``use_aux_hidden_state`` when it is made."""
        return self._make_proposer(config)


class World:
    """A release that has been imported."""

    def __init__(self) -> None:
        self.engine = _Engine(vllm_standin.target_model)
        self.runners = runners()
        # Without letters: where there is no model_type, transformers looks for words in the path
        # (models/auto/configuration_auto.py).
        self.room = Path(self.engine.room.name).with_name(str(os.getpid()))
        atexit.register(shutil.rmtree, self.room, ignore_errors=True)

    def _folder(self, name: str, config: Config) -> Path:
        folder = self.room / name
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
        return folder

    def configure(self, config: Config) -> Seen:
        """What the release's ``create_engine_config`` and proposer make of a config.json."""
        draft = self._folder("0", config)
        try:
            made = self.engine.config(draft)
        except Exception as error:
            return Seen(config_error={"stage": "config", **worded(error, draft)})
        try:
            with self.engine.configs.set_current_vllm_config(made):
                return Seen(made, proposer=self.engine.proposer_of(made))
        except Exception as error:
            return Seen(made, proposer_error={"stage": "proposer", **worded(error, draft)})

    def taken(self, target: AuxTarget) -> Answer:
        """The model runner that a plain start takes on a GPU for this target and any draft."""
        self.engine.chosen = self._folder(f"{target.name}-{LAYERS}", target.make(LAYERS))
        seen = self.configure(plain())
        self.engine.chosen = None
        if seen.config_error is not None:
            return {"error": seen.config_error}
        return {"taken": "v2" if takes_second(seen.config) else "v1"}

    def target(self, target: AuxTarget, layers: int) -> vllm_aux_target.Counting | None:
        """A target model whose layers count; None when this release or machine cannot make it."""
        folder = self._folder(f"{target.name}-{layers}", target.make(layers))
        try:
            return vllm_aux_target.make(self.engine.arguments, self.engine.configs, folder)
        except Exception as error:
            print(f"{folder.name}: {type(error).__name__}: {error}"[:300], file=sys.stderr)
            return None

    def fed(self, runner: str, seen: Seen, target: vllm_aux_target.Counting) -> Answer:
        """What one runner lets ``target`` hand over."""
        # The second runner's speculator does not look at these keys.
        error = seen.config_error or (seen.proposer_error if runner == "v1" else None)
        if error is not None:
            return {"error": error}
        target.forget()
        stage = "runner"
        try:
            with self.engine.configs.set_current_vllm_config(seen.config):
                if not self.runners[runner].choose(seen.config, seen.proposer, target.model):
                    return {"enabled": False}
                stage = "forward"
                return {"enabled": True, "told": target.told(), "states": target.states()}
        except Exception as raised:
            return {"error": {"stage": stage, **worded(raised, self.room)}}

    def answers(self) -> Iterator[Answer]:
        """Every answer of the release."""
        seen = {question.name: self.configure(question.config) for question in questions()}
        for kind in TARGETS:
            yield {"target": kind.name, **self.taken(kind)}
            first = kind is TARGETS[0]
            numbers = (LAYERS, *OTHER_LAYERS) if first else (LAYERS,)
            made = {layers: self.target(kind, layers) for layers in numbers}
            asked = {n: s for n, s in seen.items() if first or asked_of_every_target(n)}
            for runner in self.runners:
                for layers, target in made.items():
                    if target is None:
                        continue
                    head = {"runner": runner, "target": f"{kind.name}-{layers}"}
                    bare = self.fed(runner, seen["place/none"], target)
                    yield {**head, "case": "place/none", **bare}
                    if layers != LAYERS or "error" in bare:
                        continue
                    for name, one in asked.items():
                        if name != "place/none":
                            yield {**head, "case": name, **self.fed(runner, one, target)}
