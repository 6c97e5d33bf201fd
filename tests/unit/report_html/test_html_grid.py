"""The grid has a field for every known release, in a colour, a shape and a word."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

import eagle3_lint
from eagle3_lint.checking import prepare
from eagle3_lint.contract.runtime import known_runtimes, runtime_file
from eagle3_lint.diagnostic import Diagnostic, Edit, Fix
from eagle3_lint.report.html.gather import checked
from eagle3_lint.report.html.grid import grid
from eagle3_lint.report.html.groups import grouped, span, unnamed
from eagle3_lint.report.html.input import HtmlInput, ReleaseVerdict, RuntimeVerdicts
from eagle3_lint.report.model import Report, Result, TargetReport
from tests.drafts import write_case
from tests.unit.report_html.pages import by_class, by_id, page_of, text_of, tree

Page = tuple[Report, HtmlInput, str]


def fields(page: str) -> dict[str, list[tuple[str, str, str]]]:
    """Runtime → tooltip, class and text of each field, in the order of the page."""
    found = {}
    for runtime, listed in zip(known_runtimes(), by_class(tree(page), "grid"), strict=True):
        assert listed.get("aria-label") == f"{runtime_file(runtime).title} releases"
        found[runtime] = [
            (
                next(a.get("title", "") for a in li.iter("a")),
                li.get("class", ""),
                text_of(li),
            )
            for li in listed
        ]
    return found


def test_one_field_for_every_known_release(kimi_page: Page) -> None:
    found = fields(kimi_page[2])
    for runtime, row in found.items():
        file = runtime_file(runtime)
        assert len(row) == len(file.releases)
        for release, (tooltip, _, told) in zip(file.releases, row, strict=True):
            assert tooltip.startswith(f"{file.title} {release}: ")
            assert told.split()[0] == release.replace(".post", "p")


@pytest.mark.parametrize("runtime", ["sglang", "vllm"])
def test_each_field_has_the_verdict_of_a_check(kimi: Path, kimi_page: Page, runtime: str) -> None:
    checked_one_by_one = eagle3_lint.check(
        kimi, targets=[f"{runtime}>=0"], target_model="kimi-k2.5"
    ).checkpoints[0]
    verdicts = {r.target.release: r.verdict for r in checked_one_by_one.results}
    assert len(set(verdicts.values())) >= 3
    for tooltip, kind, told in fields(kimi_page[2])[runtime]:
        release, _, rest = tooltip.partition(": ")
        verdict = verdicts[release.split()[1]]
        # Colour for the eye, a word for who does not see it.
        assert verdict in kind.split()
        assert verdict in told.split(" ", 1)[1]
        assert rest.startswith(verdict)


def test_every_field_has_the_shape_of_its_verdict(kimi_page: Page) -> None:
    root = tree(kimi_page[2])
    known = {e.get("id") for e in root.iter("symbol")}
    for field in by_class(root, "field"):
        (use,) = field.iter("use")
        _, verdict, *_ = field.get("class", "").split()
        assert use.get("href") == f"#mark-{verdict}"
        assert f"mark-{verdict}" in known


def test_the_releases_asked_for_have_a_ring(kimi_page: Page) -> None:
    asked = {
        tooltip.partition(": ")[0]: "asked for" in told
        for row in fields(kimi_page[2]).values()
        for tooltip, kind, told in row
        if "asked" in kind.split()
    }
    assert asked == dict.fromkeys(("SGLang 0.5.9", "SGLang 0.5.12", "vLLM 0.33.0"), True)


def test_a_field_leads_to_the_row_that_explains_it(kimi_page: Page) -> None:
    root = tree(kimi_page[2])
    grids = dict(zip(known_runtimes(), by_class(root, "grid"), strict=True))
    for runtime in known_runtimes():
        rows = []
        for field in by_class(grids[runtime], "field"):
            (link,) = field.iter("a")
            row = by_id(root, (link.get("href") or "")[1:])
            assert text_of(by_class(row, "pill")[0]) in field.get("class", "").split()
            if row not in rows:
                rows.append(row)
        # The rows' spans, one after the other, are all releases.
        releases = runtime_file(runtime).releases
        ends = [text_of(row[0]).split(" – ") for row in rows]
        assert ends[0][0] == releases[0]
        assert ends[-1][-1] == releases[-1]
        for before, after in pairwise(ends):
            assert releases.index(after[0]) == releases.index(before[-1]) + 1


def test_the_table_tells_what_the_readme_tells(kimi_page: Page) -> None:
    """README: `matrix kimi-draft -m kimi-k2.5`, which was read from SGLang's sources."""
    root = tree(kimi_page[2])
    rows = [[text_of(cell) for cell in row] for row in by_class(root, "spans")[0].iter("tr")]
    (conflict,) = (row for row in rows if row[0] == "0.5.10 – 0.5.11")
    assert conflict[1] == "broken"
    assert conflict[2].startswith("E3L201 sglang drops 10 tensors called layers.0.*")
    assert ["0.5.12 – 0.5.12.post1", "degraded"] in [row[:2] for row in rows]
    assert ["0.5.13 – 0.5.23", "serves"] in [row[:2] for row in rows]


