"""``inspect --vocab``: a picture of how the draft's vocabulary covers the target model's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from eagle3_lint.coverage import Coverage

#: From nothing to everything, for terminals that have them and for others.
SHADES = " ░▒▓█"
PLAIN_SHADES = " .:*#"
_WIDTH = 64
#: Special tokens that are listed one by one; models have some hundred reserved ones.
_LISTED = 12


def vocabulary_json(found: Coverage | None) -> dict[str, Any] | None:
    if found is None:
        return None
    return {
        "source": found.source,
        "vocab_size": found.vocab_size,
        "covered": found.covered,
        "share": round(found.share, 4),
        "outside": found.outside,
        "shares": [round(share, 4) for share in found.shares],
        "special": [
            {"token": s.token, "name": s.name, "covered": s.covered} for s in found.special
        ],
    }


def render_vocabulary(found: Coverage | None, shades: str = SHADES) -> str:
    """The coverage as text, ending in a newline."""
    if found is None:
        return "vocabulary    unknown: neither d2t nor t2d says which tokens the draft has\n"
    return "\n".join(_lines(found, shades)) + "\n"


def _lines(found: Coverage, shades: str) -> Iterator[str]:
    how = {"d2t": "by d2t", "t2d": "by t2d", "all": "the whole vocabulary"}[found.source]
    yield (
        f"vocabulary    {found.covered} of {found.vocab_size} tokens"
        f" ({100 * found.share:.1f} %), {how}"
    )
    if found.outside:
        yield f"outside       {found.outside} rows stand for no token of the target model"
    yield ""
    per_cell = found.vocab_size / len(found.shares)
    wide = len(str(found.vocab_size))
    for start in range(0, len(found.shares), _WIDTH):
        row = found.shares[start : start + _WIDTH]
        cells = "".join(_shade(share, shades) for share in row)
        yield f"{int(start * per_cell):>{wide}} |{cells}|"
    yield f"{'':>{wide}}  each mark {per_cell:.0f} token ids; {_legend(shades)}"
    if found.special:
        yield ""
        yield from _special(found)


def _shade(share: float, shades: str) -> str:
    """Nothing only for nothing, everything only for everything."""
    if share <= 0:
        return shades[0]
    if share >= 1:
        return shades[-1]
    inner = shades[1:-1]
    return inner[min(int(share * len(inner)), len(inner) - 1)]


def _legend(shades: str) -> str:
    some = " ".join(shades[1:-1])
    return f"{shades[0]!r} none, {some} some, {shades[-1]} all of them covered"


def _special(found: Coverage) -> Iterator[str]:
    missing = [s for s in found.special if not s.covered]
    covered = len(found.special) - len(missing)
    yield f"special       {covered} of {len(found.special)} special tokens covered"
    shown = missing[:_LISTED]
    for token in shown:
        yield f"  not covered {token.token} {token.name}"
    if len(missing) > len(shown):
        yield f"  and {len(missing) - len(shown)} more"
