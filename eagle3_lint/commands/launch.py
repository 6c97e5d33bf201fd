"""``eagle3-lint launch``."""

from __future__ import annotations

import click

from eagle3_lint.commands.options import Asked, question, style, write
from eagle3_lint.report.model import Result

#: Effects on the draft that make the exit code 1, whatever the command line says.
_FAILING = ("refused", "broken")


@click.command()
@click.argument("path")
@question
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="How to print the commands.",
)
def launch(path: str, asked: Asked, form: str) -> None:
    """Print the command that serves the draft at PATH on each target.

    The exit code is 1 when a target refuses the draft or serves it broken (unless --fail-on never);
    why is said on stderr.
    """
    from eagle3_lint.launch.render import render, render_json
    from eagle3_lint.launch.serving import serve

    facts, targets, wanted = asked.prepare(path)
    servings = serve(facts, targets, wanted, asked.target_model)
    text = render_json(path, servings) if form == "json" else render(servings, style(None).width)
    write(text, None)
    failing = [s.result for s in servings if s.result.verdict in _FAILING]
    for result in failing:
        click.echo(f"eagle3-lint: {_why(result)}", err=True)
    click.get_current_context().exit(1 if failing and asked.fail_on != "never" else 0)


def _why(result: Result) -> str:
    """One line on a target that does not serve the draft."""
    rules = [f"{d.rule} {d.name}" for d in result.diagnostics if d.effect in _FAILING]
    error = result.load.error if result.load is not None else None
    if error is not None:
        rules.append(f"{error.type}: {error.message}" if error.message else error.type)
    ends = "does not start" if result.verdict == "refused" else "accepts next to nothing"
    reasons = ", ".join(dict.fromkeys(rules)) or "rules that were left out"
    text = f"{result.target}: {ends} with this draft ({reasons}); eagle3-lint check says more"
    return " ".join(text.split())
