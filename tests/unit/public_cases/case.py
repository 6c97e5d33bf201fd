"""A report as a small draft: its difference from the good one, and what runtimes do with it."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from tests.drafts import HEAD_DIM, HEADS, HIDDEN, INTERMEDIATE, KV_HEADS, VOCAB, write_case
from tests.weights import give_weights, write_target

Verdict = Literal["refused", "broken", "degraded", "serves", "unknown"]
Config = Mapping[str, Any]

_FORMATS = {"I64": "q", "I32": "i", "F32": "f", "BOOL": "?"}


@dataclass(frozen=True)
class Expected:
    """What one target does.

    Attributes:
        verdicts: any of these is right; empty when the report and the sources leave it open.
        rules: rules that say so as a warning or an error; see ``quiet`` for what else may be said.
        quiet: no warning and no error but those of ``rules``.
        loud: with no rule named, some warning or error all the same.
        error: the type of the exception that stops the runtime.
        mended: a safe fix makes the target serve the draft.
        runner: vLLM's model runner, where it is not the usual one.
    """

    target: str
    verdicts: tuple[Verdict, ...] = ()
    rules: tuple[str, ...] = ()
    quiet: bool = False
    loud: bool = False
    error: str = ""
    mended: bool = False
    runner: str | None = None

    def __str__(self) -> str:
        runner = f" ({self.runner})" if self.runner else ""
        verdict = " or ".join(self.verdicts) or "a warning"
        rules = f" ({', '.join(self.rules)})" if self.rules else ""
        error = f", {self.error}" if self.error else ""
        fix = ", mended by a safe fix" if self.mended else ""
        return f"{self.target.replace('==', ' ')}{runner}: {verdict}{rules}{error}{fix}"


def unknown(target: str, *rules: str) -> Expected:
    """It is not described, and nothing is claimed."""
    return Expected(target, ("unknown",), rules)


def refused(
    target: str, *rules: str, error: str = "", mended: bool = False, runner: str | None = None
) -> Expected:
    """It does not start, or the first batch stops it."""
    return Expected(target, ("refused",), rules, error=error, mended=mended, runner=runner)


def broken(target: str, *rules: str, mended: bool = False) -> Expected:
    """It starts and accepts next to nothing."""
    return Expected(target, ("broken",), rules, mended=mended)


def fails(target: str, *rules: str, mended: bool = False) -> Expected:
    """Token ids outside a table: an assertion on the device, or numbers from beside it."""
    return Expected(target, ("refused", "broken"), rules, loud=True, mended=mended)


def degraded(target: str, *rules: str, mended: bool = False, runner: str | None = None) -> Expected:
    """It starts and accepts less than the draft was trained for."""
    return Expected(target, ("degraded",), rules, mended=mended, runner=runner)


def loses(target: str, *rules: str) -> Expected:
    """It starts and accepts less; measured somewhere between little and nothing."""
    return Expected(target, ("degraded", "broken"), rules)


def warned(target: str, *rules: str, mended: bool = False, runner: str | None = None) -> Expected:
    """How bad it is depends on what no file tells, but it is said."""
    return Expected(target, (), rules, loud=True, mended=mended, runner=runner)


def serves(target: str, *rules: str, runner: str | None = None) -> Expected:
    """Nothing is wrong, and nothing is said but what ``rules`` say."""
    return Expected(target, ("serves",), rules, quiet=True, runner=runner)


# -- target models ---------------------------------------------------------------------------------


def model(architecture: str, model_type: str, **fields: Any) -> Config:
    """A target model of the draft's sizes: 36 layers, 1000 tokens, 4096 positions."""
    return {
        "architectures": [architecture],
        "model_type": model_type,
        "hidden_size": HIDDEN,
        "intermediate_size": INTERMEDIATE,
        "num_attention_heads": HEADS,
        "num_key_value_heads": KV_HEADS,
        "head_dim": HEAD_DIM,
        "num_hidden_layers": 36,
        "vocab_size": VOCAB,
        "max_position_embeddings": 4096,
        "rope_theta": 10000,
        "torch_dtype": "bfloat16",
        **fields,
    }


def wrapper(architecture: str, model_type: str, text_type: str, **fields: Any) -> Config:
    """A multimodal model around such a text model."""
    text = {k: v for k, v in model("", text_type, **fields).items() if k != "architectures"}
    return {"architectures": [architecture], "model_type": model_type, "text_config": text}


LLAMA = model("LlamaForCausalLM", "llama")
QWEN3 = model("Qwen3ForCausalLM", "qwen3")
GPT_OSS = model("GptOssForCausalLM", "gpt_oss")
DEEPSEEK = model("DeepseekV3ForCausalLM", "deepseek_v3")
KIMI = wrapper("KimiK25ForConditionalGeneration", "kimi_k25", "kimi_k2")


