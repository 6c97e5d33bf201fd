"""Real Trainers that train a draft of tests/drafts.py for two steps on the CPU.

``python -m tests.integration.tiny_training OUT RUNS``: RUNS is a JSON list of trainings (see
:func:`train`), which take place in folders of OUT. ``OUT/told-<rank>.json`` gets what became of
each. The last error is raised again.
"""

from __future__ import annotations

import json
import logging
import os
import shutil
import sys
from pathlib import Path
from typing import Any

import torch
from torch import nn
from transformers import LlamaConfig, PreTrainedModel, Trainer, TrainingArguments

from eagle3_lint.integrations.transformers import Eagle3LintCallback
from tests.drafts import llama_config, llama_tensors, offsets, spread


class LlamaForCausalLMEagle3(PreTrainedModel):  # its name goes into config.json
    config_class = LlamaConfig

    def __init__(self, config: LlamaConfig, layer: str) -> None:
        super().__init__(config)
        for name, (_, shape) in llama_tensors(layer).items():
            *path, last = name.split(".")
            home: nn.Module = self
            for part in path:
                if part not in home._modules:
                    home.add_module(part, nn.Module())
                home = home._modules[part]
            if last == "d2t":
                home.register_buffer(last, torch.tensor(offsets()))
            elif last == "t2d":
                marks = torch.zeros(shape, dtype=torch.bool)
                marks[torch.tensor(spread())] = True
                home.register_buffer(last, marks)
            else:
                home.register_parameter(last, nn.Parameter(torch.ones(shape, dtype=torch.bfloat16)))

    def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
        loss = sum(p.float().mean() for p in self.parameters()) * x.float().mean()
        return {"loss": loss}


EXPORTED: list[str] = []


def export(checkpoint: Path) -> Path:
    """An exporter: the draft is elsewhere, and its layer has the name that every release knows."""
    from safetensors.torch import load_file, save_file

    EXPORTED.append(checkpoint.name)
    draft = checkpoint.parent / f"exported-{len(EXPORTED)}"
    draft.mkdir()
    shutil.copy(checkpoint / "config.json", draft)
    tensors = load_file(checkpoint / "model.safetensors")
    renamed = {name.replace("layers.0.", "midlayer."): tensor for name, tensor in tensors.items()}
    save_file(renamed, draft / "model.safetensors", metadata={"format": "pt"})
    return draft


class Kept(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(f"{record.levelname} {record.getMessage()}")


def train(
    out: Path,
    layer: str = "midlayer.",
    save: str = "steps",
    before: bool = False,
    exported: bool = False,
    **callback: Any,
) -> tuple[dict[str, Any], Exception | None]:
    """What became of a training, and the error that ended it.

    Args:
        layer: what the draft calls its layer.
        save: when checkpoints are saved: ``steps`` (after each) or ``no``.
        before: save the model to ``out`` itself, before training.
        exported: let the callback use :func:`export`.
        callback: arguments of the callback.
    """
    log, kept = logging.getLogger("eagle3_lint"), Kept()
    log.handlers = [kept]
    log.setLevel(logging.INFO)
    EXPORTED.clear()
    if exported:
        callback["export"] = export
    config = LlamaConfig(**{k: v for k, v in llama_config().items() if k != "architectures"})
    trainer = Trainer(
        model=LlamaForCausalLMEagle3(config, layer),
        args=TrainingArguments(
            output_dir=str(out),
            max_steps=2,
            save_strategy=save,
            save_steps=1,
            use_cpu=True,
            remove_unused_columns=False,
            report_to=[],
            disable_tqdm=True,
            ddp_backend="gloo" if "WORLD_SIZE" in os.environ else None,
        ),
        train_dataset=[{"x": torch.ones(1)} for _ in range(16)],
        callbacks=[Eagle3LintCallback(**callback)],
    )
    if before:
        trainer.save_model()
    error = None
    try:
        trainer.train()
    except Exception as raised:
        error = raised
    told = {
        "error": error and [type(error).__name__, str(error)],
        "step": trainer.state.global_step,
        "log": kept.lines,
        "exported": list(EXPORTED),
    }
    return told, error


def main(out: str, runs: str) -> None:
    told, error = [], None
    for number, run in enumerate(json.loads(runs)):
        one, error = train(Path(out, str(number)), **run)
        told.append(one)
    Path(out, f"told-{os.environ.get('RANK', 0)}.json").write_text(json.dumps(told))
    if error is not None:
        raise error


if __name__ == "__main__":
    main(*sys.argv[1:])
