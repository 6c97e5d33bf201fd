"""Ask TensorRT-LLM's own loader what it does with a draft, by letting it.

    python -m tests.conformance.tensorrt_oracle --sources DIR --release R DRAFT...

prints one JSON line per draft folder (``-`` reads folders from standard input). Reading the
configuration, building the draft beside a target model, its ``load_weights`` and what it takes from
the target are the release's own code, as far as the sources in DIR go (``tensorrt_runtime.REAL``).
Every parameter holds NaN before loading, and every stored tensor holds a constant of its own.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from tests.conformance import sglang_target, sglang_trace, telling, tensorrt_runtime
from tests.conformance.draft import VOCAB
from tests.conformance.tensorrt_runtime import PACKAGE
from tests.conformance.tensorrt_world import TARGET_LAYERS, speculative_config
from tests.conformance.tensorrt_world import Mapping as OneRank

#: Tensors that have values of their own.
ASIDE: Final = ("d2t", "t2d")
#: Parameters that are made of another's tensor beside it (MLA.create_weights).
DERIVED: Final = (".k_b_proj_trans", ".v_b_proj")


class Oracle:
    """One release, ready to be asked."""

    def __init__(self, folder: Path, release: str, transformers_root: Path) -> None:
        tensorrt_runtime.prepare(folder, release, transformers_root)
        self.speculative = tensorrt_runtime.module("_torch.models.modeling_speculative")
        self.configs = tensorrt_runtime.module("_torch.model_config")
        self.embedding = tensorrt_runtime.module("_torch.modules.embedding")
        self.mapper = tensorrt_runtime.module("_torch.models.checkpoints.hf.weight_mapper")

    def ask(self, draft: Path) -> dict[str, Any]:
        """The answer for one draft folder, ready for JSON."""
        import torch

        trace = sglang_trace.Trace()
        error: dict[str, str] | None = None
        found: dict[str, Any] = {}
        try:
            found = self._load(draft, trace)
        except Exception as raised:
            error = telling.worded(raised, draft, PACKAGE)
        finally:
            torch.set_default_dtype(torch.float32)
        return telling.told(trace.stage, error, found, trace.shapes)

    def _load(self, draft: Path, trace: sglang_trace.Trace) -> dict[str, Any]:
        from safetensors.torch import load_file

        fields = json.loads((draft / "config.json").read_text())
        trace.stage = "build"
        target = self._target(sglang_target.target_width(fields), draft)
        model = target.draft_model
        own_embedding = model.model.embed_tokens is not None
        trace.shapes = {n: list(p.shape) for n, p in model.named_parameters()}
        sglang_trace.poison(model)
        weights = load_file(draft / "model.safetensors")
        for name, tensor in weights.items():
            if name in ASIDE:
                continue
            weight = tensor.is_floating_point() and tensor.numel()
            trace.values[name] = float(tensor.flatten()[0]) if weight else float("nan")
            trace.sizes[name] = tensor.numel()
        trace.stage = "load"
        target.load_draft_weights(weights, self._mapper_for(target))
        trace.stage = "done"
        held = [
            p.data
            for name, p in model.named_parameters()
            if p.is_floating_point() and not name.endswith(DERIVED)
        ]
        final = sglang_trace.counts(held, trace.values)
        if not own_embedding:
            # The target's is taken instead: what the file has for it is not missed.
            trace.values = {n: v for n, v in trace.values.items() if "embed_tokens" not in n}
        return {
            **sglang_trace.judge(trace, final),
            "unfilled": sorted(
                name for name, p in model.named_parameters() if sglang_trace.holes(model, name, p)
            ),
            "from_target": sorted(
                name for name, p in model.named_parameters() if _is_of_target(p.float())
            ),
            "class": type(model).__name__,
        }

    def _target(self, hidden: int, draft: Path) -> Any:
        """A target model with an embedding and a head, and the draft that the release builds beside
        them."""
        import torch

        config = self.configs.ModelConfig(
            pretrained_config=_target_config(hidden),
            mapping=OneRank(),
            spec_config=speculative_config(draft),
        )
        # Layers of a real target model are registered here, and older states look for the lists.
        config.extra_attrs.update(attn_layers={}, mla_layers={})
        inner = torch.nn.Module()
        inner.embed_tokens = self.embedding.Embedding(VOCAB, hidden, dtype=torch.bfloat16)
        target = self.speculative.SpecDecOneEngineForCausalLM(inner, config)
        with torch.no_grad():
            inner.embed_tokens.weight.fill_(sglang_target.TARGET_EMBEDDING)
            target.lm_head.weight.fill_(sglang_target.TARGET_HEAD)
        return target

    def _mapper_for(self, target: Any) -> Any:
        """Later states look for the mapper by the draft's architecture and give it the draft, as
        ``_torch/pyexecutor/model_loader.py`` does; earlier ones use the target's."""
        mapper = self.mapper.HfWeightMapper()
        config = getattr(target, "draft_config", None)
        if config is None:
            mapper.init_model_and_config(target, target.model_config)
        else:
            config.pretrained_config.architectures[0]
            mapper.init_model_and_config(target.draft_model, config)
        return mapper


def _is_of_target(values: Any) -> bool:
    of = (sglang_target.TARGET_EMBEDDING, sglang_target.TARGET_HEAD)
    return any(bool((values == value).any()) for value in of)


def _target_config(hidden: int) -> Any:
    from transformers import LlamaConfig

    fields: Mapping[str, Any] = sglang_target.target_config(hidden)
    assert fields["num_hidden_layers"] == TARGET_LAYERS
    return LlamaConfig(**fields)


def prepare(folder: Path, release: str, transformers_root: Path) -> telling.Ask:
    """A release that answers."""
    logging.disable(logging.CRITICAL)
    return Oracle(folder, release, transformers_root).ask


if __name__ == "__main__":
    raise SystemExit(telling.answer_all(__doc__, prepare, None))
