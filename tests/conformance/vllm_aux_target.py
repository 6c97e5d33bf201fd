"""Target models of a vLLM release whose layers only count, to see which states are handed over.

The model is made by the release's own model loader from a config.json, and its own ``forward`` runs
over all its layers. Every layer adds one to the residual stream, which starts at zero: aux state k
is a tensor full of k. Not run: what a layer computes, and the last norm.
"""

from __future__ import annotations

import importlib
import inspect
from pathlib import Path
from typing import Any

import torch

from tests.conformance.vllm_runtime import optional

TOKENS = 3


class _Norm(torch.nn.Module):
    """Gives back what it gets."""

    def forward(self, states: Any, residual: Any = None, *_: Any, **__: Any) -> Any:
        return states if residual is None else (states, residual)


def _counts(layer: torch.nn.Module) -> None:
    """Let a decoder layer add one to the residual stream, whatever it would compute."""
    signature = inspect.signature(type(layer).forward)

    def forward(*args: Any, **kwargs: Any) -> Any:
        given = signature.bind(layer, *args, **kwargs).arguments
        states, residual = given["hidden_states"], given.get("residual")
        if "residual" not in signature.parameters:
            return states + 1
        return states + 1, torch.zeros_like(states) if residual is None else residual

    layer.forward = forward


class Counting:
    """A target model that hands over counted states."""

    def __init__(self, model: Any, hidden: int) -> None:
        self.model = model
        self.hidden = hidden
        self.inner = model.model
        for layer in self.inner.layers:
            _counts(layer)
        self.inner.norm = _Norm()

    def forget(self) -> None:
        """Undo what an earlier question told a model of transformers' own (models/transformers/
        base.py): its hooks, and the list of what is recorded, which belongs to the class."""
        told = getattr(self.model, "_output_aux_hidden_states_kwargs", None)
        if told is None:
            return
        told.clear()
        recorded = self.inner._can_record_outputs or {}
        for name in [name for name in recorded if name.startswith("aux_hidden_state_")]:
            del recorded[name]
        self.inner._output_capturing_hooks_installed = False
        for module in self.inner.modules():
            module._forward_hooks.clear()

    def told(self) -> list[Any]:
        """The ids as the model keeps them; empty for a model of transformers' own."""
        return list(getattr(self.inner, "aux_hidden_state_layers", ()))

    def states(self) -> list[int]:
        """The states that one forward pass hands over, in the order in which it does.

        Embeddings are given in the place of token ids, as the runners do for multimodal models.
        """
        given = {
            "input_ids": None,
            "positions": torch.arange(TOKENS),
            "intermediate_tensors": None,
            "inputs_embeds": torch.zeros(TOKENS, self.hidden),
        }
        wanted = inspect.signature(type(self.model).forward).parameters
        with torch.no_grad():
            output = self.model.forward(**{k: v for k, v in given.items() if k in wanted})
        if not isinstance(output, tuple):
            return []
        return [int(state[0, 0]) for state in output[1]]


def make(arguments: Any, configs: Any, folder: Path) -> Counting:
    """The model that the config.json in ``folder`` describes.

    ``arguments`` and ``configs`` are the release's ``EngineArgs`` and ``vllm.config``. Raises
    whatever the release does when it does not know the model or cannot make it here.
    """
    config = arguments(
        model=str(folder),
        tokenizer=str(folder),
        skip_tokenizer_init=True,
        dtype="float32",
        max_model_len=512,
        enforce_eager=True,
        disable_log_stats=True,
    ).create_engine_config()
    loader = optional("vllm.model_executor.model_loader.utils")
    if loader is None or not hasattr(loader, "initialize_model"):
        loader = importlib.import_module("vllm.model_executor.model_loader.loader")
    initialize = getattr(loader, "initialize_model", None) or loader._initialize_model
    groups: Any = importlib.import_module("vllm.distributed.parallel_state")
    if getattr(groups, "_EP", None) is None:
        groups._EP = groups._TP  # made for models with experts only; one rank is like another
    with configs.set_current_vllm_config(config):
        model = initialize(vllm_config=config)
    return Counting(model, config.model_config.hf_text_config.hidden_size)
