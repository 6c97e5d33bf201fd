"""``eagle3-lint inspect``."""

from __future__ import annotations

import json
import sys

import click

from eagle3_lint.commands.options import recovered


@click.command()
@click.argument("path")
@click.option("--vocab", is_flag=True,
              help="Show how the draft's vocabulary covers the target model's.")  # fmt: skip
@click.option("-m", "--target-model", metavar="M",
              help="For --vocab: a known name, a folder or config.json.")  # fmt: skip
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text",
              show_default=True, help="How to print what was found.")  # fmt: skip
def inspect(path: str, vocab: bool, target_model: str | None, form: str) -> None:
    """Producer, dialect, dimensions, and the tensors by role."""
    from eagle3_lint.checking import read_draft
    from eagle3_lint.producer import recognise
    from eagle3_lint.report.inspection import inspection, render_inspection

    recovered(path)
    facts = read_draft(path)
    found = inspection(facts, recognise(facts))
    if vocab:
        from eagle3_lint.coverage import coverage
        from eagle3_lint.errors import InputError
        from eagle3_lint.load.special_tokens import special_tokens
        from eagle3_lint.models import find_target_model, named_in_config
        from eagle3_lint.report.vocabulary import (
            PLAIN_SHADES,
            SHADES,
            render_vocabulary,
            vocabulary_json,
        )

        named = find_target_model(target_model) if target_model else named_in_config(facts.config)
        size = named.vocab_size if named and named.vocab_size else facts.stated.vocab_size
        if size is None:
            raise InputError(f"{path}: no vocab_size in config.json; say --target-model")
        special = special_tokens(facts.config, named.folder if named else None)
        covered = coverage(facts, size, special)
        found["vocabulary"] = vocabulary_json(covered)
        if form == "text":
            can = (sys.stdout.encoding or "").lower().replace("-", "").startswith("utf")
            click.echo(render_vocabulary(covered, SHADES if can else PLAIN_SHADES), nl=False)
            return
    if form == "json":
        click.echo(json.dumps(found, indent=2, ensure_ascii=False))
    else:
        click.echo(render_inspection(found), nl=False)
