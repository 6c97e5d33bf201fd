"""A strict reader of the safetensors header: 8 bytes of length, then JSON, then tensor data.

It accepts and refuses exactly what the safetensors library does (0.8.0, ``tensor.rs`` read_metadata
and validate; a differential test holds it to that), and says which tensor is to blame where the
library does not. It reads 8 + N bytes of a file, whatever the file's size.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal

from eagle3_lint.frozen import frozen
from eagle3_lint.load import bring
from eagle3_lint.load.foreign import SNIFFED, ForeignKind, describe, recognise
from eagle3_lint.load.strict_json import Number, Pairs, StrictJsonError, parse, shown

HeaderKind = Literal[
    "too-short", "too-large", "truncated-header", "not-utf8", "not-json", "not-an-object",
    "bad-metadata", "bad-tensor-entry", "unknown-dtype", "hole", "overlap", "bad-shape", "overflow",
    "sub-byte", "truncated-data", "trailing-bytes",
]  # fmt: skip

#: Bits per element (``Dtype::bitsize`` of the library).
DTYPE_BITS: Mapping[str, int] = {
    "BOOL": 8, "F4": 4, "F6_E2M3": 6, "F6_E3M2": 6, "U8": 8, "I8": 8, "F8_E5M2": 8, "F8_E4M3": 8,
    "F8_E8M0": 8, "F8_E4M3FNUZ": 8, "F8_E5M2FNUZ": 8, "I16": 16, "U16": 16, "F16": 16, "BF16": 16,
    "I32": 32, "U32": 32, "F32": 32, "C64": 64, "F64": 64, "I64": 64, "U64": 64,
}  # fmt: skip

#: The library refuses longer headers; exactly this many bytes are accepted.
LONGEST_HEADER = 100_000_000
_LARGEST = 2**64 - 1
_FIELDS = ("dtype", "shape", "data_offsets")


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
        length: bytes of JSON, padding included.
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
        """Where in the file the tensor data begin."""
        return 8 + self.length


class HeaderError(ValueError):
    """The library refuses the file.

    Attributes:
        kind: what is wrong, in a stable word.
        message: one sentence that names the culprit, without a full stop.
        tensor: the tensor to blame, if it is one.
    """

    def __init__(
        self, kind: HeaderKind | ForeignKind, message: str, tensor: str | None = None
    ) -> None:
        super().__init__(message)
        self.kind, self.message, self.tensor = kind, message, tensor


def read_header(path: str | os.PathLike[str]) -> Header:
    """Read a file's header.

    Raises:
        HeaderError: the library would refuse the file.
        OSError: it cannot be opened or read.
    """
    bring(Path(path), "header")
    with Path(path).open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        start = file.read(SNIFFED)
        if len(start) >= 8:
            (length,) = struct.unpack_from("<Q", start)
            if length <= LONGEST_HEADER and len(start) < 8 + length <= size:
                start += file.read(8 + length - len(start))
    return parse_header(start, size)


def read_header_text(path: str | os.PathLike[str]) -> str:
    """The JSON of a header that :func:`read_header` accepts, padding included.

    Raises:
        HeaderError: the file ends inside the header.
        OSError: it cannot be opened or read.
    """
    with Path(path).open("rb") as file:
        start = file.read(8)
        (length,) = struct.unpack("<Q", start) if len(start) == 8 else (LONGEST_HEADER + 1,)
        raw = file.read(length) if length <= LONGEST_HEADER else b""
    if len(raw) != length:
        raise HeaderError("truncated-header", "the file ends inside the header")
    return raw.decode("utf-8")


def parse_header(raw: bytes, file_size: int) -> Header:
    """Parse the beginning of a safetensors file.

    Args:
        raw: the first 8 + N bytes or more, as far as the file has them.
        file_size: bytes of the whole file.

    Raises:
        HeaderError: the library would refuse the file.
    """
    available = min(file_size, len(raw))
    length = struct.unpack_from("<Q", raw)[0] if available >= 8 else 0
    if available < 8 or length > LONGEST_HEADER:
        foreign = recognise(raw[:SNIFFED], file_size)
        if foreign is not None:
            raise HeaderError(*foreign)
        if available < 8:
            message = f"the file has {available} bytes, and a header needs at least 8"
            raise HeaderError("too-short", message)
        announced = f"its first 8 bytes announce a header of {length:,} bytes"
        message = f"this is not safetensors: {describe(raw[:SNIFFED]) or announced}"
        raise HeaderError("too-large", message)
    if 8 + length > available:
        message = (
            f"the header should have {length:,} bytes, and the whole file has {available:,}: an"
            " interrupted download or copy"
        )
        raise HeaderError("truncated-header", message)
    if not any(raw[: 8 + max(length, SNIFFED)]) or (length and not any(raw[8 : 8 + length])):
        raise HeaderError("all-zero", "zeros stand where the header should: it was never filled in")
    try:
        text = raw[8 : 8 + length].decode("utf-8")
    except UnicodeDecodeError as error:
        message = f"the header is not UTF-8 (byte {8 + error.start:,} of the file)"
        raise HeaderError("not-utf8", message) from None
    try:
        parsed = parse(text)
    except StrictJsonError as error:
        raise HeaderError("not-json", f"the header is not JSON: {error}") from None
    return _build(parsed, length, file_size)


# -- from JSON to tensors --------------------------------------------------------------------------


def _build(parsed: Any, length: int, file_size: int) -> Header:
    if not isinstance(parsed, Pairs):
        raise HeaderError("not-an-object", "the header is JSON, but not an object")
    metadata: dict[str, str] | None = None
    tensors: dict[str, TensorInfo] = {}
    duplicates: dict[str, None] = {}
    for name, entry in parsed:
        if name == "__metadata__":
            if metadata is not None:
                raise HeaderError("bad-metadata", "__metadata__ stands in the header twice")
            metadata = _metadata(entry)
            continue
        if tensors.pop(name, None) is not None:
            duplicates[name] = None
        # An entry must be sound even when a later one of that name replaces it.
        tensors[name] = _tensor(name, entry)
    _validate(tensors.values(), file_size - 8 - length)
    return Header(length, metadata or {}, tuple(tensors.values()), tuple(duplicates))


def _metadata(value: Any) -> dict[str, str]:
    if value is None:
        return {}
    if not isinstance(value, Pairs):
        raise HeaderError("bad-metadata", "__metadata__ is not an object")
    for key, text in value:
        if not isinstance(text, str):
            message = f"__metadata__ may hold strings only, and its {key!r} is {shown(text)}"
            raise HeaderError("bad-metadata", message)
    return dict(value)


def _tensor(name: str, entry: Any) -> TensorInfo:
    dtype, shape, offsets = _fields(entry, name)
    dtype = _dtype(dtype, name)
    if not isinstance(shape, list) or isinstance(shape, Pairs):
        raise _bad_entry(name, f"its shape is {shown(shape)}, not a list")
    sizes = tuple(_natural(size, "shape", name) for size in shape)
    if not isinstance(offsets, list) or isinstance(offsets, Pairs) or len(offsets) != 2:
        raise _bad_entry(name, "its data_offsets are not a list of two numbers")
    begin, end = (_natural(offset, "data_offsets", name) for offset in offsets)
    return TensorInfo(name, dtype, sizes, begin, end)


def _fields(entry: Any, name: str) -> list[Any]:
    """dtype, shape and data_offsets of an entry, which may be an object or a positional list."""
    if isinstance(entry, Pairs):
        found: dict[str, Any] = {}
        for key, value in entry:
            if key in _FIELDS and key in found:
                raise _bad_entry(name, f"it has the field {key} twice")
            found[key] = value
        for key in _FIELDS:
            if key not in found:
                raise _bad_entry(name, f"it has no {key}")
        return [found[key] for key in _FIELDS]
    if isinstance(entry, list) and len(entry) == len(_FIELDS):
        return entry
    raise _bad_entry(name, f"its entry is {shown(entry)}, not an object")


def _dtype(value: Any, name: str) -> str:
    # serde also takes a variant without content written as {"F32": null}.
    if isinstance(value, Pairs) and len(value) == 1 and value[0][1] is None:
        value = value[0][0]
    if not isinstance(value, str):
        raise _bad_entry(name, f"its dtype is {shown(value)}, not a string")
    if value not in DTYPE_BITS:
        message = f"tensor {name!r} has the dtype {value!r}, which safetensors does not know"
        raise HeaderError("unknown-dtype", message, name)
    return value


def _natural(value: Any, field: str, name: str) -> int:
    """A dimension or an offset: 0 to 2^64 - 1, written as an integer."""
    # isdigit refuses the sign of -0, which serde reads as a float.
    if isinstance(value, Number) and value.text.isdigit() and len(value.text) <= 20:
        number = int(value.text)
        if number <= _LARGEST:
            return number
    what = f"its {field} hold {shown(value)}, which is no whole number from 0 to 2^64 - 1"
    raise _bad_entry(name, what)


def _bad_entry(name: str, what: str) -> HeaderError:
    return HeaderError("bad-tensor-entry", f"the entry of tensor {name!r} is wrong: {what}", name)


# -- the rules of the format -----------------------------------------------------------------------


def _validate(tensors: Iterable[TensorInfo], data_bytes: int) -> None:
    """Tensors cover the data from the first byte to the last, none over another."""
    position = 0
    before = "the start of the data"
    cut: TensorInfo | None = None
    for tensor in sorted(tensors, key=lambda t: (t.begin, t.end)):
        named = f"tensor {tensor.name!r}"
        if tensor.end < tensor.begin:
            message = f"{named} ends at byte {tensor.end:,}, before its begin at {tensor.begin:,}"
            raise HeaderError("overlap", message, tensor.name)
        if tensor.begin > position:
            gap = tensor.begin - position
            message = f"{gap:,} bytes between {before} and {named} belong to no tensor"
            raise HeaderError("hole", message, tensor.name)
        if tensor.begin < position:
            message = f"{named} begins at byte {tensor.begin:,} of the data, inside {before}"
            raise HeaderError("overlap", message, tensor.name)
        needed, given = _size(tensor), tensor.end - tensor.begin
        if given != needed:
            message = (
                f"{named} ({tensor.dtype}, {list(tensor.shape)}) needs {needed:,} bytes"
                f" and has {given:,}"
            )
            raise HeaderError("bad-shape", message, tensor.name)
        position, before = tensor.end, named
        if cut is None and position > data_bytes:
            cut = tensor
    if cut is not None:
        message = (
            f"the file ends {position - data_bytes:,} bytes early, in tensor {cut.name!r}: an"
            " interrupted download or copy"
        )
        raise HeaderError("truncated-data", message, cut.name)
    if position < data_bytes:
        message = f"{data_bytes - position:,} bytes after {before} belong to no tensor"
        raise HeaderError("trailing-bytes", message)


def _size(tensor: TensorInfo) -> int:
    """Bytes that a tensor's dtype and shape ask for; 64 bits must hold every step, as in Rust."""
    count = 1
    for size in (*tensor.shape, DTYPE_BITS[tensor.dtype]):
        count *= size
        if count > _LARGEST:
            message = f"the size of tensor {tensor.name!r} ({list(tensor.shape)}) overflows 64 bits"
            raise HeaderError("overflow", message, tensor.name)
    if count % 8:
        message = (
            f"tensor {tensor.name!r} ({tensor.dtype}, {list(tensor.shape)}) does not end at a whole"
            " byte"
        )
        raise HeaderError("sub-byte", message, tensor.name)
    return count // 8
