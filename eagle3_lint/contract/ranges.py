"""Which releases a PEP 440 range covers.

A contract of a hundred statements is resolved for a hundred releases by ``matrix``; comparing
parsed versions directly is an order of magnitude faster there than ``SpecifierSet.contains``.
Rule files use the operators below only; what a user types goes through ``packaging.specifiers``.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from functools import cache

from packaging.version import Version

_CLAUSE = re.compile(r"(>=|<=|==|!=|<|>)\s*([0-9][0-9A-Za-z.]*)$")
_COMPARE: dict[str, Callable[[Version, Version], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    ">": operator.gt,
}


class RangeError(ValueError):
    """The text is not a comma-separated list of ``>= <= == != < >`` clauses."""


@cache
def version(text: str) -> Version:
    """Parse once per spelling; parsing dominates comparison."""
    return Version(text)


@cache
def _clauses(text: str) -> tuple[tuple[Callable[[Version, Version], bool], Version], ...]:
    found = []
    for part in filter(None, (piece.strip() for piece in text.split(","))):
        match = _CLAUSE.match(part)
        if match is None:
            raise RangeError(f"{part!r} in {text!r} is no release range")
        found.append((_COMPARE[match[1]], version(match[2])))
    return tuple(found)


@cache
def covers(text: str, release: str) -> bool:
    """Whether ``release`` lies in the range ``text``; the empty range covers everything.

    Here ``<0.5.12`` and ``>0.5.10`` order releases plainly, so that a post-release lies between
    its base and the next release: rule files speak of points in a release history.
    """
    candidate = version(release)
    return all(compare(candidate, bound) for compare, bound in _clauses(text))
