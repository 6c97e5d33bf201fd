"""``eagle3-lint fix``."""

from __future__ import annotations

from pathlib import Path

import click

from eagle3_lint.commands.options import Asked, question, skip_others, style, write


@click.command()
@click.argument("paths", nargs=-1, required=True, metavar="PATH")
@question
@skip_others
@click.option("--diff", is_flag=True, help="Show what would be done, and write nothing.")
@click.option("--unsafe", is_flag=True, help="Also what could change what the model computes.")
@click.option(
    "--output",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Write the fixed draft to a new folder and leave PATH alone.",
)
@click.option("--as", "as_", type=click.Choice(["flat", "speculators"]),
              help="Give config.json that form.")  # fmt: skip
@click.option("--no-journal", is_flag=True, help="Keep nothing for undo.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="How to print the report.",
)
def fix(
    paths: tuple[str, ...],
    asked: Asked,
    skip_others: bool,
    diff: bool,
    unsafe: bool,
    output: Path | None,
    as_: str | None,
    no_journal: bool,
    form: str,
) -> None:
    """Rewrite keys and config of the draft at PATH in place, so that every target is served.

    A bare runtime name (-t sglang) asks for the newest known release, and for as many older ones as
    one spelling serves. The exit code speaks of the draft as it is afterwards; with --skip-others,
    which takes many PATHs, it is 1 too when something was changed.
    """
    if skip_others:
        from eagle3_lint.commands.hook import drafts_among

        if output is not None or form != "text":
            raise click.UsageError("--skip-others fixes in place and prints text")
        paths = drafts_among(paths)
    elif len(paths) > 1:
        raise click.UsageError("give one PATH; the files of many need --skip-others")
    from eagle3_lint.commands.progress import bar
    from eagle3_lint.report import fixing

    failed = False
    for path in paths:
        with bar() as progress:
            result = asked.fix(
                path,
                diff=diff,
                unsafe=unsafe,
                output=output,
                as_=as_,
                journal=not no_journal,
                progress=progress,
            )
        if form == "json":
            text = fixing.render_json(result)
        else:
            text = fixing.render(result, style(None), diff)
        write(text, None)
        judged = result.before if diff else result.after
        # A hook that changed a file fails, so that the change is looked at and staged.
        changed = skip_others and result.written is not None
        failed = failed or changed or judged.fails(asked.fail_on)
    click.get_current_context().exit(1 if failed else 0)
