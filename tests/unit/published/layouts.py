"""Tensors of a published draft: names in one of the known layouts, shapes from its configuration.

Layer 0 reads the embedding beside the hidden state, hence its columns are twice the hidden size.
The file is a hole but for its header and the two vocabulary tables, so that 6 GB are written in
milliseconds.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator, Mapping
from itertools import accumulate
from math import prod
from pathlib import Path
from typing import Any

from eagle3_lint.frozen import frozen

Tensor = tuple[str, tuple[int, ...]]
Shapes = dict[str, Tensor]
Config = Mapping[str, Any]

BYTES = {"I64": 8, "I32": 4, "F32": 4, "BF16": 2, "F16": 2, "U8": 1, "F8_E4M3": 1, "BOOL": 1}
DTYPES = {"bfloat16": "BF16", "float16": "F16", "float32": "F32"}
#: Channels of one NVFP4 scale.
NVFP4_BLOCK = 16


@frozen
class Layout:
    """How a producer names tensors and which of the optional ones it writes.

    Attributes:
        layer: in front of the decoder layer's tensors.
        outer: in front of everything but the head and the tables.
        embedding, head: whether the draft ships its own.
        fc: whether there is one; a draft on the last hidden state alone has none.
        tables: d2t and t2d, or one of them; None: both where the draft's vocabulary is smaller.
        mlp: ``nvfp4`` packs the three projections as ModelOpt does.
        linear: ``fp8`` stores the layer's projections with one scale a row, as Quark does.
    """

    layer: str = "midlayer."
    outer: str = ""
    embedding: bool = False
    head: bool = True
    fc: bool = True
    tables: tuple[str, ...] | None = None
    mlp: str = "plain"
    linear: str = "plain"


#: SafeAILab, SpecForge: no embedding, both tables. AngelSlim, lightseek: the embedding too.
MIDLAYER = Layout()
MIDLAYER_EMBEDDING = Layout(embedding=True)
#: ModelOpt: d2t alone, in layers.0 since 0.43.
MODELOPT_MIDLAYER = Layout(tables=())
MODELOPT_LAYERS = Layout(layer="layers.0.", tables=())
#: speculators and its converter.
SPECULATORS = Layout(layer="layers.0.", embedding=True)
#: TorchSpec's export for vLLM.
TORCHSPEC_VLLM = Layout(layer="layers.0.", embedding=True)
#: NeMo Automodel.
NEMO = Layout(layer="layers.0.", outer="model.", embedding=True)


def sizes(config: Config) -> Config:
    """The fields that size the layer: nested in a speculators configuration, else all."""
    nested: Config | None = config.get("transformer_layer_config")
    return config if nested is None else {**config, **nested}


def switch(config: Config, name: str) -> bool:
    """A switch where any runtime looks for it: in eagle_config or at top level."""
    return bool((config.get("eagle_config") or {}).get(name, config.get(name)))


def tensors(config: Config, layout: Layout) -> Shapes:
    """Every tensor of the draft's file."""
    held = sizes(config)
    hidden, vocab = held["hidden_size"], held["vocab_size"]
    wide = held.get("target_hidden_size") or hidden
    rows = held.get("draft_vocab_size") or vocab
    ids = (held.get("eagle_config") or {}).get("eagle_aux_hidden_state_layer_ids")
    aux = len(ids) if ids else 3

    inner: dict[str, tuple[int, ...]] = {"norm.weight": (hidden,)}
    if layout.fc:
        inner["fc.weight"] = (hidden, aux * wide)
    if layout.embedding:
        inner["embed_tokens.weight"] = (vocab, hidden)
    if switch(held, "fc_norm"):
        inner |= {f"fc_norm.{index}.weight": (wide,) for index in range(aux)}
    if switch(held, "norm_before_fc"):
        inner["input_norm.weight"] = (aux * wide,)
    for name, shape in _layer(held).items():
        inner[f"{layout.layer}{name}.weight"] = shape

    weights = {layout.outer + name: shape for name, shape in inner.items()}
    if layout.head:
        weights["lm_head.weight"] = (rows, hidden)
    kind = DTYPES[held.get("torch_dtype") or held.get("dtype") or "bfloat16"]
    found: Shapes = {}
    for name, shape in weights.items():
        found |= _stored(name, (kind, shape), layout)
    tables = layout.tables
    if tables is None:
        tables = ("d2t", "t2d") if rows < vocab else ()
    told: Shapes = {"d2t": ("I64", (rows,)), "t2d": ("BOOL", (vocab,))}
    return found | {name: told[name] for name in tables}


