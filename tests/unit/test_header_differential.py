"""The header reader against the safetensors library: accept and refuse the same, always.

No expectation here is ours: each file goes through ``safetensors.deserialize`` and through
``parse_header``, and the two must agree. Where both accept, names, dtypes and shapes agree too.
"""

from __future__ import annotations

import json
import os
import struct
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors import SafetensorError, deserialize

from eagle3_lint.load.header import DTYPE_BITS, Header, HeaderError, parse_header

#: `EAGLE3_LINT_EXAMPLES=20000` for a long run.
EXAMPLES = int(os.environ.get("EAGLE3_LINT_EXAMPLES", "400"))


def file_of(header: str | bytes, data: bytes = b"", length: int | None = None) -> bytes:
    text = header.encode("utf-8", "surrogatepass") if isinstance(header, str) else header
    return struct.pack("<Q", len(text) if length is None else length) + text + data


def library(raw: bytes) -> dict[str, tuple[str, tuple[int, ...]]] | str:
    """What the library makes of a file: its tensors, or the text of its refusal."""
    try:
        found = deserialize(raw)
    except SafetensorError as error:
        return str(error)
    except OverflowError as error:  # a dimension that Python's binding cannot hold
        return str(error)
    return {name: (view["dtype"], tuple(view["shape"])) for name, view in found}


def ours(raw: bytes) -> Header | HeaderError:
    try:
        return parse_header(raw, len(raw))
    except HeaderError as error:
        return error


def assert_agreement(raw: bytes) -> None:
    theirs, mine = library(raw), ours(raw)
    if isinstance(theirs, str):
        assert isinstance(mine, HeaderError), f"accepted what the library refuses: {theirs}"
        assert mine.message and mine.kind
        return
    assert isinstance(mine, Header), f"refused what the library accepts: {mine}"
    # The library's names for dtypes are the header's own.
    assert {t.name: (t.dtype, t.shape) for t in mine.tensors} == theirs


ONE = '"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}'
TWO = '"b":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}'


def entry(dtype: str = '"F32"', shape: str = "[1]", offsets: str = "[0,4]", more: str = "") -> str:
    return f'{{"a":{{"dtype":{dtype},"shape":{shape},"data_offsets":{offsets}{more}}}}}'


