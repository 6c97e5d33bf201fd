"""Which parameters a draft's forward pass reads, found by running it.

Attention over a KV cache and rotary embedding are replaced by functions of the right shape;
everything else is the draft class's own forward on the CPU. Values do not matter, only which
storages are read.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
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


def parameters_read(model: Any, aux_width: int) -> tuple[set[str], str | None]:
    """The parameters read by a forward pass after the target's, and by the draft steps that follow.

    ``aux_width`` is the width of what the target hands over. When that does not fit the draft (the
    first forward raises), its own ``fc`` input width is used for the answer and the error's text is
    returned beside it. The output head is read by the logits processor
    (layers/logits_processor.py), which is not run here.
    """
    hidden = model.model.embed_tokens.weight.shape[1]
    failure: str | None = None
    with _Reads(model) as reads, torch.no_grad():
        _quieten(model)
        try:
            _step(model, aux_width)
        except RuntimeError as error:
            failure = f"{type(error).__name__}: {error}"
            _step(model, model.model.fc.weight.shape[1])
        if hidden != aux_width:
            _step(model, hidden)
    for name, parameter in model.named_parameters():
        if parameter is model.lm_head.weight:
            reads.seen.add(name)
    return reads.seen, failure


def _step(model: Any, width: int) -> None:
    mode = SimpleNamespace(
        is_extend=lambda: False, is_draft_extend_v2=lambda: False, is_decode=lambda: True
    )
    states = torch.zeros(TOKENS, width, dtype=torch.bfloat16)  # the target model's dtype
    batch = SimpleNamespace(
        spec_info=SimpleNamespace(hidden_states=states),
        mm_input_embeds=None,
        forward_mode=mode,
        contains_mm_inputs=lambda: False,
        mrope_positions=torch.zeros(3, TOKENS, dtype=torch.long),
    )
    ids = torch.zeros(TOKENS, dtype=torch.long)
    model.model(ids, torch.arange(TOKENS), batch)


def _quieten(model: Any) -> None:
    """Take native paths in place of kernels, and shapes in place of attention."""
    for module in model.modules():
        native = getattr(module, "forward_native", None)
        if native is not None:
            module.forward = native
    for attention in _attentions(model):
        attention.rotary_emb.forward = lambda positions, q, k, *_, **__: (q, k)
        attention.attn.forward = lambda q, k, v, *_, **__: q


def _attentions(model: Any) -> Iterator[Any]:
    for module in model.modules():
        if hasattr(module, "rotary_emb") and hasattr(module, "attn"):
            yield module
