"""Matrices that a file holds as one: which parts they have, by ``rules/fused.toml``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from eagle3_lint.contract.expression import ExpressionError, compile_expression
from eagle3_lint.contract.rules_folder import read_toml, rules_folder
from eagle3_lint.frozen import frozen
from eagle3_lint.load.checkpoint import Tensor

_FILE = "fused.toml"
#: Kinds of tensors whose rows are the rows of the matrix; scales can be one number for all of it.
_KINDS = (".weight", ".bias")
#: Dtypes of matrices that are not quantised: others have scales, which belong to the whole.
_WHOLE = ("BF16", "F16", "F32", "F64")


@frozen
class Part:
    """One of the matrices in a fused tensor: ``rows`` of its rows, after those of the parts before.

    Attributes:
        name: the tensor's name when it stands alone.
    """

    name: str
    rows: int


@frozen
class Fused:
    """A matrix that is several.

    Attributes:
        name: how its module's name ends.
        parts: how their modules' names end, in the order of the rows, each with its number of rows
            as an expression over fields of config.json.
    """

    name: str
    parts: tuple[tuple[str, str], ...]


@cache
def known_fused(rules: Path | None = None) -> tuple[Fused, ...]:
    """What ``rules/fused.toml`` lists; the built-in file where a rule folder has none.

    Of entries with one name the first counts by whose sizes the rows are all taken.
    """
    own = rules is not None and (rules / _FILE).is_file()
    raw = read_toml((rules if own and rules is not None else rules_folder()) / _FILE)
    return tuple(
        Fused(entry["name"], tuple((part["name"], part["rows"]) for part in entry["parts"]))
        for entry in raw["fused"]
    )


def parts_of(
    tensor: Tensor, config: Mapping[str, object], known: Sequence[Fused]
) -> tuple[Part, ...] | None:
    """The parts of a fused tensor; None for one that is none, that is quantised, or whose rows are
    not all theirs.

    Args:
        config: the fields of the draft's layer, flat. ``head_dim`` may be left to its default, the
            width by the number of heads.
        known: as :func:`known_fused` has them.
    """
    if tensor.dtype not in _WHOLE:
        return None
    for kind in _KINDS:
        module = tensor.name.removesuffix(kind)
        for fused in known:
            if module != tensor.name and f".{module}".endswith(f".{fused.name}"):
                front = module.removesuffix(fused.name)
                parts = _measured(fused, front, kind, tensor.shape, config)
                if parts is not None:
                    return parts
    return None


def _measured(
    fused: Fused, front: str, kind: str, shape: tuple[int, ...], config: Mapping[str, object]
) -> tuple[Part, ...] | None:
    sizes = _sizes(config)
    parts: list[Part] = []
    for name, text in fused.parts:
        try:
            rows = compile_expression(text)(sizes)
        except (ExpressionError, TypeError, ZeroDivisionError):
            return None  # a field is missing, null or no number: then nobody can tell
        if not isinstance(rows, int) or rows < 1:
            return None
        parts.append(Part(front + name + kind, rows))
    return tuple(parts) if shape and sum(p.rows for p in parts) == shape[0] else None


def _sizes(config: Mapping[str, object]) -> Mapping[str, object]:
    heads, hidden = config.get("num_attention_heads"), config.get("hidden_size")
    known = dict(config)
    if known.get("head_dim") is None and isinstance(heads, int) and isinstance(hidden, int):
        known["head_dim"] = hidden // heads if heads else None
    if known.get("num_key_value_heads") is None:
        known["num_key_value_heads"] = heads
    return known
