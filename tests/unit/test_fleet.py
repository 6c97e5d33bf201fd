"""Many drafts: lists, parts of them, processes, and drafts that cannot be read."""

from __future__ import annotations

import io
import json
import os
import pickle
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from signal import SIGINT, SIGKILL, Signals
from typing import Any

import pytest
from click.testing import CliRunner, Result

import eagle3_lint.checking
from eagle3_lint.cli import main
from eagle3_lint.errors import InputError
from eagle3_lint.fleet import (
    Shard,
    check_many,
    check_one,
    check_question,
    exit_code,
    parse_shard,
    read_list,
    side_by_side,
    unreadable,
    usual_jobs,
)
from eagle3_lint.report.model import CheckpointReport, Report
from tests.drafts import llama_config, llama_tensors, write_draft
from tests.unit.report.samples import CASES, diagnostic, draft, report, result

TARGET = "sglang==0.5.9"


# -- lists --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "paths"),
    [
        (b"a\nb\n", ("a", "b")),
        (b"a\nb", ("a", "b")),
        (b"\n  \n# a comment\n  # another\na\n\n", ("a",)),
        (b"a\r\nb\r\n", ("a", "b")),
        (b"\xef\xbb\xbfa\n", ("a",)),
        (b"  a b \t\n", ("a b",)),
        (b"a#1\n", ("a#1",)),
        ("Entwürfe/ä\n".encode(), ("Entwürfe/ä",)),
        # U+2028 and form feeds may stand in a file name; only a newline ends a line.
        ("a\u2028b\nc\x0cd\n".encode(), ("a\u2028b", "c\x0cd")),
        (b"", ()),
        (b"# nothing\n", ()),
    ],
)
def test_a_list_has_one_path_a_line(tmp_path: Path, text: bytes, paths: tuple[str, ...]) -> None:
    (tmp_path / "list").write_bytes(text)
    assert read_list(str(tmp_path / "list")) == paths


def test_a_list_may_come_from_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"a\n\nb\n")))
    assert read_list("-") == ("a", "b")


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("missing", None, ("missing", "No such file", "one path a line")),
        (".", None, ("directory", "one path a line")),
        ("a\0b", None, ("null byte", "one path a line")),
        ("list", b"a\nb\n\xff\n", ("list:3:", "not UTF-8")),
    ],
)
def test_a_list_that_cannot_be_read(
    tmp_path: Path, name: str, content: bytes | None, words: tuple[str, ...]
) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError) as caught:
        read_list(f"{tmp_path}/{name}")
    assert all(word in str(caught.value) for word in words), caught.value


# -- parts --------------------------------------------------------------------------------------


def test_entry_k_is_in_part_k_mod_n() -> None:
    parts = [parse_shard(f"{i}/3").part(range(8)) for i in (1, 2, 3)]
    assert parts == [(0, 3, 6), (1, 4, 7), (2, 5)]


@pytest.mark.parametrize("length", [0, 1, 7, 8, 9, 100])
@pytest.mark.parametrize("of", [1, 2, 7, 8, 9])
def test_parts_share_the_list_evenly(length: int, of: int) -> None:
    parts = [Shard(index, of).part(range(length)) for index in range(1, of + 1)]
    assert sorted(entry for part in parts for entry in part) == list(range(length))
    assert max(map(len, parts)) - min(map(len, parts)) <= 1


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("0/8", ("1/8 to 8/8", "add 1")),
        ("9/8", ("1/8 to 8/8",)),
        ("1/0", ("no parts",)),
        ("0/0", ("no parts",)),
        ("3", ("I/N",)),
        ("-1/8", ("I/N",)),
        ("1/8/2", ("I/N",)),
        ("/8", ("I/N",)),
        ("", ("I/N",)),
        ("1.0/8", ("I/N",)),
        ("1/99999999999999999999", ("I/N",)),
    ],
)
def test_parts_that_there_are_not(text: str, words: tuple[str, ...]) -> None:
    with pytest.raises(InputError) as caught:
        parse_shard(text)
    assert all(word in str(caught.value) for word in (repr(text), *words)), caught.value


