"""JSON as serde_json takes it, the parser inside the safetensors library.

It is stricter than :mod:`json`: no NaN, no lone surrogates, no number beyond a double, no more
than 127 levels. What it accepts is kept as it was written: numbers as text, objects as pairs.
"""

from __future__ import annotations

import json
import re
from math import isinf
from typing import Any

#: serde_json refuses the 128th level of nesting (de.rs, ``remaining_depth: 128``).
MOST_LEVELS = 127

_STRING = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"')
_BRACKET = re.compile(r"[][{}]")
_NUMBER = re.compile(r"-?(\d+)(?:\.(\d+))?(?:[eE]([-+]?)(\d+))?")
_LARGEST_EXPONENT = 308
_WORD = 2**64


class StrictJsonError(ValueError):
    """serde_json would refuse the text; the message says why, in one clause."""


class Number:
    """A number, kept as text: an int would lose ``-0``, a float the digits of a large integer."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        if _out_of_range(text):
            raise StrictJsonError(f"the number {text[:24]} is out of range")
        self.text = text


class Pairs(list[tuple[str, Any]]):
    """An object as its pairs, so that equal keys stay visible."""


def parse(text: str) -> Any:
    """Parse JSON; objects become :class:`Pairs`, numbers :class:`Number`.

    Raises:
        StrictJsonError: serde_json would refuse it.
    """
    if _levels(text) > MOST_LEVELS:
        raise StrictJsonError(f"it nests more than {MOST_LEVELS} levels deep")
    try:
        parsed = json.loads(
            text,
            object_pairs_hook=Pairs,
            parse_int=Number,
            parse_float=Number,
            parse_constant=_constant,
        )
    except json.JSONDecodeError as error:
        where = f"line {error.lineno} column {error.colno}"
        raise StrictJsonError(f"{error.msg} at {where}") from None
    if "\\u" in text:
        _refuse_lone_surrogates(parsed)
    return parsed


def shown(value: Any) -> str:
    """A parsed value in a few words, for a message."""
    if isinstance(value, Number):
        return value.text if len(value.text) <= 24 else f"{value.text[:20]}…"
    if isinstance(value, str):
        return f"the string {value[:20]!r}"
    if isinstance(value, list):
        return "an object" if isinstance(value, Pairs) else f"a list of {len(value)}"
    return {None: "null", True: "true", False: "false"}[value]


def _constant(text: str) -> Any:
    raise StrictJsonError(f"{text} is no JSON value")


def _levels(text: str) -> int:
    """How deep the brackets nest, those in strings aside; 0 where that cannot matter."""
    if text.count("[") + text.count("{") <= MOST_LEVELS:
        return 0
    deepest = depth = 0
    for bracket in _BRACKET.findall(_STRING.sub("", text)):
        depth += 1 if bracket in "[{" else -1
        deepest = max(deepest, depth)
    return deepest


def _out_of_range(text: str) -> bool:
    """Whether serde_json finds that a number exceeds a double (de.rs, ``f64_from_parts``).

    It keeps the leading digits that fit 64 bits and scales them by a power of ten, rounding twice,
    so that its border is not quite the largest double.
    """
    if len(text) < _LARGEST_EXPONENT and "e" not in text and "E" not in text:
        return False
    match = _NUMBER.fullmatch(text)
    assert match is not None, "json hands over nothing else"
    whole, fraction, sign, power = match.groups(default="")
    digits, left_out = _leading(0, whole)
    digits, ignored = _leading(digits, fraction)
    # Nine digits are more than any header can balance with zeros; all of them may be too many.
    power = power.lstrip("0")
    shift = int(power or 0) if len(power) < 10 else 10**10
    exponent = left_out - (len(fraction) - ignored) + (-shift if sign == "-" else shift)
    if digits == 0 or exponent < 0:
        return False
    return exponent > _LARGEST_EXPONENT or isinf(digits * float(f"1e{exponent}"))


def _leading(digits: int, more: str) -> tuple[int, int]:
    """``digits`` continued by those of ``more`` that 64 bits hold, and how many are left out."""
    for used, digit in enumerate(more):
        longer = digits * 10 + int(digit)
        if longer >= _WORD:
            return digits, len(more) - used
        digits = longer
    return digits, 0


def _refuse_lone_surrogates(value: Any) -> None:
    if isinstance(value, str):
        if any("\ud800" <= character <= "\udfff" for character in value):
            raise StrictJsonError("a string holds half of a surrogate pair")
    elif isinstance(value, Pairs):
        for key, inner in value:
            _refuse_lone_surrogates(key)
            _refuse_lone_surrogates(inner)
    elif isinstance(value, list):
        for inner in value:
            _refuse_lone_surrogates(inner)
