"""``eagle3-lint matrix``."""

from __future__ import annotations

import click

from eagle3_lint.commands.options import Asked, shared, style, write
from eagle3_lint.releases import every
from eagle3_lint.report.model import Report


@click.command()
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@shared
def matrix(paths: tuple[str, ...], form: str, asked: Asked) -> None:
    """Every known release of every runtime, one line each, neighbours that agree together."""
    targets = [f"{t.runtime}=={t.release}" for t in every(asked.rules)]
    if form == "html":
        whole, text = asked.page(paths, targets)
    else:
        reports = [asked.check(path, targets) for path in paths]
        whole = Report(tuple(c for report in reports for c in report.checkpoints))
        if form == "text":
            from eagle3_lint.report.text import matrix as draw

            text = "\n".join(draw(c, style(asked.output)) for c in whole.checkpoints)
        else:
            text = asked.render(whole, form)
    write(text, asked.output)
    click.get_current_context().exit(1 if whole.fails(asked.fail_on) else 0)
