"""The command line: parse, call one function, pick a reporter, return the code.

Exit codes: 0 nothing at or above ``--fail-on`` · 1 findings · 2 usage, unreadable input, nothing to
check.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from eagle3_lint.errors import InputError
from eagle3_lint.version import __version__

Command = TypeVar("Command", bound=Callable[..., Any])

_COLOURS = {
    "error": "red", "warning": "yellow", "info": "cyan", "refused": "red", "broken": "red",
    "degraded": "yellow", "serves": "green", "unknown": "cyan",
}  # fmt: skip
_COMPLETION = """\
Shell completion: eval "$(_EAGLE3_LINT_COMPLETE=bash_source eagle3-lint)"; zsh_source and
fish_source likewise."""


def _style(output: Path | None) -> Any:
    from eagle3_lint.report.text import Style

    if output is not None or not sys.stdout.isatty() or "NO_COLOR" in os.environ:
        width = shutil.get_terminal_size().columns if sys.stdout.isatty() else 100
        return Style(width=width)
    return Style(
        width=shutil.get_terminal_size().columns,
        paint=lambda text, role: click.style(text, fg=_COLOURS[role], bold=True),
    )


def _write(text: str, output: Path | None) -> None:
    if output is None:
        click.echo(text, nl=False)
        return
    try:
        output.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InputError(f"{output}: cannot write the report: {error.strerror}") from None


class _Group(click.Group):
    """Turns bad input into one line on stderr and exit code 2."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except InputError as error:
            click.echo(f"eagle3-lint: {error}", err=True)
            ctx.exit(2)


def _numbers(ctx: click.Context, parameter: click.Parameter, value: str | None) -> Any:
    if value is None:
        return None
    try:
        return tuple(int(part) for part in value.split(","))
    except ValueError:
        raise click.BadParameter("write aux states as numbers, such as 2,30,58") from None


def _words(ctx: click.Context, parameter: click.Parameter, value: Sequence[str]) -> Any:
    return tuple(word.strip() for text in value for word in text.split(",") if word.strip())


def _shared(function: Command) -> Command:
    """The options that check and matrix share."""
    options = (
        click.option("-m", "--target-model", metavar="M",
                     help="The target model: a known name (kimi-k2.5), a folder or config.json."),
        click.option("--ids-mean", type=click.Choice(["output", "input"]),
                     help="Read layer id i as the output or as the input of layer i."),
        click.option("--trained-on", metavar="K,K,K", callback=_numbers,
                     help="Aux states that the draft was trained on."),
        click.option("--select", multiple=True, metavar="RULES", callback=_words,
                     help="Only these rules (ids, names or beginnings of ids)."),
        click.option("--ignore", multiple=True, metavar="RULES", callback=_words,
                     help="Not these rules."),
        click.option("--rules", "rules", type=click.Path(path_type=Path), metavar="DIR",
                     help="Another folder of rules than the built-in one."),
        click.option("--output", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE",
                     help="Write the report there."),
    )  # fmt: skip
    for option in reversed(options):
        function = option(function)
    return function


def _user_rules(folder: Path | None) -> Path | None:
    if folder is not None:
        from eagle3_lint.rule_folder import validate

        validate(folder)
    return folder


@click.group(
    cls=_Group,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog=_COMPLETION,
)
@click.version_option(__version__, prog_name="eagle3-lint")
def main() -> None:
    """Say what each SGLang and vLLM release would do with an EAGLE-3 draft checkpoint."""


@main.command()
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@click.option("-t", "--target", "targets", multiple=True, metavar="RUNTIME[SPEC]",
              help="sglang==0.5.9, 'vllm>=0.12,<0.22', sglang (newest), sglang@installed.")  # fmt: skip
@_shared
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

    rules = _user_rules(rules)
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

        text = render(whole, _style(output))
    _write(text, output)
    ctx.exit(1 if whole.fails(fail_on) else 0)


@main.command()
@click.argument("path")
@click.option("-t", "--target", "targets", multiple=True, metavar="RUNTIME[SPEC]",
              help="Only these releases, such as 'sglang>=0.5.9'.")  # fmt: skip
@_shared
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

    rules = _user_rules(rules)
    wanted = targets or tuple(f"{t.runtime}=={t.release}" for t in every(rules))
    report = check_path(
        path, wanted, target_model, ids_mean=ids_mean, trained_on=trained_on,
        select=select, ignore=ignore, rules=rules,
    )  # fmt: skip
    if form == "json":
        text = json.dumps(report.to_json(), indent=2, ensure_ascii=False) + "\n"
    else:
        from eagle3_lint.report.text import matrix as draw

        text = draw(report.checkpoints[0], _style(output))
    _write(text, output)


@main.command()
@click.argument("path")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text",
              show_default=True, help="How to print what was found.")  # fmt: skip
def inspect(path: str, form: str) -> None:
    """Producer, dialect, dimensions, and the tensors by role."""
    from eagle3_lint.check import read_draft
    from eagle3_lint.producer import recognise
    from eagle3_lint.report.inspection import inspection, render_inspection

    facts = read_draft(path)
    found = inspection(facts, recognise(facts))
    if form == "json":
        click.echo(json.dumps(found, indent=2, ensure_ascii=False))
    else:
        click.echo(render_inspection(found), nl=False)


@main.command()
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
    import textwrap

    return textwrap.wrap(" ".join(words), max(40, shutil.get_terminal_size().columns - 2))


@main.command()
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


@main.command()
@click.argument("rule")
def explain(rule: str) -> None:
    """The page of one RULE (an id such as E3L201, or a name)."""
    from eagle3_lint.catalogue import Catalogue

    found = Catalogue().find(rule)
    if not found:
        raise InputError(f"no rule is called {rule!r}; `eagle3-lint rules` lists them")
    for r in found:
        click.echo(r.to_markdown(), nl=False)


if __name__ == "__main__":
    main()
