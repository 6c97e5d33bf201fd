"""``merge``: several reports as one, as if everything had been checked at once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner, Result

from eagle3_lint.cli import main
from eagle3_lint.diagnostic import Edit, Fix, Place
from eagle3_lint.fleet import unreadable
from eagle3_lint.merging import read_report
from eagle3_lint.report.model import AuxReport, ErrorReport, LoadReport, Report, TargetReport
from eagle3_lint.report.model import Result as TargetResult
from eagle3_lint.version import __version__
from tests.drafts import llama_config, llama_tensors, write_draft
from tests.unit.report.samples import diagnostic, everything, report, result, together

SCHEMA = "eagle3-lint/report/1"
TARGET = "sglang==0.5.9"


def run(*arguments: object) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def write(path: Path, content: Report | dict[str, Any]) -> Path:
    document = content.to_json() if isinstance(content, Report) else content
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


def document(*checkpoints: object, version: str = __version__) -> dict[str, Any]:
    """A report as interface.md has it; its summary is nobody's business here."""
    summary = {"errors": 0, "warnings": 0, "fixable": 0}
    tool = {"version": version}
    return {"schema": SCHEMA, "tool": tool, "checkpoints": list(checkpoints), "summary": summary}


def checkpoint(path: str, *severities: str) -> dict[str, Any]:
    """A draft with findings of these severities, in JSON as interface.md has it."""
    producer = {"name": "unknown", "version": None, "confidence": "unknown"}
    diagnostics = [
        {
            "rule": "E3L201", "name": "tensor-dropped", "severity": severity, "effect": "broken",
            "message": "it is wrong", "where": [], "source": None, "fix": None, "url": "page",
        }
        for severity in severities
    ]  # fmt: skip
    target = {"runtime": "sglang", "release": "0.5.9", "model": None}
    results = [
        {
            "target": target, "verdict": "broken", "load": None, "aux": None,
            "diagnostics": diagnostics,
        }
    ]  # fmt: skip
    return {"path": path, "producer": producer, "dialect": "midlayer", "results": results}


def merged(done: Result) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(done.stdout)
    assert found["schema"] == SCHEMA
    return found


# -- parts are the whole ------------------------------------------------------------------------


def test_parts_merged_are_the_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(5):
        layer = "layers.0." if number == 3 else "midlayer."
        write_draft(tmp_path / f"d{number}", llama_config(), llama_tensors(layer))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "list").write_text("d0\nd1\nd2\nd3\nnothing\nd4\n")
    check = ("check", "--from-file", "list", "-t", TARGET, "--format", "json")
    whole = run(*check)
    parts = []
    for index in (1, 2, 3):
        name = f"part-{index}.json"
        run(*check, "--shard", f"{index}/3", "--output", name)
        parts.append(name)
    done = run("merge", *parts)
    assert (done.exit_code, done.stderr) == (whole.exit_code, "") == (1, "")
    found, wanted = merged(done), json.loads(whole.stdout)
    # Entry k is in part k mod 3, and the parts come one after another.
    order = [0, 3, 1, 4, 2, 5]
    assert found == {**wanted, "checkpoints": [wanted["checkpoints"][i] for i in order]}
    assert found["summary"]["unreadable"] == 1
    # A part of a merged report is as good as one that was checked.
    again = run("merge", *parts, "--output", "merged.json")
    assert again.exit_code == 1
    assert merged(run("merge", "merged.json")) == found


def test_reading_takes_back_what_a_report_wrote(tmp_path: Path) -> None:
    made_up = report(
        TargetResult(
            TargetReport("vllm", "0.33.0", None, "vllm"),
            "refused",
            LoadReport("error", None, ("a",), ("b",), ("c",), ErrorReport("KeyError", "'x'")),
            AuxReport((2, 30), "nested", None, (2,), "user"),
            (
                diagnostic("one", Place("a.json", pointer="/x~1y", line=3), Place("b", "t")),
                diagnostic(
                    fix=Fix(
                        "all of them",
                        "manual",
                        (
                            Edit.rename("a", "b"),
                            Edit.set_config("/op", {"op": [1, None, 2.5, True]}),
                            Edit.remove_config("/a"),
                            Edit.drop("t"),
                            Edit.sort_fc("fc.weight", (2, 0, 1)),
                        ),
                    )
                ),
            ),
            ("0.5.8", "0.5.12 to 0.5.23"),
        ),
        path="made up",
    )
    unread = Report((unreadable("gone", "gone: no such file"),))
    wanted = together(everything(tmp_path), made_up, unread)
    back = read_report(write(tmp_path / "report.json", wanted))
    assert tuple(draft.checkpoint for draft in back) == wanted.checkpoints


