"""The journal: all that is needed to take a fix back, in one file.

``eagle3-lint journal 1 <sha256 of the rest>``, a line of JSON, then the headers as raw bytes, their
padding left out, which the JSON addresses as ``[begin, end]`` counted from the end of its line. A
reader refuses a version that it does not know and a rest whose sum is wrong.
"""

from __future__ import annotations

import json
import struct
from typing import Any, Literal

from eagle3_lint.frozen import frozen
from eagle3_lint.write.change import Seen
from eagle3_lint.write.errors import Refused
from eagle3_lint.write.look import digest

VERSION = 1
_MAGIC = b"eagle3-lint journal "

#: How a file is changed. ``header``: in the file itself, whose data stay or move as a whole.
#: ``swap``: by a new file that takes its place. ``create`` and ``remove``: as they say.
Way = Literal["header", "swap", "create", "remove"]


@frozen
class Entry:
    """One file of a fix.

    Attributes:
        slot: the number that files put aside for it carry.
        old: the file before the fix; None when it creates the file.
        new_size: bytes of the file after it; 0 when it removes the file.
        new_sha256: as :class:`Seen` has it, of the new file.
        new_mtime_ns: likewise, of a new file that is put in the old one's place.
        old_header: the first 8 + N bytes before the fix, of a weights file whose data stay whole.
        new_header: likewise after it.
        keeps_old: the old file is kept until the fix can no longer be taken back, since the new
            one does not hold all that was in it.
    """

    file: str
    slot: int
    way: Way
    old: Seen | None
    new_size: int
    new_sha256: str
    new_mtime_ns: int | None = None
    old_header: bytes = b""
    new_header: bytes = b""
    keeps_old: bool = False

    @property
    def grows(self) -> int:
        """Bytes by which the data move."""
        return len(self.new_header) - len(self.old_header)


@frozen
class Journal:
    """A fix, as it is written down before the first byte changes."""

    title: str
    entries: tuple[Entry, ...]


def dump(journal: Journal) -> bytes:
    """The journal as the bytes of its file."""
    blobs: list[bytes] = []

    def put(blob: bytes) -> list[int]:
        begin = sum(map(len, blobs))
        blobs.append(blob)
        return [begin, begin + len(blob)]

    entries = [
        {
            "file": entry.file,
            "slot": entry.slot,
            "way": entry.way,
            "old": None if entry.old is None else _seen(entry.old),
            "new": [entry.new_size, entry.new_sha256, entry.new_mtime_ns],
            "headers": [put(_packed(entry.old_header)), put(_packed(entry.new_header))],
            "keeps_old": entry.keeps_old,
        }
        for entry in journal.entries
    ]
    text = json.dumps({"title": journal.title, "entries": entries}, separators=(",", ":"))
    rest = b"".join([text.encode("ascii"), b"\n", *blobs])
    return b"%s%d %s\n%s" % (_MAGIC, VERSION, digest(rest).encode(), rest)


def parse(raw: bytes, where: str) -> Journal:
    """Read a journal back.

    Args:
        where: what to call it in a message.

    Raises:
        Refused: damaged, or written by a newer eagle3-lint.
    """
    first, _, rest = raw.partition(b"\n")
    if not first.startswith(_MAGIC):
        raise Refused(f"{where}: not a journal of eagle3-lint; {_BY_HAND}")
    version, _, checksum = first[len(_MAGIC) :].partition(b" ")
    if version != b"%d" % VERSION:
        shown = version.decode("ascii", "replace")
        raise Refused(f"{where}: a newer eagle3-lint wrote it (format {shown}); use that one")
    if checksum != digest(rest).encode():
        raise Refused(f"{where}: the journal is damaged; {_BY_HAND}")
    text, _, blobs = rest.partition(b"\n")
    data = json.loads(text)
    return Journal(data["title"], tuple(_entry(entry, blobs) for entry in data["entries"]))


_BY_HAND = "compare the draft with a copy of it, then delete the folder .eagle3-lint by hand"


def _seen(seen: Seen) -> list[Any]:
    return [seen.size, seen.mtime_ns, seen.inode, seen.sha256]


def _entry(data: dict[str, Any], blobs: bytes) -> Entry:
    (old_begin, old_end), (new_begin, new_end) = data["headers"]
    return Entry(
        file=data["file"],
        slot=data["slot"],
        way=data["way"],
        old=None if data["old"] is None else Seen(data["file"], *data["old"]),
        new_size=data["new"][0],
        new_sha256=data["new"][1],
        new_mtime_ns=data["new"][2],
        old_header=_unpacked(blobs[old_begin:old_end]),
        new_header=_unpacked(blobs[new_begin:new_end]),
        keeps_old=data["keeps_old"],
    )


def _packed(header: bytes) -> bytes:
    """The first bytes of a weights file without the spaces at their end."""
    return header[:8] + header[8:].rstrip(b" ")


def _unpacked(packed: bytes) -> bytes:
    return packed.ljust(8 + struct.unpack_from("<Q", packed)[0]) if packed else b""
