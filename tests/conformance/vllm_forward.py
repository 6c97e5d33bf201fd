"""Which parameters a vLLM draft's forward pass reads, found by running it.

Attention over a KV cache and rotary embedding are replaced by functions of the right shape and
linear layers by their definition; the rest is the draft class's own forward on the CPU. Values do
not matter, only which storages are read.
"""

from __future__ import annotations

import inspect
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

TOKENS = 3


class _Reads(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Collects the parameters whose storage any operator reads."""

    def __init__(self, model: torch.nn.Module) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.owners = {p.untyped_storage()._cdata: name for name, p in model.named_parameters()}
        self.seen: set[str] = set()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        for leaf in tree_leaves((args, kwargs)):
            if isinstance(leaf, torch.Tensor):
                owner = self.owners.get(leaf.untyped_storage()._cdata)
                if owner is not None:
                    self.seen.add(owner)
        return func(*args, **(kwargs or {}))


def parameters_read(model: Any) -> tuple[set[str], str | None]:
    """The parameters read by a draft step, and the error when it cannot be run.

    The states handed over have the width that ``fc`` takes (the draft's own without ``fc``). When
    the step raises, every parameter counts as read. The head and the map from draft to target
    tokens are read by ``compute_logits`` (llama_eagle3.py), which is not run here, and
    ``kv_b_proj`` by the attention that is replaced (MLAAttention, mla_attention.py).
    """
    names = {name for name, _ in model.named_parameters()}
    always = {
        name
        for name in names
        if name.startswith("lm_head.") or ".kv_b_proj." in name or name == "draft_id_to_target_id"
    }
    try:
        with _Reads(model) as reads, torch.no_grad():
            _quieten(model)
            _step(model)
    except Exception as error:
        return names, f"{type(error).__name__}: {error}"[:300]
    return reads.seen | always, None


def _step(model: Any) -> None:
    inner = model.model
    fc = getattr(inner, "fc", None)
    width = inner.embed_tokens.weight.shape[1]
    if fc is not None:
        width = fc.weight.shape[1]
    states = torch.zeros(TOKENS, width, dtype=inner.norm.weight.dtype)
    if hasattr(model, "combine_hidden_states"):
        states = model.combine_hidden_states(states)
    ids = torch.zeros(TOKENS, dtype=torch.long)
    given: dict[str, Any] = {
        "input_ids": ids,
        "positions": torch.arange(TOKENS),
        "hidden_states": states,
        "input_embeds": None,
        "inputs_embeds": None,
    }
    wanted = inspect.signature(type(inner).forward).parameters
    type(inner).forward(inner, **{k: v for k, v in given.items() if k in wanted})


def _quieten(model: Any) -> None:
    """Take native paths in place of kernels, and shapes in place of attention."""
    for module in model.modules():
        if _has_native(type(module)):
            module.forward = module.forward_native
        method = getattr(module, "quant_method", None)
        if method is not None and _is_linear(module):
            module.quant_method = _Linear()
        kind = type(module).__name__
        if kind == "Attention":
            module.forward = lambda query, key, value, *_, **__: query
        elif kind == "MLAAttention":
            module.forward = _latent
        if hasattr(module, "rotary_emb"):
            rotary = module.rotary_emb
            if rotary is not None:
                rotary.forward = lambda positions, query, key=None, *_, **__: (query, key)


def _has_native(kind: type) -> bool:
    """Whether a layer says itself how to compute without kernels (custom_op.py only names it)."""
    makers = [cls for cls in kind.__mro__ if "forward_native" in vars(cls)]
    return bool(makers) and makers[0].__name__ not in ("CustomOp", "PluggableLayer")


def _is_linear(module: Any) -> bool:
    """Embeddings and heads have a ``quant_method`` too, and sizes of a vocabulary."""
    return hasattr(module, "input_size") and not hasattr(module, "org_vocab_size")


def _latent(query: torch.Tensor, *_: Any, output_shape: Any = None, **__: Any) -> torch.Tensor:
    """In the place of latent attention: its output is [tokens, heads * value width]."""
    return query.new_zeros(output_shape)


class _Linear:
    """A linear layer, quantised or not: reads what it has, gives an output of the right width."""

    def apply(self, layer: Any, x: torch.Tensor, bias: Any = None) -> torch.Tensor:
        for parameter in layer.parameters(recurse=False):
            parameter.reshape(-1)[:1].clone()
        rows = getattr(layer, "output_size_per_partition", layer.output_size)
        return x.new_zeros(*x.shape[:-1], rows)
