"""Options and output that commands share."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from eagle3_lint.errors import InputError

Command = TypeVar("Command", bound=Callable[..., Any])

_COLOURS = {
    "error": "red", "warning": "yellow", "info": "cyan", "refused": "red", "broken": "red",
    "degraded": "yellow", "serves": "green", "unknown": "cyan",
}  # fmt: skip


def style(output: Path | None) -> Any:
    from eagle3_lint.report.text import Style

    if output is not None or not sys.stdout.isatty() or "NO_COLOR" in os.environ:
        width = shutil.get_terminal_size().columns if sys.stdout.isatty() else 100
        return Style(width=width)
    return Style(
        width=shutil.get_terminal_size().columns,
        paint=lambda text, role: click.style(text, fg=_COLOURS[role], bold=True),
    )


def write(text: str, output: Path | None) -> None:
    if output is None:
        click.echo(text, nl=False)
        return
    try:
        output.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InputError(f"{output}: cannot write the report: {error.strerror}") from None


def _numbers(ctx: click.Context, parameter: click.Parameter, value: str | None) -> Any:
    if value is None:
        return None
    try:
        return tuple(int(part) for part in value.split(","))
    except ValueError:
        raise click.BadParameter("write aux states as numbers, such as 2,30,58") from None


def _words(ctx: click.Context, parameter: click.Parameter, value: Sequence[str]) -> Any:
    return tuple(word.strip() for text in value for word in text.split(",") if word.strip())


def shared(function: Command) -> Command:
    """The options that check and matrix share."""
    options = (
        click.option("-m", "--target-model", metavar="M",
                     help="The target model: a known name (kimi-k2.5), a folder or config.json."),
        click.option("--ids-mean", type=click.Choice(["output", "input"]),
                     help="Read layer id i as the output or as the input of layer i."),
        click.option("--trained-on", metavar="K,K,K", callback=_numbers,
                     help="Aux states that the draft was trained on."),
        click.option("--select", multiple=True, metavar="RULES", callback=_words,
                     help="Only these rules (ids, names or beginnings of ids)."),
        click.option("--ignore", multiple=True, metavar="RULES", callback=_words,
                     help="Not these rules."),
        click.option("--rules", "rules", type=click.Path(path_type=Path), metavar="DIR",
                     help="Another folder of rules than the built-in one."),
        click.option("--output", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE",
                     help="Write the report there."),
    )  # fmt: skip
    for option in reversed(options):
        function = option(function)
    return function


def user_rules(folder: Path | None) -> Path | None:
    if folder is not None:
        from eagle3_lint.rule_folder import validate

        validate(folder)
    return folder
