"""Numbers in the embedding and the head of a small draft, and a target model that has some too.

A token is a vector of normal numbers. The target model's embedding and head are such vectors; the
draft's head is the target's, turned by an orthogonal map (as heads of models that were trained
apart share no direction) and noisy.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from pathlib import Path
from random import Random

from tests.drafts import DRAFT_VOCAB, HIDDEN, VOCAB, offsets, spread

Matrix = list[list[float]]

TARGET_CONFIG = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": HIDDEN,
    "num_hidden_layers": 32,
    "vocab_size": VOCAB,
    "max_position_embeddings": 4096,
}


def gauss(rows: int, seed: int, columns: int = HIDDEN) -> Matrix:
    random = Random(seed)
    return [[random.gauss(0, 1) for _ in range(columns)] for _ in range(rows)]


def mixed(one: Matrix, other: Matrix, share: float) -> Matrix:
    """``one`` with a share of ``other``."""
    return [
        [a + share * b for a, b in zip(x, y, strict=True)] for x, y in zip(one, other, strict=True)
    ]


def turned(rows: Matrix) -> Matrix:
    """The same rows after an orthogonal map: reversed columns with alternating signs."""
    return [[-x if i % 2 else x for i, x in enumerate(reversed(row))] for row in rows]


def bfloat16(rows: Matrix) -> bytes:
    flat = [x for row in rows for x in row]
    words = struct.unpack(f"<{len(flat)}I", struct.pack(f"<{len(flat)}f", *flat))
    return struct.pack(f"<{len(flat)}H", *(word >> 16 for word in words))


def write_target(folder: Path) -> Path:
    """A target model with an embedding and a head."""
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(TARGET_CONFIG))
    pieces = {"model.embed_tokens.weight": gauss(VOCAB, 1), "lm_head.weight": gauss(VOCAB, 2)}
    header, data = {}, b""
    for name, rows in pieces.items():
        raw = bfloat16(rows)
        header[name] = {
            "dtype": "BF16",
            "shape": [VOCAB, HIDDEN],
            "data_offsets": [len(data), len(data) + len(raw)],
        }
        data += raw
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + data)
    return folder


def offsets_of(tokens: Sequence[int]) -> list[int]:
    return [token - row for row, token in enumerate(tokens)]


def _put(path: Path, name: str, raw: bytes) -> None:
    """New data for a tensor of a safetensors file."""
    content = bytearray(path.read_bytes())
    (length,) = struct.unpack_from("<Q", content)
    begin, end = json.loads(content[8 : 8 + length])[name]["data_offsets"]
    assert end - begin == len(raw)
    content[8 + length + begin : 8 + length + end] = raw
    path.write_bytes(content)


def give_weights(draft: Path, kind: str) -> None:
    """Put numbers in a draft's embedding, head and d2t: good ones, or with one kind of fault."""
    path = draft / "model.safetensors"
    embedding, head = gauss(VOCAB, 1), gauss(VOCAB, 2)
    if kind == "embedding-random":
        embedding = gauss(VOCAB, 3)
    elif kind == "embedding-tuned":
        embedding = mixed(embedding, gauss(VOCAB, 3), 0.5)
    tokens: Sequence[int] = spread()
    if kind in ("neighbours", "head-by-offsets"):
        # Pairs of neighbouring tokens, which have one offset.
        tokens = [6 * (row // 2) + row % 2 for row in range(DRAFT_VOCAB)]
        _put(path, "t2d", bytes(token in set(tokens) for token in range(VOCAB)))
        _put(path, "d2t", struct.pack(f"<{DRAFT_VOCAB}q", *offsets_of(tokens)))
    rows = mixed(turned([head[t] for t in tokens]), gauss(DRAFT_VOCAB, 4), 0.5)
    if kind == "head-by-offsets":
        rows = [head[offset] for offset in offsets_of(tokens)]
    if kind == "head-shuffled":
        Random(5).shuffle(rows)
    _put(path, "embed_tokens.weight", bfloat16(embedding))
    _put(path, "lm_head.weight", bfloat16(rows))
    if kind == "d2t-unsorted":
        _put(path, "d2t", struct.pack(f"<{DRAFT_VOCAB}q", *offsets(kind="unsorted")))
