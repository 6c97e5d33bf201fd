"""What each target does with the draft, and why."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from eagle3_lint.diagnostic import Diagnostic, Edit, Fix, Place
from eagle3_lint.load.document import Document
from eagle3_lint.report.html.excerpt import excerpt
from eagle3_lint.report.html.groups import Group
from eagle3_lint.report.html.marks import MEANINGS, pill
from eagle3_lint.report.html.markup import (
    Markup,
    counted,
    folded,
    joined,
    lines,
    named,
    prose,
    short,
    tag,
    text,
)
from eagle3_lint.report.model import LoadReport

_CONFIG = "config.json"
#: Places and edits that are listed at once; names behind a click; characters of an edit's value.
_PLACES, _EDITS, _NAMES, _VALUE = 4, 4, 300, 160


def panel(group: Group, document: Document | None, name: str) -> Markup:
    """One target, or neighbours that agree.

    Args:
        document: the draft's configuration, for excerpts.
        name: the panel's identity in the page.
    """
    result = group.first
    model = result.target.model
    serving = tag("span", " serving ", text(model), class_="quiet") if model is not None else None
    heading = tag("h4", text(group.label), serving)
    meaning = tag("span", MEANINGS[result.verdict], class_="quiet")
    head = tag("div", heading, tag("p", pill(result.verdict), " ", meaning), class_="panel-head")
    found = [_finding(group, d, document) for d in result.diagnostics]
    return tag(
        "section",
        lines(
            head,
            _load(result.load) if result.load is not None else None,
            _loads_in(group),
            *(found or [tag("p", "No findings.", class_="quiet")]),
        ),
        class_=f"panel {result.verdict}",
        id=name,
    )


def _loads_in(group: Group) -> Markup | None:
    spans = group.first.loads_in
    runtime = group.first.target.runtime
    if not spans:
        return None
    return tag("p", f"{runtime} releases that load it as it is: {', '.join(spans)}")


def _load(load: LoadReport) -> Markup:
    if load.error is not None:
        message = f": {load.error.message}" if load.error.message else ""
        return tag("p", "It raises ", tag("code", load.error.type + message))
    draft_class = tag("code", load.draft_class) if load.draft_class else text("It")
    kinds = (
        (load.dropped, "tensor", "dropped"),
        (load.unfilled, "parameter", "unfilled"),
        (load.altered, "tensor", "cut or padded"),
    )
    lists = [
        folded(f"{counted(len(names), word)} {what}", _names(names))
        for names, word, what in kinds
        if names
    ]
    how = " starts without a word, with" if lists else " loads whole."
    return lines(tag("p", draft_class, how), *lists)


def _names(names: Sequence[str]) -> Markup:
    """Names below each other; of very many only the first."""
    left = len(names) - _NAMES
    more = tag("li", f"and {left:,} more") if left > 0 else None
    return tag("ul", *(tag("li", named(n)) for n in names[:_NAMES]), more, class_="names")


# -- a finding ----------------------------------------------------------------------------------


def _finding(group: Group, diagnostic: Diagnostic, document: Document | None) -> Markup:
    severity = diagnostic.severity
    heading = tag(
        "p",
        tag("span", severity, class_=f"badge {severity}"),
        " ",
        tag("b", diagnostic.rule),
        " ",
        tag("span", diagnostic.name, class_="quiet"),
        class_="rule",
    )
    pointers = [p.pointer for p in diagnostic.where if p.file == _CONFIG and p.pointer]
    return tag(
        "article",
        lines(
            heading,
            tag("p", prose(group.says(diagnostic.message)), class_="message"),
            _where(diagnostic.where),
            excerpt(document, pointers) if document is not None else None,
            tag("p", tag("b", "Source "), diagnostic.source, class_="source")
            if diagnostic.source
            else None,
            _fix(group, diagnostic.fix) if diagnostic.fix is not None else None,
        ),
        class_=f"finding {severity}",
    )


def _where(places: Sequence[Place]) -> Markup | None:
    if not places:
        return None
    shown = [_place(p) for p in places[:_PLACES]]
    rest = [_place(p) for p in places[_PLACES : _PLACES + _NAMES]]
    left = len(places) - len(shown) - len(rest)
    if left > 0:
        rest.append(tag("li", f"and {left:,} more"))
    more = (
        folded(f"and {counted(len(places) - len(shown), 'place')} more", tag("ul", *rest))
        if rest
        else None
    )
    return tag("div", tag("ul", *shown), more, class_="where")


def _place(place: Place) -> Markup:
    line = f":{place.line}" if place.line is not None else ""
    what = place.tensor or place.pointer
    return tag(
        "li",
        tag("span", place.file + line, class_="file"),
        joined((" ", named(what))) if what else None,
    )


def _fix(group: Group, fix: Fix) -> Markup:
    head = tag(
        "p",
        tag("span", f"{fix.applicability} fix", class_=f"badge fix {fix.applicability}"),
        " ",
        prose(group.says(fix.title)),
    )
    if not fix.edits:
        return tag("div", head, class_="mends")
    edits = [tag("li", _edit(e)) for e in fix.edits[:_NAMES]]
    left = len(fix.edits) - len(edits)
    more = tag("li", f"and {left:,} more") if left > 0 else None
    listed = tag("ul", *edits, more, class_="names")
    return tag("div", head, folded(counted(len(fix.edits), "edit"), listed), class_="mends")


def _edit(edit: Edit) -> Markup:
    return joined((tag("b", edit.op), *_fields(edit)), " ")


def _fields(edit: Edit) -> Iterator[Markup]:
    for name, value in edit.fields:
        said = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        yield joined((f"{name} ", tag("code", short(said, _VALUE))))
