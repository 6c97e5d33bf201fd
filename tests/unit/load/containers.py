"""Safetensors files written by hand, whole and damaged, for the tests of the header."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable

from eagle3_lint.load.header import DTYPE_BITS


def file_of(header: str | bytes, data: bytes = b"", length: int | None = None) -> bytes:
    """A file with the given header text; ``length`` lies about it."""
    text = header.encode("utf-8", "surrogatepass") if isinstance(header, str) else header
    return struct.pack("<Q", len(text) if length is None else length) + text + data


def entry(
    name: str = "a",
    dtype: str = '"F32"',
    shape: str = "[1]",
    offsets: str = "[0,4]",
    more: str = "",
) -> str:
    """One member of a header: by default four bytes of float32."""
    fields = f'"dtype":{dtype},"shape":{shape},"data_offsets":{offsets}{more}'
    return f"{json.dumps(name)}:{{{fields}}}"


def header(*members: str) -> str:
    return "{" + ",".join(members) + "}"


def one(size: int = 4, **fields: str) -> bytes:
    """A file with one tensor, changed in one field, and ``size`` bytes of data."""
    return file_of(header(entry(**fields)), bytes(size))


def many(members: Iterable[str], size: int) -> bytes:
    return file_of(header(*members), bytes(size))


A, B = entry(), entry("b", offsets="[4,8]")
_NEST = {n: "[" * n + "]" * n for n in (50, 124, 125, 126, 127, 200, 5000)}
_META = '"__metadata__":'

#: What the library accepts, though a reader might not expect it.
ACCEPTED: dict[str, bytes] = {
    "one tensor": many([A], 4),
    "two tensors": many([A, B], 8),
    "keys in another order than the data": many([B, A], 8),
    "fields in another order": file_of('{"a":{"data_offsets":[0,4],"shape":[1],"dtype":"F32"}}',
                                       bytes(4)),
    "no tensors": file_of("{}"),
    "metadata alone": file_of('{"__metadata__":{"format":"pt"}}'),
    "space before the brace": file_of(" \n\t" + header(A), bytes(4)),
    "space, tab, return, newline at the end": file_of(header(A) + " \t\r\n", bytes(4)),
    "pretty printed": file_of(json.dumps(json.loads(header(A)), indent=2), bytes(4)),
    "unaligned data start": file_of("{} "),
    "metadata null": many([_META + "null", A], 4),
    "metadata empty": many([_META + "{}", A], 4),
    "metadata last": many([A, _META + '{"format":"pt"}'], 4),
    "a metadata key twice": many([_META + '{"a":"1","a":"2"}', A], 4),
    "escaped metadata name": many(['"__metadat\\u0061__":{"a":"b"}', A], 4),
    "a tensor twice, same bytes": many([A, A], 4),
    "a tensor twice, the first beyond the file": many([entry(offsets="[9,13]"), A], 4),
    "a tensor twice, the first of a wrong size": many([entry(shape="[7]"), A], 4),
    "a tensor twice, once escaped": many([A, A.replace('"a"', '"\\u0061"')], 4),
    "an unknown field": one(more=',"x":{"y":[1,2.5,null,true,"z"]}'),
    "an unknown field twice": one(more=',"x":1,"x":2'),
    "a positional entry": file_of('{"a":["F32",[1],[0,4]]}', bytes(4)),
    "a dtype as a variant with null": one(dtype='{"F32":null}'),
    "an empty name": many([entry("")], 4),
    "NUL in a name": many([entry("a\0b")], 4),
    "a surrogate pair in a name": many([entry("\U0001f600")], 4),
    "DEL in a name": file_of(header(A.replace('"a"', '"\x7f"')), bytes(4)),
    "a scalar": one(shape="[]"),
    "an empty tensor": one(0, shape="[0]", offsets="[0,0]"),
    "empty tensors at one offset": many(
        [entry("x", shape="[0]", offsets="[4,4]"), entry("y", shape="[0]", offsets="[4,4]"), A], 4
    ),
    "zero before an overflow": one(0, shape=f"[0,{2**63},{2**63}]", offsets="[0,0]"),
    "zero before the largest dimension": one(0, shape=f"[0,{2**64 - 1}]", offsets="[0,0]"),
    "zero after more elements than bits fit": one(0, shape=f"[{2**62},0]", offsets="[0,0]"),
    "half a byte, twice": one(1, dtype='"F4"', shape="[2]", offsets="[0,1]"),
    "six bits, four times": one(3, dtype='"F6_E2M3"', shape="[4]", offsets="[0,3]"),
    "a long integer in an unknown field": one(more=',"x":' + "9" * 300),
    "minus zero in an unknown field": one(more=',"x":-0'),
    "zero with a huge exponent": one(more=',"x":0e99999999999'),
    "a huge negative exponent": one(more=',"x":1e-99999999999'),
    "a huge exponent balanced by zeros": one(more=f',"x":0.{"0" * 400}1e500'),
    "125 levels in an entry of two": one(more=f',"x":{_NEST[125]}'),
    "brackets in a string": one(more=f',"x":"{"[{" * 200}"'),
    "escaped quotes around brackets": one(more=f',"x":"\\"{"[" * 200}\\\\"'),
    **{f"dtype {name}": one(bits, dtype=f'"{name}"', shape="[8]", offsets=f"[0,{bits}]")
       for name, bits in DTYPE_BITS.items()},
}  # fmt: skip

#: What the library refuses → the kind we call it.
REFUSED: dict[str, tuple[str, bytes]] = {
    "no bytes": ("empty-file", b""),
    "seven bytes": ("too-short", b"\x02\0\0\0\0\0\0"),
    "seven zeros": ("all-zero", bytes(7)),
    "eight zeros": ("all-zero", bytes(8)),
    "a page of zeros": ("all-zero", bytes(4096)),
    "zeros after the length": ("all-zero", struct.pack("<Q", 40) + bytes(200)),
    "length zero, then something": ("not-json", bytes(8) + b"{}"),
    "the longest header and one": ("too-large", file_of("{}", length=100_000_001)),
    "the largest length": ("too-large", file_of("{}", length=2**64 - 1)),
    "a header longer than the file": ("truncated-header", file_of("{}", length=3)),
    "the longest header": ("truncated-header", file_of("{}", length=100_000_000)),
    "a header cut short by its length": ("not-json", file_of(header(A), bytes(4), length=10)),
    "not UTF-8": ("not-utf8", file_of(b'{"\xff":1}')),
    "an encoded surrogate": ("not-utf8", file_of(b'{"\xed\xa0\x80":1}')),
    "UTF-16": ("not-utf8", file_of(header(A).encode("utf-16"), bytes(4))),
    "UTF-16 without a mark": ("not-json", file_of(header(A).encode("utf-16-le"), bytes(4))),
    "a byte order mark": ("not-json", file_of(b"\xef\xbb\xbf{}")),
    "NUL after the header": ("not-json", file_of(header(A) + "\0", bytes(4))),
    "text after the header": ("not-json", file_of(header(A) + " x", bytes(4))),
    "two headers": ("not-json", file_of(header(A) * 2, bytes(4))),
    "a form feed": ("not-json", file_of("\f" + header(A), bytes(4))),
    "a no-break space": ("not-json", file_of("\u00a0" + header(A), bytes(4))),
    "a trailing comma": ("not-json", file_of(f"{{{A},}}", bytes(4))),
    "single quotes": ("not-json", file_of("{'a':1}")),
    "a comment": ("not-json", file_of("{} // x")),
    "a control character": ("not-json", file_of('{"a\x01":1}')),
    "a newline in a name": ("not-json", file_of('{"a\n":1}')),
    "an unknown escape": ("not-json", file_of('{"\\x":1}')),
    "a short escape": ("not-json", file_of('{"\\u12":1}')),
    "a signed escape": ("not-json", file_of('{"\\u+123":1}')),
    "half a pair, high": ("not-json", many([A.replace('"a"', '"\\ud800"')], 4)),
    "half a pair, low": ("not-json", many([A.replace('"a"', '"\\udc00"')], 4)),
    "half a pair, then a whole one": (
        "not-json", many([A.replace('"a"', '"\\ud83d\\ud83d\\ude00"')], 4)),
    "half a pair in an unknown field": ("not-json", one(more=',"x":["\\ud800"]')),
    "half a pair in metadata": ("not-json", many([_META + '{"a":"\\ud800"}', A], 4)),
    "NaN": ("not-json", one(more=',"x":NaN')),
    "Infinity": ("not-json", one(more=',"x":-Infinity')),
    "a number beyond a double": ("not-json", one(more=',"x":1e999')),
    "a long integer beyond a double": ("not-json", one(more=',"x":' + "9" * 400)),
    "5000 digits": ("not-json", one(more=',"x":' + "1" * 5000)),
    "a leading zero": ("not-json", one(shape="[01]")),
    "a plus sign": ("not-json", one(shape="[+1]")),
    "a bare fraction": ("not-json", one(shape="[.5]")),
    "Arabic digits": ("not-json", one(shape="[\u0661]")),
    "126 levels in an entry of two": ("not-json", one(more=f',"x":{_NEST[126]}')),
    "127 levels in an entry of two": ("not-json", one(more=f',"x":{_NEST[127]}')),
    "5000 levels": ("not-json", one(more=f',"x":{_NEST[5000]}')),
    "100,000 open brackets": ("not-json", file_of("[" * 100_000)),
    "a list": ("not-an-object", file_of("[]")),
    "a number": ("not-an-object", file_of("1")),
    "null": ("not-an-object", file_of("null")),
    "a string": ("not-an-object", file_of('"a"')),
    "metadata twice": ("bad-metadata", many([_META + "{}", _META + "{}", A], 4)),
    "metadata null twice": ("bad-metadata", many([_META + "null", _META + "null"], 0)),
    "metadata null and not": ("bad-metadata", many([_META + "null", _META + "{}"], 0)),
    "a number in metadata": ("bad-metadata", many([_META + '{"a":1}', A], 4)),
    "null in metadata": ("bad-metadata", many([_META + '{"a":null}', A], 4)),
    "an object in metadata": ("bad-metadata", many([_META + '{"a":{}}', A], 4)),
    "metadata a list": ("bad-metadata", many([_META + "[]", A], 4)),
    "metadata pairs": ("bad-metadata", many([_META + '[["a","b"]]', A], 4)),
    "metadata a string": ("bad-metadata", many([_META + '"a"', A], 4)),
    "a tensor called __metadata__": ("bad-metadata", many([entry("__metadata__")], 4)),
    "no dtype": ("bad-tensor-entry", file_of('{"a":{"shape":[1],"data_offsets":[0,4]}}', bytes(4))),
    "no shape": (
        "bad-tensor-entry", file_of('{"a":{"dtype":"F32","data_offsets":[0,4]}}', bytes(4))),
    "no offsets": ("bad-tensor-entry", file_of('{"a":{"dtype":"F32","shape":[1]}}', bytes(4))),
    "an empty entry": ("bad-tensor-entry", file_of('{"a":{}}')),
    "an entry null": ("bad-tensor-entry", file_of('{"a":null}')),
    "an entry a string": ("bad-tensor-entry", file_of('{"a":"F32"}')),
    "an entry a number": ("bad-tensor-entry", file_of('{"a":1}')),
    "an entry true": ("bad-tensor-entry", file_of('{"a":true}')),
    "an entry of two": ("bad-tensor-entry", file_of('{"a":["F32",[1]]}', bytes(4))),
    "an entry of four": ("bad-tensor-entry", file_of('{"a":["F32",[1],[0,4],0]}', bytes(4))),
    "dtype twice": ("bad-tensor-entry", one(more=',"dtype":"F32"')),
    "shape twice": ("bad-tensor-entry", one(more=',"shape":[1]')),
    "offsets twice": ("bad-tensor-entry", one(more=',"data_offsets":[0,4]')),
    "dtype null": ("bad-tensor-entry", one(dtype="null")),
    "dtype a number": ("bad-tensor-entry", one(dtype="17")),
    "dtype a list": ("bad-tensor-entry", one(dtype='["F32"]')),
    "dtype two variants": ("bad-tensor-entry", one(dtype='{"F32":null,"F16":null}')),
    "dtype a variant with a number": ("bad-tensor-entry", one(dtype='{"F32":1}')),
    "an unknown dtype": ("unknown-dtype", one(dtype='"Q8"')),
    "a lower-case dtype": ("unknown-dtype", one(dtype='"f32"')),
    "an empty dtype": ("unknown-dtype", one(dtype='""')),
    "shape null": ("bad-tensor-entry", one(shape="null")),
    "shape a number": ("bad-tensor-entry", one(shape="1")),
    "shape an object": ("bad-tensor-entry", one(shape="{}")),
    "a negative dimension": ("bad-tensor-entry", one(shape="[-1]")),
    "minus zero": ("bad-tensor-entry", one(0, shape="[-0]", offsets="[0,0]")),
    "a dimension 1.0": ("bad-tensor-entry", one(shape="[1.0]")),
    "a dimension 1e0": ("bad-tensor-entry", one(shape="[1e0]")),
    "a dimension true": ("bad-tensor-entry", one(shape="[true]")),
    "a dimension in quotes": ("bad-tensor-entry", one(shape='["1"]')),
    "a dimension null": ("bad-tensor-entry", one(shape="[null]")),
    "a dimension of 2^64": ("bad-tensor-entry", one(shape=f"[{2**64}]")),
    "a dimension of 2^64 beside zero": (
        "bad-tensor-entry", one(0, shape=f"[0,{2**64}]", offsets="[0,0]")),
    "one offset": ("bad-tensor-entry", one(offsets="[4]")),
    "three offsets": ("bad-tensor-entry", one(offsets="[0,4,8]")),
    "offsets a string": ("bad-tensor-entry", one(offsets='"04"')),
    "offsets an object": ("bad-tensor-entry", one(offsets='{"0":0,"1":4}')),
    "a negative offset": ("bad-tensor-entry", one(offsets="[-4,0]")),
    "an offset 4.0": ("bad-tensor-entry", one(offsets="[0,4.0]")),
    "a tensor twice, the first of no size": ("bad-tensor-entry", many(['"a":1', A], 4)),
    "a tensor twice, the first of no dtype": ("unknown-dtype", many([entry(dtype='"Q"'), A], 4)),
    "a tensor twice, each its own bytes": ("hole", many([A, entry(offsets="[4,8]")], 8)),
    "a hole before the first": ("hole", one(8, offsets="[4,8]")),
    "a hole between": ("hole", many([A, entry("b", offsets="[8,12]")], 12)),
    "an overlap": ("overlap", many([A, entry("b", offsets="[2,6]")], 6)),
    "two names for the same bytes": ("overlap", many([A, entry("b")], 4)),
    "one tensor inside another": (
        "overlap", many([entry(shape="[2]", offsets="[0,8]"), entry("b", offsets="[4,8]")], 8)),
    "an empty tensor inside another": (
        "overlap", many([A, entry("b", shape="[0]", offsets="[2,2]")], 4)),
    "offsets reversed": ("overlap", one(offsets="[4,0]")),
    "a shape too small": ("bad-shape", one(8, offsets="[0,8]")),
    "a shape too large": ("bad-shape", one(shape="[2]")),
    "an empty shape with bytes": ("bad-shape", one(shape="[0]")),
    "bytes for an empty tensor": ("bad-shape", one(0, offsets="[0,0]")),
    "a product beyond 64 bits": ("overflow", one(shape=f"[{2**40},{2**40}]")),
    "bits beyond 64 bits": ("overflow", one(shape=f"[{2**60}]")),
    "the largest dimension": ("overflow", one(shape=f"[{2**64 - 1}]", dtype='"U8"')),
    "zero after an overflow": ("overflow", one(0, shape=f"[{2**40},{2**40},0]", offsets="[0,0]")),
    "half a byte": ("sub-byte", one(1, dtype='"F4"', offsets="[0,1]")),
    "six bits, three times": ("sub-byte", one(3, dtype='"F6_E3M2"', shape="[3]", offsets="[0,3]")),
    "a byte missing": ("truncated-data", one(3)),
    "all data missing": ("truncated-data", one(0)),
    "a byte too many": ("trailing-bytes", one(5)),
    "data without tensors": ("trailing-bytes", file_of("{}", bytes(4))),
    "a Git LFS pointer": (
        "git-lfs-pointer", b"version https://git-lfs.github.com/spec/v1\noid sha256:1\nsize 2\n"),
    "a zip": ("torch-zip", b"PK\x03\x04\x14\x00\x08\x08" + bytes(100)),
    "a pickle": ("torch-legacy-pickle", b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19." + bytes(20)),
    "a web page": ("html", b"\n<!DOCTYPE html><html></html>"),
    "an XML error": ("html", b'<?xml version="1.0"?><Error><Code>AccessDenied</Code></Error>'),
    "a line of text": ("too-large", b"Entry not found"),
    "a server's answer": ("too-large", b'{"error":"Invalid username or password."}'),
    "GGUF": ("too-large", b"GGUF\x03\0\0\0" + bytes(100)),
}  # fmt: skip
