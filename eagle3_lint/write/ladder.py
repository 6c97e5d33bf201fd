"""Which step a weights file needs, and the bytes of its new header: arithmetic alone.

1. *in place*: the new header fits into the old one's length, so only it is written.
2. *block inserted*: it does not, but the file system can move the file up by whole blocks.
3. *streamed*: a new file beside the old one takes its place.

The new header is padded with spaces so that the data start where they must. When the data stay as
they are, steps 2 and 3 give the same bytes: the data move by whole blocks. That keeps whatever
alignment they had, leaves room for the next fix to happen in place, and lets a file system that can
share blocks between files share these.
"""

from __future__ import annotations

import struct
from typing import Literal

from eagle3_lint.frozen import frozen
from eagle3_lint.load.header import LONGEST_HEADER, HeaderError, parse_header
from eagle3_lint.write.change import Kept, Made, WeightsChange
from eagle3_lint.write.errors import Refused

WeightsStep = Literal["in place", "block inserted", "streamed"]


@frozen
class Span:
    """Bytes ``begin`` to ``end`` (exclusive) of an old file, counted from its start."""

    begin: int
    end: int


Part = bytes | Span


@frozen
class Layout:
    """A weights file as it will be.

    Attributes:
        step: the cheapest way there.
        header: its first 8 + N bytes.
        parts: the whole file, out of which a new one is composed.
        moves_data: the old data are not all in the new file, in one piece and in their order.
    """

    step: WeightsStep
    header: bytes
    parts: tuple[Part, ...]
    moves_data: bool

    @property
    def size(self) -> int:
        """Bytes of the new file."""
        return size_of(self.parts)


def lay_out(
    change: WeightsChange, head: bytes, size: int, *, block: int, may_insert: bool
) -> Layout:
    """Choose the step for one file.

    Args:
        head: the first 8 + N bytes of the old file.
        size: bytes of the old file.
        block: bytes by which the file system can move data.
        may_insert: whether it can, and nobody has the file open.

    Raises:
        Refused: the new header is too long, or no loader would accept it.
    """
    text, start = change.header, len(head)
    moves_data = change.data is not None and not _is_all(change.data, size - start)
    step: WeightsStep
    if moves_data:
        step, length = "streamed", rounded_up(8 + len(text), 8) - 8
    elif 8 + len(text) <= start:
        step, length = "in place", start - 8
    else:
        step = "block inserted" if may_insert else "streamed"
        length = start + rounded_up(8 + len(text) - start, block) - 8
    if length > LONGEST_HEADER:
        raise Refused(
            f"{change.file}: its new header would have {length:,} bytes, and safetensors allows"
            f" {LONGEST_HEADER:,}; nothing was written"
        )
    header = framed(text, length)
    if moves_data:
        parts = (header, *(_part(piece, start, size, change.file) for piece in change.data or ()))
    else:
        parts = (header, Span(start, size))
    layout = Layout(step, header, parts, moves_data)
    _check(layout, change.file)
    return layout


def framed(text: bytes, length: int) -> bytes:
    """The first bytes of a file: the header's length, its JSON, spaces up to that length."""
    if len(text) > length:
        raise ValueError(f"{len(text)} bytes do not fit into {length}")
    return struct.pack("<Q", length) + text.ljust(length)


def rounded_up(number: int, step: int) -> int:
    return -(-number // step) * step


def size_of(parts: tuple[Part, ...]) -> int:
    """Bytes of a file that is composed of ``parts``."""
    return sum(len(p) if isinstance(p, bytes) else p.end - p.begin for p in parts)


def _is_all(data: tuple[Kept | Made, ...], size: int) -> bool:
    """Whether the pieces are the old data again, from the first byte to the last."""
    position = 0
    for piece in data:
        if isinstance(piece, Made):
            if piece.content:
                return False
        elif piece.begin != piece.end:
            if piece.begin != position:
                return False
            position = piece.end
    return position == size


def _part(piece: Kept | Made, start: int, size: int, file: str) -> Part:
    if isinstance(piece, Made):
        return piece.content
    if not 0 <= piece.begin <= piece.end <= size - start:
        raise ValueError(f"{file}: its data have no bytes {piece.begin} to {piece.end}")
    return Span(start + piece.begin, start + piece.end)


def _check(layout: Layout, file: str) -> None:
    """A header that no loader would accept must not reach the disk, whoever planned it."""
    try:
        parse_header(layout.header, layout.size)
    except HeaderError as error:
        raise Refused(
            f"{file}: with the new header no loader could read it ({error.message}); nothing was"
            " written"
        ) from None
