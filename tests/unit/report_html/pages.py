"""Pages of drafts, read by strict parsers that know nothing of what made them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from eagle3_lint.checking import prepare
from eagle3_lint.report.html.gather import checked
from eagle3_lint.report.html.input import HtmlInput
from eagle3_lint.report.html.page import render_html
from eagle3_lint.report.model import Report
from eagle3_lint.trained import NESTED
from tests.drafts import write_case

#: HTML 13.1.2: void elements have no end tag; SVG's may close themselves.
VOID = frozenset((
    "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track",
    "wbr",
))  # fmt: skip
SVG = frozenset(("svg", "symbol", "path", "use", "title", "rect", "line", "circle", "text"))
#: Text that would be markup, or look like other text, if it were put into a page as it is.
HOSTILE = (
    "<script>window.hit=1</script>",
    '"><img src=x onerror="window.hit=1">',
    "' autofocus onfocus='window.hit=1",
    "</style></title></textarea><!-- ]]> &lt;",
    "https://example.invalid/x.js",
    "javascript:window.hit=1",
    "mid\u202elayer",
    "nul\x00 esc\x1b[31m",
)


def ids(*states: int) -> dict[str, Any]:
    """A configuration that names layer ids where every runtime looks first."""
    head, _, inner = NESTED.partition(".")
    return {head: {inner: list(states)}}


def page_of(
    *paths: Path, targets: Sequence[str] = (), model: str | None = None, **how: Any
) -> tuple[Report, tuple[HtmlInput, ...], str]:
    """The report on some drafts, what the page has beside it, and the page."""
    report, inputs = checked([prepare(path, targets, model, **how) for path in paths])
    return report, inputs, render_html(report, inputs)


def hostile_draft(folder: Path) -> Path:
    """A draft whose names and values are :data:`HOSTILE`."""
    config = {
        "architectures": ["LlamaForCausalLMEagle3", *HOSTILE],
        "hidden_act": HOSTILE[1],
        **{name: name for name in HOSTILE},
        **ids(9, 1, 400),
    }
    tensors = {name: ["BF16", 4] for name in HOSTILE}
    return write_case({"base": "llama", "config": config, "add": tensors}, folder / "draft<b>&'\"")


def tree(page: str) -> Element:
    """The page as XML, which tolerates nothing."""
    return ElementTree.fromstring(page)


def text_of(element: Element) -> str:
    """Its text with white space as a browser shows it."""
    return " ".join("".join(element.itertext()).split())


def by_class(element: Element, *names: str) -> list[Element]:
    """Elements that have all of these classes, in the order of the page."""
    return [e for e in element.iter() if set(names) <= set(e.get("class", "").split())]


def by_id(element: Element, name: str) -> Element:
    (found,) = (e for e in element.iter() if e.get("id") == name)
    return found


def attributes(element: Element) -> Iterator[tuple[str, str, str]]:
    """Element, attribute and value of everything in the page."""
    for e in element.iter():
        for name, value in e.attrib.items():
            yield e.tag, name, value


class Nesting(HTMLParser):
    """Holds that HTML's own reading of the tags nests as XML's does."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.wrong: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        # HTML ignores the slash outside of SVG: <p /> would stay open.
        if tag not in VOID and tag not in SVG:
            self.wrong.append(f"<{tag} />")

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.wrong.append(f"</{tag}>")
