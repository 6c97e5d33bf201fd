"""Checkpoint → Facts: what a draft is, said once, for every rule and every runtime to look at."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from eagle3_lint.frozen import frozen
from eagle3_lint.load import shown
from eagle3_lint.load.checkpoint import Checkpoint, Problem, Tensor
from eagle3_lint.load.document import Document
from eagle3_lint.load.rows import read_rows
from eagle3_lint.load.values import read_integers

#: Prefixes that training wrappers leave in front of every key, outermost first.
WRAPPERS = ("module.", "_orig_mod.", "draft_model.", "eagle_module.", "base_model.model.", "model.")

#: Pairs of neighbouring rows that are looked at, and how much of each.
_PAIRS, _COLUMNS = 8, 64
_LAYER = re.compile(r"(?:^|\.)(midlayer|layers)\.(?:(\d+)\.)?")
_TABLE = re.compile(r"(?:^|\.)(d2t|t2d)$")
#: Names that only an EAGLE-3 draft has; an EAGLE-1 draft has an fc too, but none of these.
_EAGLE3_TENSORS = ("hidden_norm.weight", "d2t", "t2d")


@frozen
class Dimensions:
    """Sizes of a draft; None where its source does not say.

    Attributes:
        hidden_size: width of the draft's residual stream.
        fc_in: columns of the fc (number of aux hidden states × target hidden size).
        vocab_size: rows of the embedding. draft_vocab_size: rows of the head.
        attention_rows: rows of the first layer's query projection (heads × head_dim).
        key_rows: the same of the key projection (KV heads × head_dim).
    """

    hidden_size: int | None = None
    target_hidden_size: int | None = None
    fc_in: int | None = None
    intermediate_size: int | None = None
    num_hidden_layers: int | None = None
    vocab_size: int | None = None
    draft_vocab_size: int | None = None
    attention_rows: int | None = None
    key_rows: int | None = None


@frozen
class Facts:
    """A draft checkpoint, immutable.

    Attributes:
        path: where it was read.
        document: config.json with the line of every JSON pointer.
        config: its data.
        tensors: name → tensor, in the order in which runtimes iterate them (by name).
        problems: what is wrong with the container itself.
        files: all names in the folder.
        metadata: ``__metadata__`` of the safetensors header.
        weights_format: ``safetensors``, ``torch`` or ``none``.
        dialect: how the layer's tensors are called (``midlayer``, ``layers``, ``model.layers``,
            ``midlayer.N``) or ``speculators`` for that nested configuration.
        layers: indices of the decoder layers found, sorted.
        stated: sizes as config.json gives them. shown: sizes as the tensors show them.
        d2t: offsets, one per draft token (target id = row + d2t[row]); None when absent.
        token_list: the target's token for each row of the head, where a side file has them; looked
            for only when d2t is missing.
        repeated_rows: how many pairs of neighbouring rows of the head were looked at, if all of
            them were equal; 0 otherwise (see :func:`_repeated`).
        fc_order: where the column blocks of fc were on disk, after edits that moved them; empty as
            long as they are in their places.
        t2d: one per target token, non-zero when the draft can propose it; None when absent.
    """

    path: str
    document: Document
    config: Mapping[str, object]
    tensors: Mapping[str, Tensor]
    problems: tuple[Problem, ...]
    files: tuple[str, ...]
    metadata: Mapping[str, str]
    weights_format: str
    dialect: str
    layers: tuple[int, ...]
    stated: Dimensions
    shown: Dimensions
    d2t: Sequence[int | float] | None = None
    t2d: Sequence[int | float] | None = None
    fc_order: tuple[int, ...] = ()
    repeated_rows: int = 0
    token_list: tuple[int, ...] | None = None

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Name → shape, in the order in which runtimes iterate."""
        return {name: tensor.shape for name, tensor in self.tensors.items()}


def bare(name: str) -> str:
    """A tensor name without the wrappers that training put in front of it."""
    while True:
        for wrapper in WRAPPERS:
            if name.startswith(wrapper):
                name = name[len(wrapper) :]
                break
        else:
            return name


def layer_of(name: str) -> int | None:
    """The decoder layer a tensor belongs to (``midlayer`` without a number is layer 0)."""
    match = _LAYER.search(name)
    return None if match is None else int(match[2] or 0)


def _dialect(config: Mapping[str, object], names: Iterable[str]) -> str:
    if "speculators_model_type" in config or "speculators_config" in config:
        return "speculators"
    for name in names:
        match = _LAYER.search(name)
        if match is None:
            continue
        if match[1] == "midlayer":
            return "midlayer" if match[2] is None else "midlayer.N"
        before = name[: match.start(1)]
        return f"{before}layers" if before else "layers"
    return "unknown"


def _integer(config: Mapping[str, object], *names: str) -> int | None:
    for name in names:
        value = config.get(name)
        if isinstance(value, int) and not isinstance(value, bool):
            return value
    return None


