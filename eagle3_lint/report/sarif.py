"""The report as SARIF 2.1.0 (OASIS, errata 01), for code scanning and viewers.

Section numbers below are the specification's.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from eagle3_lint.catalogue import Catalogue, Rule
from eagle3_lint.diagnostic import Diagnostic, Edit, Fix, Place, Severity
from eagle3_lint.load.document import line_and_column, steps
from eagle3_lint.plan.json_text import with_value, without
from eagle3_lint.report.model import Report
from eagle3_lint.report.places import Found, findings, located, uri, visible
from eagle3_lint.version import __version__

_SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)
_LEVELS: dict[Severity, str] = {"error": "error", "warning": "warning", "info": "note"}
#: GitHub's code scanning tells results apart by the second key alone. Where it is not set, the
#: upload puts a hash of the line there, and one line's results for several targets become one.
_FINGERPRINTS = ("eagle3LintFinding/v1", "primaryLocationLineHash")

Object = dict[str, Any]


def render(report: Report, catalogue: Catalogue, root: Path, configs: Mapping[str, str]) -> str:
    """One run with a result for every finding and target, and the rules that they name.

    Args:
        catalogue: the rules that the findings are worded by.
        root: the repository's folder; files below it are told from there.
        configs: draft → text of its config.json, for fixes that are changes of that text. A fix of
            another kind, or of a draft that is not here, is told in words only.
    """
    found = list(findings(report, root))
    rules = sorted({one.diagnostic.rule for one in found})
    names = _Names()
    results = [
        _result(one, rules.index(one.diagnostic.rule), names, root, configs) for one in found
    ]
    driver = {
        "name": "eagle3-lint",
        "version": __version__,
        "rules": [_rule(catalogue.rule(id)) for id in rules],
    }
    run = {
        "tool": {"driver": driver},
        "invocations": [_invocation(report, root)],
        "columnKind": "unicodeCodePoints",
        **({"logicalLocations": names.objects} if names.objects else {}),
        "results": results,
    }
    log = {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}
    return json.dumps(log, indent=2, ensure_ascii=False) + "\n"


def _invocation(report: Report, root: Path) -> Object:
    """Drafts that could not be read are no results; they leave the run incomplete (3.58.6)."""
    unread = [
        _notification(checkpoint.path, checkpoint.error, root)
        for checkpoint in report.checkpoints
        if checkpoint.error is not None
    ]
    told = {"toolExecutionNotifications": unread} if unread else {}
    return {"executionSuccessful": not unread, **told}


def _notification(draft: str, error: str, root: Path) -> Object:
    place = {"artifactLocation": {"uri": uri(located(draft, "", root))}}
    return {
        "level": "error",
        "message": {"text": _message(visible(error))},
        "locations": [{"physicalLocation": place}],
    }


def _rule(rule: Rule) -> Object:
    page = rule.to_markdown()
    begin = " ".join(rule.page.partition("\n\n")[0].split())
    return {
        "id": rule.id,
        "name": rule.name,
        "shortDescription": {"text": rule.title},
        "fullDescription": {"text": f"{rule.title} {begin}"},
        "help": {"text": page, "markdown": page},
        # 3.49.12: absolute, which the page's place in the project is not.
        **({"helpUri": rule.url} if "://" in rule.url else {}),
        "defaultConfiguration": {"level": _LEVELS[rule.severity]},
    }


def _result(
    found: Found, rule_index: int, names: _Names, root: Path, configs: Mapping[str, str]
) -> Object:
    diagnostic, path = found.diagnostic, found.checkpoint.path
    first, others = _split(diagnostic)
    fix = _fix(found, configs.get(path), root)
    return {
        "ruleId": diagnostic.rule,
        "ruleIndex": rule_index,
        "level": _LEVELS[diagnostic.severity],
        "message": {"text": _message(found.text)},
        "locations": [_location(path, place, names, root) for place in first],
        **(
            {"relatedLocations": [_location(path, place, names, root) for place in others]}
            if others
            else {}
        ),
        "partialFingerprints": dict.fromkeys(_FINGERPRINTS, found.fingerprint),
        **({"fixes": [fix]} if fix is not None else {}),
        "properties": _properties(found),
    }


def _message(text: str) -> str:
    """Braces are doubled (3.11.5), and nothing turns into a link (3.11.6)."""
    return text.replace("{", "{{").replace("}", "}}").replace("](", "] (")


def _properties(found: Found) -> Object:
    diagnostic = found.diagnostic
    target = found.result.target.to_json()
    told: Object = {
        "target": {k: visible(v) if isinstance(v, str) else v for k, v in target.items()},
        "verdict": found.result.verdict,
        "effect": diagnostic.effect,
    }
    if diagnostic.source is not None:
        told["source"] = diagnostic.source
    if diagnostic.fix is not None:
        title, applicability = visible(diagnostic.fix.title), diagnostic.fix.applicability
        told["fix"] = {"title": title, "applicability": applicability}
    return told


# -- places -------------------------------------------------------------------------------------


def _split(diagnostic: Diagnostic) -> tuple[list[Place], list[Place]]:
    """The places of a finding, and those that are related to it.

    3.27.12: several only if each of them has to change, so those that the fix changes; else one.
    """
    places = list(dict.fromkeys(diagnostic.where)) or [Place("config.json")]
    edits = diagnostic.fix.edits if diagnostic.fix is not None else ()
    changed = {value for e in edits for name, value in e.fields if name in ("tensor", "pointer")}
    first = [p for p in places if p.tensor in changed or p.pointer in changed] or places[:1]
    return first, [p for p in places if p not in first]


def _location(path: str, place: Place, names: _Names, root: Path) -> Object:
    physical: Object = {"artifactLocation": {"uri": uri(located(path, place.file, root))}}
    if place.line is not None:
        # A binary file has no lines (3.30.1), and a tensor's bytes are seldom what is wrong.
        physical["region"] = {"startLine": place.line}
    logical = []
    if place.tensor is not None:
        name = visible(place.tensor)
        # 3.33.7 has no kind for it: a tensor is no member of a type, nor a property of a JSON
        # text, although the header lists it as one. So the kind is our own, as it allows.
        logical = [{"name": name, "fullyQualifiedName": name, "kind": "tensor"}]
    elif place.pointer:
        logical = [names.of(place.pointer)]
    return {"physicalLocation": physical, **({"logicalLocations": logical} if logical else {})}


class _Names:
    """Logical locations in config.json, with those that they are nested in (3.33.8)."""

    def __init__(self) -> None:
        self.objects: list[Object] = []
        self._index: dict[str, int] = {}

    def of(self, pointer: str) -> Object:
        """A reference to a JSON pointer's logical location; it says its name as well."""
        index = self._add(pointer, _kind(pointer))
        told = {k: v for k, v in self.objects[index].items() if k != "parentIndex"}
        return {**told, "index": index}

    def _add(self, pointer: str, kind: str) -> int:
        if pointer not in self._index:
            parent, _, _ = pointer.rpartition("/")
            inner = "array" if _kind(pointer) == "value" else "object"
            above = {"parentIndex": self._add(parent, inner)} if parent else {}
            told = {
                "name": visible(steps(pointer)[-1]),
                "fullyQualifiedName": visible(pointer),
                "kind": kind,
            }
            self._index[pointer] = len(self.objects)
            self.objects.append({**told, **above})
        return self._index[pointer]


