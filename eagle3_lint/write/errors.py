"""Why nothing was written."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from eagle3_lint.errors import InputError


class Refused(InputError):
    """The writer will not touch the folder, and has not: one line with the reason and a way out."""


class WriteFailed(InputError):
    """The system failed half way; the line says in which state the folder is now."""


@contextmanager
def refusing(folder: Path) -> Iterator[None]:
    """Turn a system error that no writing caused into a refusal."""
    try:
        yield
    except OSError as error:
        where = f" ({error.filename})" if error.filename else ""
        raise Refused(
            f"{folder}: cannot be read or written: {reason(error)}{where}; nothing was changed"
        ) from error


def reason(error: OSError) -> str:
    """The system's words for an error."""
    return error.strerror or str(error)
