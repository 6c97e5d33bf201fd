"""Verdicts and severities as marks: a shape and a word for each, so that colour is never alone."""

from __future__ import annotations

from eagle3_lint.report.html.markup import Markup, tag
from eagle3_lint.report.model import Verdict

#: Verdict → what it means, from best to worst.
MEANINGS: dict[Verdict, str] = {
    "serves": "as it was trained",
    "degraded": "starts, and accepts less than it was trained for",
    "broken": "starts, and accepts next to nothing",
    "refused": "fails, at the start or on the first batch",
    "unknown": "no contract speaks of it",
}
#: Drawn in 16 by 16, in the colour of the text around.
_SHAPES: dict[Verdict, str] = {
    "serves": "M2.5 8.5l3.5 3.5 7.5-8",
    "degraded": "M8 2.5v7M8 12.4v1.6",
    "broken": "M3.5 3.5l9 9M12.5 3.5l-9 9",
    "refused": "M13.5 8a5.5 5.5 0 1 1-11 0a5.5 5.5 0 1 1 11 0M4.2 4.2l7.6 7.6",
    "unknown": "M5 6a3 3 0 1 1 4.6 2.5Q8 9.5 8 10.6M8 12.6v1.6",
}


def shapes() -> Markup:
    """The shapes, once a page; everything else refers to them."""
    symbols = (
        tag("symbol", tag("path", d=path), id=f"mark-{verdict}", viewBox="0 0 16 16")
        for verdict, path in _SHAPES.items()
    )
    return tag("svg", *symbols, class_="shapes", width="0", height="0", aria_hidden="true")


def mark(verdict: Verdict) -> Markup:
    """The shape alone; the word must stand beside it."""
    use = tag("use", href=f"#mark-{verdict}")
    return tag("svg", use, class_="mark", aria_hidden="true")


def pill(verdict: Verdict) -> Markup:
    """Shape and word."""
    return tag("span", mark(verdict), verdict, class_=f"pill {verdict}")
