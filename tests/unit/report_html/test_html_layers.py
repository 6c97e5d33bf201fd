"""Marks stand at the edges of the layers that they speak of: arithmetic, written out here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal
from xml.etree.ElementTree import Element

import pytest

from eagle3_lint.report.html.input import HtmlInput
from eagle3_lint.report.html.layers import layer_diagram
from eagle3_lint.report.model import (
    AuxReport,
    CheckpointReport,
    ProducerReport,
    Report,
    Result,
    TargetReport,
)
from tests.unit.report_html.pages import by_class, text_of, tree

Page = tuple[Report, HtmlInput, str]
States = tuple[int, ...]


def result(
    fed: States | None, trained: States | None, release: str = "1.0", runtime: str = "sglang"
) -> Result:
    basis: Literal["producer", "ambiguous"] = "producer" if trained is not None else "ambiguous"
    aux = AuxReport(fed or (), "nested", fed, trained, basis)
    return Result(TargetReport(runtime, release, "m"), "serves", None, aux, ())


def diagram(results: Sequence[Result], layers: int | None) -> Element:
    whole = CheckpointReport("d", ProducerReport("x", None, "unknown"), "midlayer", tuple(results))
    return tree(f"<div>{layer_diagram(whole, layers, 'n')}</div>")


def number(percent: str | None) -> float:
    assert percent is not None
    assert percent.endswith("%")
    return float(percent[:-1])


def boxes(root: Element) -> list[Element]:
    return by_class(root, "box")


def marks(root: Element) -> list[list[tuple[int, str, float]]]:
    """For each lane, state, kind and place of its marks."""
    lanes: dict[str, list[tuple[int, str, float]]] = {}
    for mark in root.iter("svg"):
        state = mark.get("data-state")
        if state is None:
            continue
        (shape,) = by_class(mark, "state")
        kind = shape.get("class", "").split()[1]
        lanes.setdefault(mark.get("y", ""), []).append((int(state), kind, number(mark.get("x"))))
    return [lanes[y] for y in sorted(lanes, key=int)]


@pytest.mark.parametrize("layers", [1, 8, 28, 61, 126])
def test_boxes_fill_the_width_side_by_side(layers: int) -> None:
    drawn = boxes(diagram([result((1,), (1,))], layers))
    assert len(drawn) == layers
    lefts = [number(b.get("x")) for b in drawn]
    widths = {number(b.get("width")) for b in drawn}
    assert len(widths) == 1
    (width,) = widths
    # What is left and right of them is the same, and between them there is nothing.
    room = lefts[0]
    assert width == pytest.approx((100 - 2 * room) / layers, abs=1e-3)
    for i, left in enumerate(lefts):
        assert left == pytest.approx(room + i * (100 - 2 * room) / layers, abs=1e-3)


def test_a_mark_stands_before_the_box_of_its_number() -> None:
    """State k is the residual stream after k layers: the left edge of box k, of 0 to N - 1."""
    root = diagram([result((0, 30, 61), (0, 30, 61))], 61)
    lefts = [number(b.get("x")) for b in boxes(root)]
    right = lefts[-1] + number(boxes(root)[-1].get("width"))
    trained, fed = marks(root)
    assert [(s, kind) for s, kind, _ in trained] == [(s, "trained") for s in (0, 30, 61)]
    assert [x for *_, x in trained] == pytest.approx([lefts[0], lefts[30], right], abs=2e-3)
    # What is fed as trained coincides with it.
    assert [(s, kind) for s, kind, _ in fed] == [(s, "hit") for s in (0, 30, 61)]
    assert [x for *_, x in fed] == [x for *_, x in trained]
    guides = [number(g.get("x1")) for g in by_class(root, "guide")]
    assert guides == [x for *_, x in trained]


def test_one_layer_too_far_is_one_box_too_far() -> None:
    root = diagram([result((3, 31, 59), (2, 30, 58))], 61)
    width = number(boxes(root)[0].get("width"))
    trained, fed = marks(root)
    assert [kind for _, kind, _ in fed] == ["miss"] * 3
    assert [b[2] - a[2] for a, b in zip(trained, fed, strict=True)] == pytest.approx(
        [width] * 3, abs=2e-3
    )


def test_the_readme_s_draft(kimi_page: Page) -> None:
    """Its README example: 0.5.9 and 0.5.12 feed 3, 31, 59 for ids 2, 30, 58; trained on those."""
    root = tree(kimi_page[2])
    (picture,) = by_class(root, "layers")
    assert len(boxes(picture)) == 61
    found = [[(state, kind) for state, kind, _ in lane] for lane in marks(picture)]
    assert found[0] == [(2, "trained"), (30, "trained"), (58, "trained")]
    # Both SGLang releases share a lane; vLLM's default is what trainers take.
    assert found[1] == [(3, "miss"), (31, "miss"), (59, "miss")]
    assert found[2] == [(2, "hit"), (30, "hit"), (58, "hit")]
    labels = [text_of(t) for t in by_class(picture, "lane")]
    assert labels == ["trained on", "sglang 0.5.9, 0.5.12", "vllm 0.33.0"]


def test_the_same_in_words(kimi_page: Page) -> None:
    root = tree(kimi_page[2])
    (table,) = by_class(root, "aux")
    rows = [[text_of(cell) for cell in row] for row in table.iter("tr")][1:]
    assert rows == [
        ["sglang 0.5.9, 0.5.12", "2, 30, 58", "in eagle_config", "3, 31, 59", "no"],
        ["vllm 0.33.0", "none", "nowhere: its default", "2, 30, 58", "yes"],
    ]
    (picture,) = by_class(root, "layers")
    assert picture.get("role") == "img"
    (told,) = picture.iter("desc")
    assert "sglang 0.5.9, 0.5.12: 3, 31, 59" in text_of(told)


def test_another_order_is_no_other_place() -> None:
    root = diagram([result((2, 30, 58), (58, 2, 30))], 61)
    assert {kind for _, kind, _ in marks(root)[1]} == {"hit"}
    assert "in another order" in text_of(root)


def test_what_was_trained_is_not_known() -> None:
    root = diagram([result((2, 30, 58), None)], 61)
    (fed,) = marks(root)
    assert {kind for _, kind, _ in fed} == {"unsure"}
    assert "trained on: not known" in text_of(root)
    assert by_class(root, "guide") == []


def test_a_state_that_the_model_does_not_have_is_said_and_not_drawn() -> None:
    root = diagram([result((2, 9, 400), (-1, 2, 9))], 8)
    trained, fed = marks(root)
    assert [s for s, *_ in trained] == [2]
    assert [s for s, *_ in fed] == [2]
    labels = [text_of(t) for t in by_class(root, "lane")]
    assert labels == ["trained on, and no such state: -1, 9",
                      "sglang 1.0, and no such state: 9, 400"]  # fmt: skip


def test_neighbours_that_feed_the_same_share_a_lane() -> None:
    results = [
        result((2, 4), (2, 4), "1.0"), result((2, 4), (2, 4), "1.1"), result((3, 4), (2, 4), "1.2"),
        result((3, 4), (2, 4), "1.2", "vllm"),
    ]  # fmt: skip
    labels = [text_of(t) for t in by_class(diagram(results, 8), "lane")]
    assert labels == ["trained on", "sglang 1.0, 1.1", "sglang 1.2", "vllm 1.2"]


def test_numbers_too_close_for_two_labels_share_one() -> None:
    root = diagram([result((2, 3, 30), (2, 3, 30))], 61)
    assert [text_of(t) for t in by_class(root, "number")] == ["2, 3", "30"] * 2
    # Of eight layers each has room for its own.
    root = diagram([result((2, 3, 6), (2, 3, 6))], 8)
    assert [text_of(t) for t in by_class(root, "number")] == ["2", "3", "6"] * 2


@pytest.mark.parametrize("layers", [None, 0, -3, 10**9])
def test_layers_that_cannot_be_drawn(layers: int | None) -> None:
    root = diagram([result((2, 4), (2, 4))], layers)
    assert boxes(root) == []
    assert "2, 4" in text_of(root)


def test_ticks_count_layers_from_0() -> None:
    root = diagram([result((2,), (2,))], 61)
    ticks = {text_of(t): number(t.get("x")) for t in by_class(root, "tick")}
    assert list(ticks) == ["0", "10", "20", "30", "40", "50", "60"]
    box = boxes(root)[20]
    middle = number(box.get("x")) + number(box.get("width")) / 2
    assert ticks["20"] == pytest.approx(middle, abs=2e-3)
