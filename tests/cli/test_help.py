"""The help fits a screen, and every option has an example in the documentation."""

from __future__ import annotations

from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from eagle3_lint.cli import COMMANDS, main

ROOT = Path(__file__).resolve().parents[2]
#: A terminal of the usual smallest size.
LINES, COLUMNS = 24, 80


def text() -> str:
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    return "\n".join(page.read_text(encoding="utf-8") for page in pages)


def command(name: str) -> click.Command:
    found = main.get_command(click.Context(main), name)
    assert found is not None
    return found


def test_the_help_fits_one_screen() -> None:
    lines = CliRunner().invoke(main, ["--help"]).output.splitlines()
    assert len(lines) <= LINES
    assert max(map(len, lines)) <= COLUMNS


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_has_an_example(name: str) -> None:
    written = text()
    assert f"eagle3-lint {name}" in written
    for parameter in command(name).params:
        if isinstance(parameter, click.Option):
            # In use: `--option value`, or a flag by itself.
            used = (f"`{opt} " for opt in parameter.opts)
            alone = (f"`{opt}`" for opt in parameter.opts if parameter.is_flag)
            inside = (f" {opt} " for opt in parameter.opts)
            assert any(words in written for words in (*used, *alone, *inside)), parameter.opts


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_says_what_it_does(name: str) -> None:
    for parameter in command(name).params:
        if isinstance(parameter, click.Option):
            assert parameter.help, parameter.opts
