"""The target model's layers as boxes, and the aux states that were trained and are fed.

Aux state k is the residual stream after k layers: a mark stands on the edge before box k.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from eagle3_lint.frozen import frozen
from eagle3_lint.report.html.groups import Group
from eagle3_lint.report.html.markup import Markup, joined, lines, short, tag
from eagle3_lint.report.model import AuxReport, CheckpointReport, Result

#: More boxes than this are too thin to be seen.
_MOST_LAYERS = 300
#: Room left and right of the boxes, in hundredths of the width, which is the unit of every x here.
_ROOM = 3.0
_TICKS, _BOXES, _LANE, _LABEL = 16, 16, 50, 60
#: Marks closer than this share a label.
_CLOSE = 7.0
_READ_FROM = {
    "nested": "in eagle_config", "top": "at the top level", "default": "nowhere: its default",
}  # fmt: skip
_BASIS = {
    "user": "as the user says",
    "producer": "by the producer's convention",
    "default": "the usual choice of trainers",
    "ambiguous": "as far as its ids say",
}

States = tuple[int, ...]


@frozen
class Axis:
    """Where things are along the layers, in hundredths of the width."""

    layers: int

    @property
    def width(self) -> float:
        return (100 - 2 * _ROOM) / self.layers

    def edge(self, state: int) -> float:
        """The edge after ``state`` layers; box i lies from edge i to edge i + 1."""
        return _ROOM + state * self.width


def layer_diagram(checkpoint: CheckpointReport, layers: int | None, name: str) -> Markup:
    """The section.

    Args:
        layers: decoder layers of the target model, if they are known.
        name: what identities in the page begin with.
    """
    shown = [r for r in checkpoint.results if r.aux is not None]
    aux = shown[0].aux if shown else None
    if aux is None:
        return tag("p", "No target says which aux states it feeds.")
    rows = [(g, g.first.aux) for g in _by_states(shown)]
    if layers is None or not 0 < layers <= _MOST_LAYERS:
        why = "are not known" if layers is None else f"are {layers:,}, which is no picture"
        picture = tag("p", f"The layers of the target model {why}.", class_="quiet")
    else:
        picture = _figure(aux.trained_on, rows, Axis(layers), name)
    return lines(picture, _table(aux, rows))


def _by_states(results: Sequence[Result]) -> Iterator[Group]:
    """Neighbouring targets that feed the same states, read from the same place."""
    for _, found in groupby(results, key=_feeds):
        yield Group(tuple(found))


def _feeds(result: Result) -> tuple[object, ...]:
    target, aux = result.target, result.aux
    read = (aux.states, aux.ids, aux.read_from) if aux is not None else None
    return target.runtime, target.sources, target.model, read


def _listed(states: Sequence[int] | None) -> str:
    return "not known" if states is None else ", ".join(map(str, states)) or "none"


def _same(fed: States | None, trained: States | None) -> str:
    if fed is None or trained is None:
        return "not known"
    if fed == trained:
        return "yes"
    return "in another order" if set(fed) == set(trained) else "no"


# -- the picture --------------------------------------------------------------------------------


def _figure(
    trained: States | None,
    rows: Sequence[tuple[Group, AuxReport | None]],
    axis: Axis,
    name: str,
) -> Markup:
    fed = [(g.label, a.states if a else None, trained) for g, a in rows]
    lanes = [("trained on", trained, None), *fed]
    height = _TICKS + _BOXES + _LANE * len(lanes) + 6
    words = "; ".join(f"{label}: {_listed(states)}" for label, states, _ in lanes)
    parts = (
        tag("title", f"Aux states along {axis.layers} layers", id=f"{name}-title"),
        tag("desc", words, id=f"{name}-desc"),
        joined(_boxes(axis)),
        joined(_guides(trained or (), axis, height)),
        *(
            _lane(*lane, axis, _TICKS + _BOXES + _LANE * row, "trained" if row == 0 else "unsure")
            for row, lane in enumerate(lanes)
        ),
    )
    picture = tag(
        "svg",
        lines(*parts),
        class_="layers",
        width="100%",
        height=height,
        role="img",
        aria_labelledby=f"{name}-title {name}-desc",
    )
    keys = (
        (_key("unsure", "fed; what was trained on is not known"),)
        if trained is None
        else (
            _key("trained", "trained on"),
            _key("hit", "fed, and trained on"),
            _key("miss", "fed, never trained on"),
        )
    )
    caption = tag(
        "figcaption",
        tag("p", *keys),
        f"Boxes are the {axis.layers} layers of the target model. Aux state k is the residual"
        " stream after k layers, so its mark stands between box k − 1 and box k.",
    )
    return tag("figure", picture, caption)


def _key(kind: str, meaning: str) -> Markup:
    return tag(
        "span",
        tag("svg", _shape(kind), class_="key", viewBox="-8 -8 16 16", aria_hidden="true"),
        meaning,
        class_="legend-entry",
    )


def _percent(x: float) -> str:
    return f"{x:.3f}".rstrip("0").rstrip(".") + "%"


def _boxes(axis: Axis) -> Iterator[Markup]:
    for layer in range(axis.layers):
        kind = "box odd" if layer % 2 else "box"
        yield tag(
            "rect",
            class_=kind,
            x=_percent(axis.edge(layer)),
            y=_TICKS,
            width=_percent(axis.width),
            height=_BOXES,
        )
    step = next(s for s in (1, 2, 5, 10, 20, 50) if axis.layers <= 8 * s)
    for layer in range(0, axis.layers, step):
        middle = axis.edge(layer) + axis.width / 2
        yield tag("text", str(layer), class_="tick", x=_percent(middle), y=_TICKS - 4)


def _guides(states: Sequence[int], axis: Axis, height: int) -> Iterator[Markup]:
    for state in _drawn(states, axis):
        x = _percent(axis.edge(state))
        yield tag("line", class_="guide", x1=x, x2=x, y1=_TICKS, y2=height)


def _drawn(states: Sequence[int], axis: Axis) -> list[int]:
    return [s for s in states if 0 <= s <= axis.layers]


def _lane(
    label: str, states: States | None, trained: States | None, axis: Axis, top: int, alone: str
) -> Markup:
    """A label, and below it the marks with their numbers.

    Args:
        trained: what to hold the states against; None for the kind of mark that ``alone`` says.
    """
    drawn = _drawn(states or (), axis)
    beyond = [s for s in states or () if s not in drawn]
    words = short(label, _LABEL) + ("" if states is not None else ": not known")
    words += f", and no such state: {short(_listed(beyond), _LABEL)}" if beyond else ""
    track = top + 28
    kinds = (_kind(s, trained) if trained is not None else alone for s in drawn)
    left, right = _percent(axis.edge(0)), _percent(axis.edge(axis.layers))
    return lines(
        tag("text", words, class_="lane", x=_percent(_ROOM), y=top + 15),
        tag("line", class_="track", x1=left, x2=right, y1=track, y2=track),
        *(_mark(state, kind, axis, track) for state, kind in zip(drawn, kinds, strict=True)),
        *_numbers(drawn, axis, track + 17),
    )


def _kind(state: int, trained: States) -> str:
    return "hit" if state in trained else "miss"


def _mark(state: int, kind: str, axis: Axis, y: int) -> Markup:
    # An inner picture can stand at a share of the width, a path cannot.
    shape = lines(tag("title", _meaning(state, axis)), _shape(kind))
    return tag(
        "svg", shape, x=_percent(axis.edge(state)), y=y, overflow="visible", data_state=state
    )


def _meaning(state: int, axis: Axis) -> str:
    if state == 0:
        return "aux state 0: the embedding, input of layer 0"
    after = f"aux state {state}: output of layer {state - 1}"
    return after if state == axis.layers else f"{after}, input of layer {state}"


def _shape(kind: str) -> Markup:
    paths = {
        "trained": "M0-6L6 0L0 6L-6 0Z",
        "miss": "M-5-5L5 5M5-5L-5 5",
        "unsure": "M-5 0H5M0-5V5",
    }
    if kind == "hit":
        return tag("circle", class_="state hit", r=6)
    return tag("path", class_=f"state {kind}", d=paths[kind])


def _numbers(drawn: Sequence[int], axis: Axis, y: int) -> Iterator[Markup]:
    """The states' numbers; one label for those that stand too close for two."""
    together: list[list[int]] = []
    for state in sorted(set(drawn)):
        if together and axis.edge(state) - axis.edge(together[-1][-1]) < _CLOSE:
            together[-1].append(state)
        else:
            together.append([state])
    for group in together:
        middle = (axis.edge(group[0]) + axis.edge(group[-1])) / 2
        yield tag("text", ", ".join(map(str, group)), class_="number", x=_percent(middle), y=y)


