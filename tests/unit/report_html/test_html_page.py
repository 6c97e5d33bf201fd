"""The page as a whole: strict parsers take it, it fetches nothing, and it leaves nothing out."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from xml.etree.ElementTree import Element

import pytest

from eagle3_lint.load.checkpoint import Tensor
from eagle3_lint.report.html.input import HtmlInput
from eagle3_lint.report.html.page import render_html
from eagle3_lint.report.model import Report
from eagle3_lint.version import __version__
from tests.drafts import DRAFT_VOCAB, VOCAB, write_case
from tests.unit.report_html.conftest import FIXTURES
from tests.unit.report_html.pages import (
    HOSTILE,
    Nesting,
    attributes,
    by_class,
    by_id,
    hostile_draft,
    ids,
    page_of,
    text_of,
    tree,
)

Page = tuple[Report, HtmlInput, str]


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory, kimi_page: Page) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("pages")
    good = write_case({"base": "llama", "config": ids(2, 16, 29)}, folder / "good")
    empty = write_case({"base": "llama", "container": "absent"}, folder / "empty")
    cut = write_case({"base": "llama", "container": "truncated"}, folder / "cut")
    return {
        "kimi": kimi_page[2],
        "several": page_of(good, empty, cut, targets=["sglang", "vllm"])[2],
        "hostile": page_of(hostile_draft(folder), targets=["sglang", "vllm"])[2],
        "without a target model": page_of(FIXTURES / "nemo-automodel-0.7.0")[2],
        "without more than the report": render_html(kimi_page[0]),
        "of no draft": render_html(Report(())),
    }


def test_strict_parsers_agree_about_it(pages: dict[str, str]) -> None:
    for name, page in pages.items():
        root = tree(page)
        nesting = Nesting()
        nesting.feed(page)
        nesting.close()
        assert (nesting.wrong, nesting.open) == ([], []), name
        assert [e.tag for e in root] == ["head", "body"]
        assert page.startswith("<!DOCTYPE html>\n")
        assert page.endswith("</html>\n")


def test_nothing_comes_from_elsewhere_and_nothing_runs(pages: dict[str, str]) -> None:
    for name, page in pages.items():
        root = tree(page)
        used = {e.tag for e in root.iter()}
        fetching = {"script", "img", "iframe", "object", "embed", "audio", "video", "image", "base"}
        assert not used & (fetching | {"form", "foreignObject"}), name
        for element, attribute, value in attributes(root):
            assert not attribute.startswith("on"), name
            assert attribute not in ("src", "srcset", "action", "formaction", "style"), name
            if attribute.endswith("href"):
                # A part of the page, or the empty icon, without which servers are asked for one.
                assert value.startswith("#") or (element, value) == ("link", "data:,"), name
        (style,) = (e.text or "" for e in root.iter("style"))
        assert not re.search(r"url\(|@import|@font-face|expression", style), name
        policies = [
            e.get("content", "")
            for e in root.iter("meta")
            if e.get("http-equiv") == "Content-Security-Policy"
        ]
        assert [p.split(";")[0] for p in policies] == ["default-src 'none'"], name


def test_every_reference_leads_to_one_place(pages: dict[str, str]) -> None:
    for name, page in pages.items():
        root = tree(page)
        known = [value for _, attribute, value in attributes(root) if attribute == "id"]
        assert len(known) == len(set(known)), name
        for _, attribute, value in attributes(root):
            if attribute == "href" and value.startswith("#"):
                assert value[1:] in known, name
            if attribute == "aria-labelledby":
                assert set(value.split()) <= set(known), name


def test_an_usual_draft_makes_a_small_page(kimi: Path, kimi_page: Page) -> None:
    assert len(kimi_page[2].encode()) < 200_000
    plain = page_of(kimi, model="kimi-k2.5")[2]
    assert len(plain.encode()) < 200_000


def test_nothing_in_it_depends_on_when_it_was_made(kimi: Path, kimi_page: Page) -> None:
    report, beside, page = kimi_page
    assert render_html(report, [beside]) == page


def test_the_header(kimi_page: Page) -> None:
    _, _, page = kimi_page
    root = tree(page)
    (banner,) = by_class(root, "banner")
    assert __version__ in text_of(banner)
    (draft,) = by_class(root, "draft")
    assert text_of(draft[0]).endswith("kimi-draft")
    (facts,) = by_class(draft, "facts")
    told = text_of(facts)
    # fixtures/kimi-k2.5-layers0/config.json; layers and width of Kimi-K2.5 in rules/targets.
    for what in ("layers", "LlamaForCausalLMEagle3", "kimi-k2.5", "61 layers", "7,168 wide"):
        assert what in told
    assert [text_of(t) for t in by_class(draft, "tile")] == [
        "sglang 0.5.9 refused", "sglang 0.5.12 degraded", "vllm 0.33.0 serves",
    ]  # fmt: skip


def test_the_producer_is_named() -> None:
    page = page_of(FIXTURES / "speculators-0.9.0-llama", targets=["vllm"])[2]
    (facts,) = by_class(tree(page), "facts")
    # fixtures/speculators-0.9.0-llama/config.json: speculators_version.
    assert "speculators 0.9.0" in text_of(facts)


# -- findings -----------------------------------------------------------------------------------


def without_quotes(text: str) -> str:
    return " ".join(text.replace("`", "").split())


def check_panel(panel: Element, report: Report, number: int) -> int:
    """Hold a panel of one target against its result; gives the number of findings."""
    result = report.checkpoints[0].results[number]
    told = text_of(panel)
    assert str(result.target.release) in told
    assert [text_of(p) for p in by_class(panel, "pill")] == [result.verdict]
    findings = by_class(panel, "finding")
    assert len(findings) == len(result.diagnostics)
    for diagnostic, finding in zip(result.diagnostics, findings, strict=True):
        inside = text_of(finding)
        assert diagnostic.severity in finding.get("class", "")
        assert diagnostic.severity in inside
        assert diagnostic.rule in inside
        assert without_quotes(diagnostic.message) in inside
        assert without_quotes(diagnostic.source or "") in inside
        for place in diagnostic.where:
            assert (place.tensor or place.pointer or place.file) in inside
        if diagnostic.fix is not None:
            assert f"{diagnostic.fix.applicability} fix" in inside
            assert without_quotes(diagnostic.fix.title) in inside
    return len(findings)


def test_every_finding_is_told(kimi_page: Page) -> None:
    report, _, page = kimi_page
    root = tree(page)
    panels = [by_id(root, f"d1-target-{i}") for i in range(3)]
    count = sum(check_panel(panel, report, i) for i, panel in enumerate(panels))
    assert count == len(report.diagnostics()) > 3


def test_neighbours_that_agree_are_told_once(kimi: Path) -> None:
    # 0.5.14 to 0.5.16 read layers.0 and ids as outputs (0.5.12 on, the README's matrix).
    report, _, page = page_of(kimi, targets=["sglang>=0.5.14,<0.5.17"], model="kimi-k2.5")
    releases = [r.target.release for r in report.checkpoints[0].results]
    assert releases == ["0.5.14", "0.5.15", "0.5.15.post1", "0.5.16"]
    (panel,) = by_class(tree(page), "panel")
    told = text_of(panel)
    assert "sglang 0.5.14 – 0.5.16 (4 releases)" in told
    # What holds for all of them names none of them.
    messages = [text_of(m) for m in by_class(panel, "message")]
    assert messages
    assert not [m for m in messages if "0.5.14" in m]


def test_lines_of_the_configuration(kimi_page: Page) -> None:
    """aux-states-differ points at the ids: line 11 of config.json and the four below it."""
    _, beside, page = kimi_page
    lines = beside.facts.document.text.split("\n")
    assert "eagle_aux_hidden_state_layer_ids" in lines[10]
    assert lines[14].strip() == "],"
    panel = by_id(tree(page), "d1-target-0")
    (finding,) = (f for f in by_class(panel, "finding") if "E3L301" in text_of(f))
    rows = [(text_of(row[0]), text_of(row)) for row in by_class(finding, "row")]
    assert [n for n, _ in rows] == ["9", "10", "▸ 11", "▸ 12", "▸ 13", "▸ 14", "▸ 15", "16", "17"]
    marked = ["".join(e.itertext()) for e in finding.iter("mark")]
    assert marked == lines[10:15]


# -- several drafts, and what is not known ------------------------------------------------------


def test_several_drafts_have_a_table_of_contents(tmp_path: Path) -> None:
    drafts = [write_case({"base": "llama"}, tmp_path / f"draft-{i}") for i in range(3)]
    report, _, page = page_of(*drafts, targets=["sglang", "vllm==0.33.0"])
    root = tree(page)
    (contents,) = by_class(root, "contents")
    links = [(a.get("href"), text_of(a)) for a in contents.iter("a")]
    assert links == [(f"#d{i + 1}", str(draft)) for i, draft in enumerate(drafts)]
    articles = by_class(root, "draft")
    assert [a.get("id") for a in articles] == ["d1", "d2", "d3"]
    for article, checkpoint in zip(articles, report.checkpoints, strict=True):
        assert text_of(article[0]) == checkpoint.path
        assert len(by_class(article, "panel")) == len(checkpoint.results)


def test_one_draft_has_none(kimi_page: Page) -> None:
    assert by_class(tree(kimi_page[2]), "contents") == []


def test_inputs_must_be_those_of_the_report(kimi_page: Page) -> None:
    report, beside, _ = kimi_page
    with pytest.raises(ValueError, match="zip"):
        render_html(report, [beside, beside])


def test_the_report_alone_leaves_the_rest_out(kimi_page: Page) -> None:
    root = tree(render_html(kimi_page[0]))
    headings = [text_of(h) for h in root.iter("h3")]
    assert headings == ["What each target does", "Aux hidden states"]
    assert len(by_class(root, "finding")) == len(kimi_page[0].diagnostics())


def test_an_unknown_target_model(tmp_path: Path) -> None:
    draft = write_case({"base": "llama"}, tmp_path / "draft")
    page = page_of(draft, targets=["sglang"])[2]
    root = tree(page)
    (facts,) = by_class(root, "facts")
    assert "--target-model" in text_of(facts)
    # Its layers are not known, so there is nothing to draw.
    assert by_class(root, "layers") == []


def test_vocabulary_and_tensors_of_a_small_draft(tmp_path: Path) -> None:
    draft = write_case({"base": "llama", "rename": {"midlayer.": "layers.0."}}, tmp_path / "draft")
    # sglang 0.5.9 drops them: 0.5.11 srt/models/llama_eagle3.py:251 knows midlayer alone.
    root = tree(page_of(draft, targets=["sglang==0.5.9"])[2])
    (table,) = by_class(root, "by-role")
    rows = {text_of(by_class(r, "called")[0]): r for r in table.iter("tr") if by_class(r, "called")}
    assert text_of(rows["fc.weight"]) == "aux.fcfc.weightBF1664 × 19224.6 kB"  # 64 * 192 * 2 bytes
    fates = {name: text_of(f) for name, row in rows.items() for f in by_class(row, "fate")}
    assert set(fates) == {name for name in rows if name.startswith("layers.0.")}
    assert set(fates.values()) == {"dropped by sglang 0.5.9"}
    (section,) = by_class(root, "vocabulary")
    assert f"{DRAFT_VOCAB} of {VOCAB:,} tokens (32.0 %), by d2t." in text_of(section)


# -- hostile input ------------------------------------------------------------------------------


def test_what_a_draft_says_is_text(tmp_path: Path) -> None:
    draft = hostile_draft(tmp_path)
    report, _, page = page_of(draft, targets=["sglang==0.5.9", "vllm==0.33.0"])
    root = tree(page)
    told = text_of(root)
    names = [text_of(n) for n in by_class(root, "called")]
    # As they are, but for what has no shape: it is spelled out.
    for name in HOSTILE[:6]:
        assert " ".join(name.split()) in names
        assert f'"{name}"'.replace('"', "") in told.replace('\\"', '"').replace('"', "")
    assert r"mid\u202elayer" in names
    assert r"nul\x00 esc\x1b[31m" in names
    assert not re.search("[\u202a-\u202e\x00-\x08\x1b]", page)
    assert len(by_class(root, "finding")) == len(report.diagnostics())
    # No element that a page of a good draft does not have, so none came out of the names.
    good = write_case({"base": "llama"}, tmp_path / "good")
    assert {e.tag for e in root.iter()} <= {e.tag for e in tree(page_of(good)[2]).iter()} | {
        "mark", "pre",
    }  # fmt: skip


def test_a_hostile_target_model(tmp_path: Path) -> None:
    folder = tmp_path / "<b>&target"
    folder.mkdir()
    (folder / "config.json").write_text('{"architectures": ["<i>x</i>"], "num_hidden_layers": 1e9}')
    draft = write_case({"base": "llama"}, tmp_path / "draft")
    root = tree(page_of(draft, targets=["sglang"], model=str(folder))[2])
    (facts,) = by_class(root, "facts")
    assert "<i>x</i>" in text_of(facts)


def test_very_many_and_very_long_names(tmp_path: Path) -> None:
    report, (beside,), _ = page_of(write_case({"base": "llama"}, tmp_path / "draft"))
    names = [f"junk.{i}.{'x' * 2000}" for i in range(5000)]
    tensors = {name: Tensor(name, "BF16", (4,), "model.safetensors", 8 * i, 8)
               for i, name in enumerate(names)}  # fmt: skip
    page = render_html(report, [replace(beside, facts=replace(beside.facts, tensors=tensors))])
    root = tree(page)
    (table,) = by_class(root, "by-role")
    rows = len(list(table.iter("tr"))) - 1
    assert 100 <= rows < 5000
    assert f"and {5000 - rows:,} more tensors" in text_of(root)
    # The most that a page has of them: rows with names cut to some hundred characters.
    assert len(page) < 500_000
    assert "5,000 tensors in 1 file, 40.0 kB" in text_of(table)
