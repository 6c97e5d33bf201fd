"""JUnit XML, read by an XML parser and held against junit-10.xsd of Jenkins' xUnit plugin."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

import pytest

from eagle3_lint.diagnostic import Fix, Place
from eagle3_lint.report.junit import render
from eagle3_lint.report.model import Report
from eagle3_lint.report.places import visible
from tests.unit.report.samples import (
    ODD,
    checked,
    diagnostic,
    draft,
    everything,
    one,
    report,
    result,
    together,
)

#: Element → attributes that it must have, those that it may have, and its children.
SCHEMA: dict[str, tuple[set[str], set[str], set[str]]] = {
    "testsuites": (set(), {"name", "time", "tests", "failures", "errors"}, {"testsuite"}),
    "testsuite": (
        {"name", "tests", "failures", "errors"},
        {"skipped", "time", "timestamp", "hostname", "id", "package", "file"},
        {"testsuite", "properties", "testcase", "system-out", "system-err"},
    ),
    "properties": (set(), set(), {"property"}),
    "property": ({"name", "value"}, set(), set()),
    "testcase": (
        {"name"},
        {"time", "classname", "group"},
        {"skipped", "error", "failure", "system-out", "system-err"},
    ),
    "failure": (set(), {"type", "message"}, set()),
    "skipped": (set(), {"type", "message"}, set()),
    "system-out": (set(), set(), set()),
}


def read(text: str) -> Element:
    """The document, once it is what the schema says."""
    top = ElementTree.fromstring(text.encode("utf-8"))
    assert top.tag == "testsuites"
    for element in top.iter():
        required, optional, children = SCHEMA[element.tag]
        assert required <= set(element.keys()) <= required | optional
        assert {child.tag for child in element} <= children
        assert not children or not (element.text or "").strip()
    return top


def cases(found: Report, fail_on: str = "error") -> list[Element]:
    return list(read(render(found, fail_on)).iter("testcase"))  # type: ignore[arg-type]


def text_of(case: Element, tag: str) -> str:
    return case.findtext(tag) or ""


def test_suites_and_cases(tmp_path: Path) -> None:
    paths = [draft(tmp_path, name) for name in ("good", "broken")]
    top = read(render(together(*(checked(path, tmp_path) for path in paths)), "error"))
    assert {name: top.get(name) for name in ("tests", "failures", "errors")} == {
        "tests": "4", "failures": "1", "errors": "0",
    }  # fmt: skip
    good, broken = top
    assert [suite.get("name") for suite in top] == [str(path) for path in paths]
    assert (good.get("tests"), good.get("failures")) == ("2", "0")
    assert (broken.get("tests"), broken.get("failures")) == ("2", "1")
    sglang, vllm = broken.iter("testcase")
    model = tmp_path / "target"
    assert sglang.get("name") == f"sglang 0.5.9 serving {model}"
    assert sglang.get("classname") == str(paths[1])
    assert vllm.find("failure") is None
    verdicts = {p.get("name"): p.get("value") for p in broken.iter("property")}
    assert verdicts == {
        f"verdict sglang 0.5.9 serving {model}": "broken",
        f"verdict vllm 0.33.0 serving {model}": "serves",
    }


def test_a_failure_tells_all() -> None:
    place = Place("config.json", pointer="/a", line=3)
    found = diagnostic("it is wrong", place, fix=Fix("set it to 2", "safe"))
    other = diagnostic("and so is this", rule="E3L301")
    [case] = cases(report(result(found, other)))
    failure = case.find("failure")
    assert failure is not None
    assert failure.get("type") == "broken"
    assert failure.get("message") == "broken: E3L201 tensor-dropped, E3L301 tensor-dropped"
    for words in ("it is wrong", "config.json:3 /a", "safe fix: set it to 2", "and so is this"):
        assert words in (failure.text or "")


@pytest.mark.parametrize(
    ("fail_on", "failing"),
    [("error", {"error"}), ("warning", {"error", "warning"}), ("never", set())],
)
def test_fail_on(fail_on: str, failing: set[str]) -> None:
    found = [diagnostic(f"one {s}", severity=s) for s in ("error", "warning", "info")]
    [case] = cases(report(result(*found)), fail_on)
    for severity in ("error", "warning", "info"):
        tag, other = ("failure", "system-out")[:: 1 if severity in failing else -1]
        assert f"one {severity}" in text_of(case, tag)
        assert f"one {severity}" not in text_of(case, other)
    assert (case.find("failure") is not None) == bool(failing)


def test_the_severity_of_each_counts() -> None:
    found = [diagnostic("same", severity=s) for s in ("warning", "error")]
    [case] = cases(report(result(*found)))
    assert text_of(case, "failure").startswith("error[")
    assert text_of(case, "system-out").startswith("warning[")


def test_an_unknown_target_is_skipped() -> None:
    warning = diagnostic("no contract", severity="warning", effect="none")
    found = report(result(warning, verdict="unknown"), result(verdict="serves"))
    [suite] = read(render(found, "error"))
    assert (suite.get("skipped"), suite.get("failures")) == ("1", "0")
    unknown, serves = suite.iter("testcase")
    assert unknown.find("skipped") is not None
    assert "no contract" in text_of(unknown, "system-out")
    assert serves.find("skipped") is None
    [suite] = read(render(found, "warning"))
    assert (suite.get("skipped"), suite.get("failures")) == ("0", "1")


def test_any_character() -> None:
    everything_odd = "".join(map(chr, [*range(0x100), 0xD800, 0xDFFF, 0xFFFE, 0xFFFF, 0x1F600]))
    for text in (everything_odd, ODD):
        found = diagnostic(text, Place("model.safetensors", tensor=text))
        [case] = cases(one(found, path=text))
        assert case.get("classname") == visible(text).replace("\r", "\\r")
        # The message is wrapped, which folds white space; the place is not, and is on one line.
        shown = visible(text.replace("\n", "\\n")).replace("\r", "\\r")
        assert f"--> model.safetensors: {shown}" in text_of(case, "failure")


def test_nothing_is_a_document() -> None:
    top = read(render(Report(()), "error"))
    assert (top.get("tests"), len(top)) == ("0", 0)


def test_real_drafts(tmp_path: Path) -> None:
    found = everything(tmp_path)
    top = read(render(found, "error"))
    results = [r for c in found.checkpoints for r in c.results]
    failing = [any(d.severity == "error" for d in r.diagnostics) for r in results]
    assert True in failing
    assert False in failing
    assert [case.find("failure") is not None for case in top.iter("testcase")] == failing
