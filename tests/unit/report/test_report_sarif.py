"""SARIF 2.1.0: valid, and what the specification asks of places, fixes and messages."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from eagle3_lint.catalogue import Catalogue, Rule
from eagle3_lint.diagnostic import Diagnostic, Edit, Fix, Place
from eagle3_lint.report.model import Report
from eagle3_lint.report.places import visible
from eagle3_lint.report.sarif import render
from tests.unit.report.samples import (
    ODD,
    checked,
    diagnostic,
    draft,
    everything,
    one,
    report,
    result,
    safe,
    together,
)
from tests.unit.report.sarif_subset import LOG

ROOT = Path("/repository")
CATALOGUE = Catalogue()
NO_TEXTS: Mapping[str, str] = {}


def run(
    found: Report,
    root: Path = ROOT,
    configs: Mapping[str, str] = NO_TEXTS,
    catalogue: Catalogue = CATALOGUE,
) -> dict[str, Any]:
    """The one run of a valid log."""
    text = render(found, catalogue, root, configs)
    assert text.endswith("}\n")
    log = json.loads(text.encode("utf-8"))
    errors = [
        f"{e.json_path}: {e.message[:300]}" for e in Draft202012Validator(LOG).iter_errors(log)
    ]
    assert errors == []
    only: dict[str, Any] = log["runs"][0]
    return only


def results(found: Report, **how: Any) -> list[dict[str, Any]]:
    listed: list[dict[str, Any]] = run(found, **how)["results"]
    return listed


def only(found: Diagnostic, path: str = "/repository/a", **how: Any) -> dict[str, Any]:
    [told] = results(one(found, path), **how)
    return told


# -- the whole ----------------------------------------------------------------------------------


def test_real_drafts(tmp_path: Path) -> None:
    found = everything(tmp_path)
    told = run(found, root=tmp_path)
    rules = [rule["id"] for rule in told["tool"]["driver"]["rules"]]
    assert rules == sorted({d.rule for d in found.diagnostics()})
    assert len(told["results"]) == len(found.diagnostics())
    levels = {"error": "error", "warning": "warning", "info": "note"}
    for entry, seen in zip(told["results"], found.diagnostics(), strict=True):
        assert entry["ruleId"] == seen.rule == rules[entry["ruleIndex"]]
        assert entry["level"] == levels[seen.severity]
    marks = [entry["partialFingerprints"]["eagle3LintFinding/v1"] for entry in told["results"]]
    assert len(set(marks)) == len(marks)


def test_real_drafts_by_the_standard_s_own_schema(tmp_path: Path) -> None:
    """pydantic-sarif's model is generated from sarif-schema-2.1.0.json and allows nothing else."""
    model = pytest.importorskip("pydantic_sarif.model")
    schema = model.StaticAnalysisResultsFormatSarifVersion210JsonSchema
    config = {"/repository/a": '{"b": 1}'}
    fixed = diagnostic("m", Place("config.json", pointer="/b"), fix=safe(Edit.set_config("/b", 2)))
    nothing = Report(())
    for found, root in ((everything(tmp_path), tmp_path), (nothing, ROOT)):
        schema.model_validate_json(render(found, CATALOGUE, root, NO_TEXTS))
    schema.model_validate_json(render(one(fixed, "/repository/a"), CATALOGUE, ROOT, config))


def test_no_finding_is_a_run_without_results(tmp_path: Path) -> None:
    told = run(checked(draft(tmp_path, "good"), tmp_path), root=tmp_path)
    assert told["results"] == []
    assert told["tool"]["driver"]["rules"] == []
    assert told["invocations"] == [{"executionSuccessful": True}]


def test_the_target_is_part_of_a_result() -> None:
    first, second = results(
        report(result(diagnostic()), result(diagnostic(), release="0.5.10", verdict="refused"))
    )
    assert first["properties"] == {
        "target": {"runtime": "sglang", "release": "0.5.9", "model": "kimi-k2.5"},
        "verdict": "broken",
        "effect": "broken",
    }
    assert second["properties"]["target"]["release"] == "0.5.10"
    assert second["properties"]["verdict"] == "refused"
    assert first["partialFingerprints"] != second["partialFingerprints"]


