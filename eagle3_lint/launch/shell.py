"""A text as a shell has it → its simple commands, as far as that needs no shell.

Quotes, comments, line continuations, redirections, assignments and the variables that the text
itself sets are understood. What only a shell would know (a command substitution, an array, a
variable from elsewhere) becomes :data:`UNKNOWN` in a word, and nothing is concluded from it.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping

from eagle3_lint.frozen import frozen

#: Stands in a word for what cannot be known without a shell.
UNKNOWN = "\ue000"
# A dollar that is no variable, and one in double quotes, whose value is not split.
_LITERAL, _QUOTED = "\ue001", "\ue002"
_ENDS = ";|&<>\n"

_PIECE = re.compile(
    r"""
      '(?P<single>[^']*)'
    | "(?P<double>(?:\\.|[^"\\])*)"
    | (?P<joined>\\\n)
    | (?P<escaped>\\.)
    | (?P<comment>(?<![^\s;&|])\#[^\n]*)
    | (?P<run>\$\([^()]*\)|`[^`]*`)
    | (?P<descriptor>(?<!\S)\d+(?=[<>]))
    """,
    re.VERBOSE | re.DOTALL,
)
_RUN = re.compile(r"\$\([^()]*\)|`[^`]*`")
_VARIABLE = re.compile(r"([$\ue002])(?:(\w+)|\{(\w+)(?::?[-=]([^{}]*))?\}|\{[^{}]*\}|[@*#?!$-])")
_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)
_EXPORTING = ("export", "declare", "typeset", "readonly")


@frozen
class Command:
    """One simple command.

    Attributes:
        words: its words, without redirections and the assignments in front.
        env: what is exported before it, and assigned in front of it.
    """

    words: tuple[str, ...]
    env: Mapping[str, str]


def commands(text: str) -> Iterator[Command]:
    """The simple commands of a text, in its order.

    Raises:
        ValueError: a quote has no end.
    """
    variables: dict[str, str] = {}
    exported: dict[str, str] = {}
    for words in _simple(_cleaned(text.replace("\r\n", "\n"))):
        own: dict[str, str] = {}
        while words and (match := _ASSIGNMENT.match(words[0])):
            own[match[1]] = _value(match[2], {**variables, **own})
            words = words[1:]
        if not words:
            variables.update(own)
            exported.update({name: own[name] for name in own if name in exported})
        elif words[0] in _EXPORTING:
            found = _assigned(words[1:], variables)
            variables.update(found)
            exported.update(found)
        else:
            expanded = tuple(part for word in words for part in _expanded(word, variables))
            yield Command(expanded, {**exported, **own})


def _assigned(words: list[str], variables: Mapping[str, str]) -> dict[str, str]:
    """What ``export A=b C`` exports."""
    found = {}
    for word in words:
        match = _ASSIGNMENT.match(word)
        if match is not None:
            found[match[1]] = _value(match[2], variables)
        elif word in variables:
            found[word] = variables[word]
    return found


def _cleaned(text: str) -> str:
    """Comments, continuations and descriptors taken out, every dollar marked for what it is."""

    def clean(match: re.Match[str]) -> str:
        kind = match.lastgroup
        if kind == "single":
            return "'" + match["single"].replace("$", _LITERAL) + "'"
        if kind == "double":
            inner = match["double"].replace("\\$", _LITERAL).replace("\\\n", "")
            return '"' + _RUN.sub(UNKNOWN, inner).replace("$", _QUOTED) + '"'
        if kind == "escaped":
            return _LITERAL if match[0] == "\\$" else match[0]
        return UNKNOWN if kind == "run" else ""

    return _PIECE.sub(clean, text)


def _simple(text: str) -> Iterator[list[str]]:
    """The words of each simple command, redirections dropped, variables not yet filled in."""
    lexer = shlex.shlex(text, posix=True, punctuation_chars=_ENDS)
    lexer.whitespace, lexer.commenters, lexer.whitespace_split = " \t\r", "", True
    words: list[str] = []
    redirected = False
    for token in lexer:
        ends = bool(token) and all(character in _ENDS for character in token)
        if ends and ("<" in token or ">" in token):
            redirected = True
        elif ends:
            yield words
            words, redirected = [], False
        elif redirected:
            redirected = False
        else:
            words.append(token)
    yield words


def _value(text: str, variables: Mapping[str, str]) -> str:
    """A text with its variables filled in."""

    def fill(match: re.Match[str]) -> str:
        name = match[2] or match[3]
        if name is not None and name in variables:
            return variables[name]
        return match[4] if match[4] is not None else UNKNOWN

    return _VARIABLE.sub(fill, text).replace(_LITERAL, "$").replace(_QUOTED, "$")


def _expanded(word: str, variables: Mapping[str, str]) -> list[str]:
    """A word, or the words that an unquoted variable is split into."""
    whole = _VARIABLE.fullmatch(word)
    value = _value(word, variables)
    return value.split() if whole is not None and whole[1] == "$" else [value]
