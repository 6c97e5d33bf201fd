"""E3L7xx and E3L609: dtypes, quantisation, and what of the target model reaches the draft."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from eagle3_lint.checks.mending import quantised
from eagle3_lint.checks.subject import Subject
from eagle3_lint.diagnostic import Finding


def undescribed(subject: Subject) -> Finding | None:
    """A quantised draft of a method that no contract describes: its tensors cannot be judged."""
    load, contract = subject.load, subject.contract
    method = load.environment.get("quant") if load is not None else None
    if contract is None or method is None or method in contract.quantisations:
        return None
    if not quantised(subject.facts):
        return None  # a configuration that was copied along; the tensors are plain
    return Finding(
        "E3L701",
        {"target": str(subject.target), "method": method},
        subject.field(
            "/quantization_config/quant_method", "/quantization_config", "/compression_config"
        ),
    )


def check_precision(subject: Subject) -> Iterator[Finding]:
    """Findings about what the target model's own precision does to the draft."""
    model, load = subject.model, subject.load
    if model is None or load is None or load.error is not None:
        return
    traits = subject.release.traits
    values: dict[str, object] = {"target": str(subject.target), "model": model.name}
    plain = "quantization_config" not in subject.resolution.config
    inherits = traits.get("inherits_quantisation")
    if inherits is not None and model.quantised and plain:
        yield Finding(
            "E3L702",
            {**values, "error": inherits["raises"]},
            source=subject.cite(inherits["source"]),
        )
    kept = traits.get("draft_dtype")
    ours = _dtype(subject, kept) if kept is not None else None
    if kept is not None and model.dtype is not None and ours != model.dtype:
        yield Finding(
            "E3L703",
            {**values, "draft": ours, "theirs": model.dtype},
            subject.field("/torch_dtype", "/dtype"),
            subject.cite(kept["source"]),
        )
    one = traits.get("one_kv_size")
    size = subject.facts.stated.key_rows
    if one is not None and None not in (size, model.kv_size) and size != model.kv_size:
        yield Finding(
            "E3L609",
            {**values, "draft": size, "theirs": model.kv_size, "error": one["raises"]},
            subject.field("/num_key_value_heads"),
            subject.cite(one["source"]),
        )


def _dtype(subject: Subject, kept: Mapping[str, Any]) -> str:
    """What a runtime that keeps the draft's own dtype makes of its configuration."""
    config = subject.resolution.config
    said = config.get("dtype", config.get("torch_dtype"))
    text = str(said).removeprefix("torch.") if said is not None else ""
    return str(kept["absent"]) if text in ("", "float32") else text
