"""``gate``: alone, and on the ranks of a training."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import eagle3_lint
from eagle3_lint.report.model import Report
from tests.drafts import write_case
from tests.integration.training import PYTHON, ROOT, TIMEOUT, environment, need, python

#: SGLang reads ``midlayer.`` in every release and ``layers.0.`` from 0.5.12 on.
GOOD, BROKEN = {"base": "llama"}, {"base": "llama", "rename": {"midlayer.": "layers.0."}}
OLD = ["sglang==0.5.9"]


@pytest.fixture
def good(tmp_path: Path) -> Path:
    return write_case(GOOD, tmp_path / "good")


@pytest.fixture
def broken(tmp_path: Path) -> Path:
    return write_case(BROKEN, tmp_path / "broken")


def refused(*arguments: Any, **options: Any) -> eagle3_lint.GateError:
    with pytest.raises(eagle3_lint.GateError) as raised:
        eagle3_lint.gate(*arguments, **options)
    return raised.value


# -- one process ----------------------------------------------------------------------------------


def test_a_good_draft_gives_its_report(good: Path) -> None:
    report = eagle3_lint.gate(good, targets=OLD)
    assert report == eagle3_lint.check(good, targets=OLD)
    assert report.checkpoints[0].results[0].verdict == "serves"


def test_a_broken_draft_raises_with_its_report(broken: Path) -> None:
    error = refused(broken, targets=OLD)
    assert error.report == eagle3_lint.check(broken, targets=OLD)
    assert error.report.checkpoints[0].results[0].verdict == "broken"


def test_the_message_has_neighbours_that_agree_and_each_rule_once(broken: Path) -> None:
    lines = str(refused(broken, targets=["sglang>=0.5.9,<=0.5.12"])).splitlines()
    assert lines[:3] == [
        f"{broken} does not pass",
        "  sglang 0.5.9 - 0.5.11: broken",
        "  sglang 0.5.12: serves",
    ]
    [dropped] = [line for line in lines if "error[E3L201]" in line]
    assert "sglang 0.5.9 drops 10 tensors called `layers.0.*`" in dropped
    # The releases from 0.5.9 on are 0.5.9, 0.5.10, 0.5.10.post1 and 0.5.11.
    assert dropped.endswith("(and 3 more of this rule)")
    assert f"eagle3-lint check {broken}" in lines[-1]


def test_the_message_is_short_whatever_was_found(broken: Path) -> None:
    report = refused(broken, targets=OLD).report
    [draft] = report.checkpoints
    [result] = draft.results
    [one] = [d for d in result.diagnostics if d.rule == "E3L201"]
    many = tuple(
        replace(one, rule=f"E3L2{n:02}", message="word " * 1000, severity=severity)
        for n, severity in enumerate(["warning"] * 5 + ["error"] * 7)
    )
    result = replace(result, diagnostics=many)
    error = eagle3_lint.GateError(Report((replace(draft, results=(result,)),)), "warning")
    lines = str(error).splitlines()
    # Errors before warnings, five rules of the twelve, and no line that fills a screen.
    assert [line[:15] for line in lines[2:7]] == [f"  error[E3L2{n:02}" + "]" for n in range(5, 10)]
    assert "7 more rules" in lines[7]
    assert max(map(len, lines[2:7])) < 300


def test_what_fails_is_up_to_the_caller(tmp_path: Path, broken: Path) -> None:
    # Bytes after the last tensor are an error, a name twice in the header is a warning (README).
    warned = write_case({"base": "llama", "container": "duplicate"}, tmp_path / "warned")
    eagle3_lint.gate(warned, targets=OLD)
    error = refused(warned, targets=OLD, fail_on="warning")
    assert "warning[E3L005]" in str(error)
    report = eagle3_lint.gate(broken, targets=OLD, fail_on="never")
    assert report.summary.errors > 0


def test_options_are_those_of_check(broken: Path) -> None:
    eagle3_lint.gate(broken, OLD, select=["E3L4"])
    with pytest.raises(TypeError, match="no_such_option"):
        eagle3_lint.gate(broken, OLD, no_such_option=1)


@pytest.mark.parametrize("how", [{"targets": ["sglnag"]}, {"fail_on": "errors"}, {"path": "gone"}])
def test_bad_input(good: Path, how: dict[str, Any]) -> None:
    with pytest.raises(eagle3_lint.InputError) as raised:
        eagle3_lint.gate(**{"path": good, **how})
    assert str(next(iter(how.values()))).strip("[]'") in str(raised.value)


def test_an_error_survives_pickling(broken: Path) -> None:
    error = refused(broken, targets=OLD)
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.report, again.fail_on) == (str(error), error.report, "error")


def test_a_process_without_torch_stays_without(good: Path) -> None:
    code = (
        "import sys, eagle3_lint\n"
        f"eagle3_lint.gate({str(good)!r}, targets={OLD})\n"
        "assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_module_does_not_hide_the_function() -> None:
    code = "import eagle3_lint.gating, eagle3_lint; assert callable(eagle3_lint.gate)"
    subprocess.run([sys.executable, "-c", code], check=True)


# -- ranks ----------------------------------------------------------------------------------------


def told_by_ranks(folder: Path) -> list[Any]:
    """What each gate gave on either rank."""
    ranks = [json.loads((folder / f"{rank}.json").read_text()) for rank in range(2)]
    # Well before the minute after which the group of ranks.py gives a rank up.
    assert max(rank["longest"] for rank in ranks) < 20
    return [rank["told"] for rank in ranks]


def pair(folder: Path, *drafts: str | Path) -> tuple[list[int], list[str], list[Any]]:
    """Two ranks without a launcher, which would end one when the other fails: codes, standard
    errors, and what each gate gave."""
    running = [
        subprocess.Popen(
            [PYTHON, "-m", "tests.integration.ranks", str(folder), *map(str, drafts)],
            cwd=ROOT,
            env=environment(RENDEZVOUS=f"file://{folder}/rendezvous", RANK=str(rank)),
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    try:
        errors = [process.communicate(timeout=TIMEOUT)[1] for process in running]
    finally:
        for process in running:
            process.kill()
    return [process.returncode for process in running], errors, told_by_ranks(folder)


def test_every_rank_fares_alike(tmp_path: Path, good: Path, broken: Path) -> None:
    need("torch")
    drafts = (good, tmp_path / "gone", "value", "unpicklable", "otherwise", "interrupt", broken)
    codes, errors, (first, second) = pair(tmp_path, *drafts)
    assert codes == [1, 1], errors
    report, gone, value, unpicklable, otherwise, interrupt, gate = range(7)

    assert first[report] == second[report]
    assert first[report][0] == "Report"
    assert json.loads(first[report][1]) == eagle3_lint.check(good, targets=OLD).to_json()
    assert first[gone] == second[gone]
    assert first[gone][0] == "InputError"
    assert str(tmp_path / "gone") in first[gone][1]
    assert first[value] == second[value] == ["ValueError", "a bug"]
    # What cannot travel is told.
    assert first[unpicklable] == ["UnpicklableError", "it holds a lock"]
    assert second[unpicklable][0] == "RuntimeError"
    assert "UnpicklableError: it holds a lock" in second[unpicklable][1]
    assert first[otherwise] == ["OtherwiseError", "number 7"]
    assert second[otherwise][0] == "RuntimeError"
    assert "OtherwiseError: number 7" in second[otherwise][1]
    assert first[interrupt][0] == "KeyboardInterrupt"
    assert second[interrupt] == ["RuntimeError", "on rank 0, KeyboardInterrupt"]
    # The last one ends both processes.
    assert first[gate] == second[gate] == ["GateError", str(refused(broken, targets=OLD))]
    assert all("GateError" in error and "sglang 0.5.9: broken" in error for error in errors)


@pytest.mark.parametrize("kind", ["good", "broken"])
def test_under_torchrun(tmp_path: Path, kind: str) -> None:
    need("torch")
    draft = write_case(GOOD if kind == "good" else BROKEN, tmp_path / kind)
    ran = python(
        *("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"),
        *("-m", "tests.integration.ranks", tmp_path, draft),
        cwd=ROOT,
    )
    assert ran.returncode == (0 if kind == "good" else 1), ran.stderr
    told = told_by_ranks(tmp_path)
    assert told[0] == told[1]
    assert told[0][0][0] == ("Report" if kind == "good" else "GateError")
