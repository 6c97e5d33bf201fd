"""Does a tensor fit its parameter; if not, is it cut, padded, or does the runtime raise?"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Literal

from eagle3_lint.contract.model import Raise, ShapeStatement
from eagle3_lint.simulate.configure import fill
from eagle3_lint.simulate.result import Shape

Change = Literal["cut", "pad", "spread"]
_CHANGES: dict[str, Change] = {"cut": "cut", "pad": "pad", "spread": "spread"}
_AXES = ("rows", "columns")


def torch_size(shape: Sequence[int]) -> str:
    """A shape as torch prints it."""
    return f"torch.Size([{', '.join(map(str, shape))}])"


def _values(
    loaded: Shape, narrowed: Sequence[int], expected: Shape, parts: Sequence[int]
) -> dict[str, object]:
    """Names for the text of an exception."""
    names: dict[str, object] = {
        "loaded": torch_size(loaded),
        "narrowed": torch_size(narrowed),
        "expected": torch_size(expected),
        "loaded_list": list(loaded),
        "expected_list": list(expected),
    }
    for axis, name in enumerate(_AXES):
        names[f"loaded_{name}"] = loaded[axis] if axis < len(loaded) else 1
        names[f"expected_{name}"] = expected[axis] if axis < len(expected) else 1
    start, length = 0, expected[0] if expected else 1
    for size in parts:
        length = size
        if loaded and start + size > loaded[0]:
            break
        start += size
    names["start"], names["length"] = start if parts else 0, length
    return names


def _policy(statement: ShapeStatement, axis: int, loaded: Shape, wanted: int) -> str | Raise | None:
    """What happens on one axis; None where the size is right."""
    if axis >= len(loaded) and statement.fewer_dimensions is not None:
        return statement.fewer_dimensions
    here = loaded[axis] if axis < len(loaded) else 1
    if here == wanted:
        return None
    if axis == 0:
        return statement.rows_more if here > wanted else statement.rows_fewer
    if here == 1 and axis < len(loaded) and statement.columns_one is not None:
        return statement.columns_one
    return statement.columns_more if here > wanted else statement.columns_fewer


def _repeated(loaded: Shape, expected: Shape) -> bool:
    """Whether torch repeats a tensor of one shape into another (its broadcasting rules)."""
    ends = zip(reversed(loaded), reversed(expected), strict=False)
    return len(loaded) <= len(expected) and all(here in (1, wanted) for here, wanted in ends)


def fit(
    statement: ShapeStatement, loaded: Shape, expected: Shape, parts: Sequence[int] = ()
) -> tuple[Change, ...] | Raise:
    """What the loader ``statement`` does with a tensor of shape ``loaded``.

    Args:
        statement: the loader's way with other sizes.
        loaded: shape of the tensor in the checkpoint.
        expected: shape of the parameter, or of the part that the tensor fills.
        parts: rows of the parts of a fused tensor that arrives whole.

    Returns:
        The silent changes, none when it fits; or what the runtime raises, text filled in.
    """
    if loaded == expected:
        return ()
    narrowed = list(loaded)

    def raised(error: Raise) -> Raise:
        return Raise(error.type, fill(error.message, _values(loaded, narrowed, expected, parts)))

    if statement.repeats and _repeated(loaded, expected):
        return ("spread",)
    if statement.differs is not None:
        # One element is filled in whatever the number of dimensions.
        return () if prod(loaded) == prod(expected) == 1 else raised(statement.differs)
    # The loader first narrows the axis it may cut, then compares what is left.
    order = (1, 0) if statement.columns_more == "cut" else (0, 1)
    changes: list[Change] = []
    for axis in order[: len(expected)] if len(expected) > 1 else (0,):
        policy = _policy(statement, axis, loaded, expected[axis])
        if policy is None:
            continue
        if isinstance(policy, Raise):
            return raised(policy)
        if axis < len(narrowed):
            narrowed[axis] = expected[axis]
        changes.append(_CHANGES[policy])
    if len(loaded) > len(expected) and statement.more_dimensions is not None:
        return raised(statement.more_dimensions)
    return tuple(changes)
