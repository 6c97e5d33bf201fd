"""``eagle3-lint rules``."""

from __future__ import annotations

import json

import click


@click.command()
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text",
              show_default=True, help="How to print the catalogue.")  # fmt: skip
def rules(form: str) -> None:
    """The catalogue of rules."""
    from eagle3_lint.catalogue import Catalogue

    found = Catalogue().all()
    if form == "json":
        rows = [
            {"rule": r.id, "name": r.name, "severity": r.severity, "effect": r.effect,
             "title": r.title, "source": r.source}
            for r in found
        ]  # fmt: skip
        click.echo(json.dumps(rows, indent=2, ensure_ascii=False))
        return
    widest = max(len(r.name) for r in found)
    for r in found:
        click.echo(f"{r.id}  {r.severity:<7}  {r.name:<{widest}}  {r.title}")
