"""A user's own command, as a shell line or in a script → the server that it starts.

This is the edge: files are read here, and whether a path of the command leads to the draft is
looked up here, so that the checks need no disk.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal

from eagle3_lint.diagnostic import Place
from eagle3_lint.errors import InputError
from eagle3_lint.frozen import frozen
from eagle3_lint.launch.options import Given, interpret
from eagle3_lint.launch.shell import UNKNOWN, Command, commands
from eagle3_lint.launch.statements import Statement, launch_file, launch_runtimes
from eagle3_lint.load import repository
from eagle3_lint.models import find_target_model, known_model
from eagle3_lint.releases import Target
from eagle3_lint.target_model import TargetModel

#: A launch script has a few kilobytes.
MOST_BYTES = 2**20

#: Where a path of the command leads: to the draft, to something else, to nothing, or nobody looked.
Leads = Literal["draft", "elsewhere", "nowhere", "unknown"]

_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
_SHELL_OPTION = re.compile(r"-[a-z]*c")
_EXAMPLES = "`python -m sglang.launch_server ...`, `vllm serve ...`"


@frozen
class Launch:
    """The server that a command starts.

    Attributes:
        form: the words that start it, as ``rules/launch`` has them.
        words: its arguments.
        env: the environment variables that the command sets.
        file: the script it was read from; None for a command given as such.
        lines: what is in the script.
        leads: path in the command → where it leads from here.
        rules: the folder of rules that it was read with.
    """

    runtime: str
    form: tuple[str, ...]
    words: tuple[str, ...]
    env: Mapping[str, str]
    file: str | None = None
    lines: tuple[str, ...] = ()
    leads: Mapping[str, Leads] | None = None
    rules: Path | None = None

    def given(self, release: str) -> Given:
        """What its arguments mean to a release.

        Raises:
            InputError: a speculative configuration is no JSON object.
        """
        statements = launch_file(self.runtime, self.rules).release(release)
        return interpret(self.words, self.form, statements)

    def where(self, word: str | None = None) -> tuple[Place, ...]:
        """The script's line with a word of the command, else that of the command itself."""
        if self.file is None:
            return ()
        for text in (word, self.form[-1]):
            for number, line in enumerate(self.lines, 1):
                if text and text in line and not line.lstrip().startswith("#"):
                    return (Place(self.file, line=number),)
        return (Place(self.file),)

    @property
    def model(self) -> str | None:
        """The target model's path or repository; None when the command does not say it."""
        statements = launch_file(self.runtime, self.rules).any_release()
        return interpret(self.words, self.form, statements).model

    def target_model(self) -> TargetModel | None:
        """The target model that it serves, when that is a folder here or a known name."""
        named = self.model
        if named is None:
            return None
        if self.leading(named) == "elsewhere" and (Path(named) / "config.json").is_file():
            return find_target_model(named, self.rules)
        return known_model(named, self.rules)

    def of_its_runtime(self, targets: Iterable[Target]) -> list[Target]:
        """Those of the targets whose command this may be.

        Raises:
            InputError: none is.
        """
        asked = list(targets)
        own = [target for target in asked if target.runtime == self.runtime]
        if not own:
            others = ", ".join(str(target) for target in asked)
            raise InputError(
                f"{self.file or 'launch command'}: it starts {self.runtime}, and {others} was asked"
                f" for; ask with -t {self.runtime}"
            )
        return own

    def leading(self, path: str) -> Leads:
        """Where a path of the command leads from here."""
        return (self.leads or {}).get(path, "unknown")

    @property
    def runner(self) -> str | None:
        """The model runner that its environment asks for."""
        statements = launch_file(self.runtime, self.rules).any_release()
        for statement in statements.all("runners"):
            asked = self.env.get(statement["name"])
            for runner, value in statement["values"].items():
                if asked == value:
                    return str(runner)
        return None


def read_launch(given: str, draft: str | Path | None = None, rules: Path | None = None) -> Launch:
    """The server that a user's command starts.

    Args:
        given: a shell command, or the file that holds one.
        draft: the draft that is being checked.

    Raises:
        InputError: the file cannot be read; quotes have no end; no server is started, or several
            are; a speculative configuration is no JSON object.
    """
    file, text = _text(given)
    shown = file or "launch command"
    try:
        found = list(_servers(text, rules))
    except ValueError:
        raise InputError(
            f"{shown}: a quote has no end; close it, or give the one command"
        ) from None
    if not found:
        raise InputError(f"{shown}: no server is started there; known are {_EXAMPLES}")
    if len(found) > 1:
        raise InputError(f"{shown}: {len(found)} servers are started there; give one command")
    runtime, form, words, env = found[0]
    launch = Launch(
        runtime,
        form,
        words,
        env,
        file,
        tuple(text.splitlines()) if file is not None else (),
        rules=rules,
    )
    return _looked_up(launch, draft)


