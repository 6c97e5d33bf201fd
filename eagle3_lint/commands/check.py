"""``eagle3-lint check``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from eagle3_lint.commands.options import shared, style, user_rules, write


@click.command()
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@click.option("-t", "--target", "targets", multiple=True, metavar="RUNTIME[SPEC]",
              help="sglang==0.5.9, 'vllm>=0.12,<0.22', sglang, sglang@installed.")  # fmt: skip
@shared
@click.option("--fail-on", type=click.Choice(["error", "warning", "never"]), default="error",
              show_default=True, help="Least severity that makes the exit code 1.")  # fmt: skip
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text",
              show_default=True, help="How to print the report.")  # fmt: skip
@click.pass_context
def check(
    ctx: click.Context,
    paths: tuple[str, ...],
    targets: tuple[str, ...],
    target_model: str | None,
    ids_mean: str | None,
    trained_on: tuple[int, ...] | None,
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    rules: Path | None,
    output: Path | None,
    fail_on: Any,
    form: str,
) -> None:
    """Say what each target would do with the draft at PATH."""
    from eagle3_lint.check import check as check_path
    from eagle3_lint.report.model import CheckpointReport, Report

    rules = user_rules(rules)
    checkpoints: list[CheckpointReport] = []
    for path in paths:
        report = check_path(
            path, targets, target_model, ids_mean=ids_mean, trained_on=trained_on,
            select=select, ignore=ignore, rules=rules,
        )  # fmt: skip
        checkpoints.extend(report.checkpoints)
    whole = Report(tuple(checkpoints))
    if form == "json":
        text = json.dumps(whole.to_json(), indent=2, ensure_ascii=False) + "\n"
    else:
        from eagle3_lint.report.text import render

        text = render(whole, style(output))
    write(text, output)
    ctx.exit(1 if whole.fails(fail_on) else 0)
