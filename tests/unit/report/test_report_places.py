"""Files as the repository has them, and fingerprints that last."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from eagle3_lint.diagnostic import Place
from eagle3_lint.report.model import Report
from eagle3_lint.report.places import findings, located, repository, uri, visible
from tests.unit.report.samples import (
    CASES,
    checked,
    diagnostic,
    draft,
    everything,
    one,
    report,
    result,
    together,
)

ROOT = Path("/repository")


def fingerprints(found: Report, root: Path = ROOT) -> list[str]:
    return [finding.fingerprint for finding in findings(found, root)]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("GITHUB_WORKSPACE", "CI_PROJECT_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("draft", "file", "path"),
    [
        ("/repository/drafts/a", "config.json", "drafts/a/config.json"),
        ("/repository/drafts/a/", "model.safetensors", "drafts/a/model.safetensors"),
        ("/repository", "config.json", "config.json"),
        ("/repository/drafts/../a", "config.json", "a/config.json"),
        ("/elsewhere/a", "config.json", "/elsewhere/a/config.json"),
        # A sibling whose name begins alike is not below.
        ("/repository-2/a", "config.json", "/repository-2/a/config.json"),
        # An index may name a shard outside of the draft's folder.
        ("/repository/a", "../model-2.safetensors", "model-2.safetensors"),
        # A launch script is where its own name says.
        ("/repository/a", "/repository/serve.sh", "serve.sh"),
        ("/repository/a", "", "a"),
        ("hf://org/name", "config.json", "hf://org/name/config.json"),
        ("hf://org/name@main/", "", "hf://org/name@main"),
    ],
)
def test_located(draft: str, file: str, path: str) -> None:
    assert located(draft, file, ROOT) == path


def test_located_from_the_working_directory(folder: Path) -> None:
    assert located("draft", "config.json", folder) == "draft/config.json"
    assert located(".", "config.json", folder.parent) == f"{folder.name}/config.json"
    assert located("draft", "serve.sh", folder) == "serve.sh"


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        # RFC 3986: unreserved characters and slashes stay; 4.2: a colon in the first segment
        # would begin a scheme.
        ("drafts/a-b_c.d~e/config.json", "drafts/a-b_c.d~e/config.json"),
        ("a b/50%/c#d?e:f", "a%20b/50%25/c%23d%3Fe%3Af"),
        ("é", "%C3%A9"),
        ("/a b/c", "file:///a%20b/c"),
        (os.fsdecode(b"a\xff"), "a%FF"),
        ("a\ud800", "a%5Cud800"),
        ("hf://org/name@main/a b", "hf://org/name@main/a%20b"),
    ],
)
def test_uri(path: str, expected: str) -> None:
    assert uri(path) == expected


@pytest.mark.parametrize("name", ["GITHUB_WORKSPACE", "CI_PROJECT_DIR"])
def test_the_repository_is_the_checkout(
    folder: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    (folder / "below").mkdir()
    monkeypatch.chdir(folder / "below")
    assert repository() == folder / "below"
    monkeypatch.setenv(name, str(folder))
    assert repository() == folder
    (folder / "link").symlink_to(folder)
    monkeypatch.setenv(name, str(folder / "link"))
    assert repository() == folder
    # Of another job, say: the working directory is not in it.
    (folder / "other").mkdir()
    monkeypatch.setenv(name, str(folder / "other"))
    assert repository() == folder / "below"
    monkeypatch.setenv(name, "")
    assert repository() == folder / "below"


def test_visible() -> None:
    assert visible("a\tb\nc é 中 \U0001f600") == "a\tb\nc é 中 \U0001f600"
    assert visible("\x00\x1b[31m\x85\ud800\uffff") == "\\x00\\x1b[31m\\x85\\ud800\\uffff"


# -- fingerprints -------------------------------------------------------------------------------


def test_a_fingerprint_outlives_a_move(folder: Path) -> None:
    before = fingerprints(checked(draft(folder, "broken"), folder), folder / "repository")
    (folder / "moved").mkdir()
    after = fingerprints(
        checked(draft(folder / "moved", "broken"), folder / "moved"), folder / "repository"
    )
    assert before == after != []


def test_a_fingerprint_outlives_lines_and_words(folder: Path) -> None:
    path = draft(folder, "ids")
    before = checked(path, folder)
    config = path / "config.json"
    lines = {p.line for d in before.diagnostics() for p in d.where if p.line is not None}
    assert lines
    assert 1 not in lines
    config.write_text(json.dumps(json.loads(config.read_text())))
    after = checked(path, folder)
    assert {p.line for d in after.diagnostics() for p in d.where if p.pointer} == {1}
    assert fingerprints(before, folder) == fingerprints(after, folder)

    place = Place("config.json", pointer="/a", line=3)
    said, said_better = diagnostic("bad", place), diagnostic("very bad", place)
    assert fingerprints(one(said)) == fingerprints(one(said_better))


def test_a_target_model_is_known_by_its_name() -> None:
    found = diagnostic()
    paths = ("/a/kimi/config.json", "/b/kimi", "kimi", "org/kimi")
    assert len({fingerprints(report(result(found, model=m)))[0] for m in paths}) == 1


def test_what_differs_has_another_fingerprint() -> None:
    place = Place("model.safetensors", tensor="a")
    found = diagnostic("m", place)
    reports = [
        one(found),
        one(replace(found, rule="E3L202")),
        one(replace(found, where=(replace(place, tensor="b"),))),
        one(replace(found, where=(replace(place, file="model-2.safetensors"),))),
        one(replace(found, where=(place, replace(place, tensor="b")))),
        one(replace(found, where=(Place("config.json", pointer="/a"),))),
        one(replace(found, where=(Place("config.json", pointer="/b"),))),
        one(replace(found, where=())),
        report(result(found, runtime="vllm")),
        report(result(found, release="0.5.10")),
        report(result(found, model=None)),
        one(found, "/repository/a/draft"),
        one(found, "/repository/b/draft"),
    ]
    assert len({fingerprints(r)[0] for r in reports}) == len(reports)


def test_the_order_of_the_places_does_not_matter() -> None:
    places = [Place("model.safetensors", tensor=name) for name in ("a", "b")]
    forth, back = diagnostic("m", *places), diagnostic("m", *reversed(places))
    assert fingerprints(one(forth)) == fingerprints(one(back))


def test_equal_findings_are_counted() -> None:
    found = diagnostic()
    first, second, third = fingerprints(report(result(found, found, found)))
    assert (second, third) == (f"{first}:2", f"{first}:3")


def test_every_finding_has_its_own(folder: Path) -> None:
    marks = fingerprints(everything(folder), folder)
    assert len(marks) > len(CASES)
    assert len(set(marks)) == len(marks)


# -- words --------------------------------------------------------------------------------------


def test_the_target_is_named_once() -> None:
    [named] = findings(one(diagnostic("sglang 0.5.9 drops it")), ROOT)
    assert named.text == "sglang 0.5.9 drops it"
    [unnamed] = findings(one(diagnostic("it is 64 wide")), ROOT)
    assert unnamed.text == "sglang 0.5.9 serving kimi-k2.5: it is 64 wide"


def test_a_finding_without_a_place_is_at_the_configuration() -> None:
    [found] = findings(one(diagnostic()), ROOT)
    assert found.place == Place("config.json")


def test_each_target_has_its_own_finding() -> None:
    shared = diagnostic()
    found = list(findings(together(report(result(shared), result(shared, release="0.5.10"))), ROOT))
    assert [f.result.target.release for f in found] == ["0.5.9", "0.5.10"]
