"""Does a tensor fit its parameter; if not, is it cut, padded, or does the runtime raise?"""

from __future__ import annotations

from math import prod
from typing import Literal

from eagle3_lint.contract.model import Raise, ShapeStatement
from eagle3_lint.simulate.configure import fill
from eagle3_lint.simulate.result import Shape

Change = Literal["cut", "pad"]


def torch_size(shape: Shape) -> str:
    """A shape as torch prints it."""
    return f"torch.Size([{', '.join(map(str, shape))}])"


def _values(loaded: Shape, expected: Shape) -> dict[str, object]:
    names: dict[str, object] = {"loaded": torch_size(loaded), "expected": torch_size(expected)}
    names["loaded_list"], names["expected_list"] = list(loaded), list(expected)
    for axis, name in enumerate(("rows", "columns")):
        names[f"loaded_{name}"] = loaded[axis] if axis < len(loaded) else 1
        names[f"expected_{name}"] = expected[axis] if axis < len(expected) else 1
    return names


def fit(statement: ShapeStatement, loaded: Shape, expected: Shape) -> tuple[Change, ...] | Raise:
    """What the loader ``statement`` does with a tensor of shape ``loaded``.

    Returns:
        The silent changes, none when it fits; or what the runtime raises, text filled in.
    """
    if loaded == expected:
        return ()
    values = _values(loaded, expected)
    if statement.differs is not None:
        # One element is filled in whatever the number of dimensions.
        if prod(loaded) == prod(expected) == 1:
            return ()
        return Raise(statement.differs.type, fill(statement.differs.message, values))
    axes = {
        "rows": (0, statement.rows_more, statement.rows_fewer),
        "columns": (1, statement.columns_more, statement.columns_fewer),
    }
    # The loader first narrows the axis it may cut, then compares what is left.
    order = ["rows", "columns"] if statement.columns_more != "cut" else ["columns", "rows"]
    changes: list[Change] = []
    for axis, more, fewer in (axes[name] for name in order):
        here = loaded[axis] if axis < len(loaded) else 1
        wanted = expected[axis] if axis < len(expected) else 1
        policy = None if here == wanted else more if here > wanted else fewer
        if isinstance(policy, Raise):
            return Raise(policy.type, fill(policy.message, values))
        if policy == "cut":
            changes.append("cut")
        elif policy == "pad":
            changes.append("pad")
        elif here != wanted:
            raise ValueError(f"loader {statement.loader!r} has no statement for axis {axis}")
    return tuple(changes)
