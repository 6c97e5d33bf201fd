"""A strict reader of the safetensors header: 8 bytes of length, then JSON, then tensor data.

It accepts and refuses exactly what the safetensors library does (0.8.0, ``tensor.rs`` read_metadata
and validate; a differential test holds it to that), and says which tensor is to blame where the
library does not. It reads 8 + N bytes of a file, whatever the file's size.
"""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Mapping
from math import isfinite
from pathlib import Path
from typing import Any

from eagle3_lint.frozen import frozen

#: Bits per element (``Dtype::bitsize`` of the library).
DTYPE_BITS: Mapping[str, int] = {
    "BOOL": 8, "F4": 4, "F6_E2M3": 6, "F6_E3M2": 6, "U8": 8, "I8": 8, "F8_E5M2": 8, "F8_E4M3": 8,
    "F8_E8M0": 8, "F8_E4M3FNUZ": 8, "F8_E5M2FNUZ": 8, "I16": 16, "U16": 16, "F16": 16, "BF16": 16,
    "I32": 32, "U32": 32, "F32": 32, "C64": 64, "F64": 64, "I64": 64, "U64": 64,
}  # fmt: skip

#: The library refuses longer headers; exactly this many bytes are accepted.
LONGEST_HEADER = 100_000_000
#: serde_json refuses the 128th level of nesting.
_DEEPEST = 127
_LARGEST = 2**64 - 1


@frozen
class TensorInfo:
    """One tensor of a header; ``begin`` and ``end`` count bytes from the start of the data."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    begin: int
    end: int


@frozen
class Header:
    """A header that the library accepts.

    Attributes:
        length: bytes of JSON. data_start: 8 + length.
        metadata: the ``__metadata__`` map, empty when absent or null.
        tensors: in the order of the text; of equal names the last counts, as for the library.
        duplicates: names that stand in the text more than once.
    """

    length: int
    metadata: Mapping[str, str]
    tensors: tuple[TensorInfo, ...]
    duplicates: tuple[str, ...]

    @property
    def data_start(self) -> int:
        return 8 + self.length


class HeaderError(ValueError):
    """The library refuses the file.

    Attributes:
        kind: what is wrong, in a stable word (``trailing-bytes``, ``hole``, ``html``, …).
        message: one sentence that names the culprit.
        tensor: the tensor to blame, if it is one.
    """

    def __init__(self, kind: str, message: str, tensor: str | None = None) -> None:
        super().__init__(message)
        self.kind, self.message, self.tensor = kind, message, tensor


# -- JSON as the library's parser has it -----------------------------------------------------------


class _Number:
    """A JSON number, kept as text: an int would lose ``-0``, a float a large integer."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        # A number that overflows a double is refused even where it is not used.
        if not isfinite(float(text)):
            raise HeaderError("not-json", f"the number {text[:20]} in the header is out of range")
        self.text = text


class _Pairs(list[tuple[str, Any]]):
    """A JSON object as its pairs, so that equal keys stay visible."""


def _constant(text: str) -> Any:
    raise HeaderError("not-json", f"the header is not JSON: {text} is no JSON value")


def _depth(text: str) -> int:
    """The deepest nesting, brackets in strings aside."""
    deepest = depth = 0
    quoted = escaped = False
    for character in text:
        if quoted:
            if escaped:
                escaped = False
            elif character == "\\":
                escaped = True
            elif character == '"':
                quoted = False
        elif character == '"':
            quoted = True
        elif character in "[{":
            depth += 1
            deepest = max(deepest, depth)
        elif character in "]}":
            depth -= 1
    return deepest


def _parse(text: str) -> Any:
    if (text.count("{") + text.count("[")) > _DEEPEST and _depth(text) > _DEEPEST:
        raise HeaderError("not-json", "the header nests too deeply (more than 127 levels)")
    try:
        parsed = json.loads(
            text,
            object_pairs_hook=_Pairs,
            parse_int=_Number,
            parse_float=_Number,
            parse_constant=_constant,
        )
    except json.JSONDecodeError as error:
        where = f"line {error.lineno} column {error.colno}"
        raise HeaderError("not-json", f"the header is not JSON: {error.msg} at {where}") from None
    if "\\u" in text:
        _refuse_lone_surrogates(parsed)
    return parsed


def _refuse_lone_surrogates(value: Any) -> None:
    if isinstance(value, str):
        if any("\ud800" <= character <= "\udfff" for character in value):
            raise HeaderError("not-json", "the header has a lone surrogate in a string")
    elif isinstance(value, _Pairs):
        for key, inner in value:
            _refuse_lone_surrogates(key)
            _refuse_lone_surrogates(inner)
    elif isinstance(value, list):
        for inner in value:
            _refuse_lone_surrogates(inner)


