"""The names that the package offers."""

from __future__ import annotations

import subprocess
import sys

import pytest

import eagle3_lint


@pytest.mark.parametrize("name", eagle3_lint.__all__)
def test_every_name_is_what_it_says_whatever_was_imported_before(name: str) -> None:
    """A module must not take the place of a function of its name."""
    program = (
        "import eagle3_lint.checking, eagle3_lint.fixing, eagle3_lint.cli, types\n"
        "import eagle3_lint\n"
        f"assert not isinstance(eagle3_lint.{name}, types.ModuleType)\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_what_it_does_not_offer() -> None:
    with pytest.raises(AttributeError, match="nothing_like_it"):
        eagle3_lint.nothing_like_it  # noqa: B018
