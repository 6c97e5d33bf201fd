"""``eagle3-lint check``."""

from __future__ import annotations

import click

from eagle3_lint.commands.options import Asked, shared, skip_others, style, write
from eagle3_lint.report.model import Report


@click.command()
@click.argument("paths", nargs=-1, metavar="PATH...")
@click.option(
    "--from-file",
    metavar="LIST",
    help="Also the drafts that a text file names, one a line; - is standard input.",
)
@click.option(
    "--shard", metavar="I/N", help="Only the I-th of N parts of all drafts, counted from 1."
)
@click.option(
    "--jobs",
    type=click.IntRange(min=1),
    metavar="N",
    help="Processes for many drafts.  [default: one for each processor, 8 at most]",
)
@shared
@skip_others
def check(
    paths: tuple[str, ...],
    form: str,
    asked: Asked,
    skip_others: bool,
    from_file: str | None,
    shard: str | None,
    jobs: int | None,
) -> None:
    """Say what each target would do with the draft at PATH."""
    if not paths and from_file is None:
        raise click.UsageError("Missing argument 'PATH...' or option '--from-file LIST'.")
    if skip_others:
        from eagle3_lint.commands.hook import drafts_among

        paths = drafts_among(paths)
        if not paths and from_file is None and form == "text":
            return
    from eagle3_lint.fleet import exit_code

    many = len(paths) != 1 or from_file is not None or shard is not None
    drafts = _chosen(paths, from_file, shard) if many else paths
    if form == "html":
        whole, text = asked.page(drafts)
    else:
        whole = _side_by_side(drafts, asked, jobs) if many else asked.check(*drafts)
        if form == "text":
            from eagle3_lint.report.text import render

            text = render(whole, style(asked.output))
        else:
            text = asked.render(whole, form)
    write(text, asked.output)
    code = exit_code(whole, asked.fail_on)
    if code == 2:
        click.echo(f"eagle3-lint: no draft could be read: {whole.checkpoints[0].error}", err=True)
    click.get_current_context().exit(code)


def _chosen(paths: tuple[str, ...], from_file: str | None, shard: str | None) -> tuple[str, ...]:
    from eagle3_lint import fleet
    from eagle3_lint.errors import InputError

    part = fleet.parse_shard(shard) if shard is not None else None
    listed = fleet.read_list(from_file) if from_file is not None else ()
    drafts = fleet.once((*paths, *listed))
    if not drafts and from_file is not None:
        raise InputError(f"{from_file}: the list names no draft; write one path a line")
    if part is None:
        return drafts
    drafts = part.part(drafts)
    if not drafts:
        click.echo(f"eagle3-lint: shard {part} is empty: fewer drafts than parts", err=True)
    return drafts


def _side_by_side(drafts: tuple[str, ...], asked: Asked, jobs: int | None) -> Report:
    from eagle3_lint import fleet
    from eagle3_lint.commands.progress import counted

    fleet.check_question(asked.targets, asked.target_model, rules=asked.rules, launch=asked.launch)
    with counted(len(drafts), "checking") as step:
        return fleet.check_all(drafts, asked.check, jobs or fleet.usual_jobs(len(drafts)), step)
