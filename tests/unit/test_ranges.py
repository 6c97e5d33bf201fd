"""Release ranges order releases plainly, post-releases between their base and the next."""

from __future__ import annotations

import pytest

from eagle3_lint.contract.ranges import RangeError, covers


@pytest.mark.parametrize(
    ("text", "release", "expected"),
    [
        ("", "0.1", True),
        (">=0.5.12", "0.5.12", True),
        (">=0.5.12", "0.5.12.post1", True),
        (">=0.5.12", "0.5.9", False),  # numbers, not text
        ("<0.4.9", "0.4.8.post1", True),
        ("<=0.5.10", "0.5.10.post1", False),
        (">=0.4.9,<0.5.12", "0.5.11", True),
        (">=0.4.9,<0.5.12", "0.5.12", False),
        ("==0.9.0", "0.9.0.1", False),
        ("!=0.5.1", "0.5.1", False),
    ],
)
def test_covers(text: str, release: str, expected: bool) -> None:
    assert covers(text, release) is expected


@pytest.mark.parametrize("text", ["0.5.9", "~=0.5", "=>1", ">=0.5 <0.6"])
def test_bad_ranges_are_refused(text: str) -> None:
    with pytest.raises(RangeError):
        covers(text, "0.5.9")
