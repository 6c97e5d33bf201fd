"""``eagle3-lint probe``."""

from __future__ import annotations

from pathlib import Path

import click

from eagle3_lint.commands.options import OUTPUT, style, write


@click.command()
@click.argument("origin", metavar="RUNTIME|WHEEL|DIR")
@click.option(
    "--release",
    metavar="R",
    help="Hold the sources against the contract of this release.  [default: their own, or"
    " the newest known one before it]",
)
@click.option(
    "--rules",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Another folder of rules than the built-in one.",
)
@OUTPUT
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="How to print the report.",
)
@click.pass_context
def probe(
    ctx: click.Context,
    origin: str,
    release: str | None,
    rules: Path | None,
    output: Path | None,
    form: str,
) -> None:
    """Read a runtime's own sources and say where our contract differs.

    Nothing is imported or run. The sources are the package installed in this Python environment
    (give the runtime's name), a wheel, or a folder. Exit code 1 means that something differs.
    """
    from eagle3_lint.contract.runtime import known_runtimes
    from eagle3_lint.probe.compare import Prober, release_of
    from eagle3_lint.probe.origin import find_origin
    from eagle3_lint.report import probing

    if rules is not None:
        from eagle3_lint.rule_folder import validate

        validate(rules)
    found = find_origin(origin, known_runtimes(rules))
    result = Prober(found, release_of(found, release, rules), rules).probe()
    text = (
        probing.render_json(result)
        if form == "json"
        else probing.render_text(result, style(output))
    )
    write(text, output)
    ctx.exit(1 if result.differences else 0)
