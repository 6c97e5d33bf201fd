"""A case as the files a runtime reads: config.json and model.safetensors."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tests.conformance.draft import Shape

if TYPE_CHECKING:
    from tests.conformance.corpus import Case

_PACK: Final[dict[str, str]] = {
    "F32": "<f", "F16": "<e", "I64": "<q", "I32": "<i", "I16": "<h", "U8": "<B", "BOOL": "<B",
}  # fmt: skip


def _element(dtype: str, value: float) -> bytes:
    if dtype == "BF16":
        return struct.pack("<f", value)[2:]
    return struct.pack(_PACK[dtype], value if dtype in ("F32", "F16") else int(value))


def _count(shape: Shape) -> int:
    total = 1
    for n in shape:
        total *= n
    return total


def _bytes(case: Case, name: str, value: float) -> bytes:
    dtype, shape = case.tensors[name]
    if name == "d2t" and case.d2t is not None:
        return b"".join(_element(dtype, n) for n in case.d2t)
    if name == "t2d" and case.d2t is not None:
        used = {i + offset for i, offset in enumerate(case.d2t)}
        return bytes(i in used for i in range(_count(shape)))
    if dtype == "BOOL":
        return bytes(_count(shape))
    return _element(dtype, value) * _count(shape)


def write(case: Case, folder: Path) -> Path:
    """Write ``config.json`` and ``model.safetensors`` into ``folder`` (made if missing); returns
    it.

    Tensor data follows the safetensors format: 8-byte little-endian header length, JSON header,
    data in the order of the sorted names.
    """
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(case.config, indent=2) + "\n", encoding="utf-8")
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    data = bytearray()
    for name, value in case.values().items():
        dtype, shape = case.tensors[name]
        raw = _bytes(case, name, value)
        header[name] = {
            "dtype": dtype,
            "shape": list(shape),
            "data_offsets": [len(data), len(data) + len(raw)],
        }
        data += raw
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + data)
    return folder
