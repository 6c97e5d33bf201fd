"""A few rows of a large matrix, read where they lie: a gigabyte costs as much as a kilobyte."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from pathlib import Path

from eagle3_lint.load import bring
from eagle3_lint.load.checkpoint import Tensor

_SIZES = {"BF16": 2, "F16": 2, "F32": 4, "F64": 8}
_CODES = {"F16": "e", "F32": "f", "F64": "d"}


def read_rows(
    folder: Path, tensor: Tensor, rows: Iterable[int], columns: int
) -> list[tuple[float, ...]] | None:
    """The first ``columns`` numbers of each of ``rows``, in their order.

    Returns:
        None for what is no matrix of plain floating-point numbers in a safetensors file, and when
        the file cannot be read there.
    """
    size = _SIZES.get(tensor.dtype)
    if size is None or len(tensor.shape) != 2 or tensor.offset < 0:
        return None
    count, width = tensor.shape
    columns = min(columns, width)
    wanted = list(rows)
    if not all(0 <= row < count for row in wanted):
        return None
    begins = [tensor.offset + row * width * size for row in wanted]
    bring(folder / tensor.file, [(begin, begin + columns * size) for begin in begins])
    found: list[tuple[float, ...]] = []
    try:
        with (folder / tensor.file).open("rb") as file:
            for begin in begins:
                file.seek(begin)
                raw = file.read(columns * size)
                if len(raw) != columns * size:
                    return None
                found.append(_numbers(raw, tensor.dtype, columns))
    except OSError:
        return None
    return found


def _numbers(raw: bytes, dtype: str, count: int) -> tuple[float, ...]:
    if dtype != "BF16":
        return struct.unpack(f"<{count}{_CODES[dtype]}", raw)
    # A bfloat16 is the upper half of a float32.
    halves = struct.unpack(f"<{count}H", raw)
    return struct.unpack(f"<{count}f", struct.pack(f"<{count}I", *(h << 16 for h in halves)))
