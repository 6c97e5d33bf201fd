"""Reports to render: of small drafts on disk, and of findings made up for one test."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import eagle3_lint
from eagle3_lint.diagnostic import Diagnostic, Edit, Fix, Place
from eagle3_lint.report.model import (
    CheckpointReport,
    LoadReport,
    ProducerReport,
    Report,
    Result,
    TargetReport,
    Verdict,
)
from tests.drafts import HIDDEN, VOCAB, write_case

#: What the drafts of tests/drafts.py draft for.
TARGET = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": HIDDEN,
    "num_hidden_layers": 32,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "vocab_size": VOCAB,
    "max_position_embeddings": 4096,
    "torch_dtype": "bfloat16",
}
#: A tensor name with what every format has to escape, and what none can hold.
ODD = 'a "b" <c> & d,e:f::g 100%0A\r\nh\x00\x1b[31m {0} [x](http://y) ]]> é \ufffe'
#: Name → case as tests/drafts.py takes them.
CASES: Mapping[str, Mapping[str, Any]] = {
    "good": {"base": "llama"},
    # SGLang reads layers.0 from 0.5.12 on (0.5.11 srt/models/llama_eagle3.py:251).
    "broken": {"base": "llama", "rename": {"midlayer.": "layers.0."}},
    # vLLM raises for a name that it does not know (0.33.0 models/utils.py:443).
    "odd": {"base": "llama", "add": {ODD: ["BF16", 4]}},
    "refused": {"base": "llama", "config": {"hidden_act": "gelu"}},
    "positions": {"base": "llama", "config": {"max_position_embeddings": 512}},
    "cut": {"base": "llama", "container": "truncated"},
    "twice": {"base": "llama", "container": "duplicate"},
    "no-weights": {"base": "llama", "container": "absent"},
    "outside": {"base": "llama", "container": "shard-outside"},
    "lfs": {"base": "llama", "container": "lfs"},
    "speculators": {"base": "speculators"},
    "ids": {
        "base": "llama",
        "config": {"eagle_config": {"eagle_aux_hidden_state_layer_ids": [8, 20, 99]}},
    },
}
TARGETS = ("sglang==0.5.9", "vllm==0.33.0")


def draft(folder: Path, name: str) -> Path:
    """One of :data:`CASES`, beside the target model that :func:`checked` takes."""
    (folder / "target").mkdir(exist_ok=True)
    (folder / "target" / "config.json").write_text(json.dumps(TARGET))
    return write_case(CASES[name], folder / name)


def checked(path: Path | str, folder: Path, targets: Iterable[str] = TARGETS) -> Report:
    return eagle3_lint.check(path, targets, str(folder / "target"))


def together(*reports: Report) -> Report:
    return Report(tuple(c for report in reports for c in report.checkpoints))


def everything(folder: Path) -> Report:
    """All of :data:`CASES` in one report."""
    return together(*(checked(draft(folder, name), folder) for name in CASES))


def diagnostic(
    message: str = "it is wrong",
    *where: Place,
    rule: str = "E3L201",
    severity: Any = "error",
    effect: Any = "broken",
    fix: Fix | None = None,
) -> Diagnostic:
    return Diagnostic(
        rule=rule,
        name="tensor-dropped",
        severity=severity,
        effect=effect,
        message=message,
        where=where,
        source=None,
        fix=fix,
        url=f"docs/rules/{rule}.md",
    )


def result(
    *diagnostics: Diagnostic,
    runtime: str = "sglang",
    release: str = "0.5.9",
    model: str | None = "kimi-k2.5",
    verdict: Verdict = "broken",
) -> Result:
    target = TargetReport(runtime, release, model)
    return Result(target, verdict, LoadReport("ok", "Some"), None, diagnostics)


def report(*results: Result, path: str = "draft") -> Report:
    producer = ProducerReport("unknown", None, "unknown")
    return Report((CheckpointReport(path, producer, "midlayer", results),))


def one(found: Diagnostic, path: str = "draft") -> Report:
    """A report of one finding."""
    return report(result(found), path=path)


def safe(*edits: Edit) -> Fix:
    return Fix("put it right", "safe", edits)
