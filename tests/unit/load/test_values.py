"""Values of small tensors, read at their offset, little-endian."""

from __future__ import annotations

import errno
import math
import struct
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eagle3_lint.load.checkpoint import Tensor
from eagle3_lint.load.values import read_integers
from tests.unit.load.profile import PROFILE


def tensor(dtype: str, shape: tuple[int, ...], nbytes: int) -> Tensor:
    return Tensor("d2t", dtype, shape, "model.safetensors", 3, nbytes)


def put(folder: Path, raw: bytes) -> None:
    """Three bytes of something else in front, two behind."""
    (folder / "model.safetensors").write_bytes(b"abc" + raw + b"de")


# The bytes are spelled out, least significant first.
@pytest.mark.parametrize(
    ("dtype", "raw", "values"),
    [
        ("I64", b"\x01\0\0\0\0\0\0\0" + b"\xff" * 8, [1, -1]),
        ("U64", b"\x01\0\0\0\0\0\0\0" + b"\xff" * 8, [1, 2**64 - 1]),
        ("I32", b"\x00\x01\0\0" + b"\xfe\xff\xff\xff", [256, -2]),
        ("U32", b"\x00\x01\0\0" + b"\xfe\xff\xff\xff", [256, 2**32 - 2]),
        ("I16", b"\x00\x01\xfe\xff", [256, -2]),
        ("U16", b"\x00\x01\xfe\xff", [256, 2**16 - 2]),
        ("I8", b"\x01\xff", [1, -1]),
        ("U8", b"\x01\xff", [1, 255]),
        ("BOOL", b"\x00\x01", [0, 1]),
        # Sign, exponent, fraction: 1.5 = 1.1b x 2^0, -2 = -1.0b x 2^1.
        ("F64", b"\0\0\0\0\0\0\xf8\x3f" + b"\0\0\0\0\0\0\0\xc0", [1.5, -2.0]),
        ("F32", b"\0\0\xc0\x3f" + b"\0\0\0\xc0", [1.5, -2.0]),
        ("F16", b"\x00\x3e\x00\xc0", [1.5, -2.0]),
        ("BF16", b"\xc0\x3f\x00\xc0", [1.5, -2.0]),
    ],
)
@pytest.mark.parametrize("order", ["little", "big"])
def test_dtypes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dtype: str, raw: bytes, values: list[float],
    order: str,
) -> None:  # fmt: skip
    monkeypatch.setattr(sys, "byteorder", order)
    put(tmp_path, raw)
    for shape in ((2,), (2, 1), (1, 2)):
        found = read_integers(tmp_path, tensor(dtype, shape, len(raw)))
        assert found is not None
        assert list(found) == values
        assert type(found[0]) is type(values[0])


def test_floats_that_are_no_numbers(tmp_path: Path) -> None:
    put(tmp_path, b"\xc0\x7f\x80\xff")  # bfloat16: all exponent bits set
    found = read_integers(tmp_path, tensor("BF16", (2,), 4))
    assert found is not None
    assert math.isnan(found[0])
    assert found[1] == -math.inf


@pytest.mark.parametrize("dtype", ["F8_E4M3", "F4", "C64", "Q8"])
def test_dtypes_without_plain_numbers(tmp_path: Path, dtype: str) -> None:
    put(tmp_path, bytes(8))
    assert read_integers(tmp_path, tensor(dtype, (1,), 8)) is None


def test_a_scalar_and_an_empty_tensor(tmp_path: Path) -> None:
    put(tmp_path, b"\x07")
    assert list(read_integers(tmp_path, tensor("U8", (), 1)) or ()) == [7]
    found = read_integers(tmp_path, tensor("I64", (0,), 0))
    assert found is not None
    assert list(found) == []


def test_what_cannot_be_read_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert read_integers(tmp_path, tensor("I64", (1,), 8)) is None  # no such file
    put(tmp_path, b"")
    assert read_integers(tmp_path, tensor("I64", (1,), 8)) is None  # it ends too early

    def refuse(*_: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)
    assert read_integers(tmp_path, tensor("U8", (1,), 1)) is None


def test_a_large_tensor_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "open", lambda *_: pytest.fail("it was opened"))
    assert read_integers(tmp_path, tensor("U8", (2**27,), 2**27)) is None


@settings(PROFILE)
@given(st.lists(st.integers(-(2**63), 2**63 - 1)))
def test_any_int64(tmp_path_factory: Any, values: list[int]) -> None:
    folder = tmp_path_factory.getbasetemp()
    put(folder, struct.pack(f"<{len(values)}q", *values))
    found = read_integers(folder, tensor("I64", (len(values),), 8 * len(values)))
    assert found is not None
    assert list(found) == values


def test_a_draft_vocabulary_takes_no_time(tmp_path: Path) -> None:
    """32000 int64: below 5 ms (about 0.1 on an idle machine), best of ten."""
    put(tmp_path, bytes(8 * 32000))
    best = 1.0
    for _ in range(10):
        start = time.perf_counter()
        assert read_integers(tmp_path, tensor("I64", (32000,), 8 * 32000)) is not None
        best = min(best, time.perf_counter() - start)
    assert best < 0.005