def _stated(config: Mapping[str, object]) -> Dimensions:
    nested = config.get("transformer_layer_config")
    layer = nested if isinstance(nested, Mapping) else config
    heads, head_dim = _integer(layer, "num_attention_heads"), _integer(layer, "head_dim")
    hidden = _integer(layer, "hidden_size")
    if head_dim is None and heads and hidden:
        head_dim = hidden // heads
    kv_heads = _integer(layer, "num_key_value_heads") or heads
    return Dimensions(
        hidden_size=hidden,
        target_hidden_size=_integer(config, "target_hidden_size"),
        intermediate_size=_integer(layer, "intermediate_size"),
        num_hidden_layers=_integer(layer, "num_hidden_layers"),
        vocab_size=_integer(layer, "vocab_size"),
        draft_vocab_size=_integer(config, "draft_vocab_size"),
        attention_rows=heads * head_dim if heads and head_dim else None,
        key_rows=kv_heads * head_dim if kv_heads and head_dim else None,
    )


def _shown(tensors: Mapping[str, Tensor], layers: tuple[int, ...]) -> Dimensions:
    shapes = {bare(name): tensor.shape for name, tensor in tensors.items()}

    def size(ending: str, axis: int) -> int | None:
        for name, shape in shapes.items():
            if name.endswith(ending) and axis < len(shape):
                return shape[axis]
        return None

    return Dimensions(
        hidden_size=size("norm.weight", 0) if "norm.weight" in shapes else size("fc.weight", 0),
        fc_in=size("fc.weight", 1),
        intermediate_size=size("mlp.gate_proj.weight", 0),
        num_hidden_layers=len(layers) or None,
        vocab_size=size("embed_tokens.weight", 0),
        draft_vocab_size=size("lm_head.weight", 0),
        attention_rows=size("self_attn.q_proj.weight", 0),
        key_rows=size("self_attn.k_proj.weight", 0),
    )


def is_eagle3_draft(config: Mapping[str, object], names: Iterable[str]) -> bool:
    """Whether anything says that this is an EAGLE-3 draft (or wants to be one)."""
    architectures = config.get("architectures")
    named = architectures if isinstance(architectures, list) else []
    if any("eagle3" in str(a).lower() for a in named):
        return True
    if config.get("speculators_model_type") in ("eagle3", "peagle"):
        return True
    if "draft_vocab_size" in config or "eagle_config" in config:
        return True
    return any(bare(n).endswith(_EAGLE3_TENSORS) or "midlayer." in n for n in names)


def gather_facts(checkpoint: Checkpoint) -> Facts:
    """Look at a checkpoint once; reads the values of d2t and t2d (small), nothing else."""
    tensors = {t.name: t for t in sorted(checkpoint.tensors, key=lambda t: t.name)}
    tables: dict[str, Sequence[int | float]] = {}
    for name, tensor in tensors.items():
        match = _TABLE.search(name)
        if match is not None and len(tensor.shape) == 1:
            values = read_integers(checkpoint.path, tensor)
            if values is not None:
                tables[match[1]] = values
    return _facts(
        checkpoint.config,
        tensors,
        path=shown(checkpoint.path),
        problems=checkpoint.problems,
        files=checkpoint.files,
        metadata=checkpoint.metadata,
        weights_format=checkpoint.weights_format,
        d2t=tables.get("d2t"),
        t2d=tables.get("t2d"),
        repeated_rows=_repeated(checkpoint.path, tensors, tables.get("d2t")),
    )


def _repeated(
    folder: Path, tensors: Mapping[str, Tensor], d2t: Sequence[int | float] | None
) -> int:
    """Whether rows of the head whose offsets are equal are themselves equal.

    Neighbouring tokens have equal offsets and rows of their own. A head that was cut out of a whole
    one by its offsets instead of its tokens has one row for all of them.
    """
    # Whatever stands in front of its name: a fix may take that away.
    head = next((t for n, t in tensors.items() if f".{n}".endswith(".lm_head.weight")), None)
    if head is None or d2t is None or len(d2t) < 2:
        return 0
    equal_offsets = (i for i in range(len(d2t) - 1) if d2t[i] == d2t[i + 1])
    chosen = list(islice(equal_offsets, _PAIRS))
    if len(chosen) < _PAIRS:
        return 0
    rows = read_rows(folder, head, [row for i in chosen for row in (i, i + 1)], _COLUMNS)
    if rows is None or not all(any(row) for row in rows):
        return 0
    equal = all(rows[2 * k] == rows[2 * k + 1] for k in range(len(chosen)))
    return len(chosen) if equal else 0


def changed(facts: Facts, document: Document, tensors: Iterable[Tensor]) -> Facts:
    """The facts of the same draft with another configuration or other names."""
    return _facts(
        document,
        {t.name: t for t in sorted(tensors, key=lambda t: t.name)},
        path=facts.path,
        problems=facts.problems,
        files=facts.files,
        metadata=facts.metadata,
        weights_format=facts.weights_format,
        d2t=facts.d2t,
        t2d=facts.t2d,
        fc_order=facts.fc_order,
        repeated_rows=facts.repeated_rows,
        token_list=facts.token_list,
    )


def _facts(document: Document, tensors: Mapping[str, Tensor], **others: Any) -> Facts:
    """What follows from configuration and tensors, beside what was read elsewhere."""
    layers = tuple(sorted({i for i in map(layer_of, tensors) if i is not None}))
    config = document.data
    return Facts(
        document=document,
        config=config,
        tensors=tensors,
        dialect=_dialect(config, tensors),
        layers=layers,
        stated=_stated(config),
        shown=_shown(tensors, layers),
        **others,
    )
