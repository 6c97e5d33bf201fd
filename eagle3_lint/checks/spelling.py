"""Would the same tensors load under other names? The search behind every finding about prefixes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from eagle3_lint.checks.subject import Subject
from eagle3_lint.facts import bare
from eagle3_lint.frozen import frozen
from eagle3_lint.simulate.result import Load

#: ``midlayer.`` comes first: where several spellings serve, it is the one that every release reads.
_LAYER_SPELLINGS = ("midlayer.", "layers.{layer}.", "midlayer.{layer}.")
_LAYER = re.compile(r"^(?:midlayer|layers)\.(?:(\d+)\.)?(.*)$")
#: Tensors that stand outside the decoder model and never take its prefix.
_OUTSIDE = re.compile(r"(?:^|\.)(d2t|t2d|lm_head\.\w+|mask_hidden)$")


@frozen
class Respelling:
    """Other names for some tensors, and what the loader does with those.

    Attributes:
        names: old name → new name, only for tensors whose name changes.
        load: the load under the new names.
    """

    names: Mapping[str, str]
    load: Load

    def beginnings(self) -> tuple[str, str]:
        """What the names begin with and what they should begin with, for a message."""
        old, new = apart(*next(iter(self.names.items())))
        return _whole_steps(list(self.names), old), _whole_steps(list(self.names.values()), new)


def apart(old: str, new: str) -> tuple[str, str]:
    """Two names without the ending that they share."""
    while old and new and old[-1] == new[-1]:
        old, new = old[:-1], new[:-1]
    return old, new


def _whole_steps(names: Sequence[str], beginning: str) -> str:
    """The shared beginning of ``names`` up to a dot, when it is longer than ``beginning``."""
    shared = names[0]
    for name in names[1:]:
        while not name.startswith(shared):
            shared = shared[:-1]
    shared = shared[: shared.rfind(".") + 1]
    return shared or beginning


def _spell(name: str, layer_spelling: str, front: str, norms: bool) -> str:
    """A tensor's name in one spelling; ``norms`` calls a later layer's first norm hidden_norm."""
    core = bare(name)
    outside = _OUTSIDE.search(core)
    if outside is not None:
        return outside[1]
    match = _LAYER.match(core)
    if match is None:
        return front + core
    layer, rest = int(match[1] or 0), match[2]
    if layer and "{layer}" not in layer_spelling:
        layer_spelling = "layers.{layer}."
    if norms and layer and rest == "input_layernorm.weight":
        rest = "hidden_norm.weight"
    elif norms and layer and rest == "hidden_norm.weight":
        rest = "input_layernorm.weight"
    return front + layer_spelling.replace("{layer}", str(layer)) + rest


def spellings(names: Sequence[str]) -> Iterator[dict[str, str]]:
    """Every usual spelling of the names, each as old name → new name for those that change."""
    for norms in (False, True):
        for front in ("", "model."):
            for layer_spelling in _LAYER_SPELLINGS:
                spelled = {n: _spell(n, layer_spelling, front, norms) for n in names}
                if len(set(spelled.values())) == len(names):
                    yield {old: new for old, new in spelled.items() if old != new}


def badness(load: Load) -> tuple[int, int]:
    """How many tensors find no parameter by their name, and how many parameters stay empty."""
    nameless = sum(failure.about == "name" for failure in load.failures)
    return len(load.dropped) + nameless, len(load.unfilled)


def misfits(load: Load) -> int:
    """How many tensors do not fit the parameter that their name leads to."""
    return sum(f.about == "shape" for f in load.failures) + len(load.altered)


def better_spelling(subject: Subject) -> Respelling | None:
    """The names under which the target loads most of this draft, if its own are not the best.

    A spelling is better when fewer tensors are left over, then when fewer parameters stay empty.
    It must not put a tensor where its shape does not fit: shapes say that a name is meant.
    """
    load = subject.load
    assert load is not None
    best: Respelling | None = None
    least, most = badness(load), misfits(load)
    if least == (0, 0):
        return None
    for names in spellings(list(subject.facts.tensors)):
        # Once everything fits, only a spelling with fewer changes could be better.
        if not names or (best is not None and least == (0, 0) and len(names) >= len(best.names)):
            continue
        respelled = subject.played(names)
        if not respelled.parameters or misfits(respelled) > most:
            continue
        left = badness(respelled)
        fewer = best is not None and left == least and len(names) < len(best.names)
        if left < least or fewer:
            best, least = Respelling(names, respelled), left
    return best