# -- arithmetic ---------------------------------------------------------------------------------


def test_the_summary_is_counted_anew(tmp_path: Path) -> None:
    a = write(tmp_path / "a", document(checkpoint("x", "error", "info"), checkpoint("y")))
    b = write(tmp_path / "b", document(checkpoint("z", "warning", "error", "warning")))
    done = run("merge", a, b)
    found = merged(done)
    assert [c["path"] for c in found["checkpoints"]] == ["x", "y", "z"]
    assert found["summary"] == {"errors": 1 + 1, "warnings": 2, "fixable": 0}
    assert (done.exit_code, done.stderr) == (1, "")


@pytest.mark.parametrize(
    ("severity", "fail_on", "code"),
    [
        ("error", None, 1),
        ("warning", None, 0),
        ("warning", "warning", 1),
        ("info", "warning", 0),
        ("error", "never", 0),
    ],
)
def test_the_exit_code_is_that_of_a_check(
    tmp_path: Path, severity: str, fail_on: str | None, code: int
) -> None:
    a = write(tmp_path / "a", document(checkpoint("x", severity)))
    assert run("merge", a, *(("--fail-on", fail_on) if fail_on else ())).exit_code == code


def test_settings_say_what_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "eagle3-lint.toml").write_text('fail-on = "warning"\n')
    a = write(tmp_path / "a", document(checkpoint("x", "warning")))
    assert run("merge", a).exit_code == 1
    assert run("merge", a, "--fail-on", "error").exit_code == 0


def test_of_a_draft_twice_the_last_word_counts(tmp_path: Path) -> None:
    a = write(tmp_path / "a", document(checkpoint("x", "error"), checkpoint("y"), checkpoint("z")))
    b = write(tmp_path / "b", document(checkpoint("z", "warning"), checkpoint("x")))
    done = run("merge", a, b)
    found = merged(done)
    # Where the first report has them, and as the second one says.
    assert [c["path"] for c in found["checkpoints"]] == ["x", "y", "z"]
    assert found["summary"] == {"errors": 0, "warnings": 1, "fixable": 0}
    assert done.exit_code == 0
    [note] = done.stderr.splitlines()
    assert note.startswith("eagle3-lint: ")
    for words in (str(a), str(b), "2 drafts", "z", "last counts"):
        assert words in note


def test_twice_in_one_report(tmp_path: Path) -> None:
    a = write(tmp_path / "a", document(checkpoint("x", "error"), checkpoint("x")))
    done = run("merge", a)
    assert len(merged(done)["checkpoints"]) == 1
    assert f"twice in {a}: x;" in done.stderr


def test_a_draft_that_could_be_read_at_last(tmp_path: Path) -> None:
    a = write(tmp_path / "a", Report((unreadable("x", "x: no such file"),)))
    b = write(tmp_path / "b", document(checkpoint("x")))
    assert run("merge", a).exit_code == 2
    assert run("merge", a, b).exit_code == 0
    assert run("merge", b, a).exit_code == 2


def test_nothing_was_checked(tmp_path: Path) -> None:
    """As by the empty part of a list."""
    a = write(tmp_path / "a", document())
    done = run("merge", a, a)
    assert (done.exit_code, merged(done)["checkpoints"]) == (0, [])


# -- releases of our own ------------------------------------------------------------------------


def test_each_draft_says_which_other_release_checked_it(tmp_path: Path) -> None:
    a = write(tmp_path / "a", document(checkpoint("x"), version="0.0.1"))
    b = write(tmp_path / "b", document(checkpoint("y")))
    done = run("merge", a, b, "--output", tmp_path / "ab")
    [note] = done.stderr.splitlines()
    assert f"0.0.1 (1), {__version__} (1)" in note
    found = json.loads((tmp_path / "ab").read_text())
    assert found["tool"] == {"version": __version__}
    x, y = found["checkpoints"]
    assert x["tool"] == {"version": "0.0.1"}
    assert "tool" not in y
    # Merged once more, it is still the one that it was checked by.
    c = write(tmp_path / "c", document(checkpoint("z"), version="9.9"))
    tools = [e.get("tool") for e in merged(run("merge", tmp_path / "ab", c))["checkpoints"]]
    assert tools == [{"version": "0.0.1"}, None, {"version": "9.9"}]


