"""What a refused header is called, which tensor is blamed, and how little of a file is read."""

from __future__ import annotations

import os
import struct
from contextlib import nullcontext
from pathlib import Path
from typing import Any, get_args

import pytest

from eagle3_lint.checks.container import RULE_OF_KIND
from eagle3_lint.load.checkpoint import FolderKind
from eagle3_lint.load.foreign import ForeignKind
from eagle3_lint.load.header import (
    HeaderError,
    HeaderKind,
    TensorInfo,
    parse_header,
    read_header,
)
from tests.unit.load.containers import ACCEPTED, REFUSED, A, B, entry, file_of, header, many, one

KINDS = {*get_args(HeaderKind), *get_args(ForeignKind)}


def refusal(raw: bytes) -> HeaderError:
    with pytest.raises(HeaderError) as caught:
        parse_header(raw, len(raw))
    return caught.value


@pytest.mark.parametrize("name", REFUSED)
def test_kind(name: str) -> None:
    kind, raw = REFUSED[name]
    assert refusal(raw).kind == kind


def test_every_kind_has_a_case_and_a_rule() -> None:
    assert {kind for kind, _ in REFUSED.values()} == KINDS
    assert KINDS | set(get_args(FolderKind)) == set(RULE_OF_KIND)


@pytest.mark.parametrize("name", REFUSED)
def test_a_message_is_one_clause(name: str) -> None:
    message = refusal(REFUSED[name][1]).message
    assert message.isprintable()
    assert not message.endswith(".")
    assert len(message) < 200


@pytest.mark.parametrize("name", ACCEPTED)
def test_accepted(name: str) -> None:
    raw = ACCEPTED[name]
    found = parse_header(raw, len(raw))
    assert found.data_start == 8 + struct.unpack_from("<Q", raw)[0]
    assert max((t.end for t in found.tensors), default=0) == len(raw) - found.data_start


# Two tensors of four bytes each: "a" at 0 to 4, "b" at 4 to 8.
@pytest.mark.parametrize(
    ("raw", "tensor", "words"),
    [
        (many([A, B], 7), "b", ["1 bytes early", "'b'"]),
        (many([A, B], 3), "a", ["5 bytes early", "'a'"]),
        (many([A, B], 11), None, ["3 bytes", "after tensor 'b'"]),
        (many([A, entry("b", offsets="[8,12]")], 12), "b", ["4 bytes", "'a'", "'b'"]),
        (many([entry("b", offsets="[4,8]")], 8), "b", ["4 bytes", "start of the data"]),
        (many([A, entry("b", offsets="[2,6]")], 6), "b", ["'b'", "byte 2", "inside tensor 'a'"]),
        (one(offsets="[4,0]"), "a", ["ends at byte 0", "begin at 4"]),
        # 2 x 3 float32 need 24 bytes.
        (one(shape="[2,3]"), "a", ["F32", "[2, 3]", "needs 24 bytes", "has 4"]),
        (one(shape=f"[{2**40},{2**40}]"), "a", ["overflows"]),
        (one(1, dtype='"F4"', offsets="[0,1]"), "a", ["F4", "whole byte"]),
        (one(dtype='"Q8"'), "a", ["'Q8'"]),
        (one(shape="[-1]"), "a", ["shape", "-1"]),
        (one(offsets="[0,1.5]"), "a", ["data_offsets", "1.5"]),
        (one(shape="[null]"), "a", ["shape", "null"]),
        (one(dtype="17"), "a", ["dtype", "17"]),
        (one(more=',"dtype":"F32"'), "a", ["dtype twice"]),
        (file_of('{"a":{"dtype":"F32","shape":[1]}}'), "a", ["no data_offsets"]),
        (file_of('{"__metadata__":{"epoch":3}}'), None, ["'epoch'", "3"]),
        (file_of(b'{"ab\xff'), None, ["byte 12 of the file"]),  # 8 + 4 bytes before it
        (file_of("{", length=50), None, ["50 bytes", "has 9"]),
        (b"Entry not found", None, ["'Entry not found'"]),
        (b'{"error":"no"}', None, ["bare JSON"]),
        (file_of("{}", length=2**40), None, ["1,099,511,627,776 bytes"]),
        (REFUSED["a Git LFS pointer"][1], None, ["git lfs pull"]),
    ],
)
def test_the_culprit_is_named(raw: bytes, tensor: str | None, words: list[str]) -> None:
    error = refusal(raw)
    assert error.tensor == tensor
    for word in words:
        assert word in error.message


def test_the_content_of_a_header() -> None:
    members = [
        entry("second", '"BF16"', "[3]", "[4,10]"),
        '"__metadata__":{"format":"pt"}',
        entry("first", '"U8"', "[2,2]", "[0,4]"),
    ]
    text = header(*members)
    found = parse_header(file_of(text, bytes(10)), 8 + len(text) + 10)
    assert found.length == len(text)
    assert found.metadata == {"format": "pt"}
    assert found.tensors == (
        TensorInfo("second", "BF16", (3,), 4, 10),
        TensorInfo("first", "U8", (2, 2), 0, 4),
    )
    assert found.duplicates == ()


def test_a_name_twice_is_remembered_and_the_last_one_counts() -> None:
    raw = many([entry(dtype='"I32"'), A], 4)
    found = parse_header(raw, len(raw))
    assert found.duplicates == ("a",)
    assert [t.dtype for t in found.tensors] == ["F32"]


def test_a_part_of_a_header_is_never_taken_for_a_whole(tmp_path: Path) -> None:
    raw = many([A, B], 8)
    for length in range(len(raw) - 8):
        with pytest.raises(HeaderError):
            parse_header(raw[:length], len(raw))


def test_only_the_header_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    size = 5 * 2**30
    text = header(entry(dtype='"U8"', shape=f"[{size}]", offsets=f"[0,{size}]"))
    path = tmp_path / "large.safetensors"
    path.write_bytes(file_of(text))
    os.truncate(path, 8 + len(text) + size)  # a sparse file takes no disk
    opened = path.open("rb", buffering=0)
    monkeypatch.setattr(Path, "open", lambda self, mode: nullcontext(opened))
    assert read_header(path).tensors[0].end == size
    assert opened.tell() == 8 + len(text)
    opened.close()


@pytest.mark.parametrize("size", [0, 5, 8, 63, 64, 65, 100])
def test_files_around_the_first_read(tmp_path: Path, size: int) -> None:
    """A header of any size reads the same from a file as from memory."""
    path = tmp_path / "model.safetensors"
    raw = file_of("{}" + " " * max(0, size - 10))[:size]
    path.write_bytes(raw)
    results: list[Any] = []
    for from_file in (True, False):
        try:
            results.append(read_header(path) if from_file else parse_header(raw, len(raw)))
        except HeaderError as error:
            results.append((error.kind, error.message))
    assert results[0] == results[1]


def test_errors_of_the_system_are_passed_on(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read_header(tmp_path / "nothing")
    with pytest.raises(IsADirectoryError):
        read_header(tmp_path)
