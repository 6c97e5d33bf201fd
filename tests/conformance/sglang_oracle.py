"""Ask an SGLang release what it does with a draft, by letting it.

    python -m tests.conformance.sglang_oracle --sources DIR --release R DRAFT...

prints one JSON line per draft folder. The release's own server arguments, model config, class
resolution, draft class, weight iterator, ``load_weights`` and draft worker run, on the CPU, with
one rank and a stand-in target model. Every parameter holds NaN before loading, and every stored
tensor holds a constant of its own (``corpus.write``), so what reached where can be read off
afterwards.
"""

from __future__ import annotations

import importlib
import json
import logging
import tempfile
from pathlib import Path
from typing import Any

from tests.conformance import (
    sglang_registry,
    sglang_runtime,
    sglang_target,
    sglang_trace,
    sglang_world,
    telling,
)
from tests.conformance.draft import HIDDEN


class Oracle:
    """One release, ready to be asked."""

    def __init__(self, folder: Path, release: str, transformers_root: Path) -> None:
        sglang_runtime.prepare(folder, release, transformers_root)
        self.release = release
        self.workdir = tempfile.TemporaryDirectory()
        sglang_registry.fill(folder)
        self.loader: Any = importlib.import_module("sglang.srt.model_loader.loader")
        self.config: Any = importlib.import_module("sglang.srt.configs.model_config")
        from tests.conformance import sglang_worker

        self.worker = sglang_worker.DraftWorker(folder, release)
        self.key = sglang_worker.release_key(release)
        args = sglang_world.server_args(self._target(HIDDEN), self._target(HIDDEN))
        sglang_world.publish(args)
        sglang_world.one_rank(args)

    def ask(self, draft: Path) -> dict[str, Any]:
        """The answer for one draft folder, ready for JSON."""
        import torch

        trace = sglang_trace.Trace()
        error: dict[str, str] | None = None
        found: dict[str, Any] = {}
        try:
            found = self._load(draft, trace)
        except Exception as raised:
            error = telling.worded(raised, draft, "sglang")
        finally:
            torch.set_default_dtype(torch.float32)
        return telling.told(trace.stage, error, found, trace.shapes)

    def _target(self, hidden: int) -> Path:
        """A config of a plain Llama target model of that width; context length 2048."""
        folder = Path(self.workdir.name) / f"target{hidden}"
        if not folder.is_dir():
            folder.mkdir()
            (folder / "config.json").write_text(json.dumps(sglang_target.target_config(hidden)))
        return folder

    def _load(self, draft: Path, trace: sglang_trace.Trace) -> dict[str, Any]:
        import torch

        fields = json.loads((draft / "config.json").read_text())
        hidden = sglang_target.target_width(fields)
        args = sglang_world.server_args(self._target(hidden), draft)
        sglang_world.publish(args)
        model_config = self._model_config(args, draft)
        trace.stage = "build"
        model = self._read_weights(model_config, draft, trace)
        trace.stage = "after-load"
        target = sglang_target.target_runner(hidden, self._target(hidden))
        token_map = self.worker.finish(model, model_config, target)
        trace.stage = "done"
        read, failure = self._read_by_forward(model, model_config, fields, hidden)
        filled_by_loading = {
            n for n, t in trace.loaded.items() if not sglang_trace.holes(model, n, t)
        }
        unfilled = [
            name
            for name, parameter in model.named_parameters()
            if name in read and sglang_trace.holes(model, name, parameter)
        ]
        final = sglang_trace.counts(trace.loaded.values(), trace.values)
        torch.set_default_dtype(torch.float32)
        return {
            **sglang_trace.judge(trace, final),
            "unfilled": sorted(unfilled),
            "from_target": sorted(
                name
                for name, parameter in model.named_parameters()
                if bool(((p := parameter.float()) == sglang_target.TARGET_EMBEDDING).any())
                or bool((p == sglang_target.TARGET_HEAD).any())
            ),
            "filled": sorted(filled_by_loading),
            "unread": sorted(set(dict(model.named_parameters())) - read),
            "token_map": None
            if token_map is None
            else {
                "from": trace.map_from,
                "shape": list(token_map.shape),
                "dtype": str(token_map.dtype).removeprefix("torch."),
            },
            "class": type(model).__name__,
            "dtype": str(model_config.dtype).removeprefix("torch."),
            "forward_error": failure,
        }

    def _model_config(self, args: Any, draft: Path) -> Any:
        """As ``TpModelWorker`` does for its draft (managers/tp_worker.py), context of the
        target."""
        import inspect

        cls = self.config.ModelConfig
        context = 2048
        if not hasattr(cls, "from_server_args"):
            return cls(
                str(draft),
                trust_remote_code=args.trust_remote_code,
                revision=args.revision,
                context_length=context,
                model_override_args=args.json_model_override_args,
                is_embedding=args.is_embedding,
                dtype=args.dtype,
                quantization=args.quantization,
            )
        known = inspect.signature(cls.from_server_args).parameters
        given: dict[str, Any] = {"model_path": str(draft), "is_draft_model": True}
        if "model_revision" in known:
            given["model_revision"] = None
        if "context_length" in known:
            given["context_length"] = context
        else:
            args.context_length = context
        return cls.from_server_args(args, **given)

    def _read_weights(self, model_config: Any, draft: Path, trace: sglang_trace.Trace) -> Any:
        """Build and load with the release's ``DefaultModelLoader``, watching every tensor go in."""
        load_config = importlib.import_module("sglang.srt.configs.load_config").LoadConfig()
        device = importlib.import_module("sglang.srt.configs.device_config").DeviceConfig("cuda")
        build = self.loader._initialize_model

        def watched(*args: Any, **kwargs: Any) -> Any:
            model = build(*args, **kwargs)
            trace.shapes = {n: list(p.shape) for n, p in model.named_parameters()}
            sglang_trace.poison(model)
            if model_config.quantization is not None:
                sglang_trace.leave_as_loaded(model)
            model.load_weights = sglang_trace.watch(model, model.load_weights, trace)
            trace.stage = "load"
            return model

        loader = self.loader.DefaultModelLoader(load_config)
        self.loader._initialize_model = watched
        try:
            return loader.load_model(model_config=model_config, device_config=device)
        finally:
            self.loader._initialize_model = build

    def _read_by_forward(
        self, model: Any, model_config: Any, fields: dict[str, Any], hidden: int
    ) -> tuple[set[str], str | None]:
        from tests.conformance import sglang_forward

        width = self._aux_width(fields, hidden)
        if model_config.quantization is not None:
            return set(dict(model.named_parameters())), "not run: quantised layers need kernels"
        if type(model).__name__ == "Eagle3DeepseekV2ForCausalLM":
            # models/kimi_k25_eagle3.py forward and deepseek_v2.py read every parameter; fc and
            # fc_norm only when the incoming width is not the draft's own.
            names = set(dict(model.named_parameters()))
            if width == model.config.hidden_size:
                names = {n for n in names if not n.startswith(("model.fc.", "model.fc_norm."))}
            return names, None
        try:
            return sglang_forward.parameters_read(model, width)
        except Exception as error:
            return set(dict(model.named_parameters())), f"{type(error).__name__}: {error}"

    def _aux_width(self, fields: dict[str, Any], hidden: int) -> int:
        """Width of what the target hands over: model_runner.py's reading of ``eagle_config``."""
        ids = None
        if self.key >= (0, 4, 9):
            try:
                nested = fields["eagle_config"]
                if self.key >= (0, 5, 8) and not nested.get("use_aux_hidden_state", True):
                    return hidden
                ids = nested["eagle_aux_hidden_state_layer_ids"]
            except Exception:
                ids = None
        return hidden * (3 if ids is None else len(ids))


def prepare(folder: Path, release: str, transformers_root: Path) -> telling.Ask:
    """A release that answers."""
    logging.disable(logging.CRITICAL)
    importlib.import_module("tqdm").tqdm.monitor_interval = 0  # no thread that outlives a case
    return Oracle(folder, release, transformers_root).ask


if __name__ == "__main__":
    raise SystemExit(telling.answer_all(__doc__, prepare, None))
