"""The drafts that every runtime's oracle, the contracts and the simulator are compared on.

``cases()`` names each once; ``writing.write()`` puts one on disk (``write`` here is the same). Pure
Python: a runtime's environment needs nothing of this project.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

from tests.conformance import dialects, faults, fields, latent, nested, switches, writing
from tests.conformance.draft import HIDDEN, Draft, Spec, llama


@dataclass(frozen=True)
class Case:
    """One draft: ``config`` is its config.json, ``tensors`` the dtype and shape of each stored
    tensor.

    ``d2t`` holds the values of the tensor ``d2t`` in row-major order (None: no such tensor, or any
    value does). ``tags`` name the family, and ``llama``/``mla``, ``single``/``pair``.
    """

    name: str
    config: dict[str, Any]
    tensors: dict[str, Spec]
    d2t: tuple[int, ...] | None
    tags: frozenset[str]

    @property
    def target_hidden(self) -> int:
        """The width of the target model this draft asks for (``target_hidden_size``, or its
        own)."""
        inner = self.config.get("transformer_layer_config") or {}
        for held, key in (
            (self.config, "target_hidden_size"),
            (self.config, "hidden_size"),
            (inner, "hidden_size"),
        ):
            if isinstance(held.get(key), int):
                return int(held[key])
        return HIDDEN

    def values(self) -> dict[str, float]:
        """The constant that fills each tensor: its place, from 1, among the sorted names.

        Fewer than 256 tensors: every constant is exact in BF16. ``d2t`` and BOOL tensors have
        values of their own.
        """
        return {name: float(place) for place, name in enumerate(sorted(self.tensors), start=1)}


def cases() -> list[Case]:
    """Every case, each name once."""
    found: list[Case] = []
    for family, drafts, tags in _families():
        for name, draft in drafts():
            found.append(
                Case(
                    f"{family}/{name}",
                    dict(draft.fields),
                    dict(draft.tensors),
                    draft.d2t,
                    frozenset({family, *tags}),
                )
            )
    names = [case.name for case in found]
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise ValueError(f"cases named twice: {sorted(twice)}")
    return found


Drafts = Callable[[], Iterator[tuple[str, Draft]]]


def _families() -> list[tuple[str, Drafts, set[str]]]:
    return [
        ("spelling", dialects.spellings, {"llama", "single"}),
        ("class", dialects.classes, {"llama", "single"}),
        ("class", nested.drafts, {"llama", "single"}),
        ("layers", dialects.layers, {"llama", "single"}),
        ("mla", latent.drafts, {"mla", "single"}),
        ("missing", lambda: _edited(faults.missing()), {"llama", "single"}),
        ("missing layers.0", lambda: _edited(faults.missing(), "layers.0."), {"llama", "single"}),
        ("shape", lambda: _edited(faults.shapes()), {"llama", "single"}),
        ("bias", lambda: _edited(iter(switches.BIAS.items())), {"llama", "single"}),
        ("switch", lambda: _edited(iter(switches.SWITCHES.items())), {"llama", "single"}),
        ("switch layers.0", _switches_under_layers, {"llama", "single"}),
        ("vocabulary", lambda: _edited(iter(faults.VOCABULARY.items())), {"llama", "single"}),
        ("width", lambda: _edited(iter(faults.TARGET_WIDTH.items())), {"llama", "single"}),
        ("extra", lambda: _edited(iter(faults.EXTRA.items())), {"llama", "single"}),
        ("aux", fields.aux, {"llama", "single"}),
        ("dimension", fields.dimensions, {"llama", "single"}),
        ("config", fields.leftovers, {"llama", "single"}),
        ("pair", _pairs, {"llama", "pair"}),
    ]


def _edited(
    edits: Iterator[tuple[str, switches.Edit]], layer: str = "midlayer."
) -> Iterator[tuple[str, Draft]]:
    for name, edit in edits:
        draft = edit(llama())
        yield name, draft if layer == "midlayer." else draft.rename("midlayer.", layer)


def _switches_under_layers() -> Iterator[tuple[str, Draft]]:
    """The switches again with the layer names that vLLM and newer SGLang releases use
    themselves."""
    chosen = ("fc_norm flag and tensors", "q_norm and k_norm", "norm_before_fc nested")
    return _edited(((name, switches.SWITCHES[name]) for name in chosen), "layers.0.")


def _pairs() -> Iterator[tuple[str, Draft]]:
    exclusive = {
        frozenset(("draft_vocab_size null", "draft_vocab_size absent")),
        frozenset(("bias flag", "qkvo bias")),
    }
    for (first, one), (second, other) in combinations(faults.PAIRED.items(), 2):
        if frozenset((first, second)) not in exclusive:
            yield f"{first} + {second}", other(one(llama()))


def write(case: Case, folder: Path) -> Path:
    """Write the case's files into ``folder`` (made if missing); returns it."""
    return writing.write(case, folder)