# -- one draft ----------------------------------------------------------------------------------


def bad_drafts(folder: Path) -> list[str]:
    """Paths that nothing can be known of."""
    names = ("not-json", "deep", "weights-alone", "a-model")
    not_json, deep, alone, model = (folder / name for name in names)
    for path in (not_json, deep, alone):
        write_draft(path, llama_config(), llama_tensors())
    (not_json / "config.json").write_text("{")
    (deep / "config.json").write_text("[" * 100_000)
    (alone / "config.json").unlink()
    layers = {f"model.layers.{i}.mlp.up_proj.weight": ("BF16", (8, 8)) for i in range(4)}
    write_draft(model, {"architectures": ["LlamaForCausalLM"]}, layers)
    (folder / "empty").mkdir()
    return [*map(str, (not_json, deep, alone, model, folder / "empty", folder / "gone")), "a\0b"]


def test_a_bad_draft_is_a_report_that_says_why(tmp_path: Path) -> None:
    for path in bad_drafts(tmp_path):
        with pytest.raises(InputError) as caught:
            eagle3_lint.checking.check(path, [TARGET])
        told = check_one(path, [TARGET])
        assert (told.path, told.results, told.error) == (path, (), str(caught.value))


def test_a_good_draft_is_what_check_says(tmp_path: Path) -> None:
    for name in CASES:
        path = draft(tmp_path, name)
        [told] = eagle3_lint.checking.check(
            path, [TARGET], "llama-3.1-8b", trained_on=[2, 16, 29]
        ).checkpoints
        assert check_one(path, [TARGET], "llama-3.1-8b", trained_on=[2, 16, 29]) == told
        assert told.error is None


def test_a_defect_of_ours_is_told_with_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    def defect(*_: Any, **__: Any) -> Report:
        raise KeyError("midlayer")

    monkeypatch.setattr(eagle3_lint.checking, "check", defect)
    error = check_one("some/draft").error or ""
    assert error.startswith("some/draft: a defect of eagle3-lint at test_fleet.py:")
    assert "KeyError: 'midlayer'" in error


def test_an_interruption_is_no_draft(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: Any, **__: Any) -> Report:
        raise KeyboardInterrupt

    monkeypatch.setattr(eagle3_lint.checking, "check", interrupted)
    with pytest.raises(KeyboardInterrupt):
        check_one("draft")


