"""The stand-in for the target model: a config, an embedding and a head."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

from tests.conformance.draft import HIDDEN, VOCAB

TARGET_EMBEDDING: Final = 512.0
TARGET_HEAD: Final = 1024.0


def target_width(fields: dict[str, Any]) -> int:
    """The width of the target model a draft config asks for."""
    for key in ("target_hidden_size", "hidden_size"):
        if isinstance(fields.get(key), int):
            return int(fields[key])
    return HIDDEN


def target_config(hidden: int) -> dict[str, Any]:
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_size": hidden,
        "intermediate_size": 160,
        "num_attention_heads": 8,
        "num_key_value_heads": 2,
        "head_dim": 8,
        "num_hidden_layers": 24,
        "vocab_size": VOCAB,
        "max_position_embeddings": 2048,
        "rms_norm_eps": 1e-06,
        "tie_word_embeddings": False,
        "torch_dtype": "bfloat16",
    }


def target_runner(hidden: int, path: Path) -> Any:
    """The target model's runner as the draft worker sees it: embedding and head, padded to 64
    rows."""
    import torch

    def weight(value: float) -> Any:
        rows = -(-VOCAB // 64) * 64
        data = torch.full((rows, hidden), value, dtype=torch.bfloat16)
        return torch.nn.Parameter(data, requires_grad=False)

    embed, head = weight(TARGET_EMBEDDING), weight(TARGET_HEAD)
    model = SimpleNamespace(get_embed_and_head=lambda: (embed, head), lm_head=None)
    return SimpleNamespace(
        model=model,
        model_config=SimpleNamespace(model_path=str(path), revision=None),
        load_config=None,
    )
