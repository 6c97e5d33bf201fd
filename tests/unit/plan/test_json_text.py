"""Changes to a JSON text: the value changes, the rest stays as it was written."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eagle3_lint.plan.json_text import with_keys, with_value, without

INDENTED = '{\n  "a": 1,\n  "nested": {\n    "b": [1, 2]\n  },\n  "z": "é"\n}\n'


@pytest.mark.parametrize(
    ("text", "pointer", "value", "expected"),
    [
        ('{"a": 1, "b": 2}', "/a", 7, '{"a": 7, "b": 2}'),
        ('{"a":1}', "/b", "x", '{"a":1, "b": "x"}'),
        ("{}", "/a", 1, '{"a": 1}'),
        (INDENTED, "/a", None, INDENTED.replace('"a": 1', '"a": null')),
        (INDENTED, "/new", 3, INDENTED.replace('"é"\n', '"é",\n  "new": 3\n')),
        (INDENTED, "/nested/c", 3, INDENTED.replace("[1, 2]\n", '[1, 2],\n    "c": 3\n')),
        (
            INDENTED,
            "/z",
            ["x"],
            INDENTED.replace('"é"', '[\n    "x"\n  ]'),
        ),
        (
            INDENTED,
            "/deep/er",
            1,
            INDENTED.replace('"é"\n', '"é",\n  "deep": {\n    "er": 1\n  }\n'),
        ),
        # Of equal keys the last one counts, so that one is changed.
        ('{"a": 1, "a": 2}', "/a", 3, '{"a": 1, "a": 3}'),
        ('{\r\n\t"a": 1\r\n}', "/b", 2, '{\r\n\t"a": 1,\r\n\t"b": 2\r\n}'),
        ('{"a": {"k": 1}}', "/a/k~1l", 2, '{"a": {"k": 1, "k/l": 2}}'),
    ],
)
def test_set(text: str, pointer: str, value: object, expected: str) -> None:
    assert with_value(text, pointer, value) == expected


@pytest.mark.parametrize(
    ("text", "pointer", "expected"),
    [
        ('{"a": 1, "b": 2}', "/a", '{"b": 2}'),
        ('{"a": 1, "b": 2}', "/b", '{"a": 1}'),
        ('{"a": 1}', "/a", "{}"),
        ('{"a": 1, "b": 3, "a": 2}', "/a", '{"b": 3}'),
        (INDENTED, "/nested", '{\n  "a": 1,\n  "z": "é"\n}\n'),
        (INDENTED, "/z", INDENTED.replace(',\n  "z": "é"', "")),
        (INDENTED, "/none", INDENTED),
    ],
)
def test_remove(text: str, pointer: str, expected: str) -> None:
    assert without(text, pointer) == expected


def test_keys_can_be_swapped() -> None:
    text = '{"m": {"b": "2", "a": "1", "c": "3"}}'
    swapped = with_keys(text, "/m", {"a": "b", "b": "a", "none": "x", "c": "longer name"})
    assert swapped == '{"m": {"a": "2", "b": "1", "longer name": "3"}}'


def test_pointers_that_lead_nowhere_are_refused() -> None:
    with pytest.raises(ValueError, match="no object"):
        with_value('{"a": 1}', "/a/b", 2)
    with pytest.raises(ValueError, match="whole"):
        with_value("{}", "", 2)
    with pytest.raises(ValueError, match="no member"):
        without('{"a": [1]}', "/a/0")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=12,
)
OBJECTS = st.dictionaries(st.text(), JSON, max_size=4)


def _dump(data: object, indent: int | None) -> str:
    return json.dumps(data, indent=indent, ensure_ascii=False)


@settings(deadline=None)
@given(OBJECTS, st.text(), JSON, st.sampled_from([None, 0, 1, 2, 4]))
def test_setting_means_what_it_means_to_a_dict(
    data: dict[str, Any], key: str, value: object, indent: int | None
) -> None:
    pointer = "/" + key.replace("~", "~0").replace("/", "~1")
    text = with_value(_dump(data, indent), pointer, value)
    assert json.loads(text) == {**data, key: value}
    assert list(json.loads(text)) == list({**data, key: value})
    removed = json.loads(without(text, pointer))
    assert removed == {k: v for k, v in data.items() if k != key}
