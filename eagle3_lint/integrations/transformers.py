"""A callback for the transformers library's Trainer: drafts are checked as they are saved.

>>> from transformers import Trainer
>>> from eagle3_lint.integrations.transformers import Eagle3LintCallback
>>> Trainer(..., callbacks=[Eagle3LintCallback(["sglang", "vllm"], "kimi-k2.5")])
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Literal

from eagle3_lint.errors import InputError
from eagle3_lint.gating import GateError, gate_found, verdicts

try:
    from transformers import TrainerCallback
except ImportError as error:
    raise ImportError(
        "eagle3_lint.integrations.transformers is for transformers' Trainer, and transformers"
        f" cannot be imported here ({error}); without it, eagle3_lint.gate(...) does the same after"
        " a training"
    ) from error

_log = logging.getLogger(__name__)
_ON = ("save", "end", "both")


class Eagle3LintCallback(TrainerCallback):  # type: ignore[misc]
    """Checks the draft when a checkpoint was saved, and when the training ends.

    ``on_save`` looks at ``checkpoint-<step>`` in ``args.output_dir``. ``on_train_end`` looks at
    ``args.output_dir`` itself or, where that holds no config.json, at the checkpoint of the last
    step; it has nothing to do when ``on_save`` saw that step. What ``trainer.save_model()`` writes
    after ``trainer.train()`` is not there by then: :func:`eagle3_lint.gate` can follow it.

    The Trainer calls this on every rank; rank 0 does the work and all ranks fail alike.
    """

    def __init__(
        self,
        targets: Iterable[str] = (),
        target_model: str | None = None,
        *,
        on: Literal["save", "end", "both"] = "both",
        export: Callable[[Path], str | Path] | None = None,
        fail: bool = True,
        **options: Any,
    ) -> None:
        """
        Args:
            on: ``save``, ``end`` or ``both``.
            export: takes the folder of a checkpoint and returns that of the draft, for a trainer
                whose checkpoints are not drafts themselves. Runs on rank 0 alone, while the
                others wait: within the time-out of their process group, and without collectives.
            fail: raise, which ends the training; False logs what is wrong and goes on.
            targets, target_model, options: as for :func:`eagle3_lint.gate`.

        Raises:
            InputError: ``on`` is something else.
        """
        if on not in _ON:
            raise InputError(f"on={on!r}: it is one of {', '.join(map(repr, _ON))}")
        self._on, self._export, self._fail = on, export, fail
        self._seen: int | None = None  # the step that was saved last, the same on every rank
        self._how: dict[str, Any] = {"fail_on": "error", **options}
        self._how |= {"targets": tuple(targets), "target_model": target_model}

    def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Called when a checkpoint is complete."""
        if self._on != "end":
            self._seen = state.global_step
            self._gate(lambda: _checkpoint(args, state), state)

    def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Called at the end of ``trainer.train()``."""
        if self._on != "save" and self._seen != state.global_step:
            self._gate(lambda: _last(args, state), state)

    def _gate(self, find: Callable[[], Path], state: Any) -> None:
        def draft() -> str | Path:
            return find() if self._export is None else self._export(find())

        try:
            report = gate_found(draft, **self._how)
        except Exception as error:
            if self._fail:
                raise
            if state.is_world_process_zero:
                ours = isinstance(error, GateError | InputError)
                _log.warning("eagle3-lint: %s", error, exc_info=not ours)
            return
        if state.is_world_process_zero:
            for checked in report.checkpoints:
                _log.info("eagle3-lint: %s\n%s", checked.path, "\n".join(verdicts(checked)))


def _checkpoint(args: Any, state: Any) -> Path:
    from transformers.trainer_utils import PREFIX_CHECKPOINT_DIR

    return Path(args.output_dir) / f"{PREFIX_CHECKPOINT_DIR}-{state.global_step}"


def _last(args: Any, state: Any) -> Path:
    """The folder that holds the outcome of a training."""
    whole, last = Path(args.output_dir), _checkpoint(args, state)
    return last if last.is_dir() and not (whole / "config.json").exists() else whole
