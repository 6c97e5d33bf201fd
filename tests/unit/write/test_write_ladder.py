"""Which step a header takes, and where its padding ends: arithmetic without a disk."""

from __future__ import annotations

import json
import struct

import pytest

from eagle3_lint.load.header import LONGEST_HEADER
from eagle3_lint.write import Kept, Made, Refused, WeightsChange
from eagle3_lint.write.ladder import Span, framed, lay_out, rounded_up, size_of

BLOCK = 4096
DATA = 16


def text(length: int, size: int = DATA) -> bytes:
    """A header of exactly ``length`` bytes, of one tensor of ``size`` bytes."""
    entry = {"dtype": "U8", "shape": [size], "data_offsets": [0, size]}
    raw = json.dumps({"a": entry}, separators=(",", ":")).encode()
    return raw.replace(b'"a"', b'"' + b"a" * (length - len(raw) + 1) + b'"')


def laid_out(new: int, old: int, may_insert: bool = True, data: object = None) -> tuple[str, int]:
    """Step and length of the new header, padding included."""
    change = WeightsChange("m.safetensors", text(new), data)  # type: ignore[arg-type]
    head = framed(text(min(old, 100)), old)
    layout = lay_out(change, head, len(head) + DATA, block=BLOCK, may_insert=may_insert)
    (length,) = struct.unpack_from("<Q", layout.header)
    assert len(layout.header) == 8 + length
    assert layout.header[8:].rstrip(b" ") == change.header
    assert layout.size == 8 + length + DATA
    return layout.step, length


@pytest.mark.parametrize("may_insert", [True, False])
@pytest.mark.parametrize("new", [100, 199, 200])
def test_what_fits_keeps_the_length(new: int, may_insert: bool) -> None:
    assert laid_out(new, 200, may_insert) == ("in place", 200)


@pytest.mark.parametrize(
    ("new", "old", "blocks"),
    [
        (201, 200, 1),
        (200 + BLOCK, 200, 1),
        (201 + BLOCK, 200, 2),
        (8 * BLOCK, 200, 8),
        (204, 203, 1),  # a data start that is not aligned stays so: the data move by blocks
    ],
)
@pytest.mark.parametrize(("may_insert", "step"), [(True, "block inserted"), (False, "streamed")])
def test_what_grows_moves_by_whole_blocks(
    new: int, old: int, blocks: int, may_insert: bool, step: str
) -> None:
    assert laid_out(new, old, may_insert) == (step, old + blocks * BLOCK)


def test_inserted_and_streamed_files_are_the_same_bytes() -> None:
    change = WeightsChange("m.safetensors", text(300))
    head = framed(text(200), 200)
    one, other = (
        lay_out(change, head, len(head) + DATA, block=BLOCK, may_insert=may)
        for may in (True, False)
    )
    assert (one.header, one.parts) == (other.header, other.parts)


@pytest.mark.parametrize("length", range(100, 117))
def test_moved_data_start_at_a_multiple_of_eight(length: int) -> None:
    data = (Kept(8, DATA), Kept(0, 8))
    step, padded = laid_out(length, 200, data=data)
    assert step == "streamed"
    assert (8 + padded) % 8 == 0
    assert 0 <= padded - length < 8


@pytest.mark.parametrize(
    "data",
    [
        (Kept(0, DATA),),
        (Kept(0, 4), Kept(4, DATA)),
        (Kept(0, 4), Kept(9, 9), Made(b""), Kept(4, DATA)),
    ],
)
def test_pieces_that_are_the_old_data_move_nothing(data: object) -> None:
    assert laid_out(100, 200, data=data) == ("in place", 200)


@pytest.mark.parametrize(
    "data",
    [
        (Made(bytes(DATA)),),
        (Kept(4, DATA), Kept(0, 4)),
        (Kept(0, 4), Kept(0, 4), Kept(8, DATA)),
        (Kept(0, 8), Made(bytes(8))),
    ],
)
def test_pieces_that_are_not(data: object) -> None:
    assert laid_out(100, 200, data=data)[0] == "streamed"


def test_the_parts_of_a_new_file() -> None:
    change = WeightsChange("m.safetensors", text(100, 7), (Kept(2, 6), Made(b"new")))
    layout = lay_out(change, framed(text(100), 100), 108 + DATA, block=BLOCK, may_insert=True)
    assert layout.parts == (layout.header, Span(110, 114), b"new")
    assert layout.moves_data
    assert size_of(layout.parts) == len(layout.header) + 7


@pytest.mark.parametrize("data", [(Kept(0, DATA + 1),), (Kept(-1, 4),), (Kept(5, 4),)])
def test_pieces_outside_the_data(data: tuple[Kept, ...]) -> None:
    with pytest.raises(ValueError, match="no bytes"):
        laid_out(100, 200, data=(*data, Made(b"x")))


def test_a_header_that_no_loader_accepts_is_refused() -> None:
    change = WeightsChange("m.safetensors", text(100, DATA - 1))
    with pytest.raises(Refused, match=r"m\.safetensors: .*1 bytes after .*nothing was written"):
        lay_out(change, framed(text(100), 100), 108 + DATA, block=BLOCK, may_insert=True)


def test_a_header_beyond_the_format_s_limit_is_refused() -> None:
    change = WeightsChange("m.safetensors", b"{}".ljust(LONGEST_HEADER + 1))
    with pytest.raises(Refused, match="100,000,000"):
        lay_out(change, framed(b"{}", 8), 16, block=BLOCK, may_insert=True)


def test_framed() -> None:
    assert framed(b"{}", 4) == b"\4\0\0\0\0\0\0\0{}  "
    with pytest.raises(ValueError, match="do not fit"):
        framed(b"{}", 1)


@pytest.mark.parametrize(("number", "result"), [(0, 0), (1, 8), (8, 8), (9, 16)])
def test_rounded_up(number: int, result: int) -> None:
    assert rounded_up(number, 8) == result