# -- the same in words --------------------------------------------------------------------------


def _table(aux: AuxReport, rows: Sequence[tuple[Group, AuxReport | None]]) -> Markup:
    def body() -> Iterator[Markup]:
        for group, found in rows:
            if found is None:
                continue
            cells = (
                _listed(found.ids),
                _READ_FROM[found.read_from],
                _listed(found.states),
                _same(found.states, found.trained_on),
            )
            # Where there is no room for columns, each value has its label beside it.
            values = (tag("td", c, data_label=h) for c, h in zip(cells, heads[1:], strict=True))
            yield tag("tr", tag("th", group.label, scope="row"), *values)

    heads = ("Target", "Ids", "Read", "Aux states fed", "As trained")
    table = tag(
        "table",
        tag("thead", tag("tr", *(tag("th", h, scope="col") for h in heads))),
        tag("tbody", joined(body(), "\n")),
        class_="aux",
    )
    return lines(_trained(aux), table)


def _trained(aux: AuxReport) -> Markup:
    if aux.trained_on is not None:
        states = tag("b", _listed(aux.trained_on))
        return tag("p", "Trained on aux states ", states, f" ({_BASIS[aux.basis]}).")
    ambiguous = aux.basis == "ambiguous"
    why = "the ids can be read both ways" if ambiguous else "the target model's layers are not"
    return tag("p", f"Which aux states it was trained on is not known: {why}.")