@pytest.mark.parametrize(
    ("question", "words"),
    [
        ({"targets": ["trt"]}, "no such runtime"),
        ({"targets": ["sglang>=99"]}, "no known release"),
        ({"target_model": "kimi-k25x"}, "did you mean"),
        ({"launch": "nothing.sh"}, "neither a file nor a command"),
        ({"targets": ["sglang"], "launch": "vllm serve m"}, "it starts vllm"),
    ],
)
def test_a_wrong_question_is_told_once(question: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        check_question(**question)
    with pytest.raises(InputError, match=words):
        check_many(["gone"], **question)


# -- processes ----------------------------------------------------------------------------------


def echo(told: CheckpointReport) -> CheckpointReport:
    return told


def test_a_report_goes_through_a_spawned_process(tmp_path: Path) -> None:
    """There and back, with everything that a report can hold."""
    checkpoints = [check_one(draft(tmp_path, name), ["sglang>=0.5.8"]) for name in CASES]
    checkpoints.append(unreadable("gone", "gone: no such file"))
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        back = list(pool.map(echo, checkpoints))
        afar = pool.submit(check_one, checkpoints[1].path, ["sglang>=0.5.8"]).result()
    assert back == checkpoints
    assert afar == checkpoints[1]
    assert any(d.fix for d in Report(tuple(back)).diagnostics())
    assert pickle.loads(pickle.dumps(Report(tuple(back)))) == Report(tuple(checkpoints))


def test_many_are_one_report_in_their_order(tmp_path: Path) -> None:
    good = [str(draft(tmp_path, name)) for name in ("broken", "good", "refused")]
    paths = [good[2], str(tmp_path / "gone"), good[0], good[1], good[2]]
    steps = []
    by_one = check_many(paths, [TARGET], step=lambda: steps.append(1))
    by_two = check_many(paths, [TARGET], jobs=2)
    assert by_one == by_two
    # The last one is the first one again.
    assert [c.path for c in by_one.checkpoints] == paths[:4]
    assert [c.error is not None for c in by_one.checkpoints] == [False, True, False, False]
    assert len(steps) == 4
    alone = [eagle3_lint.checking.check(path, [TARGET]) for path in (paths[0], *paths[2:4])]
    told = [c for c in by_one.checkpoints if c.error is None]
    assert told == [c for one in alone for c in one.checkpoints]


def die_of_13(entry: str) -> str:
    if entry in ("13", "14", "40"):
        os._exit(9)
    return f"{entry} done"


def test_a_process_that_dies_costs_one_entry() -> None:
    entries = [str(number) for number in range(41)]
    found = list(side_by_side(die_of_13, entries, 2, lambda entry: f"{entry} lost"))
    lost = ("13", "14", "40")
    assert found == [f"{e} lost" if e in lost else f"{e} done" for e in entries]


def process_of(entry: str) -> int:
    return os.getpid()


def process_beside_another(entry: str) -> int:
    """Answers when two processes were asked."""
    folder = Path(entry).parent
    (folder / str(os.getpid())).touch()
    _wait(lambda: len(list(folder.iterdir())) == 2)
    return os.getpid()


def never(entry: str) -> int:
    raise AssertionError(entry)


def test_one_job_is_this_process_and_two_are_two_others(tmp_path: Path) -> None:
    entries = [str(tmp_path / str(number)) for number in range(20)]
    assert set(side_by_side(process_of, entries, 1, never)) == {os.getpid()}
    # A single entry is not worth a process.
    assert set(side_by_side(process_of, entries[:1], 2, never)) == {os.getpid()}
    others = set(side_by_side(process_beside_another, entries, 2, never))
    assert len(others) == 2
    assert os.getpid() not in others
    assert list(side_by_side(process_of, [], 2, never)) == []


UNGUARDED = """\
from eagle3_lint.fleet import check_many
print(check_many(["one", "two"], jobs=2))
"""


def test_a_script_that_cannot_start_processes_is_told(tmp_path: Path) -> None:
    """multiprocessing runs the script again in each of them, which its guard is against."""
    (tmp_path / "script.py").write_text(UNGUARDED)
    done = subprocess.run(
        [sys.executable, tmp_path / "script.py"], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 1
    assert "InputError: no process can be started" in done.stderr
    assert '__name__ == "__main__"' in done.stderr


#: Takes a folder and seconds to wait; both processes are waiting before anything is done.
WAITING = """\
import os, sys, time
from eagle3_lint.fleet import side_by_side

def wait(seconds):
    open(os.path.join(sys.argv[1], f"{os.getpid()}"), "w").close()
    while len(os.listdir(sys.argv[1])) < 2:
        time.sleep(0.01)
    time.sleep(float(seconds))

if __name__ == "__main__":
    list(side_by_side(wait, sys.argv[2:], 2, str))
"""


def _runs(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"  # dead, and nobody has asked


def _wait(until: Callable[[], bool], seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not until():
        assert time.monotonic() < end
        time.sleep(0.05)


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
@pytest.mark.parametrize(
    ("sent", "seconds"),
    # Both at work; and one at work while the other waits for something to do.
    [(SIGKILL, ("600", "600")), (SIGINT, ("0", "0", "2"))],
)
def test_processes_leave_with_their_parent(
    tmp_path: Path, sent: Signals, seconds: tuple[str, ...]
) -> None:
    (tmp_path / "script.py").write_text(WAITING)
    pids = tmp_path / "pids"
    pids.mkdir()
    parent = subprocess.Popen(
        [sys.executable, tmp_path / "script.py", pids, *seconds],
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert parent.stderr is not None
    try:
        _wait(lambda: len(list(pids.iterdir())) == 2)
        if sent == SIGINT:  # a terminal sends it to all of them
            time.sleep(0.5)
            os.killpg(parent.pid, SIGINT)
            _, told = parent.communicate(timeout=60)
            # The parent's own; a worker that was interrupted would tell of it as well.
            assert told.count("Traceback") == 1
            assert told.endswith("KeyboardInterrupt\n")
        parent.kill()
        parent.wait()
        _wait(lambda: not any(_runs(int(path.name)) for path in pids.iterdir()))
    finally:
        parent.kill()
        parent.wait()
        parent.stderr.close()
        for path in pids.iterdir():
            if _runs(int(path.name)):
                os.kill(int(path.name), SIGKILL)


@pytest.mark.parametrize(
    ("processors", "drafts", "jobs"),
    # One process for 64 drafts, no more than processors, no more than eight.
    [(99, 10_000, 8), (2, 10_000, 2), (99, 192, 3), (99, 127, 1), (99, 1, 1), (1, 10_000, 1)],
)
def test_how_many_processes(
    monkeypatch: pytest.MonkeyPatch, processors: int, drafts: int, jobs: int
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(processors)), raising=False)
    assert usual_jobs(drafts) == jobs


# -- exit codes ---------------------------------------------------------------------------------

CLEAN = report(result(verdict="serves")).checkpoints
WARNED = report(result(diagnostic(severity="warning"))).checkpoints
WRONG = report(result(diagnostic())).checkpoints
UNREAD = (unreadable("gone", "gone: no such file"),)


@pytest.mark.parametrize(
    ("checkpoints", "fail_on", "code"),
    [
        ((), "error", 0),
        (CLEAN, "error", 0),
        (CLEAN + WARNED, "error", 0),
        (CLEAN + WARNED, "warning", 1),
        (CLEAN + WRONG, "error", 1),
        (CLEAN + WRONG, "never", 0),
        (CLEAN + UNREAD, "error", 1),
        (CLEAN + UNREAD, "never", 1),
        (UNREAD, "error", 2),
        (UNREAD + UNREAD, "never", 2),
    ],
)
def test_exit_codes(checkpoints: tuple[CheckpointReport, ...], fail_on: Any, code: int) -> None:
    assert exit_code(Report(checkpoints), fail_on) == code


# -- the command line ---------------------------------------------------------------------------


def run(*arguments: str, stdin: str | None = None) -> Result:
    return CliRunner().invoke(main, ["check", "-t", TARGET, *arguments], input=stdin)


def paths_of(done: Result) -> list[str]:
    return [c["path"] for c in json.loads(done.stdout)["checkpoints"]]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Drafts 0 to 4, of which 3 is one that SGLang 0.5.9 drops the layer of."""
    for number in range(5):
        layer = "layers.0." if number == 3 else "midlayer."
        write_draft(tmp_path / f"d{number}", llama_config(), llama_tensors(layer))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_list_and_paths_add_up(folder: Path) -> None:
    (folder / "lists").mkdir()
    (folder / "lists" / "list").write_text("# ours\nd3\n\nd0\nd1\n")
    done = run("d4", "d1", "--from-file", "lists/list", "--format", "json")
    assert done.exit_code == 1
    # Relative to the working directory; d1 where it stands first.
    assert paths_of(done) == ["d4", "d1", "d3", "d0"]
    assert "unreadable" not in json.loads(done.stdout)["summary"]


def test_standard_input(folder: Path) -> None:
    done = run("--from-file", "-", "--format", "json", stdin="d1\nd0\n")
    assert (done.exit_code, paths_of(done)) == (0, ["d1", "d0"])


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_an_unreadable_draft_is_an_entry(folder: Path, jobs: str) -> None:
    (folder / "list").write_text("d0\nnothing\nd2\n")
    done = run("--from-file", "list", "--jobs", jobs, "--format", "json")
    assert (done.exit_code, done.stderr) == (1, "")
    document = json.loads(done.stdout)
    assert [c["path"] for c in document["checkpoints"]] == ["d0", "nothing", "d2"]
    entry = document["checkpoints"][1]
    assert entry["error"] == "nothing: no such file or folder; give the draft's folder"
    assert entry["results"] == []
    assert document["summary"] == {"errors": 0, "warnings": 0, "fixable": 0, "unreadable": 1}
    assert all("error" not in document["checkpoints"][i] for i in (0, 2))


def test_the_text_says_it_too(folder: Path) -> None:
    done = run("d0", "nothing", "d3")
    assert done.exit_code == 1
    assert "nothing: unreadable\n  nothing: no such file or folder" in done.stdout
    assert done.stdout.endswith("; 1 with a safe fix; 1 of 3 drafts could not be read\n")
    clean = run("d0", "nothing")
    assert clean.exit_code == 1
    assert clean.stdout.endswith("No findings; 1 of 2 drafts could not be read\n")


def test_nothing_could_be_read(folder: Path) -> None:
    done = run("nothing", "nowhere", "--format", "json")
    assert done.exit_code == 2
    [line] = done.stderr.splitlines()
    assert line.startswith("eagle3-lint: no draft could be read: nothing: no such file")
    assert paths_of(done) == ["nothing", "nowhere"]


def test_a_single_path_is_as_it_always_was(folder: Path) -> None:
    done = run("nothing", "--format", "json")
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr == "eagle3-lint: nothing: no such file or folder; give the draft's folder\n"


def test_parts_of_a_list(folder: Path) -> None:
    (folder / "list").write_text("d0\nd1\nd2\nd3\nd4\n")
    parts = [run("--from-file", "list", "--shard", f"{i}/2", "--format", "json") for i in (1, 2)]
    assert [paths_of(part) for part in parts] == [["d0", "d2", "d4"], ["d1", "d3"]]
    assert [part.exit_code for part in parts] == [0, 1]


def test_a_page_of_a_list(folder: Path) -> None:
    (folder / "list").write_text("d0\nd1\nd2\n")
    page = run("--from-file", "list", "--shard", "1/2", "--format", "html")
    assert page.exit_code == 0
    assert [f'">d{number}</a>' in page.stdout for number in range(3)] == [True, False, True]
    # It shows what only a draft that is there has.
    (folder / "list").write_text("d0\nnothing\n")
    page = run("--from-file", "list", "--format", "html")
    assert (page.exit_code, page.stdout) == (2, "")
    assert "nothing: no such file" in page.stderr


def test_a_part_with_nothing_in_it_is_an_empty_report(folder: Path) -> None:
    done = run("d0", "d1", "--shard", "3/3", "--format", "json")
    assert (done.exit_code, paths_of(done)) == (0, [])
    assert "shard 3/3 is empty" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "--from-file LIST"),
        (("--from-file", "missing"), "the list cannot be read"),
        (("--from-file", "empty"), "the list names no draft"),
        (("d0", "--shard", "0/2"), "counted from 1/2"),
        (("d0", "d1", "--jobs", "0"), "--jobs"),
        (("d0", "d1", "-m", "kimi-k25x"), "did you mean"),
        (("d0", "d1", "-t", "trt"), "no such runtime"),
        (("d0", "d1", "--launch", "missing.sh"), "neither a file nor a command"),
    ],
)
def test_wrong_usage(folder: Path, arguments: tuple[str, ...], words: str) -> None:
    (folder / "empty").write_text("# nothing yet\n")
    done = run(*arguments)
    assert (done.exit_code, done.stdout) == (2, "")
    assert words in done.stderr


def test_a_bar_is_drawn_on_a_terminal_only(folder: Path) -> None:
    pty = pytest.importorskip("pty")
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "eagle3_lint.cli", "check", "d0", "d1", "-t", TARGET]
    on_terminal = subprocess.run(command, stdout=subprocess.PIPE, stderr=theirs, check=True)
    os.close(theirs)
    drawn = os.read(ours, 10_000).decode()
    os.close(ours)
    assert "checking" in drawn
    assert "100%" in drawn
    piped = subprocess.run(command, capture_output=True, check=True)
    assert piped.stderr == b""
    assert piped.stdout == on_terminal.stdout


def test_an_interrupted_fix_is_taken_back_first(folder: Path) -> None:
    """As the command does for a single path: what lies there half way is nobody's draft."""
    taken: list[str] = []
    from eagle3_lint.commands import options

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(options, "recovered", taken.append)
        run("d0", "d1", "--jobs", "1")
    assert taken == ["d0", "d1"]