CRAFTED: dict[str, bytes] = {
    "whole": file_of(f"{{{ONE}}}", bytes(4)),
    "two": file_of(f"{{{ONE},{TWO}}}", bytes(8)),
    "two, other order": file_of(f"{{{TWO},{ONE}}}", bytes(8)),
    "no tensors": file_of("{}"),
    "no tensors but data": file_of("{}", bytes(4)),
    "empty file": b"",
    "seven bytes": bytes(7),
    "length only": bytes(8),
    "length too large": file_of("{}", length=100_000_001),
    "length largest": file_of("{}", length=2**64 - 1),
    "length beyond file": file_of("{}", length=3),
    "length short": file_of(f"{{{ONE}}}", bytes(4), length=10),
    "not utf-8": file_of(b'{"\xff":1}'),
    "utf-8 surrogate": file_of(b'{"\xed\xa0\x80":1}'),
    "byte order mark": file_of(b"\xef\xbb\xbf{}"),
    "leading space": file_of(f"  {{{ONE}}}", bytes(4)),
    "trailing space": file_of(f"{{{ONE}}}  \n\t\r", bytes(4)),
    "trailing nul": file_of(f"{{{ONE}}}\0", bytes(4)),
    "trailing text": file_of(f"{{{ONE}}} x", bytes(4)),
    "form feed": file_of(f"\f{{{ONE}}}", bytes(4)),
    "pretty": file_of(json.dumps(json.loads(f"{{{ONE}}}"), indent=2), bytes(4)),
    "list": file_of("[]"),
    "number": file_of("1"),
    "null": file_of("null"),
    "string": file_of('"a"'),
    "nan extra": file_of(entry(more=',"x":NaN'), bytes(4)),
    "infinity extra": file_of(entry(more=',"x":Infinity'), bytes(4)),
    "huge float extra": file_of(entry(more=',"x":1e999'), bytes(4)),
    "huge int extra": file_of(entry(more=',"x":' + "9" * 400), bytes(4)),
    "long int extra": file_of(entry(more=',"x":' + "9" * 40), bytes(4)),
    "5000 digits extra": file_of(entry(more=',"x":' + "1" * 5000), bytes(4)),
    "extra field": file_of(entry(more=',"x":{"y":[1,2.5,null,true,"z"]}'), bytes(4)),
    "extra field twice": file_of(entry(more=',"x":1,"x":2'), bytes(4)),
    "control character": file_of('{"a\x01":1}'),
    "escaped control": file_of(f'{{"\\u0000":{entry()[5:-1]}}}', bytes(4)),
    "lone surrogate": file_of(f'{{"\\ud800":{entry()[5:-1]}}}', bytes(4)),
    "surrogate pair": file_of(f'{{"\\ud83d\\ude00":{entry()[5:-1]}}}', bytes(4)),
    "bad escape": file_of('{"\\x":1}'),
    "single quotes": file_of("{'a':1}"),
    "trailing comma": file_of(f"{{{ONE},}}", bytes(4)),
    "empty name": file_of(f'{{"":{entry()[5:-1]}}}', bytes(4)),
    "metadata": file_of(f'{{"__metadata__":{{"format":"pt"}},{ONE}}}', bytes(4)),
    "metadata last": file_of(f'{{{ONE},"__metadata__":{{"format":"pt"}}}}', bytes(4)),
    "metadata null": file_of(f'{{"__metadata__":null,{ONE}}}', bytes(4)),
    "metadata twice": file_of(f'{{"__metadata__":{{}},"__metadata__":{{}},{ONE}}}', bytes(4)),
    "metadata null twice": file_of(f'{{"__metadata__":null,"__metadata__":null,{ONE}}}', bytes(4)),
    "metadata key twice": file_of(f'{{"__metadata__":{{"a":"1","a":"2"}},{ONE}}}', bytes(4)),
    "metadata number": file_of(f'{{"__metadata__":{{"a":1}},{ONE}}}', bytes(4)),
    "metadata null value": file_of(f'{{"__metadata__":{{"a":null}},{ONE}}}', bytes(4)),
    "metadata nested": file_of(f'{{"__metadata__":{{"a":{{}}}},{ONE}}}', bytes(4)),
    "metadata list": file_of(f'{{"__metadata__":[],{ONE}}}', bytes(4)),
    "metadata pairs": file_of(f'{{"__metadata__":[["a","b"]],{ONE}}}', bytes(4)),
    "no dtype": file_of('{"a":{"shape":[1],"data_offsets":[0,4]}}', bytes(4)),
    "no shape": file_of('{"a":{"dtype":"F32","data_offsets":[0,4]}}', bytes(4)),
    "no offsets": file_of('{"a":{"dtype":"F32","shape":[1]}}', bytes(4)),
    "dtype twice": file_of(entry(more=',"dtype":"F32"'), bytes(4)),
    "offsets twice": file_of(entry(more=',"data_offsets":[0,4]'), bytes(4)),
    "unknown dtype": file_of(entry('"Q8"'), bytes(4)),
    "lower-case dtype": file_of(entry('"f32"'), bytes(4)),
    "dtype number": file_of(entry("1"), bytes(4)),
    "dtype null": file_of(entry("null"), bytes(4)),
    "dtype object null": file_of(entry('{"F32":null}'), bytes(4)),
    "dtype object empty": file_of(entry('{"F32":{}}'), bytes(4)),
    "dtype object list": file_of(entry('{"F32":[]}'), bytes(4)),
    "dtype object one": file_of(entry('{"F32":1}'), bytes(4)),
    "dtype object two": file_of(entry('{"F32":null,"F16":null}'), bytes(4)),
    "dtype list": file_of(entry('["F32"]'), bytes(4)),
    "shape negative": file_of(entry(shape="[-1]"), bytes(4)),
    "shape minus zero": file_of(entry(shape="[-0]", offsets="[0,0]")),
    "shape float": file_of(entry(shape="[1.0]"), bytes(4)),
    "shape exponent": file_of(entry(shape="[1e0]"), bytes(4)),
    "shape string": file_of(entry(shape='["1"]'), bytes(4)),
    "shape true": file_of(entry(shape="[true]"), bytes(4)),
    "shape null": file_of(entry(shape="null"), bytes(4)),
    "shape object": file_of(entry(shape="{}"), bytes(4)),
    "shape leading zero": file_of(entry(shape="[01]"), bytes(4)),
    "shape plus": file_of(entry(shape="[+1]"), bytes(4)),
    "shape empty": file_of(entry(shape="[]"), bytes(4)),
    "shape 2^64": file_of(entry(shape=f"[{2**64}]"), bytes(4)),
    "shape 2^64-1": file_of(entry(shape=f"[{2**64 - 1}]"), bytes(4)),
    "shape overflow": file_of(entry(shape=f"[{2**40},{2**40}]"), bytes(4)),
    "shape zero first": file_of(entry(shape=f"[0,{2**40},{2**40}]", offsets="[0,0]")),
    "shape zero last": file_of(entry(shape=f"[{2**40},{2**40},0]", offsets="[0,0]")),
    "bits overflow": file_of(entry(shape=f"[{2**60}]"), bytes(4)),
    "offsets one": file_of(entry(offsets="[0]"), bytes(4)),
    "offsets three": file_of(entry(offsets="[0,4,8]"), bytes(4)),
    "offsets string": file_of(entry(offsets='"04"'), bytes(4)),
    "offsets reversed": file_of(entry(offsets="[4,0]"), bytes(4)),
    "offsets float": file_of(entry(offsets="[0,4.0]"), bytes(4)),
    "size mismatch": file_of(entry(shape="[2]"), bytes(4)),
    "truncated": file_of(f"{{{ONE}}}", bytes(3)),
    "trailing": file_of(f"{{{ONE}}}", bytes(5)),
    "hole": file_of(f'{{{ONE},{TWO.replace("[4,8]", "[8,12]")}}}', bytes(12)),
    "hole at start": file_of(entry(offsets="[4,8]"), bytes(8)),
    "overlap": file_of(f'{{{ONE},{TWO.replace("[4,8]", "[2,6]")}}}', bytes(6)),
    "alias": file_of(f'{{{ONE},{TWO.replace("[4,8]", "[0,4]")}}}', bytes(4)),
    "duplicate tensor": file_of(f"{{{ONE},{ONE}}}", bytes(4)),
    "duplicate, first had bytes": file_of(
        f'{{{ONE},{ONE.replace("[0,4]", "[4,8]")}}}', bytes(8)
    ),
    "duplicate, first unused": file_of(f'{{{ONE.replace("[0,4]", "[9,13]")},{ONE}}}', bytes(4)),
    "duplicate, first broken": file_of(f'{{"a":1,{ONE}}}', bytes(4)),
    "duplicate, first bad dtype": file_of(f'{{{ONE.replace("F32", "F99")},{ONE}}}', bytes(4)),
    "positional": file_of('{"a":["F32",[1],[0,4]]}', bytes(4)),
    "positional short": file_of('{"a":["F32",[1]]}', bytes(4)),
    "positional long": file_of('{"a":["F32",[1],[0,4],0]}', bytes(4)),
    "entry null": file_of('{"a":null}'),
    "entry string": file_of('{"a":"F32"}'),
    "sub-byte whole": file_of(entry('"F4"', "[2]", "[0,1]"), bytes(1)),
    "sub-byte half": file_of(entry('"F4"', "[1]", "[0,1]"), bytes(1)),
    "six bits": file_of(entry('"F6_E2M3"', "[4]", "[0,3]"), bytes(3)),
    "six bits half": file_of(entry('"F6_E2M3"', "[3]", "[0,3]"), bytes(3)),
    "lfs": b"version https://git-lfs.github.com/spec/v1\noid sha256:1\nsize 2\n",
    "zip": b"PK\x03\x04\x14\x00\x08\x08" + bytes(100),
    "pickle": b"\x80\x02}q\x00." + bytes(20),
    "html": b"<!DOCTYPE html><html></html>",
    "zeros": bytes(100),
    **{f"depth {n}": file_of(entry(more=f',"x":{"[" * n}{"]" * n}'), bytes(4))
       for n in (50, 120, 123, 124, 125, 126, 127, 128, 129, 200)},
    "brackets in a string": file_of(entry(more=f',"x":"{"[" * 200}"'), bytes(4)),
    **{f"all dtypes {d}": file_of(entry(f'"{d}"', "[8]", f"[0,{bits}]"), bytes(bits))
       for d, bits in DTYPE_BITS.items()},
}  # fmt: skip