def _text(given: str) -> tuple[str | None, str]:
    """The file, if it is one, and the text.

    Raises:
        InputError: it is neither a file nor a command, or cannot be read.
    """
    path = Path(given)
    try:
        is_file = bool(given) and path.exists()
    except (OSError, ValueError):  # too long for a name, or a null byte in it
        is_file = False
    if not is_file:
        if len(given.split()) > 1:
            return None, given
        shown = given if len(given) <= 80 else given[:77] + "..."
        raise InputError(
            f"launch command {shown!r}: neither a file nor a command; give a script, or the command"
            " in quotes"
        )
    try:
        if not path.is_file():
            raise InputError(
                f"{given}: not a regular file; give a script, or the command in quotes"
            )
        if path.stat().st_size > MOST_BYTES:
            raise InputError(f"{given}: far too large for a launch script; give the one command")
        return given, path.read_text("utf-8")
    except UnicodeDecodeError:
        raise InputError(f"{given}: not UTF-8, so no script; give the one command") from None
    except OSError as error:
        raise InputError(f"{given}: cannot be read: {error.strerror}") from None


_Server = tuple[str, tuple[str, ...], tuple[str, ...], dict[str, str]]


def _servers(text: str, rules: Path | None) -> Iterator[_Server]:
    """Every server that a text starts."""
    forms = [
        (runtime, statement)
        for runtime in launch_runtimes(rules)
        for statement in launch_file(runtime, rules).any_release().all("command")
    ]
    for command in commands(text):
        yield from _started(command, forms, rules)


def _started(
    command: Command, forms: Sequence[tuple[str, Statement]], rules: Path | None
) -> Iterator[_Server]:
    words = command.words
    found = list(_direct(command, [f for f in forms if "words" in f[1]]))
    for at, word in enumerate(words[1:]):
        # bash -c "vllm serve ..."
        if not found and _SHELL_OPTION.fullmatch(words[at]) and " " in word:
            for runtime, form, arguments, env in _servers(word, rules):
                outside = {**command.env, **_environment(words)}
                found.append((runtime, form, arguments, {**outside, **env}))
    # An image's entry point counts only where no command is given to it.
    yield from found or _direct(command, [f for f in forms if "image" in f[1]])


def _direct(command: Command, forms: Sequence[tuple[str, Statement]]) -> Iterator[_Server]:
    """The server that the words of a command start themselves."""
    words = command.words
    for at in range(len(words)):
        for runtime, statement in forms:
            form = _matched(words, at, statement)
            if form:
                env = {**command.env, **_environment(words[:at])}
                yield runtime, form, words[at + len(form) :], env
                return


def _matched(words: Sequence[str], at: int, statement: Statement) -> tuple[str, ...]:
    """The words of a statement, if the command has them here."""
    if "image" in statement:
        name = words[at].partition("@")[0].rpartition("/")[2].partition(":")[0]
        wanted = statement["image"].rpartition("/")[2]
        return (statement["image"],) if "/" in words[at] and name == wanted else ()
    form: list[str] = statement["words"]
    here = [words[at].rpartition("/")[2], *words[at + 1 : at + len(form)]]
    return tuple(form) if here == form else ()


def _environment(words: Sequence[str]) -> dict[str, str]:
    """What ``env A=b``, ``docker run -e A=b`` and ``--env=A=b`` set."""
    assigned = (word.removeprefix("--env=").removeprefix("-e=") for word in words)
    pairs = (word.partition("=") for word in assigned if _ASSIGNMENT.match(word))
    return {name: value for name, _, value in pairs}


# -- where its paths lead --------------------------------------------------------------------------


def _looked_up(launch: Launch, draft: str | Path | None) -> Launch:
    """The same with a look at where its paths lead from here.

    Raises:
        InputError: a speculative configuration is no JSON object.
    """
    statements = launch_file(launch.runtime, launch.rules).any_release()
    given = interpret(launch.words, launch.form, statements)
    paths = {path for path in (given.draft, given.model) if path is not None}
    beside = Path(launch.file).parent if launch.file is not None else Path()
    leads = {path: _leads(path, (Path(), beside), draft) for path in paths}
    return Launch(
        launch.runtime,
        launch.form,
        launch.words,
        launch.env,
        launch.file,
        launch.lines,
        leads,
        launch.rules,
    )


def _leads(path: str, bases: Sequence[Path], draft: str | Path | None) -> Leads:
    if UNKNOWN in path:
        return "unknown"
    there = [str(base / path) for base in bases if os.path.exists(base / path)]
    if not there:
        named = repository(str(draft))
        return "draft" if named is not None and named[0] == path else "nowhere"
    same = draft is not None and any(_same(each, str(draft)) for each in there)
    return "draft" if same else "elsewhere"


def _same(path: str, draft: str) -> bool:
    try:
        return os.path.samefile(path, draft)
    except OSError:
        return False
