"""Read, change and write small safetensors files with numpy alone.

numpy has no bfloat16: such tensors are kept as their raw bits, uint16, and go through float32 where
they are computed with. Nothing of eagle3_lint is used, so a mistake there cannot hide here.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Floats = npt.NDArray[np.float32]

#: dtype of the header → dtype of the array that holds it.
_HELD_AS: Final[Mapping[str, str]] = {
    "BF16": "<u2", "F16": "<f2", "F32": "<f4", "I64": "<i8", "BOOL": "|b1",
}  # fmt: skip


@dataclass(frozen=True)
class Tensor:
    """A tensor as a file holds it: its dtype's name and its elements (raw bits for BF16)."""

    dtype: str
    elements: Array

    @property
    def is_float(self) -> bool:
        return "F" in self.dtype

    def floats(self) -> Floats:
        """The values as float32; exact for every float dtype here."""
        if self.dtype == "BF16":
            return (self.elements.astype(np.uint32) << 16).view(np.float32)
        return self.elements.astype(np.float32)

    def rows(self, order: Array) -> Tensor:
        """The same rows in another order."""
        return Tensor(self.dtype, self.elements[order])


def bfloat16(values: Array) -> Tensor:
    """Values rounded to bfloat16, to the nearest and halves to even, as torch does. No NaN."""
    bits = values.astype(np.float32).view(np.uint32)
    rounded = bits + 0x7FFF + ((bits >> 16) & 1)
    return Tensor("BF16", (rounded >> 16).astype(np.uint16))


def float16(tensor: Tensor) -> Tensor:
    """A float tensor in half precision."""
    return Tensor("F16", tensor.floats().astype(np.float16))


def int64(values: Array) -> Tensor:
    """Whole numbers as they are stored for ``d2t``."""
    return Tensor("I64", values.astype(np.int64))


def read_tensors(file: Path) -> dict[str, Tensor]:
    """All tensors of a safetensors file by name."""
    data = file.read_bytes()
    (length,) = struct.unpack_from("<Q", data)
    header = json.loads(data[8 : 8 + length])
    body = data[8 + length :]
    tensors = {}
    for name, entry in header.items():
        if name != "__metadata__":
            begin, end = entry["data_offsets"]
            flat = np.frombuffer(body[begin:end], dtype=_HELD_AS[entry["dtype"]])
            tensors[name] = Tensor(entry["dtype"], flat.reshape(entry["shape"]))
    return tensors


def write_tensors(file: Path, tensors: Mapping[str, Tensor]) -> None:
    """Write a safetensors file, wide elements first so that all of them lie aligned."""

    def place(name: str) -> tuple[int, str]:
        return -tensors[name].elements.itemsize, name

    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    body = bytearray()
    for name in sorted(tensors, key=place):
        tensor = tensors[name]
        raw = tensor.elements.astype(_HELD_AS[tensor.dtype]).tobytes()
        header[name] = {
            "dtype": tensor.dtype,
            "shape": list(tensor.elements.shape),
            "data_offsets": [len(body), len(body) + len(raw)],
        }
        body += raw
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    file.write_bytes(struct.pack("<Q", len(text)) + text + bytes(body))