def test_code_scanning_tells_results_apart() -> None:
    # docs.github.com, "SARIF support for code scanning": it only uses primaryLocationLineHash.
    fingerprints = only(diagnostic())["partialFingerprints"]
    assert fingerprints["primaryLocationLineHash"] == fingerprints["eagle3LintFinding/v1"]


# -- rules --------------------------------------------------------------------------------------


class _Elsewhere(Rule):
    """A rule whose page has an address."""

    @property
    def url(self) -> str:
        return "https://example.org/rules/E3L201"


def test_a_rule() -> None:
    rule = CATALOGUE.rule("E3L201")
    [told] = run(one(diagnostic()))["tool"]["driver"]["rules"]
    assert told["id"] == "E3L201"
    assert told["name"] == "tensor-dropped"
    assert told["shortDescription"]["text"] == rule.title
    assert told["fullDescription"]["text"].startswith(rule.title + " The loader of some releases")
    assert told["help"]["markdown"] == rule.to_markdown()
    assert told["defaultConfiguration"] == {"level": "error"}
    assert "helpUri" not in told  # 3.49.12: an absolute URI, which a place in the project is not


def test_a_page_with_an_address() -> None:
    catalogue = Catalogue()
    held = catalogue.rule("E3L201")
    fields = ("id", "name", "severity", "effect", "title", "messages", "page", "source")
    elsewhere = _Elsewhere(**{f: getattr(held, f) for f in fields}, good=(), bad=())
    catalogue._rules["E3L201"] = elsewhere
    [told] = run(one(diagnostic()), catalogue=catalogue)["tool"]["driver"]["rules"]
    assert told["helpUri"] == "https://example.org/rules/E3L201"


@pytest.mark.parametrize("id", CATALOGUE.files)
def test_every_rule_can_be_told(id: str) -> None:
    [told] = run(one(diagnostic(rule=id)))["tool"]["driver"]["rules"]
    # GitHub cuts both after 1024 characters.
    assert len(told["fullDescription"]["text"]) <= 1024
    assert told["shortDescription"]["text"].endswith(".")
    # 3.11.4.2: no HTML.
    assert "</" not in told["help"]["markdown"]


# -- places -------------------------------------------------------------------------------------


def test_a_line_of_the_configuration() -> None:
    place = Place("config.json", pointer="/eagle_config/ids/0", line=7)
    told = run(one(diagnostic("m", place), "/repository/a b"))
    [location] = told["results"][0]["locations"]
    assert location["physicalLocation"] == {
        "artifactLocation": {"uri": "a%20b/config.json"},
        "region": {"startLine": 7},
    }
    # 3.33.7, example 2 of JSON documents.
    assert told["logicalLocations"] == [
        {"name": "eagle_config", "fullyQualifiedName": "/eagle_config", "kind": "object"},
        {
            "name": "ids", "fullyQualifiedName": "/eagle_config/ids", "kind": "array",
            "parentIndex": 0,
        },
        {
            "name": "0", "fullyQualifiedName": "/eagle_config/ids/0", "kind": "value",
            "parentIndex": 1,
        },
    ]  # fmt: skip
    [logical] = location["logicalLocations"]
    assert logical == {
        "name": "0", "fullyQualifiedName": "/eagle_config/ids/0", "kind": "value", "index": 2,
    }  # fmt: skip


def test_a_pointer_is_listed_once() -> None:
    places = [Place("config.json", pointer=p) for p in ("/a/b", "/a/c", "/a/b", "/x~1y")]
    told = run(report(result(*(diagnostic("m", p) for p in places))))
    names = [logical["fullyQualifiedName"] for logical in told["logicalLocations"]]
    assert names == ["/a", "/a/b", "/a/c", "/x~1y"]
    assert told["logicalLocations"][3]["name"] == "x/y"  # RFC 6901
    for entry, place in zip(told["results"], places, strict=True):
        [logical] = entry["locations"][0]["logicalLocations"]
        assert names[logical["index"]] == place.pointer


