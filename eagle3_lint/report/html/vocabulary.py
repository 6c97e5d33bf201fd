"""How the draft's vocabulary covers the target model's, as a picture over the token ids."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from eagle3_lint.coverage import Coverage, SpecialToken
from eagle3_lint.report.html.markup import Markup, joined, lines, tag

_TICKS = 4
#: Special tokens that are listed one by one.
_LISTED = 24
_HOW = {"d2t": "by d2t", "t2d": "by t2d", "all": "the whole vocabulary"}


def vocabulary(found: Coverage | None, name: str) -> Markup:
    """The section.

    Args:
        name: what identities in the page begin with.
    """
    if found is None:
        return tag("p", "Neither d2t nor t2d says which tokens the draft can propose.")
    percent = f"{100 * found.share:.1f} %"
    outside = (
        tag("p", tag("b", f"{found.outside:,} rows"), " stand for no token of the target model.")
        if found.outside
        else None
    )
    return lines(
        tag("p", tag("b", f"{found.covered:,} of {found.vocab_size:,} tokens"),
            f" ({percent}), {_HOW[found.source]}."),
        outside,
        _figure(found, percent, name),
        _special(found.special),
    )  # fmt: skip


def profile(shares: Sequence[float]) -> str:
    """The outline of a chart of shares, one step wide each and 100 high, as an SVG path."""
    path, x = "M0 100", 0
    for share, group in groupby(shares):
        x += len(list(group))
        height = f"{100 - 100 * share:.1f}".rstrip("0").rstrip(".")
        path += f"V{height}H{x}"
    return f"{path}V100Z"


def _figure(found: Coverage, percent: str, name: str) -> Markup:
    cells = len(found.shares)
    per_cell = found.vocab_size / cells
    empty = sum(share == 0 for share in found.shares)
    words = (
        f"{percent} of the token ids are covered; of {cells} ranges of {per_cell:.0f} ids each,"
        f" {sum(share >= 1 for share in found.shares)} are covered whole and {empty} not at all"
    )
    picture = tag(
        "svg",
        tag("title", "Covered share along the token ids", id=f"{name}-title"),
        tag("desc", words, id=f"{name}-desc"),
        tag("path", class_="area", d=profile(found.shares)),
        class_="profile",
        viewBox=f"0 0 {cells} 100",
        preserveAspectRatio="none",
        width="100%",
        height="96",
        role="img",
        aria_labelledby=f"{name}-title {name}-desc",
    )
    ticks = (f"{found.vocab_size * i // _TICKS:,}" for i in range(_TICKS + 1))
    axis = tag("div", *(tag("span", t) for t in ticks), class_="axis", aria_hidden="true")
    caption = tag("figcaption", f"Along the token ids, from none (bottom) to all (top): {words}.")
    return tag("figure", tag("div", picture, class_="frame"), axis, caption)


def _special(special: Sequence[SpecialToken]) -> Markup | None:
    if not special:
        return None
    missing = [s for s in special if not s.covered]
    told = tag("p", f"{len(special) - len(missing)} of {len(special)} special tokens covered"
                    + (". Not covered:" if missing else "."))  # fmt: skip
    if not missing:
        return told
    items = (
        tag("li", tag("code", s.name or "without a name"), f" {s.token}") for s in missing[:_LISTED]
    )
    left = len(missing) - _LISTED
    more = tag("li", f"and {left:,} more") if left > 0 else None
    return lines(told, tag("ul", joined(items), more, class_="tokens"))