@pytest.mark.parametrize("name", CRAFTED)
def test_crafted(name: str) -> None:
    assert_agreement(CRAFTED[name])


names = st.sampled_from(["a", "b", "layers.0.fc.weight", "", "__metadata__", "d2t", "\u00e9"])
dtypes = st.sampled_from([*DTYPE_BITS, "F32", "BF16", "I64", "f32", "Q8", ""])
sizes = st.sampled_from([0, 1, 2, 3, 4, 8, 2**32, 2**63, 2**64 - 1, 2**64])


@st.composite
def honest_files(draw: st.DrawFn) -> bytes:
    """Files that mostly follow the rules, with one thing moved at times."""
    header: list[str] = []
    position = 0
    for name in draw(st.lists(names, max_size=4)):
        if name == "__metadata__":
            header.append('"__metadata__":{"format":"pt"}')
            continue
        dtype = draw(dtypes)
        shape = draw(st.lists(st.integers(0, 4), max_size=3))
        count = 1
        for size in shape:
            count *= size
        end = position + count * DTYPE_BITS.get(dtype, 8) // 8
        begin = max(0, position + draw(st.sampled_from([0] * 12 + [1, -1])))
        end += draw(st.sampled_from([0] * 12 + [1, -1]))
        header.append(
            f'{json.dumps(name)}:{{"dtype":"{dtype}","shape":{shape},'
            f'"data_offsets":[{begin},{end}]}}'
        )
        position = max(end, 0)
    if draw(st.booleans()):
        header = draw(st.permutations(header))
    extra = draw(st.sampled_from([0] * 8 + [1, -1]))
    return file_of("{" + ",".join(header) + "}", bytes(max(0, position + extra)))