def test_a_tensor_has_a_name_and_no_line() -> None:
    place = Place("model.safetensors", tensor="layers.0.hidden_norm.weight")
    [location] = only(diagnostic("m", place))["locations"]
    assert location == {
        "physicalLocation": {"artifactLocation": {"uri": "a/model.safetensors"}},
        "logicalLocations": [
            {
                "name": "layers.0.hidden_norm.weight",
                "fullyQualifiedName": "layers.0.hidden_norm.weight",
                "kind": "tensor",
            }
        ],
    }


def test_outside_of_the_repository() -> None:
    [location] = only(diagnostic(), path="/models/my draft")["locations"]
    uri = location["physicalLocation"]["artifactLocation"]["uri"]
    assert uri == "file:///models/my%20draft/config.json"


def tensors(*names: str) -> list[Place]:
    return [Place("model.safetensors", tensor=name) for name in names]


def named(locations: list[dict[str, Any]]) -> list[str]:
    return [location["logicalLocations"][0]["name"] for location in locations]


def test_several_locations_only_if_all_of_them_change() -> None:
    """3.27.12, and the rest is related."""
    places = tensors("a", "b", "c")
    renamed = safe(Edit.rename("a", "x"), Edit.rename("c", "y"))
    told = only(diagnostic("m", *places, fix=renamed))
    assert named(told["locations"]) == ["a", "c"]
    assert named(told["relatedLocations"]) == ["b"]

    told = only(diagnostic("m", *places, *places))
    assert named(told["locations"]) == ["a"]
    assert named(told["relatedLocations"]) == ["b", "c"]

    told = only(diagnostic("m", places[0]))
    assert "relatedLocations" not in told


# -- messages -----------------------------------------------------------------------------------


def test_braces_are_doubled_and_nothing_is_a_link() -> None:
    # 3.11.5: "{" and "}" SHALL be represented by "{{" and "}}"; 3.11.6: [text](destination).
    text = only(diagnostic('sglang 0.5.9 reads {"a": {}} in [x](http://y)'))["message"]["text"]
    assert text == 'sglang 0.5.9 reads {{"a": {{}}}} in [x] (http://y)'


def test_odd_characters() -> None:
    place = Place("model.safetensors", tensor=ODD)
    told = only(diagnostic(f"sglang 0.5.9 drops {ODD}", place, fix=safe(Edit.drop(ODD))))
    [logical] = told["locations"][0]["logicalLocations"]
    assert logical["name"] == visible(ODD)
    assert told["message"]["text"].startswith('sglang 0.5.9 drops a "b" <c> & d,e:f::g 100%0A')
    assert told["message"]["text"].replace("\r\n", "").isprintable()


# -- fixes --------------------------------------------------------------------------------------

CONFIG = """\
{
  "hidden_act": "silu",
  "max_position_embeddings": 4096,
  "eagle_config": {
    "eagle_aux_hidden_state_layer_ids": [2, 30, 58]
  },
  "é \U0001f600": [1, 2],
  "last": null
}
"""


def applied(text: str, fix: dict[str, Any]) -> str:
    """The text with a fix, as a viewer makes it.

    Lines end at a newline, with or without a carriage return (3.14.28); columns are code points;
    endColumn is one greater than the column of the last character (3.30.8).
    """
    [change] = fix["artifactChanges"]
    assert change["artifactLocation"] == {"uri": "a/config.json"}
    [replacement] = change["replacements"]
    region = replacement["deletedRegion"]
    lines = text.split("\n")

    def offset(line: int, column: int) -> int:
        # A line's last column is the one of its end.
        assert 1 <= column <= len(lines[line - 1].removesuffix("\r")) + 1
        return sum(len(one) + 1 for one in lines[: line - 1]) + column - 1

    begin = offset(region["startLine"], region["startColumn"])
    end = offset(region["endLine"], region["endColumn"])
    assert begin <= end
    return text[:begin] + replacement["insertedContent"]["text"] + text[end:]


