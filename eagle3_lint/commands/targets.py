"""``eagle3-lint targets``."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Sequence

import click


@click.command()
@click.option("--models", is_flag=True, help="List the known target models too.")
def targets(models: bool) -> None:
    """Known runtimes, their releases, and target models."""
    from eagle3_lint.contract.runtime import known_runtimes, runtime_file
    from eagle3_lint.models import known_models

    for name in known_runtimes():
        releases = runtime_file(name).releases
        click.echo(f"{name}: {len(releases)} releases, {releases[0]} to {releases[-1]}")
        for line in _wrapped(releases):
            click.echo(f"  {line}")
    if not models:
        click.echo("Known target models: eagle3-lint targets --models")
        return
    click.echo("target models:")
    for model in known_models():
        click.echo(
            f"  {model.name}: {model.architecture}, hidden {model.hidden_size}, "
            f"{model.num_hidden_layers} layers, vocabulary {model.vocab_size}"
        )


def _wrapped(words: Sequence[str]) -> list[str]:
    return textwrap.wrap(" ".join(words), max(40, shutil.get_terminal_size().columns - 2))
