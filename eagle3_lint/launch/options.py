"""A server's arguments → what they mean to a draft in one release.

argparse's rules, as far as they matter here: ``--name value`` and ``--name=value``, a beginning
that only one option has, the last one counts. Options that say nothing about a draft are passed
over.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from eagle3_lint.errors import InputError
from eagle3_lint.frozen import frozen
from eagle3_lint.launch.shell import UNKNOWN
from eagle3_lint.launch.statements import LaunchRelease

_NUMBER = re.compile(r"-\d")
_READABLE = re.compile(r"(\d+(?:\.\d+)?)([kmgt]?)", re.IGNORECASE)
_FACTORS = {"k": 1, "m": 2, "g": 3, "t": 4}
#: A shorter beginning is not looked up: ``-`` and ``--`` begin everything.
_SHORTEST = 6


@frozen
class Given:
    """What a command gives a release.

    Attributes:
        values: what an option means → its value; a flag's is empty.
        names: what an option means → the option as it was written.
        speculation: the speculative configuration of a runtime that takes one; None: none was
            given, or it cannot be known.
        unknown: options that the release does not have, and that end it.
        ambiguous: beginnings that several options have, with those options.
        twice: fields that two options give, which ends the server.
        partial: not all arguments can be known (a file holds some, or a shell's variable).
        first: the first argument, when it is no option.
    """

    values: Mapping[str, str]
    names: Mapping[str, str]
    speculation: Mapping[str, Any] | None
    unknown: tuple[str, ...]
    ambiguous: tuple[tuple[str, tuple[str, ...]], ...]
    twice: tuple[str, ...]
    partial: bool
    first: str | None

    @property
    def draft(self) -> str | None:
        """The draft's path or repository; None when there is none, or it cannot be known."""
        named = self.field("model") if self.speculation is not None else self.value("draft")
        return named if isinstance(named, str) else None

    @property
    def model(self) -> str | None:
        """The target model's path or repository, likewise."""
        if self.gives("model"):
            return self.value("model")
        return self.first if self.first is not None and UNKNOWN not in self.first else None

    def value(self, meaning: str) -> str | None:
        """An option's value; None when it is not given, or cannot be known."""
        value = self.values.get(meaning)
        return value if value is not None and UNKNOWN not in value else None

    def field(self, name: str) -> object:
        """A field of the speculative configuration, likewise."""
        value = (self.speculation or {}).get(name)
        return None if isinstance(value, str) and UNKNOWN in value else value

    def number(self, meaning: str) -> int | None:
        """An option's value as a number; None when it is none."""
        return whole_number(self.value(meaning))

    def gives(self, meaning: str) -> bool:
        """Whether an option is given, be its value known or not."""
        return meaning in self.values


def whole_number(text: object) -> int | None:
    """``4096``, ``32k`` (32,000), ``32K`` (32,768), as the runtimes read them."""
    if isinstance(text, int) and not isinstance(text, bool):
        return text
    match = _READABLE.fullmatch(text.strip()) if isinstance(text, str) else None
    if match is None:
        return None
    number, unit = match[1], match[2]
    if not unit:
        return int(number) if number.isdigit() else None
    if unit.islower():
        return int(float(number) * 1000 ** _FACTORS[unit])
    return int(number) * 1024 ** _FACTORS[unit.lower()] if number.isdigit() else None


def interpret(words: Sequence[str], form: Sequence[str], release: LaunchRelease) -> Given:
    """What the arguments ``words`` mean to ``release``.

    Args:
        form: the words that start the server; in some the first argument may be the model.

    Raises:
        InputError: a speculative configuration is no JSON object.
    """
    reading = _Reading(release)
    first = words[0] if words and not words[0].startswith("-") else None
    for name, value in reading.pairs(words[1:] if first is not None else words):
        reading.take(name, value)
    takes_model = any(
        command.get("model") for command in release.all("command") if _is(command, form)
    )
    return reading.given(first if takes_model else None)


def _is(command: Mapping[str, Any], form: Sequence[str]) -> bool:
    return list(form) in (command.get("words"), [command.get("image")])


def _is_option(word: str) -> bool:
    return word.startswith("-") and not _NUMBER.match(word)


class _Reading:
    """The options of one command, taken one after the other."""

    def __init__(self, release: LaunchRelease) -> None:
        self.release = release
        self.meanings = {
            name: option for option in release.all("option") for name in option["names"]
        }
        self.others = {name for other in release.all("other") for name in other["names"]}
        self.values: dict[str, str] = {}
        self.names: dict[str, str] = {}
        self.dotted: dict[str, dict[str, Any]] = {}
        self.unknown: list[str] = []
        self.ambiguous: list[tuple[str, tuple[str, ...]]] = []
        self.partial = False

    def pairs(self, words: Sequence[str]) -> Iterator[tuple[str, str | None]]:
        """Options with their values; of several values the first, None when there is none.

        A word that cannot be known comes as an option, unless it is the value of one.
        """
        before = ""
        for at, word in enumerate(words):
            after = words[at + 1] if at + 1 < len(words) else None
            if _is_option(word):
                name, equals, value = word.partition("=")
                follows = None if after is None or _is_option(after) else after
                yield name, value if equals else follows
            elif word.startswith(UNKNOWN) and not self._takes_a_value(before):
                yield word, None
            before = word

    def _takes_a_value(self, word: str) -> bool:
        """Whether what follows a word may be its value; of an unknown option it may."""
        if not _is_option(word) or "=" in word:
            return False
        return not self.meanings.get(self._dashed(word), {}).get("flag")

    def take(self, written: str, value: str | None) -> None:
        if UNKNOWN in written:
            self.partial = True
            return
        name, dot, path = written.partition(".")
        if dot and self.release.all("dotted"):
            self._put(self._dashed(name), path, value)
            return
        name = self._dashed(written)
        known = self._named(name)
        if len(known) > 1:
            self.ambiguous.append((written, known))
        elif known:
            option = self.meanings.get(known[0])
            if option is not None:
                self.values[option["is"]] = "" if option.get("flag") or value is None else value
                self.names[option["is"]] = written
        elif name.startswith(self.release.watched):
            self.unknown.append(written)

    def _dashed(self, name: str) -> str:
        return name.replace("_", "-") if self.release.underscores and name[:2] == "--" else name

    def _named(self, name: str) -> tuple[str, ...]:
        """The options that a word names, by itself or as their beginning."""
        if name in self.meanings or name in self.others:
            return (name,)
        if len(name) < _SHORTEST:
            return ()
        begun = [n for n in (*self.meanings, *self.others) if n.startswith(name)]
        # Names of one option are one.
        same = {self.meanings[n]["is"] if n in self.meanings else n for n in begun}
        return tuple(begun[:1]) if len(same) == 1 else tuple(sorted(begun))

    def _put(self, name: str, path: str, value: str | None) -> None:
        """``--speculative-config.method eagle3``; ``+`` at the end makes a list."""
        held: dict[str, Any] = self.dotted.setdefault(name, {})
        *steps, last = path.removesuffix("+").split(".")
        for step in steps:
            inner = held.setdefault(step, {})
            held = inner if isinstance(inner, dict) else {}
        try:
            held[last] = json.loads(value or "")
        except ValueError:
            number = whole_number(value)
            held[last] = value if number is None else number

    def given(self, first: str | None) -> Given:
        speculation, partial = self._speculation()
        twice: list[str] = []
        for meaning, field in _FIELDS.items():
            if meaning in self.values and "speculation" in self._meant():
                speculation = dict(speculation or {})
                if field in speculation:
                    twice.append(field)
                # A number's option is read as one.
                value = self.values[meaning]
                number = whole_number(value) if meaning == "tokens" else None
                speculation[field] = value if number is None else number
        return Given(
            values=dict(self.values),
            names=dict(self.names),
            speculation=speculation,
            unknown=tuple(self.unknown),
            ambiguous=tuple(self.ambiguous),
            twice=tuple(twice),
            partial=self.partial or partial or "config-file" in self.values,
            first=first,
        )

    def _meant(self) -> set[str]:
        return {option["is"] for option in self.meanings.values()}

    def _speculation(self) -> tuple[dict[str, Any] | None, bool]:
        """The object that was given, and whether it cannot be known."""
        names = [n for n, option in self.meanings.items() if option["is"] == "speculation"]
        for name in reversed(self.dotted):
            if name in names:
                self.names.setdefault("speculation", name)
                return self._fields(self.dotted[name]), False
        text = self.values.get("speculation")
        if text in (None, "", "None"):
            return None, False
        found = _parsed(str(text), self.names["speculation"])
        return (None, True) if found is None else (self._fields(found), False)

    def _fields(self, found: Mapping[str, Any]) -> dict[str, Any]:
        dashes = any(fields.get("dashes") for fields in self.release.all("fields"))
        return {k.replace("-", "_") if dashes else k: v for k, v in found.items()}


#: Options that each give one field of the speculative configuration.
_FIELDS = {"method": "method", "draft": "model", "tokens": "num_speculative_tokens"}


def _parsed(text: str, name: str) -> dict[str, Any] | None:
    """A JSON object; None when something in it cannot be known.

    Raises:
        InputError: it is none.
    """
    shown = text if len(text) <= 80 else text[:77] + "..."
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        if UNKNOWN in text:
            return None
        what = error.msg if isinstance(error, json.JSONDecodeError) else "it cannot be read"
        raise InputError(
            f"launch command: {name} {shown!r} is no JSON: {what}; put it in single quotes, such as"
            ' \'{"method": "eagle3", "model": "DRAFT", "num_speculative_tokens": 3}\''
        ) from None
    if not isinstance(found, dict):
        raise InputError(f"launch command: {name} {shown!r} is JSON, but no object")
    return found
