"""Runs a recipe with a callback, and the callback: ``python -m tests.integration.recipe_run FILE``.

The working directory holds what the recipe speaks of. The callback is called as the Trainer calls
it after step 2 of a training to ``out``, with the library's own objects.
"""

from __future__ import annotations

import runpy
import sys

from transformers import TrainerControl, TrainerState, TrainingArguments


def main(file: str) -> None:
    callback = runpy.run_path(file)["callback"]
    args = TrainingArguments(output_dir="out", use_cpu=True, report_to=[])
    callback.on_save(args, TrainerState(global_step=2), TrainerControl())


if __name__ == "__main__":
    main(*sys.argv[1:])
