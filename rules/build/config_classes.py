"""What Hugging Face configuration classes add to a config.json, by running them.

    python rules/build/config_classes.py FOLDER

FOLDER holds one installation of transformers per release of it (``FOLDER/4.57.1/transformers``,
made with ``pip install --target FOLDER/4.57.1 --no-deps transformers==4.57.1``). Each is run in a
process of its own; rules/config_classes.json is written anew. Needs what transformers imports
(huggingface_hub, tokenizers, safetensors, pyyaml, regex, requests, tqdm) in the running Python.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

OUT = Path(__file__).parent.parent / "config_classes.json"
#: model_types that drafts have; for others only the class's name and existence are kept.
DRAFT_TYPES = (
    "llama", "mistral", "qwen2", "qwen3", "qwen3_moe", "deepseek_v2", "deepseek_v3", "kimi_k2",
    "gpt_oss", "glm4_moe", "gemma3_text", "llama4_text", "phi3", "minimax_m2",
)  # fmt: skip
FIELDS = (
    "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads",
    "num_key_value_heads", "head_dim", "vocab_size", "hidden_act", "attention_bias", "mlp_bias",
    "tie_word_embeddings", "rms_norm_eps", "max_position_embeddings", "q_lora_rank", "kv_lora_rank",
    "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim", "intermediate_size_mlp",
)  # fmt: skip
#: Two sizings that no default has: a field that follows them is derived from them.
SIZINGS = ({"hidden_size": 1344, "num_attention_heads": 21},
           {"hidden_size": 1320, "num_attention_heads": 12})  # fmt: skip
FORMULAS = {
    "num_attention_heads": lambda c: c["num_attention_heads"],
    "hidden_size // num_attention_heads": lambda c: c["hidden_size"] // c["num_attention_heads"],
    "qk_nope_head_dim + qk_rope_head_dim": lambda c: (
        c.get("qk_nope_head_dim", 0) + c.get("qk_rope_head_dim", 0)
    ),
}


def _value(cls: Any, field: str, given: dict[str, Any]) -> Any:
    try:
        value = getattr(cls(**given), field, "absent")
    except Exception as error:
        return f"raises {type(error).__name__}"
    return value if value is None or isinstance(value, (int, float, str, bool)) else "absent"


def _describe(cls: Any, field: str, extra: dict[str, Any]) -> Any:
    """The value of ``field`` when it is left out (or null): a constant or a formula."""
    if field in SIZINGS[0]:
        return {"value": _value(cls, field, extra)}
    seen = [_value(cls, field, {**sizing, **extra}) for sizing in SIZINGS]
    if seen[0] == seen[1]:
        return {"value": seen[0]}
    for formula, apply in FORMULAS.items():
        heads = ("qk_nope_head_dim", "qk_rope_head_dim")
        sizes = [{**s, **{f: _value(cls, f, s) for f in heads}} for s in SIZINGS]
        try:
            if seen == [apply(s) for s in sizes]:
                return {"formula": formula}
        except TypeError:
            continue
    raise ValueError(f"{cls.__name__}.{field} is {seen}: no known formula")


def _refuses(cls: Any, given: dict[str, Any]) -> bool:
    try:
        cls(**given)
    except Exception:
        return True
    return False


def describe_here() -> dict[str, Any]:
    """Run in a process with one transformers: every known type and the drafts' defaults."""
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING, CONFIG_MAPPING_NAMES

    known = dict(sorted(CONFIG_MAPPING_NAMES.items()))
    details = {}
    for kind in DRAFT_TYPES:
        if kind not in known:
            continue
        cls = CONFIG_MAPPING[kind]
        absent, null = {}, {}
        for field in FIELDS:
            found = _describe(cls, field, {})
            if found.get("value") != "absent":
                absent[field] = found
            given = _describe(cls, field, {field: None})
            if given != {"value": None}:
                null[field] = given
        details[kind] = {"absent": absent, "null": null}
        if _refuses(cls, {"hidden_size": 64, "num_attention_heads": 6}):
            details[kind]["heads_must_divide"] = True
    return {"known": known, "details": details}


def _run(folder: Path) -> dict[str, Any]:
    code = f"import sys, json; sys.path.insert(0, {str(Path(__file__).parent)!r})\n"
    code += "from config_classes import describe_here; print('\\n' + json.dumps(describe_here()))"
    environment = {**os.environ, "PYTHONPATH": str(folder), "HF_HUB_OFFLINE": "1"}
    command = [sys.executable, "-c", code]
    run = subprocess.run(command, env=environment, capture_output=True, text=True)
    if run.returncode:
        raise SystemExit(f"{folder.name}: {run.stderr[-2000:]}")
    return dict(json.loads(run.stdout.splitlines()[-1]))


def main(root: Path) -> None:
    """Write the table: each fact once, with the transformers releases it was seen in."""
    from packaging.version import Version

    versions = sorted((p.name for p in root.iterdir()), key=Version)
    runs = {version: _run(root / version) for version in versions}
    types: dict[str, dict[str, str]] = {}
    details: dict[str, list[dict[str, Any]]] = {}
    for version, run in runs.items():
        for kind, cls in run["known"].items():
            types.setdefault(kind, {"class": cls, "since": version})["last"] = version
        for kind, found in run["details"].items():
            spans = details.setdefault(kind, [])
            if not spans or spans[-1]["fields"] != found:
                spans.append({"since": version, "fields": found})
    for entry in types.values():
        if entry["last"] == versions[-1]:
            del entry["last"]
    table = {
        "schema": "eagle3-lint/config-classes/1",
        "transformers": versions,
        "types": types,
        "details": details,
    }
    OUT.write_text(json.dumps(table, separators=(",", ":"), sort_keys=True) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
