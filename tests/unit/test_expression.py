"""The language of shapes and conditions: its grammar, and that it cannot do anything else."""

from __future__ import annotations

import pytest

from eagle3_lint.contract.expression import ExpressionError, compile_expression, names_in


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1 + 2 * 3", 7),  # the product binds tighter
        ("(1 + 2) * 3", 9),
        ("7 // 2 - 1", 2),  # left to right: 3 - 1
        ("10 - 3 - 2", 5),
        ("heads * head_dim", 64),
        ("hidden == 64", 1),
        ("hidden != 64", 0),
        ("kind == 'llama'", 1),
        ("nothing == null", 1),
        ("nothing or 3", 3),
        ("zero or heads", 8),
        ("heads and hidden", 64),
        ("not zero", 1),
        ("not heads == 8", 0),  # not (heads == 8), as in Python
        ("true and false", False),
        ("kind in ('mistral', 'llama')", 1),
        ("kind in ('mistral', 'qwen2')", 0),
        ("heads - 1 in (6 + 1) and zero in (0)", 1),
        ("not kind in ('llama')", 0),
        ("nothing in (null, 'x')", 1),
    ],
)
def test_value(text: str, value: object) -> None:
    names = {"heads": 8, "head_dim": 8, "hidden": 64, "kind": "llama", "nothing": None, "zero": 0}
    assert compile_expression(text)(names) == value


@pytest.mark.parametrize(
    "text",
    [
        "",
        "1 +",
        "(1",
        "1 2",
        "a.b",
        "a[0]",
        "f(x",
        "__import__('os')",
        "1 / 2",
        "a ** 2",
        "a = 1",
        "a in",
        "a in b",
        "a in ()",
        "a in (1",
        "(1, 2)",
    ],
)
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(ExpressionError):
        compile_expression(text)({"a": 1, "f": 1, "__import__": 1})


def test_an_unknown_name_is_said() -> None:
    with pytest.raises(ExpressionError, match="hiden"):
        compile_expression("hiden + 1")({"hidden": 1})


def test_arithmetic_with_null_raises_as_in_a_constructor() -> None:
    with pytest.raises(TypeError, match="None"):
        compile_expression("width * 3")({"width": None})


def test_names() -> None:
    assert names_in("(heads + 2 * kv) * d and not null == 'x'") == {"heads", "kv", "d"}