# -- from JSON to tensors --------------------------------------------------------------------------


def _natural(value: Any, what: str, name: str) -> int:
    """A dimension or an offset: 0 to 2^64 - 1, written as an integer."""
    if isinstance(value, _Number) and value.text.isdigit():
        number = int(value.text) if len(value.text) <= 20 else _LARGEST + 1
        if number <= _LARGEST:
            return number
    shown = value.text[:24] if isinstance(value, _Number) else json.dumps(value)[:24]
    raise HeaderError("bad-tensor-entry", f"{what} of tensor {name!r} is {shown}, no size", name)


def _fields(entry: Any, name: str) -> list[Any]:
    """dtype, shape and data_offsets of an entry, which may be an object or a positional list."""
    wanted = ("dtype", "shape", "data_offsets")
    if isinstance(entry, _Pairs):
        found: dict[str, Any] = {}
        for key, value in entry:
            if key in wanted and key in found:
                message = f"tensor {name!r} has the field {key} twice"
                raise HeaderError("bad-tensor-entry", message, name)
            found[key] = value
        for key in wanted:
            if key not in found:
                raise HeaderError("bad-tensor-entry", f"tensor {name!r} has no {key}", name)
        return [found[key] for key in wanted]
    if isinstance(entry, list) and len(entry) == len(wanted):
        return entry
    raise HeaderError("bad-tensor-entry", f"the entry of tensor {name!r} is no object", name)


def _dtype(value: Any, name: str) -> str:
    # The library's parser also takes a unit variant written as {"F32": null}.
    if isinstance(value, _Pairs) and len(value) == 1 and value[0][1] is None:
        value = value[0][0]
    if not isinstance(value, str):
        raise HeaderError("bad-tensor-entry", f"the dtype of tensor {name!r} is no string", name)
    if value not in DTYPE_BITS:
        message = f"tensor {name!r} has dtype {value!r}, which safetensors does not know"
        raise HeaderError("unknown-dtype", message, name)
    return value


def _tensor(name: str, entry: Any) -> TensorInfo:
    dtype, shape, offsets = _fields(entry, name)
    known = _dtype(dtype, name)
    if not isinstance(shape, list) or isinstance(shape, _Pairs):
        raise HeaderError("bad-tensor-entry", f"the shape of tensor {name!r} is no list", name)
    sizes = tuple(_natural(size, "a dimension", name) for size in shape)
    if not isinstance(offsets, list) or isinstance(offsets, _Pairs) or len(offsets) != 2:
        message = f"data_offsets of tensor {name!r} are not two numbers"
        raise HeaderError("bad-tensor-entry", message, name)
    begin, end = (_natural(offset, "an offset", name) for offset in offsets)
    return TensorInfo(name, known, sizes, begin, end)


def _metadata(value: Any) -> dict[str, str]:
    if value is None:
        return {}
    if not isinstance(value, _Pairs) or not all(isinstance(text, str) for _, text in value):
        raise HeaderError("bad-metadata", "__metadata__ must map strings to strings")
    return dict(value)


# -- the rules of the format -----------------------------------------------------------------------


def _size(tensor: TensorInfo) -> int:
    """Bytes that a tensor's dtype and shape ask for."""
    count = 1
    for size in tensor.shape:
        count *= size
        if count > _LARGEST:
            message = f"the shape {list(tensor.shape)} of tensor {tensor.name!r} overflows"
            raise HeaderError("overflow", message, tensor.name)
    bits = count * DTYPE_BITS[tensor.dtype]
    if bits > _LARGEST:
        message = f"the size of tensor {tensor.name!r} ({list(tensor.shape)}) overflows"
        raise HeaderError("overflow", message, tensor.name)
    if bits % 8:
        message = f"tensor {tensor.name!r} ({tensor.dtype}) does not end at a whole byte"
        raise HeaderError("sub-byte", message, tensor.name)
    return bits // 8


