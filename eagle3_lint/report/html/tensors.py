"""The draft's sizes, and its tensors by role."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict

from eagle3_lint.facts import Facts
from eagle3_lint.report.html.groups import Group
from eagle3_lint.report.html.markup import Markup, counted, joined, lines, named, tag
from eagle3_lint.report.inspection import role_of

#: Rows that are shown; a draft has some twenty tensors, a whole model thousands.
_MOST = 400


def tensor_tables(facts: Facts, groups: Sequence[Group]) -> Markup:
    """The section.

    Args:
        groups: targets, which may leave tensors out.
    """
    return lines(_sizes(facts), _tensors(facts, _fates(groups)))


def weight(nbytes: int) -> str:
    """Bytes as people say them, in powers of a thousand."""
    size, unit = float(nbytes), "B"
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if size < 1000 or unit == "TB":
            break
        size /= 1000
    return f"{size:.0f} {unit}" if unit == "B" or size >= 100 else f"{size:.1f} {unit}"


def _sizes(facts: Facts) -> Markup:
    shown = asdict(facts.shown)

    def body() -> Iterator[Markup]:
        for name, stated in asdict(facts.stated).items():
            seen = shown[name]
            if stated is None and seen is None:
                continue
            differ = None not in (stated, seen) and stated != seen
            yield tag(
                "tr",
                tag("th", name, scope="row"),
                tag("td", _size(stated), class_="figure"),
                tag("td", _size(seen), class_="figure"),
                tag("td", tag("span", "differ", class_="badge warning") if differ else None),
                class_="differs" if differ else None,
            )

    heads = ("Dimension", "config.json", "Tensors", "")
    return _table("Sizes", heads, joined(body(), "\n"), "sizes")


def _size(value: int | None) -> str:
    return "–" if value is None else str(value)


def _fates(groups: Sequence[Group]) -> Mapping[str, list[str]]:
    """Tensor → what targets do to it other than load it."""
    fates: dict[str, list[str]] = {}
    for group in groups:
        load = group.first.load
        if load is None:
            continue
        for what, names in (("dropped by", load.dropped), ("cut or padded by", load.altered)):
            for name in names:
                fates.setdefault(name, []).append(f"{what} {group.label}")
    return fates


def _tensors(facts: Facts, fates: Mapping[str, list[str]]) -> Markup:
    rows = sorted(
        ((role_of(t.name), t) for t in facts.tensors.values()),
        key=lambda row: (row[0] is None, row[0] or row[1].name),
    )

    def body() -> Iterator[Markup]:
        for role, tensor in rows[:_MOST]:
            fate = "; ".join(fates.get(tensor.name, ()))
            yield tag(
                "tr",
                tag(
                    "th",
                    tag("span", role or "no role", class_="role"),
                    tag("span", named(tensor.name), class_="called"),
                    tag("span", fate, class_="fate") if fate else None,
                    scope="row",
                ),
                tag("td", tensor.dtype),
                tag("td", " × ".join(map(str, tensor.shape)) or "scalar", class_="shape"),
                tag("td", weight(tensor.nbytes), class_="figure"),
            )

    total = weight(sum(t.nbytes for _, t in rows))
    files = len({t.file for _, t in rows})
    caption = f"{counted(len(rows), 'tensor')} in {counted(files, 'file')}, {total}"
    heads = ("Role and name", "dtype", "Shape", "Size")
    left = len(rows) - _MOST
    return lines(
        _table(caption, heads, joined(body(), "\n"), "by-role"),
        tag("p", f"and {left:,} more tensors") if left > 0 else None,
    )


def _table(caption: str, heads: Sequence[str], body: Markup, kind: str) -> Markup:
    return tag(
        "table",
        tag("caption", caption),
        tag("thead", tag("tr", *(tag("th", h, scope="col") for h in heads))),
        tag("tbody", body),
        class_=kind,
    )
