"""``inspect``: what a draft is, without asking any runtime."""

from __future__ import annotations

import re
from dataclasses import asdict
from typing import Any

from eagle3_lint.facts import Facts, bare, layer_of
from eagle3_lint.report.model import ProducerReport

#: Ending of a bare tensor name → role, the same for every producer; first match wins.
_ROLES = (
    (r"^d2t$", "vocabulary.d2t"),
    (r"^t2d$", "vocabulary.t2d"),
    (r"^embed_tokens\.weight$", "embedding"),
    (r"^lm_head\.weight$", "head"),
    (r"^fc\.weight$", "aux.fc"),
    (r"^fc\.bias$", "aux.fc.bias"),
    (r"^fc_norm\.(\d+)\.weight$", r"aux.norm.\1"),
    (r"^aux_norm_low\.weight$", "aux.norm.0"),
    (r"^aux_norm_mid\.weight$", "aux.norm.1"),
    (r"^aux_norm_high\.weight$", "aux.norm.2"),
    (r"^input_norm\.weight$", "aux.input_norm"),
    (r"^mask_hidden$", "aux.mask"),
    (r"^norm\.weight$", "norm"),
    (r"self_attn\.(q|k|v|o|qkv|q_a|q_b|kv_b)_proj\.(weight|bias)$", r"attention.\1.\2"),
    (r"self_attn\.kv_a_proj_with_mqa\.weight$", "attention.kv_a.weight"),
    (r"self_attn\.fused_qkv_a_proj(?:_with_mqa)?\.weight$", "attention.qkv_a.weight"),
    (r"self_attn\.(q|k|q_a|kv_a)_(?:layer)?norm\.weight$", r"attention.\1_norm"),
    (r"mlp\.(gate|up|gate_up|down)_proj\.(weight|bias)$", r"mlp.\1.\2"),
    (r"post_attention_layernorm\.weight$", "post_attention_norm"),
    (r"input_layernorm\.weight$", "input_norm"),
    (r"hidden_norm\.weight$", "hidden_norm"),
)
_PATTERNS = tuple((re.compile(pattern), role) for pattern, role in _ROLES)


def role_of(name: str) -> str | None:
    """A tensor's role, or None when the name is no draft's."""
    core = bare(name)
    for pattern, role in _PATTERNS:
        match = pattern.search(core)
        if match is not None:
            found = match.expand(role).removesuffix(".weight")
            layer = layer_of(core)
            return found if layer is None else f"layer.{layer}.{found}"
    return None


def inspection(facts: Facts, producer: ProducerReport) -> dict[str, Any]:
    """The draft in plain data, ready for JSON."""
    tensors = [
        {"name": t.name, "role": role_of(t.name), "dtype": t.dtype, "shape": list(t.shape),
         "file": t.file}
        for t in facts.tensors.values()
    ]  # fmt: skip
    return {
        "path": facts.path,
        "producer": producer.to_json(),
        "dialect": facts.dialect,
        "architectures": facts.config.get("architectures"),
        "weights": facts.weights_format,
        "layers": list(facts.layers),
        "stated": asdict(facts.stated),
        "shown": asdict(facts.shown),
        "tensors": tensors,
        "problems": [{"file": p.file, "message": p.message} for p in facts.problems],
    }


def render_inspection(found: dict[str, Any]) -> str:
    """The same as text, ending in a newline."""
    producer = found["producer"]
    version = f" {producer['version']}" if producer["version"] else ""
    lines = [
        found["path"],
        f"producer      {producer['name']}{version} ({producer['confidence']})",
        f"dialect       {found['dialect']}",
        f"architecture  {', '.join(map(str, found['architectures'] or ['none']))}",
        f"layers        {len(found['layers'])}",
        "",
        f"{'dimension':<22}{'config.json':>12}{'tensors':>12}",
    ]
    for name, stated in found["stated"].items():
        shown = found["shown"][name]
        if stated is None and shown is None:
            continue
        mark = "  differ" if None not in (stated, shown) and stated != shown else ""
        lines.append(f"{name:<22}{_cell(stated):>12}{_cell(shown):>12}{mark}")
    if found["tensors"]:
        lines += ["", *_tensor_lines(found["tensors"])]
    lines += [f"problem: {p['file']}: {p['message']}" for p in found["problems"]]
    return "\n".join(lines) + "\n"


def _cell(value: object) -> str:
    return "-" if value is None else str(value)


def _tensor_lines(tensors: list[dict[str, Any]]) -> list[str]:
    widest = max(len(t["name"]) for t in tensors)
    roles = max(len(t["role"] or "unknown") for t in tensors)
    return [
        f"{t['role'] or 'unknown':<{roles}}  {t['name']:<{widest}}  {t['dtype']:<5} {t['shape']}"
        for t in sorted(tensors, key=lambda t: (t["role"] is None, t["role"] or t["name"]))
    ]