# -- cases -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    """One draft.

    Attributes:
        numbers: the reports that it stands for (``threads.py``).
        what: the difference from a good draft, in words.
        draft: the difference as ``tests.drafts.write_case`` takes it; beside that ``values``
            (numbers of a table), ``files`` (more files of the folder) and ``weights``
            (``tests.weights``).
        model: the target model's config.json.
        trained_on: aux states that the user says it was trained on.
        note: where the sources say something else than the report, or more.
    """

    numbers: tuple[int, ...]
    what: str
    draft: Mapping[str, Any]
    expected: tuple[Expected, ...]
    model: Config = field(default_factory=lambda: LLAMA)
    trained_on: tuple[int, ...] | None = None
    note: str = ""

    @property
    def name(self) -> str:
        words = "".join(c if c.isalnum() else " " for c in self.what.lower()).split()
        return "-".join([*map(str, self.numbers), *words[:6]])

    def write(self, folder: Path) -> tuple[Path, Path]:
        """Write the draft and its target model; their folders."""
        draft = write_case({"base": "llama", **self.draft}, folder / "draft")
        for name, values in self.draft.get("values", {}).items():
            put(draft / "model.safetensors", name, values)
        for name, content in self.draft.get("files", {}).items():
            (draft / name).write_bytes(content)
        target = folder / "target"
        if "weights" in self.draft:
            give_weights(draft, self.draft["weights"])
            return draft, write_target(target)
        target.mkdir()
        (target / "config.json").write_text(json.dumps(self.model))
        return draft, target


def packed(dtype: str, values: Sequence[int]) -> bytes:
    """Numbers as a safetensors file holds them; BF16 as a cast gives it (rounded half to even)."""
    if dtype != "BF16":
        return struct.pack(f"<{len(values)}{_FORMATS[dtype]}", *values)
    words = struct.unpack(f"<{len(values)}I", struct.pack(f"<{len(values)}f", *values))
    rounded = ((word + 0x7FFF + (word >> 16 & 1)) >> 16 for word in words)
    return struct.pack(f"<{len(values)}H", *rounded)


def put(path: Path, name: str, values: Sequence[int]) -> None:
    """Other numbers in a table of a safetensors file."""
    content = bytearray(path.read_bytes())
    (length,) = struct.unpack_from("<Q", content)
    entry = json.loads(content[8 : 8 + length])[name]
    begin, end = entry["data_offsets"]
    raw = packed(entry["dtype"], values)
    assert len(raw) == end - begin
    content[8 + length + begin : 8 + length + end] = raw
    path.write_bytes(content)


# -- pieces of drafts ------------------------------------------------------------------------------


def bf16(shapes: Mapping[str, Iterable[int]]) -> dict[str, list[Any]]:
    """Weights to add."""
    return {f"{name}.weight": ["BF16", *shape] for name, shape in shapes.items()}


def second_layer(norm: str) -> dict[str, list[Any]]:
    """A decoder layer after the first, whose attention reads the hidden states alone.

    Args:
        norm: what it calls the norm before its attention.
    """
    rows, key_rows = HEADS * HEAD_DIM, KV_HEADS * HEAD_DIM
    layer = {
        "self_attn.q_proj": (rows, HIDDEN),
        "self_attn.k_proj": (key_rows, HIDDEN),
        "self_attn.v_proj": (key_rows, HIDDEN),
        "self_attn.o_proj": (HIDDEN, rows),
        "mlp.gate_proj": (INTERMEDIATE, HIDDEN),
        "mlp.up_proj": (INTERMEDIATE, HIDDEN),
        "mlp.down_proj": (HIDDEN, INTERMEDIATE),
        norm: (HIDDEN,),
        "post_attention_layernorm": (HIDDEN,),
    }
    return bf16({f"layers.1.{name}": shape for name, shape in layer.items()})


def nested(*ids: int, **more: Any) -> dict[str, Any]:
    """Ids in eagle_config, and what else stands there."""
    return {"eagle_config": {"eagle_aux_hidden_state_layer_ids": list(ids), **more}}


def top(*ids: int) -> dict[str, Any]:
    """Ids at the top level."""
    return {"eagle_aux_hidden_state_layer_ids": list(ids)}


LAYERS_NAMES = {"midlayer.": "layers.0."}
#: A draft of the whole vocabulary without tables.
FULL: dict[str, Any] = {
    "config": {"draft_vocab_size": VOCAB},
    "remove": ["d2t", "t2d"],
    "shape": {"lm_head.weight": [VOCAB, HIDDEN]},
}
