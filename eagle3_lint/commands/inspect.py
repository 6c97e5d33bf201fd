"""``eagle3-lint inspect``."""

from __future__ import annotations

import json

import click

from eagle3_lint.commands.options import recovered


@click.command()
@click.argument("path")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text",
              show_default=True, help="How to print what was found.")  # fmt: skip
def inspect(path: str, form: str) -> None:
    """Producer, dialect, dimensions, and the tensors by role."""
    from eagle3_lint.checking import read_draft
    from eagle3_lint.producer import recognise
    from eagle3_lint.report.inspection import inspection, render_inspection

    recovered(path)
    facts = read_draft(path)
    found = inspection(facts, recognise(facts))
    if form == "json":
        click.echo(json.dumps(found, indent=2, ensure_ascii=False))
    else:
        click.echo(render_inspection(found), nl=False)