@settings(max_examples=EXAMPLES, deadline=None)
@given(honest_files())
def test_generated_headers(raw: bytes) -> None:
    assert_agreement(raw)


fields = st.sampled_from(["dtype", "shape", "data_offsets", "x", "F32"])
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 2**65) | st.floats(allow_nan=True)
    | st.text(max_size=4) | st.sampled_from(["F32", "dtype", "shape"]) | sizes,
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(fields, inner, max_size=4),
    max_leaves=8,
)  # fmt: skip


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.dictionaries(names, json_values, max_size=3), st.integers(0, 9))
def test_any_json(header: dict[str, Any], size: int) -> None:
    assert_agreement(file_of(json.dumps(header), bytes(size)))


BYTES = list(b'{}[]",:019.-eE \\u\n\x00\xff')


@settings(max_examples=EXAMPLES, deadline=None)
@given(
    base=st.sampled_from(sorted(CRAFTED)),
    edits=st.lists(st.tuples(st.integers(0, 160), st.sampled_from(BYTES)), max_size=3),
)
def test_mutated_bytes(base: str, edits: list[tuple[int, int]]) -> None:
    raw = bytearray(CRAFTED[base])
    for position, byte in edits:
        if position < len(raw):
            raw[position] = byte
    assert_agreement(bytes(raw))
