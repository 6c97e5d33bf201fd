"""The journal's format, and what the names beside it mean."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

from eagle3_lint.errors import InputError
from eagle3_lint.write import Disk, Refused, Seen, apply, pending, recover, undo
from eagle3_lint.write.journal import Entry, Journal, dump, parse
from eagle3_lint.write.ladder import framed
from eagle3_lint.write.workshop import NAME, read_state
from tests.unit.write.scenes import CONFIG, STALE, WEIGHTS, change, draft, interrupted, picture

HEADER = Entry(
    file="m.safetensors",
    slot=0,
    way="header",
    old=Seen("m.safetensors", 100, 2, 3, "ab"),
    new_size=4196,
    new_sha256="cd",
    old_header=framed(b"{}", 32),  # 32 is a space, which no padding may swallow
    new_header=framed(b'{"a":1}  \n', 4128),
)
CREATED = Entry("caf\udce9.json", 1, "create", None, 3, "ef", 5)
JOURNAL = Journal("rename äöü", (HEADER, CREATED))


def test_there_and_back() -> None:
    assert parse(dump(JOURNAL), "j") == JOURNAL


def test_the_format() -> None:
    """Version and sum, a line of JSON, the headers without padding. Change it: a new version."""
    first, text, blobs = dump(JOURNAL).split(b"\n", 2)
    assert re.fullmatch(rb"eagle3-lint journal 1 [0-9a-f]{64}", first)
    assert json.loads(text) == {
        "title": "rename äöü",
        "entries": [
            {
                "file": "m.safetensors",
                "slot": 0,
                "way": "header",
                "old": [100, 2, 3, "ab"],
                "new": [4196, "cd", None],
                "headers": [[0, 10], [10, 28]],
                "keeps_old": False,
            },
            {
                "file": "caf\udce9.json",
                "slot": 1,
                "way": "create",
                "old": None,
                "new": [3, "ef", 5],
                "headers": [[28, 28], [28, 28]],
                "keeps_old": False,
            },
        ],
    }
    assert blobs == b"\x20\0\0\0\0\0\0\0{}" + b'\x20\x10\0\0\0\0\0\0{"a":1}  \n'


@pytest.mark.parametrize(
    ("raw", "complaint"),
    [
        (b"", "not a journal"),
        (b"{}", "not a journal"),
        (dump(JOURNAL).replace(b"journal 1", b"journal 2", 1), "a newer eagle3-lint .*format 2"),
        (dump(JOURNAL)[:-1], "damaged"),
        (dump(JOURNAL).replace(b"rename", b"Rename", 1), "damaged"),
    ],
)
def test_what_is_refused(raw: bytes, complaint: str) -> None:
    with pytest.raises(Refused, match=complaint) as caught:
        parse(raw, "j")
    assert str(caught.value).isprintable()


def test_every_damage_is_noticed() -> None:
    raw = dump(JOURNAL)
    for at in range(len(raw)):
        damaged = raw[:at] + bytes([raw[at] ^ 1]) + raw[at + 1 :]
        with pytest.raises(Refused):
            parse(damaged, "j")


def test_a_damaged_journal_of_an_interrupted_fix_changes_nothing(tmp_path: Path) -> None:
    folder = draft(tmp_path / "draft")
    interrupted(change(folder))
    journal = folder / NAME / "journal-1"
    journal.write_bytes(journal.read_bytes()[:-5])
    before = picture(folder)
    with pytest.raises(Refused, match=r"damaged.*delete the folder \.eagle3-lint"):
        recover(folder)
    assert picture(folder) == before


def test_a_damaged_mark(tmp_path: Path) -> None:
    folder = draft(tmp_path / "draft")
    apply(change(folder))
    (folder / NAME / "done-1").write_bytes(b"{")
    with pytest.raises(Refused, match="damaged; no undo"):
        undo(folder)


# -- the names -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("names", "pending_fix", "done", "left_over"),
    [
        ("", None, None, ""),
        ("tmp new-1-0", None, None, "new-1-0 tmp"),
        ("journal-1", 1, None, ""),
        ("journal-1 new-1-0 was-1-1 old-1-2 back-1-3 tmp", 1, None, "tmp"),
        ("journal-1 done-1", None, 1, ""),
        ("journal-1 done-1 old-1-0 was-1-1 new-1-2 back-1-0", None, 1, "back-1-0 new-1-2 was-1-1"),
        # A second fix, from its preparation to the clearing away of the first.
        ("journal-1 done-1 old-1-0 new-2-0", None, 1, "new-2-0"),
        ("journal-1 done-1 old-1-0 journal-2 old-2-0", 2, 1, ""),
        (
            "journal-1 done-1 old-1-0 journal-2 done-2 old-2-0",
            None,
            2,
            "journal-1 old-1-0 done-1",
        ),
        ("done-1 old-1-0 journal-2 done-2", None, 2, "old-1-0 done-1"),
        ("old-1-0 done-1 journal-2 done-2", None, 2, "old-1-0 done-1"),
        # One that is not to be undone is cleared away itself.
        ("done-2 old-2-0", None, None, "old-2-0 done-2"),
        ("journal-9 done-9 journal-10", 10, 9, ""),
    ],
)
def test_state(
    tmp_path: Path, names: str, pending_fix: int | None, done: int | None, left_over: str
) -> None:
    (tmp_path / NAME).mkdir()
    (tmp_path / NAME / "README").touch()  # not ours
    for name in names.split():
        (tmp_path / NAME / name).touch()
    state = read_state(tmp_path)
    assert (state.pending, state.done) == (pending_fix, done)
    assert state.left_over == tuple(left_over.split())
    assert state.names == frozenset(names.split())


def test_a_folder_that_was_never_written_to(tmp_path: Path) -> None:
    class NoDisk(Disk):
        def __getattribute__(self, name: str) -> object:
            raise AssertionError(name)

    folder = draft(tmp_path / "draft")
    assert recover(folder, disk=NoDisk()) is None
    assert not pending(folder)


def test_recovery_clears_away_what_is_left_over(place: Path) -> None:
    folder = draft(place / "draft")
    before = picture(folder)
    (folder / NAME).mkdir()
    assert recover(folder) is None
    assert picture(folder) == before
    (folder / NAME).mkdir()
    (folder / NAME / "new-1-0").write_bytes(b"half a file")
    assert recover(folder) is None
    assert picture(folder) == before


def test_a_file_of_somebody_else_beside_the_journal_stays(place: Path) -> None:
    folder = draft(place / "draft")
    apply(change(folder))
    (folder / NAME / "notes").write_bytes(b"mine")
    undo(folder)
    assert [path.name for path in (folder / NAME).iterdir()] == ["notes"]
    assert recover(folder) is None


# -- an interrupted fix that somebody went on from -------------------------------------------------


def test_data_that_somebody_changed_are_not_lost(place: Path) -> None:
    """Of a new weights file only the header is hashed; its time tells the rest."""
    folder = draft(place / "draft")
    interrupted(change(folder, "moves"))
    path = folder / WEIGHTS
    theirs = path.read_bytes()[:-1] + b"?"
    path.write_bytes(theirs)
    os.utime(path, ns=(0, 1))
    with pytest.raises(InputError, match=r"model\.safetensors: it was changed"):
        recover(folder)
    assert path.read_bytes() == theirs


@pytest.mark.parametrize("kind", ["fits", "grows"])
def test_a_recovery_in_place_keeps_the_data_as_they_are(place: Path, kind: str) -> None:
    folder = draft(place / "draft")
    old = (folder / WEIGHTS).read_bytes()
    interrupted(change(folder, kind))
    path = folder / WEIGHTS
    if (folder / NAME / "was-1-0").exists():
        pytest.skip("streamed here")
    with path.open("r+b") as file:
        file.seek(-1, os.SEEK_END)
        file.write(b"?")
    recover(folder)
    assert path.read_bytes() == old[:-1] + b"?"


@pytest.mark.parametrize("kind", ["fits", "grows", "moves"])
@pytest.mark.parametrize("file", [WEIGHTS, CONFIG, "generation.json", STALE])
def test_a_file_that_somebody_changed_is_never_taken_back(
    place: Path, kind: str, file: str
) -> None:
    folder = draft(place / "draft")
    interrupted(change(folder, kind))
    (folder / file).write_bytes(b"theirs")
    with pytest.raises(InputError, match=rf"{re.escape(file)}: .*delete the folder \.eagle3-lint"):
        recover(folder)
    assert (folder / file).read_bytes() == b"theirs"
    assert pending(folder)
