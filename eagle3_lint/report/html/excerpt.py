"""Lines of config.json around what a finding points at."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from eagle3_lint.load.document import Document, line_and_column
from eagle3_lint.report.html.markup import Markup, joined, tag

#: Lines before and after, lines of one value that are marked, and characters of a line.
_AROUND, _MOST_MARKED, _WIDEST = 2, 12, 160
#: Lines of the whole file that are shown.
_MOST_LINES = 400


def excerpt(document: Document, pointers: Iterable[str]) -> Markup | None:
    """The lines of some places, marked, with those around them; None when there are none."""
    marked: dict[int, int] = {}
    for pointer in pointers:
        place = document.place(pointer) if pointer else None
        if place is not None:
            last = min(_last_line(document, pointer), place[0] + _MOST_MARKED - 1)
            # Where the line is too long to be shown, what matters is at its column.
            marked[place[0]] = place[1]
            marked.update((line, marked.get(line, 1)) for line in range(place[0] + 1, last + 1))
    if not marked:
        return None
    shown = sorted({n for line in marked for n in range(line - _AROUND, line + _AROUND + 1)})
    return _listing(document.text.split("\n"), shown, marked)


def whole(document: Document, pointers: Iterable[str]) -> Markup:
    """The file, with the lines of some places marked."""
    marked = {p[0]: p[1] for p in map(document.place, filter(None, pointers)) if p is not None}
    text = document.text.removesuffix("\n").split("\n")
    listing = _listing(text, range(1, min(len(text), _MOST_LINES) + 1), marked)
    left = len(text) - _MOST_LINES
    return joined((listing, tag("p", f"and {left:,} more lines") if left > 0 else None))


def _last_line(document: Document, pointer: str) -> int:
    """The line on which the value at a pointer ends."""
    begin = document.offset(pointer)
    assert begin is not None
    text, decoder = document.text, json.JSONDecoder(strict=False)
    outer = document.get(pointer.rpartition("/")[0])
    try:
        if isinstance(outer, Mapping):
            _, begin = decoder.raw_decode(text, begin)
            begin += len(text[begin:]) - len(text[begin:].lstrip(" \t\r\n:"))
        _, end = decoder.raw_decode(text, begin)
    except (ValueError, RecursionError):  # integers of more digits than Python converts
        return line_and_column(text, begin)[0]
    return line_and_column(text, end)[0]


def _listing(text: list[str], shown: Iterable[int], marked: Mapping[int, int]) -> Markup:
    def rows() -> Iterable[Markup]:
        before = None
        for number in shown:
            if not 1 <= number <= len(text):
                continue
            if before is not None and number > before + 1:
                yield tag("span", "⋯", class_="row gap")
            before = number
            line = _cut(text[number - 1].rstrip("\r"), marked.get(number, 1))
            hit = number in marked
            yield tag(
                "span",
                tag("span", ("▸ " if hit else "") + str(number), class_="number"),
                " ",
                tag("mark" if hit else "span", line),
                class_="row hit" if hit else "row",
            )

    return tag("pre", joined(rows(), "\n"), class_="listing")


def _cut(line: str, column: int) -> str:
    """What is around a column of a line that is too long."""
    if len(line) <= _WIDEST:
        return line
    begin = max(0, min(column - 1 - _WIDEST // 4, len(line) - _WIDEST))
    end = begin + _WIDEST
    return ("…" if begin else "") + line[begin:end] + ("…" if end < len(line) else "")
