"""``eagle3-lint check``."""

from __future__ import annotations

import click

from eagle3_lint.commands.options import Asked, shared, skip_others, style, write
from eagle3_lint.report.model import Report


@click.command()
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@shared
@skip_others
def check(paths: tuple[str, ...], form: str, asked: Asked, skip_others: bool) -> None:
    """Say what each target would do with the draft at PATH."""
    if skip_others:
        from eagle3_lint.commands.hook import drafts_among

        paths = drafts_among(paths)
        if not paths and form == "text":
            return
    if form == "html":
        whole, text = asked.page(paths)
    else:
        reports = [asked.check(path) for path in paths]
        whole = Report(tuple(c for report in reports for c in report.checkpoints))
        if form == "text":
            from eagle3_lint.report.text import render

            text = render(whole, style(asked.output))
        else:
            text = asked.render(whole, form)
    write(text, asked.output)
    click.get_current_context().exit(1 if whole.fails(asked.fail_on) else 0)