def _layer(held: Config) -> dict[str, tuple[int, ...]]:
    """The one decoder layer's weights, by name without ending."""
    hidden, mlp = held["hidden_size"], held["intermediate_size"]
    attention = _latent(held) if held.get("kv_lora_rank") else _grouped(held)
    return {
        "input_layernorm": (hidden,),
        "hidden_norm": (hidden,),
        "post_attention_layernorm": (hidden,),
        **{f"self_attn.{name}": shape for name, shape in attention.items()},
        "mlp.gate_proj": (mlp, hidden),
        "mlp.up_proj": (mlp, hidden),
        "mlp.down_proj": (hidden, mlp),
    }


def _grouped(held: Config) -> dict[str, tuple[int, ...]]:
    hidden, heads = held["hidden_size"], held["num_attention_heads"]
    width = held.get("head_dim") or hidden // heads
    keys = held["num_key_value_heads"] * width
    return {
        "q_proj": (heads * width, 2 * hidden),
        "k_proj": (keys, 2 * hidden),
        "v_proj": (keys, 2 * hidden),
        "o_proj": (hidden, heads * width),
    }


def _latent(held: Config) -> dict[str, tuple[int, ...]]:
    hidden, heads = held["hidden_size"], held["num_attention_heads"]
    query, latent, value = held["q_lora_rank"], held["kv_lora_rank"], held["v_head_dim"]
    nope, rope = held["qk_nope_head_dim"], held["qk_rope_head_dim"]
    return {
        "q_a_proj": (query, 2 * hidden),
        "q_a_layernorm": (query,),
        "q_b_proj": (heads * (nope + rope), query),
        "kv_a_proj_with_mqa": (latent + rope, 2 * hidden),
        "kv_a_layernorm": (latent,),
        "kv_b_proj": (heads * (nope + value), latent),
        "o_proj": (hidden, heads * value),
    }


def _stored(name: str, tensor: Tensor, layout: Layout) -> Shapes:
    """A weight as it is stored: plain, or packed with its scales."""
    _, shape = tensor
    projection = name.endswith("_proj.weight")
    if layout.mlp == "nvfp4" and projection and ".mlp." in name:
        rows, columns = shape
        return {
            name: ("U8", (rows, columns // 2)),
            f"{name}_scale": ("F8_E4M3", (rows, columns // NVFP4_BLOCK)),
            f"{name}_scale_2": ("F32", ()),
            name.replace(".weight", ".input_scale"): ("F32", ()),
        }
    if layout.linear == "fp8" and projection:
        return {name: ("F8_E4M3", shape), f"{name}_scale": ("F32", (shape[0], 1))}
    return {name: tensor}


def elements(shapes: Shapes) -> int:
    """How many numbers the weights hold, the vocabulary tables aside."""
    return sum(prod(shape) for kind, shape in shapes.values() if kind not in ("I64", "BOOL"))


def size_in_bytes(shapes: Shapes) -> int:
    """Bytes of data of the whole file."""
    return sum(BYTES[kind] * prod(shape) for kind, shape in shapes.values())


def write(folder: Path, config: Config, shapes: Shapes) -> Path:
    """config.json and a sparse model.safetensors of true size, the widest elements first."""
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(config, indent=2))
    names = sorted(shapes, key=lambda name: (-BYTES[shapes[name][0]], name))
    ends = list(accumulate(BYTES[shapes[name][0]] * prod(shapes[name][1]) for name in names))
    header: dict[str, dict[str, Any]] = {
        name: {"dtype": shapes[name][0], "shape": shapes[name][1], "data_offsets": [begin, end]}
        for name, begin, end in zip(names, [0, *ends], ends, strict=False)
    }
    text = json.dumps({"__metadata__": {"format": "pt"}, **header}, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    start = 8 + len(text)
    with (folder / "model.safetensors").open("wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for name, values in _tables(config, shapes):
            file.seek(start + header[name]["data_offsets"][0])
            file.write(values)
        file.truncate(start + ends[-1])
    return folder


def _tables(config: Config, shapes: Shapes) -> Iterator[tuple[str, bytes]]:
    """d2t and t2d of a made-up draft vocabulary, ascending; of a whole one, offsets of zero."""
    vocab = sizes(config)["vocab_size"]
    rows = sizes(config).get("draft_vocab_size") or vocab
    kept = [row * vocab // rows for row in range(rows)]
    if "d2t" in shapes:
        yield "d2t", struct.pack(f"<{rows}q", *(token - row for row, token in enumerate(kept)))
    if "t2d" in shapes:
        marks = bytearray(vocab)
        for token in kept:
            marks[token] = 1
        yield "t2d", bytes(marks)
