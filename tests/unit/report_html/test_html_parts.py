"""Escaping, excerpts, the vocabulary's outline, and colours that can be read."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from eagle3_lint.coverage import Coverage, SpecialToken
from eagle3_lint.load.document import parse_document
from eagle3_lint.report.html import page
from eagle3_lint.report.html.excerpt import excerpt, whole
from eagle3_lint.report.html.markup import Markup, prose, short, tag, text
from eagle3_lint.report.html.tensors import weight
from eagle3_lint.report.html.vocabulary import profile, vocabulary
from tests.unit.report_html.pages import by_class, text_of, tree

# -- markup -------------------------------------------------------------------------------------


def test_what_is_no_markup_is_escaped() -> None:
    assert tag("p", "<b> & 'c'", title='"d"') == (
        '<p title="&quot;d&quot;">&lt;b&gt; &amp; &#x27;c&#x27;</p>'
    )
    assert tag("p", tag("b", "x")) == "<p><b>x</b></p>"
    assert text(Markup("<b>")) == "<b>"


def test_attributes() -> None:
    made = tag("p", class_="a", aria_label="b", hidden=True, id=None, data_state=0)
    assert made == '<p class="a" aria-label="b" hidden="hidden" data-state="0"></p>'
    assert tag("meta", name="n") == '<meta name="n" />'


def test_characters_without_a_shape_are_spelled_out() -> None:
    assert text("a\x00\u202eb\ud800") == r"a\x00\u202eb\ud800"


def test_backticks_stand_around_code() -> None:
    assert prose("drops `a<b>` and `") == "drops <code>a&lt;b&gt;</code> and `"


def test_a_short_text() -> None:
    assert short("abcdef", 6) == "abcdef"
    assert short("abcdefg", 6) == "abcde…"


# -- excerpts -----------------------------------------------------------------------------------

CONFIG = b"""{
  "a": 1,
  "b": {
    "list": [
      1,
      2
    ],
    "c": "]"
  },
  "d": "x"
}
"""


def shown(pointers: list[str], raw: bytes = CONFIG) -> list[tuple[str, bool]]:
    """Number and whether it is marked of each line of an excerpt."""
    found = excerpt(parse_document(raw), pointers)
    assert found is not None
    rows = by_class(tree(f"<div>{found}</div>"), "row")
    return [(text_of(row[0]).removeprefix("▸ ") if len(row) else "⋯", "hit" in row.get("class", ""))
            for row in rows]  # fmt: skip


def test_a_value_is_marked_to_its_end() -> None:
    assert shown(["/b/list"]) == [
        ("2", False), ("3", False), ("4", True), ("5", True), ("6", True), ("7", True),
        ("8", False), ("9", False),
    ]  # fmt: skip


def test_an_element_of_a_list_and_a_string_with_a_bracket() -> None:
    assert [n for n, hit in shown(["/b/list/1"]) if hit] == ["6"]
    assert [n for n, hit in shown(["/b/c"]) if hit] == ["8"]


def test_places_far_apart_leave_a_gap() -> None:
    raw = b"{\n" + b",\n".join(b'"k%d": %d' % (i, i) for i in range(20)) + b"\n}"
    # k0 is line 2, k15 line 17.
    assert shown(["/k0", "/k15"], raw) == [
        ("1", False), ("2", True), ("3", False), ("4", False), ("⋯", False),
        ("15", False), ("16", False), ("17", True), ("18", False), ("19", False),
    ]  # fmt: skip


def test_a_long_list_is_marked_for_some_lines() -> None:
    raw = b'{"x": [\n' + b",\n".join(b"1" for _ in range(500)) + b"]}"
    hits = [n for n, hit in shown(["/x"], raw) if hit]
    assert hits == [str(n) for n in range(1, 13)]


def test_one_line_of_everything_is_shown_where_it_matters() -> None:
    raw = json.dumps({f"key{i}": "v" * 50 for i in range(200)}).encode()
    found = excerpt(parse_document(raw), ["/key150"])
    assert found is not None
    told = text_of(tree(f"<div>{found}</div>"))
    assert '"key150"' in told
    assert '"key0"' not in told
    assert len(told) < 200


def test_no_excerpt_of_what_is_not_there() -> None:
    document = parse_document(CONFIG)
    assert excerpt(document, ["/nothing"]) is None
    assert excerpt(document, [""]) is None
    assert excerpt(document, []) is None


def test_a_number_that_python_does_not_convert() -> None:
    document = parse_document(b'{"a": 1,\n "n": NaN,\n "m": -Infinity}')
    assert excerpt(document, ["/n", "/m"]) is not None


def test_the_whole_file_is_cut_when_it_is_long() -> None:
    raw = b"{\n" + b",\n".join(b'"k%d": %d' % (i, i) for i in range(1000)) + b"\n}"
    root = tree(f"<div>{whole(parse_document(raw), ['/k3'])}</div>")
    rows = by_class(root, "row")
    # A line for each key and the two brackets.
    assert f"and {1002 - len(rows)} more lines" in text_of(root)
    assert [text_of(row[0]) for row in by_class(root, "hit")] == ["▸ 5"]


# -- vocabulary ---------------------------------------------------------------------------------


def test_the_outline_of_the_shares() -> None:
    # Heights count from the top: all is 0, none is 100; equal neighbours are one step.
    assert profile([0, 0.5, 0.5, 1, 0.125]) == "M0 100V100H1V50H3V0H4V87.5H5V100Z"


def test_the_picture_of_a_vocabulary() -> None:
    special = (SpecialToken(0, "<bos>", True), SpecialToken(7, "<eos>", False))
    found = Coverage("t2d", 8, 3, 2, (1.0, 0.5, 0.0, 0.0), special)
    root = tree(f"<div>{vocabulary(found, 'v')}</div>")
    told = text_of(root)
    assert "3 of 8 tokens (37.5 %), by t2d." in told
    assert "2 rows stand for no token" in told
    assert "1 of 2 special tokens covered. Not covered: <eos> 7" in told
    (area,) = by_class(root, "area")
    assert area.get("d") == profile(found.shares)
    (picture,) = by_class(root, "profile")
    assert picture.get("viewBox") == "0 0 4 100"
    assert [text_of(t) for t in by_class(root, "axis")[0]] == ["0", "2", "4", "6", "8"]


def test_nothing_says_which_tokens() -> None:
    assert "Neither d2t nor t2d" in vocabulary(None, "v")


def test_bytes_as_people_say_them() -> None:
    sizes = (0, 999, 14336, 458752000, 4731129448)
    assert [weight(n) for n in sizes] == ["0 B", "999 B", "14.3 kB", "459 MB", "4.7 GB"]


# -- colours ------------------------------------------------------------------------------------

_STYLE = (Path(page.__file__).with_name("style.css")).read_text(encoding="utf-8")
_COLOUR = re.compile(r"--([a-z-]+): (#[0-9a-f]{6});")


def palettes() -> list[dict[str, str]]:
    """Light, dark and printed: the three places that set the colours."""
    blocks = re.findall(r":root \{(.*?)\}", _STYLE, re.DOTALL)
    return [dict(_COLOUR.findall(block)) for block in blocks]


def luminance(colour: str) -> float:
    """Relative luminance (WCAG 2.2)."""
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_the_measure_of_contrast() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)


def test_the_palettes_have_the_same_colours() -> None:
    light, dark, printed = palettes()
    assert set(light) == set(dark) == set(printed)
    assert len(light) > 15


@pytest.mark.parametrize("which", [0, 1, 2])
def test_text_can_be_read(which: int) -> None:
    """WCAG 2.2, 1.4.3: 4.5 for text. 1.4.11: 3 for shapes."""
    colours = palettes()[which]
    for verdict in ("serves", "degraded", "broken", "refused", "unknown"):
        assert contrast(colours[verdict], colours[f"{verdict}-ink"]) >= 4.5, verdict
    for ground in ("paper", "card", "shade", "marked"):
        for ink in ("ink", "soft"):
            assert contrast(colours[ground], colours[ink]) >= 4.5, (ground, ink)
    for ground in ("paper", "card"):
        for ink in ("link", "error", "warning", "info", "hit"):
            assert contrast(colours[ground], colours[ink]) >= 4.5, (ground, ink)
        for shape in ("trained", "hit", "miss", "soft"):
            assert contrast(colours[ground], colours[shape]) >= 3, (ground, shape)