def _kind(pointer: str) -> str:
    """An element of a list is a value, a member of an object a property (3.33.7)."""
    return "value" if pointer.rpartition("/")[2].isdecimal() else "property"


# -- fixes --------------------------------------------------------------------------------------


def _fix(found: Found, config: str | None, root: Path) -> Object | None:
    """A safe fix that changes nothing but the text of config.json, as a change of that text."""
    fix = found.diagnostic.fix
    if fix is None or config is None or not _is_of_config(fix):
        return None
    try:
        replacement = _replacement(config, _edited(config, fix.edits))
    except ValueError:  # the text is not that of the check
        return None
    if replacement is None:
        return None
    artifact = {"uri": uri(located(found.checkpoint.path, "config.json", root))}
    return {
        "description": {"text": _message(visible(fix.title))},
        "artifactChanges": [{"artifactLocation": artifact, "replacements": [replacement]}],
    }


def _is_of_config(fix: Fix) -> bool:
    # A viewer applies what it is given, so nothing that could change what the model computes.
    if fix.applicability != "safe" or not fix.edits:
        return False
    return all(edit.op in ("set_config", "remove_config") for edit in fix.edits)


def _edited(text: str, edits: Iterable[Edit]) -> str:
    for edit in edits:
        fields = dict(edit.fields)
        pointer = str(fields["pointer"])
        set_it = edit.op == "set_config"
        text = with_value(text, pointer, fields["value"]) if set_it else without(text, pointer)
    return text


def _replacement(old: str, new: str) -> Object | None:
    """The one stretch in which the texts differ (3.57); None when they do not."""
    if old == new:
        return None
    begin = _alike(old, new)
    tail = _alike(old[begin:][::-1], new[begin:][::-1])
    end = len(old) - tail
    line, column = line_and_column(old, begin)
    end_line, end_column = line_and_column(old, end)
    region = {
        "startLine": line, "startColumn": column, "endLine": end_line, "endColumn": end_column,
    }  # fmt: skip
    return {"deletedRegion": region, "insertedContent": {"text": new[begin : len(new) - tail]}}


def _alike(one: str, other: str) -> int:
    """How many characters the texts begin with alike."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((i for i, (a, b) in pairs if a != b), min(len(one), len(other)))
