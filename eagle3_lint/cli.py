"""The command line: parse, call one function, pick a reporter, return the code.

Exit codes: 0 nothing at or above ``--fail-on`` · 1 findings · 2 usage, unreadable input, nothing to
check.
"""

from __future__ import annotations

import gc
from importlib import import_module
from typing import Any

import click

from eagle3_lint.errors import InputError
from eagle3_lint.version import __version__

#: Command → one line for the list of commands; its module has the same name.
COMMANDS = {
    "check": "Say what each target would do with the draft at PATH.",
    "fix": "Rewrite keys and config in place, so that every target is served.",
    "undo": "Take the last fix back, byte for byte.",
    "matrix": "Every known release of every runtime, neighbours that agree together.",
    "merge": "Make one report of several.",
    "launch": "Print the command that serves the draft on each target.",
    "inspect": "Producer, dialect, dimensions, and the tensors by role.",
    "targets": "Known runtimes, their releases, and target models.",
    "rules": "The catalogue of rules.",
    "explain": "The page of one RULE.",
    "probe": "Read a runtime's own sources and say where our contract differs.",
}
_COMPLETION = """\
Shell completion: eval "$(_EAGLE3_LINT_COMPLETE=bash_source eagle3-lint)"; zsh_source and
fish_source likewise."""


class _Lazy(click.Group):
    """Imports a command when it is called, and turns bad input into one line and exit code 2."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module = import_module(f"eagle3_lint.commands.{cmd_name}")
        command: click.Command = getattr(module, cmd_name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def invoke(self, ctx: click.Context) -> Any:
        # A check makes many small objects that live to its end; looking for garbage among them
        # at the usual pace is a twentieth of its time.
        gc.set_threshold(100_000)
        try:
            return super().invoke(ctx)
        except InputError as error:
            click.echo(f"eagle3-lint: {error}", err=True)
            ctx.exit(2)


@click.group(
    cls=_Lazy,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog=_COMPLETION,
)
@click.version_option(__version__, prog_name="eagle3-lint")
def main() -> None:
    """Say what each SGLang and vLLM release would do with an EAGLE-3 draft checkpoint."""


if __name__ == "__main__":
    main()