def expected(*edits: Edit) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(CONFIG)
    for edit in edits:
        fields: dict[str, Any] = dict(edit.fields)
        inside = data
        *path, last = fields["pointer"][1:].split("/")
        for step in path:
            inside = inside[step]
        if edit.op == "set_config":
            inside[last] = fields["value"]
        else:
            del inside[last]
    return data


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize(
    "edits",
    [
        (Edit.set_config("/max_position_embeddings", 262144),),
        (Edit.set_config("/max_position_embeddings", 40960),),
        (Edit.set_config("/eagle_config/eagle_aux_hidden_state_layer_ids", [1, 29, 57]),),
        (Edit.set_config("/new", {"a": [1, "é"]}),),
        (Edit.set_config("/last", 7), Edit.set_config("/hidden_act", "gelu")),
        (Edit.remove_config("/last"),),
        (Edit.remove_config("/hidden_act"),),
        (Edit.remove_config("/eagle_config"), Edit.set_config("/é \U0001f600", [2])),
    ],
    ids=str,
)
def test_a_change_of_the_configuration_is_a_fix(edits: tuple[Edit, ...], end: str) -> None:
    text = CONFIG.replace("\n", end)
    place = Place("config.json", pointer=str(dict(edits[0].fields)["pointer"]), line=2)
    told = only(diagnostic("m", place, fix=safe(*edits)), configs={"/repository/a": text})
    [fix] = told["fixes"]
    assert fix["description"] == {"text": "put it right"}
    new = applied(text, fix)
    assert json.loads(new) == expected(*edits)
    # What is put in ends its lines as the text does.
    assert "\n" not in new.replace(end, "")
    assert told["properties"]["fix"] == {"title": "put it right", "applicability": "safe"}


@pytest.mark.parametrize(
    "fix",
    [
        Fix("look", "manual"),
        Fix("set", "unsafe", (Edit.set_config("/last", 1),)),
        Fix("rename", "safe", (Edit.rename("a", "b"),)),
        Fix("both", "safe", (Edit.set_config("/last", 1), Edit.rename("a", "b"))),
        # Already so.
        Fix("set", "safe", (Edit.set_config("/hidden_act", "silu"),)),
    ],
    ids=lambda fix: f"{fix.title}-{fix.applicability}",
)
def test_what_is_no_safe_change_of_a_text_is_told_in_words(fix: Fix) -> None:
    told = only(diagnostic(fix=fix), configs={"/repository/a": CONFIG})
    assert "fixes" not in told
    assert told["properties"]["fix"] == {"title": fix.title, "applicability": fix.applicability}


def test_a_draft_without_its_text_has_no_fix() -> None:
    found = diagnostic(fix=safe(Edit.set_config("/last", 1)))
    assert "fixes" not in only(found)
    assert "fixes" in only(found, configs={"/repository/a": CONFIG})
    # Somebody else wrote the file meanwhile.
    inside = diagnostic(fix=safe(Edit.set_config("/eagle_config/a", 1)))
    for text in ('{"eagle_config": 1}', "{", ""):
        assert "fixes" not in only(inside, configs={"/repository/a": text})


def test_a_real_fix_mends_the_draft(tmp_path: Path) -> None:
    path = draft(tmp_path, "positions")
    config = path / "config.json"
    found = checked(path, tmp_path, ["sglang==0.5.9"])
    assert {d.rule for d in found.diagnostics()} == {"E3L501"}
    text = config.read_text()
    [told] = results(found, root=tmp_path, configs={str(path): text})
    change = told["fixes"][0]["artifactChanges"][0]
    change["artifactLocation"]["uri"] = "a/config.json"
    config.write_text(applied(text, told["fixes"][0]))
    assert checked(path, tmp_path, ["sglang==0.5.9"]).diagnostics() == []


def test_results_of_two_drafts() -> None:
    place = Place("config.json", pointer="/b", line=1)
    found = diagnostic("m", place, fix=safe(Edit.set_config("/b", 2)))
    both = together(one(found, "/repository/a"), one(replace(found), "/repository/c"))
    first, second = results(both, configs={"/repository/c": '{"b": 1}'})
    assert "fixes" not in first
    [change] = second["fixes"][0]["artifactChanges"]
    assert change["artifactLocation"]["uri"] == "c/config.json"
