"""Every known release of every runtime: a field for each, and what changes where in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from itertools import groupby

from eagle3_lint.report.html.groups import span
from eagle3_lint.report.html.input import ReleaseVerdict, RuntimeVerdicts
from eagle3_lint.report.html.marks import MEANINGS, mark, pill
from eagle3_lint.report.html.markup import Markup, counted, joined, lines, prose, short, tag

#: Characters of a finding that a field shows; the table below has the whole.
_TOOLTIP = 150


def grid(
    history: Sequence[RuntimeVerdicts], asked: Collection[tuple[str, str]], name: str
) -> Markup:
    """The section.

    Args:
        asked: runtime and release of the targets that were asked for.
        name: what identities in the page begin with.
    """
    return lines(
        _legend(history),
        *(_runtime(r, asked, f"{name}-{r.runtime}") for r in history),
    )


def _legend(history: Sequence[RuntimeVerdicts]) -> Markup:
    found = {r.verdict for runtime in history for r in runtime.releases}
    entries = (
        tag("li", pill(verdict), f" {meaning}")
        for verdict, meaning in MEANINGS.items()
        if verdict in found
    )
    ring = tag("li", tag("span", "asked for", class_="pill asked"), " has a ring")
    posts = any(".post" in r.release for runtime in history for r in runtime.releases)
    post = tag("li", tag("code", "p1"), " is ", tag("code", ".post1")) if posts else None
    return tag("ul", *entries, ring, post, class_="legend")


def _runtime(runtime: RuntimeVerdicts, asked: Collection[tuple[str, str]], name: str) -> Markup:
    counts = Counter(r.verdict for r in runtime.releases)
    words = ", ".join(f"{verdict} in {counts[verdict]}" for verdict in MEANINGS if counts[verdict])
    rows = _spans(runtime.releases)
    fields = (
        _field(runtime, release, (runtime.runtime, release.release) in asked, f"{name}-{row}")
        for row, group in enumerate(rows)
        for release in group
    )
    return lines(
        tag("h4", runtime.title, " ", tag("small", f"{counted(len(runtime.releases), 'release')}:"
                                                   f" {words}")),
        tag("ol", joined(fields, "\n"), class_="grid", aria_label=f"{runtime.title} releases"),
        _table(runtime, rows, name),
    )  # fmt: skip


def _spans(releases: Sequence[ReleaseVerdict]) -> list[list[ReleaseVerdict]]:
    """Neighbours with the same verdict for the same reason."""
    return [
        list(group) for _, group in groupby(releases, key=lambda r: (r.verdict, r.rule, r.reason))
    ]


def _field(runtime: RuntimeVerdicts, release: ReleaseVerdict, asked: bool, row: str) -> Markup:
    """One release, which leads to the row that explains it."""
    said = short(_reason(release).replace("`", ""), _TOOLTIP)
    title = f"{runtime.title} {release.release}: {release.verdict}" + (f". {said}" if said else "")
    hidden = f" {release.verdict}" + (", asked for" if asked else "")
    return tag(
        "li",
        tag(
            "a",
            mark(release.verdict),
            release.release.replace(".post", "p"),
            tag("span", hidden, class_="heard"),
            href=f"#{row}",
            # A hundred stops on the way through the page help nobody; the table says it all.
            tabindex="-1",
            title=title,
        ),
        class_=f"field {release.verdict}" + (" asked" if asked else ""),
    )


def _reason(release: ReleaseVerdict) -> str:
    return " ".join(part for part in (release.rule, release.reason) if part)


def _table(runtime: RuntimeVerdicts, rows: Sequence[Sequence[ReleaseVerdict]], name: str) -> Markup:
    def body() -> Iterator[Markup]:
        for row, group in enumerate(rows):
            first = group[0]
            beside = tag("span", first.severity, class_=f"badge {first.severity}")
            rule = tag("b", first.rule, " ") if first.rule else None
            yield tag(
                "tr",
                tag("th", span([r.release for r in group]), scope="row"),
                tag("td", pill(first.verdict)),
                tag("td", beside if first.severity else None, rule, prose(first.reason)),
                id=f"{name}-{row}",
            )

    head = tag("tr", *(tag("th", h, scope="col") for h in ("Releases", "Verdict", "First finding")))
    caption = tag("caption", f"{runtime.title}, where it changes")
    return tag(
        "table", caption, tag("thead", head), tag("tbody", joined(body(), "\n")), class_="spans"
    )
