"""HTML out of pieces. What is no :class:`Markup` is escaped, so nothing a draft says is markup.

The page is XML too (elements closed, attributes quoted), so that a strict parser can check it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from html import escape

from eagle3_lint.report.places import visible

#: Elements without content: HTML's void ones, and SVG's that we leave empty.
_EMPTY = frozenset(("br", "circle", "hr", "line", "link", "meta", "path", "rect", "use"))
#: Marks that turn the direction of text around, by which a name could look like another one.
_TURNING = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_CODE = re.compile("`([^`]+)`")
_LONGEST = 300


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


def text(value: object) -> Markup:
    """Any value as text; characters without a shape are spelled out."""
    if isinstance(value, Markup):
        return value
    shown = _TURNING.sub(lambda m: f"\\u{ord(m[0]):04x}", visible(str(value)))
    return Markup(escape(shown))


def joined(parts: Iterable[str | None], between: str = "") -> Markup:
    """Pieces in a row, those that are None left out."""
    return Markup(text(between).join(text(part) for part in parts if part is not None))


def tag(element: str, /, *children: str | None, **attributes: object) -> Markup:
    """An element.

    Args:
        children: what is in it; None is left out.
        attributes: by name, where ``_`` stands for ``-`` and a last ``_`` for nothing (``class_``);
            None leaves an attribute out, True gives it its own name as its value.
    """
    said = []
    for key, value in attributes.items():
        if value is None:
            continue
        spelled = key.rstrip("_").replace("_", "-")
        said.append(f' {spelled}="{text(spelled if value is True else value)}"')
    opened = f"<{element}{''.join(said)}"
    if element in _EMPTY and not children:
        return Markup(f"{opened} />")
    return Markup(f"{opened}>{joined(children)}</{element}>")


def prose(message: str) -> Markup:
    """A sentence of ours, in which backticks stand around what is quoted."""
    parts = _CODE.split(message)
    return joined(tag("code", part) if i % 2 else part for i, part in enumerate(parts))


def lines(*parts: str | None) -> Markup:
    """Pieces below each other in the page's source."""
    return joined(parts, "\n")


def folded(summary: str, *children: str | None, **attributes: object) -> Markup:
    """What is shown on a click, without a script."""
    return tag("details", tag("summary", summary), *children, **attributes)


def counted(count: int, word: str) -> str:
    """``1 tensor``, ``2 tensors``."""
    return f"{count:,} {word}" if count == 1 else f"{count:,} {word}s"


def named(name: str) -> Markup:
    """A name out of a file, of which only the first hundreds of characters are shown."""
    return tag("code", short(name, _LONGEST))


def short(value: str, most: int) -> str:
    """A text that has at most so many characters."""
    return value if len(value) <= most else value[: most - 1].rstrip() + "…"