def test_a_verdict_in_spite_of_a_finding_says_how_grave_that_is(kimi_page: Page) -> None:
    (row,) = (
        row for row in by_class(tree(kimi_page[2]), "spans")[0].iter("tr")
        if text_of(row[0]) == "0.5.13 – 0.5.23"
    )  # fmt: skip
    assert [text_of(badge) for badge in by_class(row, "badge")] == ["warning"]


def test_rules_that_were_left_out_leave_what_is_raised(tmp_path: Path) -> None:
    draft = write_case({"base": "llama", "rename": {"midlayer.": "layers.0."}}, tmp_path / "draft")
    _, (beside,), _ = page_of(draft, targets=["sglang"], ignore=["E3L"])
    played = {runtime.runtime: runtime.releases for runtime in beside.history}
    vllm = {r.release: r for r in played["vllm"]}
    sglang = {r.release: r for r in played["sglang"]}
    # SGLang up to 0.4.8: params_dict[name] raises (srt/models/llama.py:578).
    assert sglang["0.4.8"].verdict == "refused"
    assert sglang["0.4.8"].reason.startswith("KeyError: ")
    assert vllm["0.33.0"].reason == ""


def test_a_launch_command_counts_for_its_runtime_alone(kimi: Path, kimi_page: Page) -> None:
    """Of vLLM it says nothing, not even which lengths are served (E3L501 of 0.18 to 0.28)."""
    command = f"python -m sglang.launch_server --speculative-draft-model-path {kimi}"
    _, (beside,) = checked([prepare(kimi, [], "kimi-k2.5", launch=command)])
    with_it = {r.runtime: r.releases for r in beside.history}
    without = {r.runtime: r.releases for r in kimi_page[1].history}
    assert with_it["vllm"] == without["vllm"]
    assert "E3L501" in {r.rule for r in with_it["vllm"]}
    # Without --speculative-algorithm EAGLE3 SGLang drafts with nothing: E3L612.
    assert with_it["sglang"][-1].rule == "E3L612"
    assert without["sglang"][-1].rule == "E3L501"


@pytest.mark.parametrize(
    ("message", "left"),
    [
        ("sglang 0.5.1 drops", "sglang drops"),
        ("by which sglang 0.5.1 means 2", "by which sglang means 2"),
        ("as in sglang 0.5.1.", "as in sglang."),
        ("sglang 0.5.12 drops", "sglang 0.5.12 drops"),
        ("sglang 0.5.1.post1 drops", "sglang 0.5.1.post1 drops"),
        ("mysglang 0.5.1", "mysglang 0.5.1"),
    ],
)
def test_a_message_without_the_release(message: str, left: str) -> None:
    assert unnamed(message, TargetReport("sglang", "0.5.1", None)) == left


def result(release: str, **how: object) -> Result:
    """What a release does: a finding that names it, and where that is known from."""
    told = {"verdict": "broken", "source": "sglang 0.4.9 x.py:1", "title": "", **how}
    message = f"sglang {release} drops it"
    fix = Fix(f"what sglang {release} means {told['title']}", "safe", (Edit.set_config("/a", [1]),))
    finding = Diagnostic(
        "E3L201", "n", "error", "broken", message, (), str(told["source"]), fix, ""
    )  # fmt: skip
    target = TargetReport("sglang", release, "m")
    return Result(target, told["verdict"], None, None, (finding,))  # type: ignore[arg-type]


def labels(*results: Result) -> list[str]:
    return [group.label for group in grouped(results)]


def test_what_makes_neighbours_differ() -> None:
    assert labels(result("1"), result("2")) == ["sglang 1, 2"]
    assert labels(*(result(str(i)) for i in range(1, 5))) == ["sglang 1 – 4 (4 releases)"]
    apart = ["sglang 1", "sglang 2"]
    assert labels(result("1"), result("2", verdict="refused")) == apart
    # A source is told as it is, also where it is of that very release.
    assert labels(result("1"), result("2", source="sglang 2 x.py:1")) == apart
    assert labels(result("1"), result("2", title="more")) == apart


def test_a_group_speaks_of_no_release_and_one_alone_of_its_own() -> None:
    (both,) = grouped([result("1"), result("2")])
    (alone,) = grouped([result("1")])
    message = both.first.diagnostics[0].message
    assert both.says(message) == "sglang drops it"
    assert alone.says(message) == "sglang 1 drops it"


def test_a_span() -> None:
    assert span(["0.5.9"]) == "0.5.9"
    assert span(["0.5.9", "0.5.10", "0.5.11"]) == "0.5.9 – 0.5.11"


def test_the_legend_explains_what_is_there_and_no_more() -> None:
    history = (
        RuntimeVerdicts("sglang", "SGLang", (ReleaseVerdict("1", "serves"),)),
        RuntimeVerdicts("vllm", "vLLM", (ReleaseVerdict("2.post1", "unknown", "E3L701", "why"),)),
    )
    root = tree(f"<div>{grid(history, [('vllm', '2.post1')], 'x')}</div>")
    (legend,) = by_class(root, "legend")
    told = text_of(legend)
    assert "serves" in told
    assert "unknown" in told
    assert not [word for word in ("degraded", "broken", "refused") if word in told]
    assert "p1 is .post1" in told