def test_what_a_newer_release_adds_stays(tmp_path: Path) -> None:
    new = checkpoint("x", "error")
    new["colour"] = {"of": ["the", "sky"]}
    new["results"][0]["diagnostics"][0]["where"] = [{"file": "a", "column": 7}]
    new["results"][0]["diagnostics"][0]["fix"] = {
        "title": "t", "applicability": "safe", "edits": [{"op": "knit", "colour": 1}],
    }  # fmt: skip
    a = write(tmp_path / "a", document(new, version="9.9"))
    [found] = merged(run("merge", a))["checkpoints"]
    assert found == {**new, "tool": {"version": "9.9"}}
    assert "it is wrong" in run("merge", a, "--format", "text").stdout


# -- what is no report --------------------------------------------------------------------------


def but(change: Any) -> dict[str, Any]:
    """A good report, but for one thing."""
    good = document(checkpoint("x", "error"))
    change(good)
    return good


def entry(good: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = good["checkpoints"][0]
    return found


def finding(good: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = entry(good)["results"][0]["diagnostics"][0]
    return found


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda g: g.pop("schema"), ("no 'eagle3-lint/report/1'", "--format json")),
        (lambda g: g.update(schema="eagle3-lint/launch/1"), ("'eagle3-lint/launch/1'",)),
        (lambda g: g.update(schema="eagle3-lint/report/2"), ("number 1", "merge with")),
        (lambda g: g.update(schema=["eagle3-lint/report/1"]), ("schema",)),
        (lambda g: g.pop("tool"), ("/tool/version",)),
        (lambda g: g.update(tool={"version": 1}), ("/tool/version",)),
        (lambda g: g.pop("checkpoints"), ("/checkpoints",)),
        (lambda g: g.update(checkpoints={}), ("/checkpoints",)),
        (lambda g: g.update(checkpoints=[None]), ("/checkpoints/0", "null")),
        (lambda g: entry(g).pop("path"), ("/checkpoints/0/path", "missing")),
        (lambda g: entry(g).update(path=None), ("/checkpoints/0/path", "null is not a string")),
        (lambda g: entry(g).update(error=7), ("/checkpoints/0/error", "7 is not a string")),
        (lambda g: entry(g).update(tool="new"), ("/checkpoints/0/tool/version",)),
        (lambda g: entry(g).update(results={}), ("/checkpoints/0/results", "an object")),
        (lambda g: entry(g)["results"][0].update(verdict="good"),
         ("/checkpoints/0/results/0/verdict", '"good" is none of serves')),
        (lambda g: entry(g)["results"][0].update(load=[]), ("/results/0/load", "a list")),
        (lambda g: finding(g).update(severity=["error"]), ("/diagnostics/0/severity",)),
        (lambda g: finding(g).update(where=[{"file": "a", "line": True}]),
         ("/where/0/line", "true is not a whole number")),
        (lambda g: finding(g).update(where=[{"file": "a", "line": 1.5}]), ("/where/0/line",)),
        (lambda g: finding(g).update(fix={"title": "t", "applicability": "safe", "edits": [{}]}),
         ("/fix/edits/0/op",)),
    ],
)  # fmt: skip
def test_what_is_no_report_is_told_where(
    tmp_path: Path, change: Any, words: tuple[str, ...]
) -> None:
    good = write(tmp_path / "good", document(checkpoint("y")))
    bad = write(tmp_path / "bad", but(change))
    assert_refused(run("merge", good, bad), str(bad), *words)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, ("No such file",)),
        (b"", ("not JSON", "ends early")),
        (b'{"schema": "eagle3-lint/report/1", "tool"', ("not JSON", "ends early")),
        (b'{"schema": }', (":1:12", "not JSON")),
        (b"\xff\xfe", ("not UTF-8",)),
        (b"\xef\xbb\xbf{}", ("not JSON",)),
        (b"[1]", ("no 'eagle3-lint/report/1'",)),
        (b"null", ("no 'eagle3-lint/report/1'",)),
        (b"[" * 200_000, ("not JSON",)),
        (b'{"a": ' + b"1" * 5000 + b"}", ("not JSON",)),
    ],
    ids=range(10),
)
def test_what_cannot_be_read(tmp_path: Path, content: bytes | None, words: tuple[str, ...]) -> None:
    path = tmp_path / "report.json"
    if content is not None:
        path.write_bytes(content)
    assert_refused(run("merge", path), str(path), *words)


