"""What is to be written, as plain data: a planner fills it in, the writer carries it out."""

from __future__ import annotations

from pathlib import Path

from eagle3_lint.frozen import frozen


@frozen
class Kept:
    """Bytes ``begin`` to ``end`` (exclusive) of the old data, counted from the data's start."""

    begin: int
    end: int


@frozen
class Made:
    """Bytes that were not in the file."""

    content: bytes


Piece = Kept | Made


@frozen
class WeightsChange:
    """A safetensors file with a new header and, perhaps, other data.

    Attributes:
        file: its name in the folder.
        header: the new header as JSON without padding; the writer pads it.
        data: the new data, piece by piece. None: the data stay as they are, in their order.
    """

    file: str
    header: bytes
    data: tuple[Piece, ...] | None = None


@frozen
class TextChange:
    """A small file, replaced or created as a whole.

    Attributes:
        content: its new bytes. None removes the file.
    """

    file: str
    content: bytes | None


@frozen
class Seen:
    """A file as it was when the planner read it; the writer refuses when it differs now.

    Attributes:
        size: bytes of the whole file.
        mtime_ns: time of the last change, nanoseconds since 1970.
        sha256: of what counts in it: of a safetensors file its first 8 + N bytes, of another the
            whole content.
    """

    file: str
    size: int
    mtime_ns: int
    inode: int
    sha256: str


@frozen
class FolderChange:
    """Everything that one fix does to one folder: all of it happens, or nothing.

    Attributes:
        seen: every file that the change rests on; those that are rewritten must be among them. A
            file that is not among them is one that the change creates.
        title: what the fix does, in a few words, for the journal.
    """

    folder: Path
    weights: tuple[WeightsChange, ...] = ()
    texts: tuple[TextChange, ...] = ()
    seen: tuple[Seen, ...] = ()
    title: str = ""

    @property
    def files(self) -> tuple[str, ...]:
        """Names of the files that change."""
        return (*(w.file for w in self.weights), *(t.file for t in self.texts))