def _validate(tensors: list[TensorInfo], data_bytes: int) -> None:
    position = 0
    before = "the start of the data"
    for tensor in sorted(tensors, key=lambda t: (t.begin, t.end)):
        if tensor.end < tensor.begin:
            message = f"tensor {tensor.name!r} ends at {tensor.end}, before its {tensor.begin}"
            raise HeaderError("overlap", message, tensor.name)
        if tensor.begin > position:
            gap = tensor.begin - position
            message = f"{gap:,} bytes between {before} and tensor {tensor.name!r} belong to nothing"
            raise HeaderError("hole", message, tensor.name)
        if tensor.begin < position:
            message = f"tensor {tensor.name!r} begins at {tensor.begin:,}, inside {before}"
            raise HeaderError("overlap", message, tensor.name)
        size = _size(tensor)
        if tensor.end - tensor.begin != size:
            message = (
                f"tensor {tensor.name!r} ({tensor.dtype}, {list(tensor.shape)}) needs"
                f" {size:,} bytes and has {tensor.end - tensor.begin:,}"
            )
            raise HeaderError("bad-shape", message, tensor.name)
        position, before = tensor.end, f"tensor {tensor.name!r}"
    if position > data_bytes:
        message = f"the file ends {position - data_bytes:,} bytes early: an interrupted download"
        raise HeaderError("truncated-data", message)
    if position < data_bytes:
        message = f"{data_bytes - position:,} bytes follow the last tensor and belong to nothing"
        raise HeaderError("trailing-bytes", message)


_OTHER_FILES = (
    (b"version https://git-lfs", "git-lfs-pointer",
     "it is a Git LFS pointer, not the weights: run `git lfs pull`"),
    (b"PK\x03\x04", "torch-zip",
     "it is a zip, as torch.save writes it, not safetensors: rename it to pytorch_model.bin or"
     " save it with safetensors"),
    (b"\x80\x02", "torch-legacy-pickle",
     "it is a Python pickle, as an old torch.save writes it, not safetensors"),
)  # fmt: skip
_HTML = (b"<!doctype", b"<html", b"<?xml")


def _other_file(start: bytes, file_size: int) -> HeaderError | None:
    """What a file is that cannot be safetensors."""
    if file_size == 0:
        return HeaderError("empty-file", "the file is empty")
    for magic, kind, message in _OTHER_FILES:
        if start.startswith(magic):
            return HeaderError(kind, message)
    if start.lstrip()[:9].lower().startswith(_HTML):
        return HeaderError("html", "it is a web page, such as a login or error page, not weights")
    if len(start) >= 8 and not any(start[:64]):
        return HeaderError("all-zero", "it begins with zeros: a download that was never filled in")
    return None


def parse_header(raw: bytes, file_size: int) -> Header:
    """Parse the beginning of a safetensors file.

    Args:
        raw: at least the first 8 + N bytes, as far as the file has them.
        file_size: bytes of the whole file.

    Raises:
        HeaderError: the library would refuse the file.
    """
    if file_size < 8:
        raise _other_file(raw, file_size) or HeaderError(
            "too-short", f"the file has {file_size} bytes; a header needs at least 8"
        )
    (length,) = struct.unpack_from("<Q", raw)
    if length > LONGEST_HEADER:
        raise _other_file(raw, file_size) or HeaderError(
            "too-large", f"its first 8 bytes name a header of {length:,} bytes: not safetensors"
        )
    if 8 + length > file_size:
        message = f"the header should have {length:,} bytes, the file has only {file_size:,}"
        raise HeaderError("truncated-header", message)
    try:
        text = raw[8 : 8 + length].decode("utf-8")
    except UnicodeDecodeError as error:
        message = f"the header is not UTF-8 (byte {error.start})"
        raise HeaderError("not-utf8", message) from None
    if not length:
        raise _other_file(raw, file_size) or HeaderError("not-json", "the header is empty")
    return _build(_parse(text), length, file_size)


def _build(parsed: Any, length: int, file_size: int) -> Header:
    if not isinstance(parsed, _Pairs):
        raise HeaderError("not-an-object", "the header is JSON, but no object")
    metadata: dict[str, str] | None = None
    entries: dict[str, Any] = {}
    duplicates: dict[str, None] = {}
    for name, entry in parsed:
        if name == "__metadata__":
            if metadata is not None:
                raise HeaderError("bad-metadata", "__metadata__ stands in the header twice")
            metadata = _metadata(entry)
            continue
        if name in entries:
            duplicates[name] = None
            # Every entry must be sound, also one that a later entry replaces.
            _tensor(name, entries.pop(name))
        entries[name] = entry
    tensors = [_tensor(name, entry) for name, entry in entries.items()]
    _validate(tensors, file_size - 8 - length)
    return Header(length, metadata or {}, tuple(tensors), tuple(duplicates))


def read_header(path: str | os.PathLike[str]) -> Header:
    """Read a file's header.

    Raises:
        HeaderError: the library would refuse the file.
        OSError: it cannot be opened or read.
    """
    with Path(path).open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        start = file.read(64)
        if len(start) >= 8:
            (length,) = struct.unpack_from("<Q", start)
            if 64 < 8 + length <= min(size, 8 + LONGEST_HEADER):
                start += file.read(8 + length - 64)
    return parse_header(start, size)
