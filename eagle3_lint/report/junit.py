"""The report as JUnit XML: a test suite for every draft, a test case for every target.

Elements and attributes are those of the schema that Jenkins' xUnit plugin checks (junit-10.xsd),
which other readers understand too. It has no properties in a test case; verdicts are the suite's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

from eagle3_lint.diagnostic import SEVERITIES, Diagnostic
from eagle3_lint.report.model import CheckpointReport, Report, Result
from eagle3_lint.report.places import visible
from eagle3_lint.report.text import Style, diagnostic_lines

if TYPE_CHECKING:
    from eagle3_lint.settings import FailOn

_DECLARATION = '<?xml version="1.0" encoding="utf-8"?>\n'
_COUNTS = ("tests", "failures", "errors", "skipped")


def render(report: Report, fail_on: FailOn) -> str:
    """An XML document, ending in a newline.

    Args:
        fail_on: the least severity that fails a test; what is below it is its output.
    """
    top = Element("testsuites", name="eagle3-lint")
    top.extend(_suite(checkpoint, fail_on) for checkpoint in report.checkpoints)
    for name in _COUNTS[:3]:
        top.set(name, str(sum(int(suite.get(name, 0)) for suite in top)))
    ElementTree.indent(top)
    return _DECLARATION + ElementTree.tostring(top, encoding="unicode") + "\n"


def _suite(checkpoint: CheckpointReport, fail_on: FailOn) -> Element:
    cases = [_case(checkpoint.path, result, fail_on) for result in checkpoint.results]
    if checkpoint.error is not None:
        cases = [_unread(checkpoint.path, checkpoint.error)]
    ends = [sum(c.find(end) is not None for c in cases) for end in ("failure", "error", "skipped")]
    counts = dict(zip(_COUNTS, map(str, (len(cases), *ends)), strict=True))
    suite = Element("testsuite", {"name": _clean(checkpoint.path), **counts})
    properties = SubElement(suite, "properties")
    for result in checkpoint.results:
        name = _clean(f"verdict {result.target}")
        SubElement(properties, "property", name=name, value=result.verdict)
    suite.extend(cases)
    return suite


def _unread(path: str, error: str) -> Element:
    """A test that did not come to an end, which is an error and no failure."""
    case = Element("testcase", classname=_clean(path), name="read the draft")
    SubElement(case, "error", type="unreadable", message=_clean(error))
    return case


def _case(path: str, result: Result, fail_on: FailOn) -> Element:
    case = Element("testcase", classname=_clean(path), name=_clean(str(result.target)))
    failing = [d for d in result.diagnostics if _fails(d, fail_on)]
    if failing:
        rules = ", ".join(dict.fromkeys(f"{d.rule} {d.name}" for d in failing))
        failure = SubElement(
            case, "failure", type=result.verdict, message=_clean(f"{result.verdict}: {rules}")
        )
        failure.text = _told(failing)
    elif result.verdict == "unknown":
        # Nothing speaks of this target, which is neither good nor bad.
        SubElement(case, "skipped", message="unknown: no contract speaks of this target")
    others = [d for d in result.diagnostics if d not in failing]
    if others:
        SubElement(case, "system-out").text = _told(others)
    return case


def _fails(diagnostic: Diagnostic, fail_on: FailOn) -> bool:
    return fail_on != "never" and SEVERITIES.index(diagnostic.severity) >= SEVERITIES.index(fail_on)


def _told(diagnostics: Sequence[Diagnostic]) -> str:
    texts = ("\n".join(diagnostic_lines(d, Style())) for d in diagnostics)
    return _clean("\n\n".join(texts))


def _clean(text: str) -> str:
    """Readers of XML turn a carriage return into a newline (XML 1.0, 2.11)."""
    return visible(text).replace("\r", "\\r")
