"""Options and output that commands share."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Sequence
from functools import wraps
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from eagle3_lint.errors import InputError
from eagle3_lint.frozen import frozen
from eagle3_lint.report.model import Report
from eagle3_lint.settings import FailOn, load_settings

if TYPE_CHECKING:
    from eagle3_lint.examine import Question
    from eagle3_lint.facts import Facts
    from eagle3_lint.fixing import FixResult
    from eagle3_lint.releases import Target

_Answer = TypeVar("_Answer")

_COLOURS = {
    "error": "red", "warning": "yellow", "info": "cyan", "refused": "red", "broken": "red",
    "degraded": "yellow", "serves": "green", "unknown": "cyan",
}  # fmt: skip


def style(output: Path | None) -> Any:
    from eagle3_lint.report.text import Style

    if output is not None or not sys.stdout.isatty() or "NO_COLOR" in os.environ:
        width = shutil.get_terminal_size().columns if sys.stdout.isatty() else 100
        return Style(width=width)
    return Style(
        width=shutil.get_terminal_size().columns,
        paint=lambda text, role: click.style(text, fg=_COLOURS[role], bold=True),
    )


def write(text: str, output: Path | None) -> None:
    if output is None:
        click.echo(text, nl=False)
        return
    try:
        output.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InputError(f"{output}: cannot write the report: {error.strerror}") from None


def _numbers(ctx: click.Context, parameter: click.Parameter, value: str | None) -> Any:
    if value is None:
        return None
    try:
        return tuple(int(part) for part in value.split(","))
    except ValueError:
        raise click.BadParameter("write aux states as numbers, such as 2,30,58") from None


def _words(ctx: click.Context, parameter: click.Parameter, value: Sequence[str]) -> Any:
    return tuple(word.strip() for text in value for word in text.split(",") if word.strip())


@frozen
class Asked:
    """What the options that check and matrix share come to, settings included."""

    targets: tuple[str, ...]
    target_model: str | None
    ids_mean: str | None
    trained_on: tuple[int, ...] | None
    select: tuple[str, ...]
    ignore: tuple[str, ...]
    rules: Path | None
    runner: str | None
    output: Path | None
    fail_on: FailOn
    launch: str | None = None

    def check(self, path: str, targets: Sequence[str] = ()) -> Report:
        """Check one path; ``targets`` stand in where none were asked for."""
        from eagle3_lint.checking import check

        return self._asked(check, path, targets)

    def prepare(
        self, path: str, targets: Sequence[str] = ()
    ) -> tuple[Facts, list[Target], Question]:
        """What a check of one path needs to know, for a command that does more with it."""
        from eagle3_lint.checking import prepare

        return self._asked(prepare, path, targets)

    def _asked(
        self, function: Callable[..., _Answer], path: str, targets: Sequence[str]
    ) -> _Answer:
        """What ``check`` or ``prepare`` answers; they take the same."""
        recovered(path)
        return function(
            path,
            self.targets or targets,
            self.target_model,
            ids_mean=self.ids_mean,
            trained_on=self.trained_on,
            select=self.select,
            ignore=self.ignore,
            rules=self.rules,
            runner=self.runner,
            launch=self.launch,
        )

    def page(self, paths: Sequence[str], targets: Sequence[str] = ()) -> tuple[Report, str]:
        """The report on some paths, and its page, which shows more than the report holds."""
        from eagle3_lint.report.html.gather import checked
        from eagle3_lint.report.html.page import render_html

        report, inputs = checked(self.prepare(path, targets) for path in paths)
        return report, render_html(report, inputs)

    def render(self, report: Report, form: str) -> str:
        """The report in a form other than text."""
        from eagle3_lint.report.formats import Setting, render_as

        return render_as(form, report, Setting(self.fail_on, self.rules))

    def fix(self, path: str, **how: Any) -> FixResult:
        """Fix one path; ``how`` goes to :func:`eagle3_lint.fix`."""
        from eagle3_lint.fixing import fix

        recovered(path)
        return fix(
            path,
            self.targets,
            self.target_model,
            ids_mean=self.ids_mean,
            trained_on=self.trained_on,
            select=self.select,
            ignore=self.ignore,
            rules=self.rules,
            runner=self.runner,
            **how,
        )


def _asked(config: Path | None, rules: Path | None, **given: Any) -> Asked:
    settings = load_settings(config, Path.cwd())
    if rules is not None:
        from eagle3_lint.rule_folder import validate

        validate(rules)
    return Asked(
        targets=given["targets"] or settings.targets,
        target_model=given["target_model"] or settings.target_model,
        ids_mean=given["ids_mean"],
        trained_on=given["trained_on"],
        select=given["select"] or settings.select,
        ignore=given["ignore"] or tuple(settings.ignore or ()),
        rules=rules,
        runner=given["runner"],
        output=given["output"],
        fail_on=given["fail_on"] or settings.fail_on,
        launch=given.get("launch"),
    )


_QUESTION = (
    click.option("-t", "--target", "targets", multiple=True, metavar="RUNTIME[SPEC]",
                 help="sglang==0.5.9, 'vllm>=0.12,<0.22', sglang, sglang@installed."),
    click.option("-m", "--target-model", metavar="M",
                 help="The target model: a known name (kimi-k2.5), a folder, config.json, hf://org/name."),
    click.option("--ids-mean", type=click.Choice(["output", "input"]),
                 help="Read layer id i as the output or as the input of layer i."),
    click.option("--trained-on", metavar="K,K,K", callback=_numbers,
                 help="Aux states that the draft was trained on."),
    click.option("--runner", type=click.Choice(["v1", "v2"]),
                 help="vLLM's model runner.  [default: that of a plain start on a GPU]"),
    click.option("--select", multiple=True, metavar="RULES", callback=_words,
                 help="Only these rules (ids, names or beginnings of ids)."),
    click.option("--ignore", multiple=True, metavar="RULES", callback=_words,
                 help="Not these rules."),
    click.option("--fail-on", type=click.Choice(["error", "warning", "never"]),
                 help="Least severity that makes the exit code 1.  [default: error]"),
    click.option("--config", type=click.Path(path_type=Path), metavar="FILE",
                 help="Settings; default [tool.eagle3-lint] of the nearest pyproject.toml."),
    click.option("--rules", type=click.Path(path_type=Path), metavar="DIR",
                 help="Another folder of rules than the built-in one."),
)  # fmt: skip
OUTPUT = click.option(
    "--output", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE",
    help="Write the report there.",
)  # fmt: skip
_REPORT = (
    click.option("--launch", metavar="FILE|COMMAND",
                 help="Check the server's command too: a script that holds it, or itself."),
    OUTPUT,
    click.option("--format", "form",
                 type=click.Choice(["text", "json", "html", "sarif", "github", "gitlab", "junit"]),
                 default="text", show_default=True, help="How to print the report."),
)  # fmt: skip


#: For commands that a hook runs with the names of changed files.
skip_others = click.option(
    "--skip-others", is_flag=True,
    help="Pass over what is no EAGLE-3 draft, and take the files of one draft together.",
)  # fmt: skip


def shared(function: Callable[..., None]) -> Callable[..., None]:
    """Add the options that check and matrix share; the command gets them as ``asked``, and its
    own."""
    own = signature(function).parameters.keys() - {"paths", "form", "asked"}

    @wraps(function)
    def call(*, paths: tuple[str, ...], form: str, **options: Any) -> None:
        its = {name: options.pop(name) for name in own}
        function(paths, form, _asked(**options), **its)

    return _with(call, *_QUESTION, *_REPORT)


def question(function: Callable[..., None]) -> Callable[..., None]:
    """Add the options that say what is asked; the command gets them as ``asked``, and its own."""
    own = signature(function).parameters.keys() - {"asked"}

    @wraps(function)
    def call(**options: Any) -> None:
        its = {name: options.pop(name) for name in own}
        function(asked=_asked(**options, output=None), **its)

    return _with(call, *_QUESTION)


def _with(function: Callable[..., None], *options: Any) -> Callable[..., None]:
    for option in reversed(options):
        function = option(function)
    return function


def recovered(path: str) -> None:
    """Take back a fix of a draft that was interrupted, and say so."""
    from eagle3_lint.load import lies_elsewhere
    from eagle3_lint.load.folder import folder_of
    from eagle3_lint.write import recover

    if lies_elsewhere(path):
        return
    found = recover(folder_of(path))
    if found is not None:
        for line in found.lines:
            click.echo(f"eagle3-lint: {line}", err=True)
