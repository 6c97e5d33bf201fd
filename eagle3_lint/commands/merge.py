"""``eagle3-lint merge``."""

from __future__ import annotations

import json
from pathlib import Path

import click

from eagle3_lint.commands.options import OUTPUT, style, write
from eagle3_lint.errors import InputError
from eagle3_lint.report.formats import FORMATS, Setting, render_as
from eagle3_lint.report.model import Report
from eagle3_lint.settings import FailOn, load_settings


@click.command()
@click.argument("reports", nargs=-1, required=True, metavar="REPORT.json...")
@click.option(
    "--fail-on",
    type=click.Choice(["error", "warning", "never"]),
    help="Least severity that makes the exit code 1.  [default: error]",
)
@OUTPUT
@click.option("--format", "form", type=click.Choice(["text", "html", *FORMATS]), default="json",
              show_default=True, help="How to print the report.")  # fmt: skip
def merge(reports: tuple[str, ...], fail_on: FailOn | None, output: Path | None, form: str) -> None:
    """Make one report of several that check --format json wrote.

    Drafts stay in the order of the reports. Of a draft that several speak of, the last one counts.
    The exit code is that of a check of all drafts.
    """
    from eagle3_lint.fleet import exit_code
    from eagle3_lint.merging import merge as merged_from

    merged = merged_from(reports)
    for note in merged.notes:
        click.echo(f"eagle3-lint: {note}", err=True)
    whole = merged.report
    judged_by = fail_on or load_settings(None, Path.cwd()).fail_on
    if form == "json":
        # Its own: it keeps what another release added.
        text = json.dumps(merged.to_json(), indent=2, ensure_ascii=False) + "\n"
    elif form == "text":
        from eagle3_lint.report.text import render

        text = render(whole, style(output))
    elif form == "html":
        from eagle3_lint.report.html.page import render_html

        text = render_html(whole)
    elif form == "sarif":
        text = _sarif(whole)
    else:
        text = render_as(form, whole, Setting(fail_on=judged_by))
    write(text, output)
    click.get_current_context().exit(exit_code(whole, judged_by))


def _sarif(report: Report) -> str:
    from eagle3_lint.catalogue import Catalogue
    from eagle3_lint.report.places import repository
    from eagle3_lint.report.sarif import render

    catalogue = Catalogue()
    unknown = sorted({d.rule for d in report.diagnostics()} - catalogue.files.keys())
    if unknown:
        raise InputError(
            f"merge: this release has no rule {unknown[0]}, whose page SARIF has to hold; merge"
            " with the newest release of those that checked, or as --format json"
        )
    # No texts: the drafts may be elsewhere, or have changed since, so fixes are told in words.
    return render(report, catalogue, repository(), {})
