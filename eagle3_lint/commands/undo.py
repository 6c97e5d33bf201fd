"""``eagle3-lint undo``."""

from __future__ import annotations

import click


@click.command()
@click.argument("path")
def undo(path: str) -> None:
    """Take the last fix of the draft at PATH back, byte for byte."""
    from eagle3_lint.commands.progress import bar
    from eagle3_lint.fixing import undo as take_back

    with bar() as progress:
        undone = take_back(path, progress=progress)
    for line in undone.lines:
        click.echo(line)
