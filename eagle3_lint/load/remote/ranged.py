"""Stretches of files over HTTP, with huggingface_hub's session: bounded in bytes, tries and time.

The session is requests' before huggingface_hub 1.0, httpx's before 2.0 and httpx2's from there on,
or whatever the user's own factory makes; what is used here is common to them.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from threading import BoundedSemaphore
from typing import Any

from eagle3_lint.frozen import frozen

#: Pauses before the second and the third try, in seconds.
WAITS = (0.5, 2.0)
#: A server may ask for a longer pause than that, but not for more than this.
LONGEST_WAIT = 20.0
#: One answer may take this many times the timeout of one step, however steadily it drips.
PATIENCE = 6
#: A file without ranges is read to its end if it is no larger than this.
_SMALL = 2**20
_PASSING = (408, 425, 429, 500, 502, 503, 504)
_CONTENT_RANGE = re.compile(r"bytes (?:(\d+)-(\d+)|\*)/(\d+|\*)")
#: A server of one's own or the Hub: neither is to see more than this at once from one process.
_OPEN = BoundedSemaphore(16)


@frozen
class Answer:
    """Bytes of a file.

    Attributes:
        total: bytes of the whole file; None when the server does not say.
        url: what answered, after redirects.
    """

    body: bytes
    total: int | None
    url: str


class Failure(Exception):
    """What was asked for was not given, in the words of the server or of the network.

    Attributes:
        status: of HTTP; None when there was no whole answer.
        code: of the Hub (``GatedRepo``); empty for any other server.
        wait: seconds that the server asks to wait for.
        passes: whether the same question can have another answer in a moment.
    """

    def __init__(
        self,
        message: str,
        status: int | None = None,
        *,
        code: str = "",
        wait: float = 0.0,
        passes: bool = False,
    ) -> None:
        super().__init__(message)
        self.status, self.code, self.wait, self.passes = status, code, wait, passes


def get(
    url: str,
    headers: Mapping[str, str],
    begin: int = 0,
    end: int | None = None,
    *,
    most: int,
    timeout: float,
) -> Answer:
    """A file, or its bytes from ``begin`` to ``end``, as far as the file has them.

    Args:
        most: bytes that are read at most when there is no ``end``; a longer answer is a failure.
        timeout: seconds for a step of the network, as huggingface_hub counts them.

    Raises:
        Failure: it cannot be had, after three tries where a further one could help.
    """
    asked = {**headers, "accept-encoding": "identity"}
    if end is not None:
        asked["range"] = f"bytes={begin}-{end - 1}"
    for pause in (*WAITS, None):
        try:
            with _OPEN:
                return _once(url, asked, begin, end, most, timeout)
        except Failure as failure:
            if pause is None or not failure.passes or failure.wait > LONGEST_WAIT:
                raise
            time.sleep(max(pause, failure.wait))
    raise AssertionError("the last try returns or raises")


def _once(
    url: str,
    headers: Mapping[str, str],
    begin: int,
    end: int | None,
    most: int,
    timeout: float,
) -> Answer:
    latest = time.monotonic() + PATIENCE * timeout
    try:
        with _streamed(url, headers, timeout) as (response, chunks):
            status, given = response.status_code, response.headers
            if status == 416:  # the file ends before the first byte that was asked for
                return Answer(b"", _range(given)[1], str(response.url))
            if status not in (200, 206):
                raise _refused(status, given)
            length = _number(given.get("content-length"))
            skip, total = 0, length
            if end is not None and status == 206:
                first, total = _range(given)
                if first != begin:
                    raise Failure("the server answers with other bytes than it was asked for", 206)
            elif end is not None:
                skip = begin
                if begin and (length is None or length > _SMALL):
                    raise Failure("the server does not answer range requests", 200)
            if end is None and length is not None and length > most:
                raise Failure(f"the answer has {length:,} bytes, far too many", status)
            stop = most + 1 if end is None else end if status == 200 else end - begin
            body = _read(chunks(), stop, latest, timeout)
            if end is None and len(body) > most:
                raise Failure(f"the answer has more than {most:,} bytes, far too many", status)
            due = stop if length is None else min(stop, length)
            if length is not None and len(body) < due:
                message = f"the answer broke off after {len(body):,} of {due:,} bytes"
                raise Failure(message, passes=True)
            return Answer(body[skip:], total, str(response.url))
    except Failure:
        raise
    except Exception as error:  # each of the three libraries has a family of its own
        raise _unreached(error, timeout) from error


@contextmanager
def _streamed(
    url: str, headers: Mapping[str, str], timeout: float
) -> Iterator[tuple[Any, Callable[[], Iterator[bytes]]]]:
    # Where it is has moved, and type checkers of one version do not find the other's.
    session: Any = import_module("huggingface_hub.utils").get_session()
    if callable(getattr(session, "stream", None)):
        with session.stream(
            "GET", url, headers=headers, timeout=timeout, follow_redirects=True
        ) as response:
            yield response, response.iter_bytes
    else:
        with session.get(url, headers=headers, timeout=timeout, stream=True) as response:
            yield response, lambda: _pieces(response)


def _pieces(response: Any) -> Iterator[bytes]:
    """What requests has got, as it comes; its own iterator waits until a piece is full."""
    read = getattr(response.raw, "read1", None)  # from urllib3 2 on
    if read is None:
        yield from response.iter_content(256)
    else:
        while piece := read(2**16):
            yield piece


def _read(chunks: Iterator[bytes], stop: int, latest: float, timeout: float) -> bytes:
    found: list[bytes] = []
    size = 0
    for chunk in chunks:
        found.append(chunk)
        size += len(chunk)
        if size >= stop:
            break
        if time.monotonic() > latest:
            raise Failure(f"the answer is not there after {PATIENCE * timeout:g} seconds")
    return b"".join(found)[:stop]


def _range(headers: Mapping[str, str]) -> tuple[int | None, int | None]:
    """First byte and whole size of a Content-Range."""
    match = _CONTENT_RANGE.fullmatch(headers.get("content-range", ""))
    return (None, None) if match is None else (_number(match[1]), _number(match[3]))


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.isdecimal() else None


def _refused(status: int, headers: Mapping[str, str]) -> Failure:
    said = " ".join(headers.get("x-error-message", "").split())[:200]
    wait = _number(headers.get("retry-after")) or 0
    message = f"the server answers {status}{said and f' ({said})'}"
    code = headers.get("x-error-code", "")
    return Failure(message, status, code=code, wait=float(wait), passes=status in _PASSING)


def _unreached(error: Exception, timeout: float) -> Failure:
    if "Timeout" in type(error).__name__:
        return Failure(f"no answer within {timeout:g} seconds", passes=True)
    cause: BaseException | None = error
    reason = ""
    while cause is not None and not reason:
        # requests wraps the system's error three times over, and says it in half a page.
        reason = getattr(cause, "strerror", None) or ""
        cause = cause.__cause__ or cause.__context__
    words = reason or (str(error).strip() or type(error).__name__).splitlines()[0][:200]
    return Failure(f"no whole answer ({words})", passes=True)
