"""The closed little language of shapes and conditions in a contract.

Grammar, loosest first (``x``: a name, an integer, a ``'string'``, ``true``, ``false``, ``null``)::

    or · and · not · == != < <= > >= in · + - · * // · ( … ) · x

``in`` takes a list in parentheses: ``kind in ('yarn', 'llama3')``.

It has no calls, no attributes and no indexing, so that a rule file can never run anything. A
comparison gives 1 or 0. ``and`` and ``or`` give one of their operands, as in Python, because the
runtimes test configuration fields for truth in the same way.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache

Environment = Mapping[str, object]
Compiled = Callable[[Environment], object]

_TOKEN = re.compile(
    r"\s*(?:(?P<number>\d+)|(?P<name>[A-Za-z_][A-Za-z_0-9]*)|'(?P<text>[^']*)'"
    r"|(?P<operator>//|==|!=|<=|>=|[-+*()<>,]))"
)
_CONSTANTS: dict[str, object] = {"true": True, "false": False, "null": None}
_KEYWORDS = frozenset({"and", "or", "not", "in"})


class ExpressionError(ValueError):
    """The text is not an expression of this language, or names something unknown."""


def _tokens(text: str) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    position, end = 0, len(text.rstrip())
    while position < end:
        match = _TOKEN.match(text, position)
        if match is None:
            raise ExpressionError(f"cannot read {text[position:]!r} in {text!r}")
        kind = match.lastgroup or ""
        word = match.group(kind)
        if kind == "name" and word in _KEYWORDS:
            kind = "operator"
        found.append((kind, word))
        position = match.end()
    return found


class _Parser:
    """Recursive descent; every method returns a function of the environment."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = _tokens(text)
        self.position = 0

    def next_operator(self, *operators: str) -> str | None:
        if self.position < len(self.tokens):
            kind, word = self.tokens[self.position]
            if kind == "operator" and word in operators:
                self.position += 1
                return word
        return None

    def whole(self) -> Compiled:
        compiled = self.either()
        if self.position != len(self.tokens):
            rest = self.tokens[self.position][1]
            raise ExpressionError(f"unexpected {rest!r} in {self.text!r}")
        return compiled

    def either(self) -> Compiled:
        left = self.both()
        while self.next_operator("or"):
            left = _or(left, self.both())
        return left

    def both(self) -> Compiled:
        left = self.negation()
        while self.next_operator("and"):
            left = _and(left, self.negation())
        return left

    def negation(self) -> Compiled:
        if self.next_operator("not"):
            operand = self.negation()
            return lambda environment: int(not operand(environment))
        return self.comparison()

    def comparison(self) -> Compiled:
        left = self.sum()
        if self.next_operator("in"):
            return _among(left, self.listing())
        operator = self.next_operator("==", "!=", "<=", ">=", "<", ">")
        return left if operator is None else _binary(operator, left, self.sum())

    def listing(self) -> list[Compiled]:
        if not self.next_operator("("):
            raise ExpressionError(f"`in` needs a list in parentheses in {self.text!r}")
        items = [self.sum()]
        while self.next_operator(","):
            items.append(self.sum())
        if not self.next_operator(")"):
            raise ExpressionError(f"a list is not closed in {self.text!r}")
        return items

    def sum(self) -> Compiled:
        left = self.product()
        while operator := self.next_operator("+", "-"):
            left = _binary(operator, left, self.product())
        return left

    def product(self) -> Compiled:
        left = self.atom()
        while operator := self.next_operator("*", "//"):
            left = _binary(operator, left, self.atom())
        return left

    def atom(self) -> Compiled:
        if self.next_operator("("):
            inner = self.either()
            if not self.next_operator(")"):
                raise ExpressionError(f"a parenthesis is not closed in {self.text!r}")
            return inner
        if self.position >= len(self.tokens):
            raise ExpressionError(f"{self.text!r} ends too early")
        kind, word = self.tokens[self.position]
        self.position += 1
        if kind == "number":
            return _constant(int(word))
        if kind == "text":
            return _constant(word)
        if kind == "name":
            return _constant(_CONSTANTS[word]) if word in _CONSTANTS else _name(word)
        raise ExpressionError(f"unexpected {word!r} in {self.text!r}")


def _constant(value: object) -> Compiled:
    return lambda environment: value


def _name(name: str) -> Compiled:
    def look_up(environment: Environment) -> object:
        try:
            return environment[name]
        except KeyError:
            raise ExpressionError(f"nothing is called {name!r} here") from None

    return look_up


def _or(left: Compiled, right: Compiled) -> Compiled:
    return lambda environment: left(environment) or right(environment)


def _and(left: Compiled, right: Compiled) -> Compiled:
    return lambda environment: left(environment) and right(environment)


def _among(left: Compiled, items: list[Compiled]) -> Compiled:
    return lambda environment: int(any(left(environment) == item(environment) for item in items))


_OPERATORS: dict[str, Callable[[int, int], int]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "//": lambda a, b: a // b,
    "<": lambda a, b: int(a < b),
    "<=": lambda a, b: int(a <= b),
    ">": lambda a, b: int(a > b),
    ">=": lambda a, b: int(a >= b),
}


def _binary(operator: str, left: Compiled, right: Compiled) -> Compiled:
    # Equality takes operands of any kind (a string, null); arithmetic and order take integers.
    if operator == "==":
        return lambda environment: int(left(environment) == right(environment))
    if operator == "!=":
        return lambda environment: int(left(environment) != right(environment))
    apply = _OPERATORS[operator]

    def calculate(environment: Environment) -> object:
        a, b = left(environment), right(environment)
        if not isinstance(a, int) or not isinstance(b, int):
            raise TypeError(f"{operator} needs two integers, not {a!r} and {b!r}")
        return apply(a, b)

    return calculate


@cache
def compile_expression(text: str) -> Compiled:
    """Compile ``text``; call the result with the names it may use.

    Raises:
        ExpressionError: at once for bad syntax; at the call for an unknown name.
        TypeError: at the call, when arithmetic meets something that is no integer.
    """
    return _Parser(text).whole()


def names_in(text: str) -> frozenset[str]:
    """The names that ``text`` refers to (used to validate rule files)."""
    return frozenset(w for kind, w in _tokens(text) if kind == "name" and w not in _CONSTANTS)
