"""How long a fix takes, beside a check of the same draft and beside load, rename and save.

    python tools/bench_fix.py [--rounds N] [--folder DIR]

Makes sparse drafts of 1 GB and 20 GB in DIR (a temporary folder by default) and prints medians of N
alternating rounds. Needs numpy and safetensors for the comparison, and room for one more GB there.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from safetensors.numpy import load_file, save_file

from eagle3_lint.checking import check
from eagle3_lint.fixing import fix, undo

TARGET = "sglang==0.5.10"
HIDDEN, INTERMEDIATE, DRAFT_VOCAB = 2048, 8192, 32000


def draft(folder: Path, size: int) -> Path:
    """A sparse draft of about ``size`` bytes: the embedding makes up what the rest has not."""
    kv = HIDDEN // 4
    shapes = {
        "fc.weight": (HIDDEN, 3 * HIDDEN),
        "layers.0.hidden_norm.weight": (HIDDEN,),
        "layers.0.input_layernorm.weight": (HIDDEN,),
        "layers.0.mlp.down_proj.weight": (HIDDEN, INTERMEDIATE),
        "layers.0.mlp.gate_proj.weight": (INTERMEDIATE, HIDDEN),
        "layers.0.mlp.up_proj.weight": (INTERMEDIATE, HIDDEN),
        "layers.0.post_attention_layernorm.weight": (HIDDEN,),
        "layers.0.self_attn.k_proj.weight": (kv, 2 * HIDDEN),
        "layers.0.self_attn.o_proj.weight": (HIDDEN, HIDDEN),
        "layers.0.self_attn.q_proj.weight": (HIDDEN, 2 * HIDDEN),
        "layers.0.self_attn.v_proj.weight": (kv, 2 * HIDDEN),
        "lm_head.weight": (DRAFT_VOCAB, HIDDEN),
        "norm.weight": (HIDDEN,),
    }
    used = 4 * sum(_count(shape) for shape in shapes.values())
    rows = max((size - used) // (4 * HIDDEN), DRAFT_VOCAB)
    header: dict[str, object] = {}
    at = 0
    for name, shape in {**shapes, "embed_tokens.weight": (rows, HIDDEN)}.items():
        end = at + 4 * _count(shape)
        header[name] = {"dtype": "F32", "shape": list(shape), "data_offsets": [at, end]}
        at = end
    header["d2t"] = {
        "dtype": "I64", "shape": [DRAFT_VOCAB], "data_offsets": [at, at + 8 * DRAFT_VOCAB],
    }  # fmt: skip
    at += 8 * DRAFT_VOCAB
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    folder.mkdir()
    with (folder / "model.safetensors").open("wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        file.truncate(8 + len(text) + at)
    config = {
        "architectures": ["LlamaForCausalLMEagle3"], "model_type": "llama",
        "hidden_size": HIDDEN, "intermediate_size": INTERMEDIATE, "num_hidden_layers": 1,
        "num_attention_heads": 16, "num_key_value_heads": 4, "head_dim": HIDDEN // 16,
        "vocab_size": rows, "draft_vocab_size": DRAFT_VOCAB, "rms_norm_eps": 1e-5,
        "hidden_act": "silu", "max_position_embeddings": 4096, "tie_word_embeddings": False,
        "torch_dtype": "float32",
    }  # fmt: skip
    (folder / "config.json").write_text(json.dumps(config, indent=2))
    return folder


def _count(shape: tuple[int, ...]) -> int:
    total = 1
    for size in shape:
        total *= size
    return total


def timed(call: Callable[[], object]) -> float:
    """Milliseconds."""
    start = time.perf_counter()
    call()
    return 1000 * (time.perf_counter() - start)


def load_rename_save(folder: Path) -> None:
    """What people do today, and fsync, without which nothing is on disk yet."""
    tensors = load_file(folder / "model.safetensors")
    renamed = {name.replace("layers.0.", "midlayer."): t for name, t in tensors.items()}
    out = folder / "renamed.safetensors"
    save_file(renamed, out)
    with out.open("rb") as file:
        os.fsync(file.fileno())
    out.unlink()


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=21)
    parser.add_argument("--folder", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=given.folder) as room:
        drafts = {gb: draft(Path(room) / f"{gb}gb", gb * 10**9) for gb in (1, 20)}
        checks: dict[int, list[float]] = {gb: [] for gb in drafts}
        fixes: dict[int, list[float]] = {gb: [] for gb in drafts}
        written = 0
        for _ in range(given.rounds):
            for gb, folder in drafts.items():
                checks[gb].append(timed(lambda f=folder: check(f, [TARGET])))  # type: ignore[misc]
                result = None

                def call(f: Path = folder) -> None:
                    nonlocal result
                    result = fix(f, [TARGET])

                fixes[gb].append(timed(call))
                assert result is not None and result.written is not None
                written = max(written, result.written.bytes)
                undo(folder)
        for gb in drafts:
            print(
                f"{gb:>2} GB: check {statistics.median(checks[gb]):.1f} ms,"
                f" fix {statistics.median(fixes[gb]):.1f} ms"
            )
        ratio = statistics.median(fixes[20]) / statistics.median(fixes[1])
        print(f"fix, 20 GB / 1 GB: {ratio:.2f}")
        print(f"most bytes written by a fix: {written:,}")
        slow = statistics.median(timed(lambda: load_rename_save(drafts[1])) for _ in range(3))
        print(
            f"load, rename, save and fsync of 1 GB: {slow:.0f} ms,"
            f" {slow / statistics.median(fixes[1]):.0f} times a fix"
        )


if __name__ == "__main__":
    main()
