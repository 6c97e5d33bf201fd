"""``eagle3-lint matrix``."""

from __future__ import annotations

import json
from pathlib import Path

import click

from eagle3_lint.commands.options import shared, style, user_rules, write


@click.command()
@click.argument("path")
@click.option("-t", "--target", "targets", multiple=True, metavar="RUNTIME[SPEC]",
              help="Only these releases, such as 'sglang>=0.5.9'.")  # fmt: skip
@shared
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text",
              show_default=True, help="How to print the matrix.")  # fmt: skip
def matrix(
    path: str,
    targets: tuple[str, ...],
    target_model: str | None,
    ids_mean: str | None,
    trained_on: tuple[int, ...] | None,
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    rules: Path | None,
    output: Path | None,
    form: str,
) -> None:
    """Every known release of every runtime, one line each, neighbours that agree together."""
    from eagle3_lint.check import check as check_path
    from eagle3_lint.releases import every

    rules = user_rules(rules)
    wanted = targets or tuple(f"{t.runtime}=={t.release}" for t in every(rules))
    report = check_path(
        path, wanted, target_model, ids_mean=ids_mean, trained_on=trained_on,
        select=select, ignore=ignore, rules=rules,
    )  # fmt: skip
    if form == "json":
        text = json.dumps(report.to_json(), indent=2, ensure_ascii=False) + "\n"
    else:
        from eagle3_lint.report.text import matrix as draw

        text = draw(report.checkpoints[0], style(output))
    write(text, output)
