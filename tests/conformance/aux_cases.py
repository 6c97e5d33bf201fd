"""Draft configurations that name aux hidden states in every way that was seen or is conceivable.

Data alone, the same for every runtime: each case adds keys to the config.json of a draft. Ids
depend on the number of the target model's decoder layers, names of cases do not.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

IDS: Final = "eagle_aux_hidden_state_layer_ids"
SWITCH: Final = "use_aux_hidden_state"

#: Kinds of cases; the part of a name before its first slash.
GROUPS: Final = ("place", "eagle_config", "ids", "odd", "no list", "switch", "stray")

Fragment = dict[str, Any]


@dataclass(frozen=True)
class AuxCase:
    """Keys of a draft's config.json.

    Attributes:
        name: group and what is particular, ``place/nested and top, different``.
        fragment: the keys, as JSON would give them.
    """

    name: str
    fragment: Mapping[str, Any]


def aux_cases(layers: int) -> list[AuxCase]:
    """All cases, for a target model of so many decoder layers. Names are unique."""
    made = (_places(layers), _mappings(layers), _lists(layers), _switches(layers), _strays(layers))
    return [AuxCase(name, fragment) for cases in made for name, fragment in cases]


def _id_lists(n: int) -> dict[str, list[int]]:
    """Lists of integers, reasonable ones and others."""
    return {
        "outputs, first 1": [1, n // 2 - 1, n - 4],
        "states, first 2": [2, n // 2, n - 3],
        "first 0": [0, n // 2, n - 3],
        "first 3": [3, n // 2 + 1, n - 3],
        "1 is not the first": [0, 1, n - 4],
        "middle": [4, 9, n - 9],
        "neighbours": [5, 6, 7],
        "last n - 2": [2, n // 2, n - 2],
        "last n - 1": [2, n // 2, n - 1],
        "last n - 1, first 1": [1, n // 2, n - 1],
        "last n": [2, n // 2, n],
        "last n, first 1": [1, n // 2, n],
        "n is not the last": [n, 2, n // 2],
        "last n + 1": [2, n // 2, n + 1],
        "one far out of range": [2, n // 2, n + 40],
        "all out of range": [n + 1, n + 2, n + 40],
        "negative last": [2, n // 2, -3],
        "minus one": [2, n // 2, -1],
        "minus two": [2, n // 2, -2],
        "all negative": [-10, -5, -2],
        "below minus n": [2, n // 2, -n - 5],
        "unsorted": [n // 2, 2, n - 3],
        "descending": [n - 4, n // 2 - 1, 1],
        "duplicate": [2, n // 2, n // 2],
        "the same three times": [2, 2, 2],
        "duplicate, unsorted": [n - 4, 2, n - 4],
        "one id": [n // 2],
        "one id, 1": [1],
        "one id, n": [n],
        "two ids": [2, n - 3],
        "two ids, first 1": [1, n - 4],
        "five ids": [2, 5, n // 2, n - 6, n - 3],
        "five ids, first 1": [1, 5, n // 2, n - 6, n - 3],
        "every layer": list(range(n)),
    }


def _odd_lists(n: int) -> dict[str, list[Any]]:
    """Lists of something else than integers."""
    return {
        "strings": ["2", str(n // 2), str(n - 3)],
        "one string among integers": [2, str(n // 2), n - 3],
        "floats": [2.0, float(n // 2), float(n - 3)],
        "floats, first 1": [1.0, float(n // 2 - 1), float(n - 4)],
        "floats between integers": [1.5, n // 2 + 0.5, n - 3.5],
        "one float among integers": [2, float(n // 2), n - 3],
        "booleans": [True, False, True],
        "a null among integers": [2, None, n - 3],
        "lists of one": [[2], [n // 2], [n - 3]],
    }


#: Instead of a list of ids.
NO_LISTS: Final[Mapping[str, Any]] = {
    "null": None,
    "empty list": [],
    "empty string": "",
    "a string": "2,12,21",
    "a number": 2,
    "zero": 0,
    "true": True,
    "false": False,
    "a mapping": {"0": 2, "1": 12, "2": 21},
    "empty mapping": {},
}

#: Instead of a mapping under ``eagle_config``.
NO_MAPPINGS: Final[Mapping[str, Any]] = {
    "null": None,
    "empty mapping": {},
    "empty list": [],
    "a list": [2, 12, 21],
    "a string": "eagle3",
    "empty string": "",
    "a number": 3,
    "true": True,
    "false": False,
}

STRAY_KEYS: Final = (
    "aux_hidden_state_layer_ids",  # what speculators' own configurations have
    "aux_hidden_states_layer_ids",
    "eagle_aux_hidden_states_layer_ids",
    "target_layer_ids",
    "target_hidden_layer_ids",
    "layer_ids",
)

Cases = Iterator[tuple[str, Fragment]]


def nested(ids: Any, **others: Any) -> Fragment:
    """``eagle_config`` with these ids."""
    return {"eagle_config": {IDS: ids, **others}}


def usual(n: int) -> list[int]:
    """Ids that are no runtime's default and that all policies but one read alike."""
    return [4, n // 2, n - 5]


def other(n: int) -> list[int]:
    """Ids none of which is among ``usual``, under any policy."""
    return [7, n // 2 + 2, n - 8]


def _places(n: int) -> Cases:
    yield "place/none", {}
    yield "place/nested", nested(usual(n))
    yield "place/top", {IDS: usual(n)}
    yield "place/nested and top, equal", {**nested(usual(n)), IDS: usual(n)}
    yield "place/nested and top, different", {**nested(usual(n)), IDS: other(n)}
    yield "place/nested, top null", {**nested(usual(n)), IDS: None}
    yield "place/nested, top empty", {**nested(usual(n)), IDS: []}
    yield "place/top, nested null", {**nested(None), IDS: usual(n)}
    yield "place/top, nested empty", {**nested([]), IDS: usual(n)}


def _mappings(n: int) -> Cases:
    for name, value in NO_MAPPINGS.items():
        yield f"eagle_config/{name}", {"eagle_config": value}
        yield f"eagle_config/{name}, ids on top", {"eagle_config": value, IDS: usual(n)}


def _lists(n: int) -> Cases:
    groups: dict[str, Mapping[str, Any]] = {
        "ids": _id_lists(n),
        "odd": _odd_lists(n),
        "no list": NO_LISTS,
    }
    for group, lists in groups.items():
        for name, ids in lists.items():
            yield f"{group}/nested, {name}", nested(ids)
            yield f"{group}/top, {name}", {IDS: ids}


def _switches(n: int) -> Cases:
    values = {"true": True, "false": False, "null": None, "0": 0, "the string false": "false"}
    for name, on in values.items():
        switch = {SWITCH: on}
        yield f"switch/nested {name}, ids nested", nested(usual(n), **switch)
        yield f"switch/nested {name}, ids on top", {"eagle_config": switch, IDS: usual(n)}
        yield f"switch/nested {name}, no ids", {"eagle_config": switch}
        yield f"switch/top {name}, ids nested", {**nested(usual(n)), **switch}
        yield f"switch/top {name}, ids on top", {IDS: usual(n), **switch}
        yield f"switch/top {name}, no ids", switch
    yield "switch/nested true, top false", {**nested(usual(n), **{SWITCH: True}), SWITCH: False}
    yield "switch/nested false, top true", {**nested(usual(n), **{SWITCH: False}), SWITCH: True}


def _strays(n: int) -> Cases:
    """Keys of other trainers and of mistakes; and a count of states, with and without ids."""
    for key in STRAY_KEYS:
        yield f"stray/top {key}", {key: other(n)}
        yield f"stray/top {key}, null", {key: None}
        yield f"stray/nested {key}", {"eagle_config": {key: other(n)}}
        yield f"stray/top {key} beside nested ids", {**nested(usual(n)), key: other(n)}
        yield f"stray/top {key} beside top ids", {IDS: usual(n), key: other(n)}
    yield "stray/dflash_config", {"dflash_config": {"target_layer_ids": other(n)}}
    for count in (1, 3, 5):
        counted = {"num_aux_hidden_states": count}
        yield f"stray/num_aux_hidden_states {count}", counted
        yield (
            f"stray/num_aux_hidden_states {count} beside nested ids",
            {
                **nested(usual(n)),
                **counted,
            },
        )
