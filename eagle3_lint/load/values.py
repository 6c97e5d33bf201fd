"""Values of small tensors (d2t, t2d), without numpy."""

from __future__ import annotations

import struct
import sys
from collections.abc import Sequence
from math import prod
from pathlib import Path

from eagle3_lint.load import bring
from eagle3_lint.load.checkpoint import Tensor

_INTEGERS = {
    "BOOL": "B", "U8": "B", "I8": "b", "I16": "h", "U16": "H", "I32": "i", "U32": "I", "I64": "q",
    "U64": "Q",
}  # fmt: skip
_FLOATS = {"F16": "e", "F32": "f", "F64": "d"}
#: A token map has one number per token; nothing larger is read on the way of a plain check.
_MOST_BYTES = 64 * 2**20


def read_integers(folder: Path, tensor: Tensor) -> Sequence[int | float] | None:
    """The values of a small tensor, flat, in the order of its rows.

    Integers and BOOL (0 or 1) come as int; a table that a trainer cast to floating point comes as
    float, for the caller to judge.

    Returns:
        None when the dtype has no plain numbers, the tensor is too large, or it cannot be read.
    """
    if tensor.nbytes > _MOST_BYTES:
        return None
    if tensor.offset < 0:
        return _from_torch(folder / tensor.file, tensor.name)
    bring(folder / tensor.file, [(tensor.offset, tensor.offset + tensor.nbytes)])
    try:
        with (folder / tensor.file).open("rb") as file:
            file.seek(tensor.offset)
            raw = file.read(tensor.nbytes)
    except OSError:
        return None
    if len(raw) != tensor.nbytes:
        return None
    count = prod(tensor.shape)
    # The format is little-endian on every machine.
    if tensor.dtype == "BF16":
        # A bfloat16 is the upper half of a float32.
        halves = struct.unpack(f"<{count}H", raw)
        return struct.unpack(f"<{count}f", struct.pack(f"<{count}I", *(h << 16 for h in halves)))
    if tensor.dtype in _FLOATS:
        return struct.unpack(f"<{count}{_FLOATS[tensor.dtype]}", raw)
    code = _INTEGERS.get(tensor.dtype)
    if code is None:
        return None
    if sys.byteorder == "little":
        # A view costs nothing, where a tuple of a target vocabulary costs milliseconds.
        view: Sequence[int] = memoryview(raw).cast(code)  # type: ignore[call-overload]
        return view
    return struct.unpack(f"<{count}{code}", raw)


def _from_torch(path: Path, name: str) -> Sequence[int | float] | None:
    from eagle3_lint.load.pickle import load_state

    try:
        values: list[int | float] = load_state(path)[name].flatten().tolist()
    except Exception:  # the file has changed since its header was read, or torch refuses the dtype
        return None
    return values
