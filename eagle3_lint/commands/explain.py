"""``eagle3-lint explain``."""

from __future__ import annotations

import click

from eagle3_lint.errors import InputError


@click.command()
@click.argument("rule")
def explain(rule: str) -> None:
    """The page of one RULE (an id such as E3L201, or a name)."""
    from eagle3_lint.catalogue import Catalogue

    found = Catalogue().find(rule)
    if not found:
        raise InputError(f"no rule is called {rule!r}; `eagle3-lint rules` lists them")
    for r in found:
        click.echo(r.to_markdown(), nl=False)