def assert_refused(done: Result, *words: str) -> None:
    assert (done.exit_code, done.stdout) == (2, ""), done.output
    [line] = done.stderr.splitlines()
    assert line.startswith("eagle3-lint: ")
    for word in words:
        assert word in line, line


def test_no_report_at_all() -> None:
    assert run("merge").exit_code == 2


# -- unreadable drafts in every format ----------------------------------------------------------


@pytest.fixture
def mixed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A draft with an error, and one that could not be read."""
    monkeypatch.chdir(tmp_path)
    for name in ("GITHUB_WORKSPACE", "CI_PROJECT_DIR"):
        monkeypatch.delenv(name, raising=False)
    unread = Report((unreadable("some/draft", "some/draft: 100% <gone>"),))
    return write(tmp_path / "mixed.json", together(report(result(diagnostic())), unread))


def test_text(mixed: Path) -> None:
    done = run("merge", mixed, "--format", "text")
    assert "some/draft: unreadable\n  some/draft: 100% <gone>\n" in done.stdout
    assert done.stdout.endswith("1 error, 0 warnings; 1 of 2 drafts could not be read\n")


def test_html(mixed: Path) -> None:
    page = run("merge", mixed, "--format", "html").stdout
    assert "1 error, 0 warnings; 1 of 2 drafts could not be read." in page
    assert '<a href="#d2">some/draft</a> unreadable' in page
    assert "It could not be read: some/draft: 100% &lt;gone&gt;" in page


def test_junit(mixed: Path) -> None:
    """A test that did not come to an end is an error, one that found something a failure."""
    top = ElementTree.fromstring(run("merge", mixed, "--format", "junit").stdout)
    assert [top.get(name) for name in ("tests", "failures", "errors")] == ["2", "1", "1"]
    suites = top.findall("testsuite")
    assert [s.get("errors") for s in suites] == ["0", "1"]
    error = suites[1].find("testcase/error")
    assert error is not None
    assert error.get("message") == "some/draft: 100% <gone>"


def test_github(mixed: Path) -> None:
    lines = run("merge", mixed, "--format", "github").stdout.splitlines()
    assert "::error file=some/draft,title=unreadable draft::some/draft: 100%25 <gone>" in lines
    assert len(lines) == 2


def test_gitlab(mixed: Path) -> None:
    unread, other = json.loads(run("merge", mixed, "--format", "gitlab").stdout)
    assert unread["location"] == {"path": "some/draft", "lines": {"begin": 1}}
    assert (unread["severity"], unread["description"]) == ("blocker", "some/draft: 100% <gone>")
    assert unread["fingerprint"] != other["fingerprint"]


def test_sarif(mixed: Path) -> None:
    """3.58.6: a notification of level error is of what left the results incomplete."""
    [told] = json.loads(run("merge", mixed, "--format", "sarif").stdout)["runs"]
    [invocation] = told["invocations"]
    assert invocation["executionSuccessful"] is False
    [notification] = invocation["toolExecutionNotifications"]
    assert notification["level"] == "error"
    assert notification["message"] == {"text": "some/draft: 100% <gone>"}
    [location] = notification["locations"]
    assert location["physicalLocation"]["artifactLocation"] == {"uri": "some/draft"}
    assert len(told["results"]) == 1


def test_sarif_of_a_rule_that_is_not_known(tmp_path: Path) -> None:
    new = checkpoint("x", "error")
    new["results"][0]["diagnostics"][0]["rule"] = "E3L999"
    a = write(tmp_path / "a", document(new, version="9.9"))
    assert_refused(run("merge", a, "--format", "sarif"), "E3L999", "--format json")
    assert run("merge", a, "--format", "junit").exit_code == 1


def test_sarif_tells_fixes_in_words_only(tmp_path: Path) -> None:
    """The draft may have changed since, so nothing is a change of the text that is there now."""
    fix = Fix("take it out", "safe", (Edit.remove_config("/gone"),))
    folder = tmp_path / "draft"
    folder.mkdir()
    (folder / "config.json").write_text('{"gone": 1}')
    a = write(tmp_path / "a", report(result(diagnostic(fix=fix)), path=str(folder)))
    [told] = json.loads(run("merge", a, "--format", "sarif").stdout)["runs"]
    [only] = told["results"]
    assert "fixes" not in only
    assert only["properties"]["fix"]["title"] == "take it out"
