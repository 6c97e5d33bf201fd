"""Edits of a good Llama draft: biases and the flags that change its forward pass."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tests.conformance.draft import AUX, HEAD_DIM, HEADS, HIDDEN, INTERMEDIATE, KV_HEADS, Draft

Edit = Callable[[Draft], Draft]
Q, KV = HEADS * HEAD_DIM, KV_HEADS * HEAD_DIM
M: Final = "midlayer."


def _biases(draft: Draft, *which: str) -> Draft:
    rows = {"q": Q, "k": KV, "v": KV, "o": HIDDEN}
    for letter in which:
        draft = draft.put(f"{M}self_attn.{letter}_proj.bias", rows[letter])
    return draft


def _mlp_biases(draft: Draft) -> Draft:
    return (
        draft.put(f"{M}mlp.gate_proj.bias", INTERMEDIATE)
        .put(f"{M}mlp.up_proj.bias", INTERMEDIATE)
        .put(f"{M}mlp.down_proj.bias", HIDDEN)
    )


def fc_norms(draft: Draft, *names: str) -> Draft:
    for name in names:
        draft = draft.put(f"{name}.weight", HIDDEN)
    return draft


THREE_FC_NORMS = ("fc_norm.0", "fc_norm.1", "fc_norm.2")
THREE_AUX_NORMS = ("aux_norm_low", "aux_norm_mid", "aux_norm_high")

BIAS: Final[dict[str, Edit]] = {
    "qkv bias": lambda d: _biases(d, "q", "k", "v"),
    "qkvo bias": lambda d: _biases(d, "q", "k", "v", "o"),
    "mlp bias": _mlp_biases,
    "fc bias": lambda d: d.put("fc.bias", HIDDEN),
    "attention_bias": lambda d: d.config(attention_bias=True),
    "attention_bias, qkv bias": lambda d: _biases(d, "q", "k", "v").config(attention_bias=True),
    "attention_bias, qkvo bias": lambda d: _biases(d, "q", "k", "v", "o").config(
        attention_bias=True
    ),
    "bias flag": lambda d: d.config(bias=True),
    "bias flag, fc bias": lambda d: d.put("fc.bias", HIDDEN).config(bias=True),
    "bias flag, fc and o bias": lambda d: _biases(d.put("fc.bias", HIDDEN), "o").config(bias=True),
    "bias flag, every bias": lambda d: _mlp_biases(
        _biases(d.put("fc.bias", HIDDEN), "q", "k", "v", "o")
    ).config(bias=True),
    "bias false, fc bias": lambda d: d.put("fc.bias", HIDDEN).config(bias=False),
    "attention_bias, bias flag, o bias": lambda d: _biases(d, "o").config(
        attention_bias=True, bias=True
    ),
    "mlp_bias": lambda d: d.config(mlp_bias=True),
    "mlp_bias, mlp bias": lambda d: _mlp_biases(d).config(mlp_bias=True),
}

SWITCHES: Final[dict[str, Edit]] = {
    "fc_norm flag and tensors": lambda d: fc_norms(d, *THREE_FC_NORMS).config(fc_norm=True),
    "fc_norm flag alone": lambda d: d.config(fc_norm=True),
    "fc_norm tensors alone": lambda d: fc_norms(d, *THREE_FC_NORMS),
    "fc_norm flag, one tensor missing": lambda d: fc_norms(d, *THREE_FC_NORMS[:2]).config(
        fc_norm=True
    ),
    "fc_norm flag, one tensor too many": lambda d: fc_norms(d, *THREE_FC_NORMS, "fc_norm.3").config(
        fc_norm=True
    ),
    "fc_norm false with tensors": lambda d: fc_norms(d, *THREE_FC_NORMS).config(fc_norm=False),
    "fc_norm nested": lambda d: fc_norms(d, *THREE_FC_NORMS).eagle(fc_norm=True),
    "fc_norm too wide": lambda d: (
        fc_norms(d, *THREE_FC_NORMS).put("fc_norm.0.weight", HIDDEN + 8).config(fc_norm=True)
    ),
    "use_aux_norm with aux_norm names": lambda d: fc_norms(d, *THREE_AUX_NORMS).config(
        use_aux_norm=True
    ),
    "use_aux_norm with fc_norm names": lambda d: fc_norms(d, *THREE_FC_NORMS).config(
        use_aux_norm=True
    ),
    "fc_norm with aux_norm names": lambda d: fc_norms(d, *THREE_AUX_NORMS).config(fc_norm=True),
    "aux_norm tensors alone": lambda d: fc_norms(d, *THREE_AUX_NORMS),
    "norm_output": lambda d: d.config(norm_output=True),
    "fc_norm and norm_output": lambda d: fc_norms(d, *THREE_FC_NORMS).config(
        fc_norm=True, norm_output=True
    ),
    "norm_before_fc nested": lambda d: d.put("input_norm.weight", AUX * HIDDEN).eagle(
        norm_before_fc=True
    ),
    "norm_before_fc top": lambda d: d.put("input_norm.weight", AUX * HIDDEN).config(
        norm_before_fc=True
    ),
    "norm_before_fc nested false, top true": lambda d: (
        d.put("input_norm.weight", AUX * HIDDEN)
        .eagle(norm_before_fc=False)
        .config(norm_before_fc=True)
    ),
    "norm_before_fc nested true, top false": lambda d: (
        d.put("input_norm.weight", AUX * HIDDEN)
        .eagle(norm_before_fc=True)
        .config(norm_before_fc=False)
    ),
    "norm_before_fc flag alone": lambda d: d.config(norm_before_fc=True),
    "norm_before_fc nested flag alone": lambda d: d.eagle(norm_before_fc=True),
    "input_norm tensor alone": lambda d: d.put("input_norm.weight", AUX * HIDDEN),
    "input_norm too narrow": lambda d: d.put("input_norm.weight", HIDDEN).config(
        norm_before_fc=True
    ),
    "norm_before_fc with fc_norm": lambda d: fc_norms(
        d.put("input_norm.weight", AUX * HIDDEN), *THREE_FC_NORMS
    ).config(norm_before_fc=True, fc_norm=True),
    "norm_before_residual": lambda d: d.config(norm_before_residual=True),
    "norm_before_residual false": lambda d: d.config(norm_before_residual=False),
    "q_norm and k_norm": lambda d: d.put(f"{M}self_attn.q_norm.weight", HEAD_DIM).put(
        f"{M}self_attn.k_norm.weight", HEAD_DIM
    ),
    "mask_hidden": lambda d: d.put("mask_hidden", 1, 1, AUX * HIDDEN),
    "mask_hidden, parallel_drafting": lambda d: d.put("mask_hidden", 1, 1, AUX * HIDDEN).config(
        parallel_drafting=True, mask_token_id=7
    ),
    "sliding window": lambda d: d.config(layer_types=["sliding_attention"], sliding_window=512),
}
