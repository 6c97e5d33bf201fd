"""What SARIF 2.1.0 says of the objects that we write, as a JSON Schema.

Stricter than the standard's own in one thing: what we do not write is not allowed. Section numbers
are those of the specification (errata 01).
"""

from __future__ import annotations

from typing import Any

Schema = dict[str, Any]


def _object(required: dict[str, Schema], optional: dict[str, Schema] | None = None) -> Schema:
    return {
        "type": "object",
        "required": sorted(required),
        "properties": {**required, **(optional or {})},
        "additionalProperties": False,
    }


def _list(items: Schema, least: int = 0, unique: bool = False) -> Schema:
    return {"type": "array", "items": items, "minItems": least, "uniqueItems": unique}


_TEXT: Schema = {"type": "string", "minLength": 1}
_COUNT: Schema = {"type": "integer", "minimum": 1}
_INDEX: Schema = {"type": "integer", "minimum": 0}
#: 3.10: a URI or a relative reference of RFC 3986: ASCII, and nothing that has to be escaped.
_URI: Schema = {"type": "string", "pattern": r"^([A-Za-z0-9._~!$&'()*+,;=:@/?#-]|%[0-9A-F]{2})+$"}
#: 3.27.10, 3.50.3
_LEVEL: Schema = {"enum": ["none", "note", "warning", "error"]}
#: 3.8: a property bag holds anything.
_BAG: Schema = {"type": "object"}
#: 3.11, 3.12: text is there; Markdown never without it.
_MESSAGE = _object({"text": _TEXT})
_MULTIFORMAT = _object({"text": _TEXT}, {"markdown": _TEXT})
#: 3.49
_RULE = _object(
    {
        "id": {"type": "string", "pattern": "^E3L[0-9]{3}$"},
        "name": _TEXT,
        "shortDescription": _MULTIFORMAT,
        "fullDescription": _MULTIFORMAT,
        "help": _MULTIFORMAT,
        "defaultConfiguration": _object({"level": _LEVEL}),
    },
    {"helpUri": {"type": "string", "pattern": "^[a-z]+://"}},
)
#: 3.33; kinds of JSON documents, and our own.
_NAME = {
    "name": _TEXT,
    "fullyQualifiedName": _TEXT,
    "kind": {"enum": ["object", "array", "property", "value", "tensor"]},
}
_ARTIFACT = _object({"uri": _URI})
#: 3.28 to 3.30: of a region that has a line.
_LOCATION = _object(
    {
        "physicalLocation": _object(
            {"artifactLocation": _ARTIFACT}, {"region": _object({"startLine": _COUNT})}
        )
    },
    {"logicalLocations": _list(_object(_NAME, {"index": _INDEX}), 1, unique=True)},
)
_PLACE = ("startLine", "startColumn", "endLine", "endColumn")
#: 3.55 to 3.57
_FIX = _object(
    {
        "description": _MESSAGE,
        "artifactChanges": _list(
            _object(
                {
                    "artifactLocation": _ARTIFACT,
                    "replacements": _list(
                        _object(
                            {
                                "deletedRegion": _object(dict.fromkeys(_PLACE, _COUNT)),
                                "insertedContent": _object({"text": {"type": "string"}}),
                            }
                        ),
                        1,
                    ),
                }
            ),
            1,
            unique=True,
        ),
    }
)
#: 3.27
_RESULT = _object(
    {
        "ruleId": {"type": "string", "pattern": "^E3L[0-9]{3}$"},
        "ruleIndex": _INDEX,
        "level": _LEVEL,
        "message": _MESSAGE,
        "locations": _list(_LOCATION, 1),
        # 3.5.4.2: a name, and a version behind a slash.
        "partialFingerprints": {
            "type": "object",
            "patternProperties": {"^[A-Za-z0-9]+(/v[1-9][0-9]*)?$": _TEXT},
            "additionalProperties": False,
        },
        "properties": _BAG,
    },
    {"relatedLocations": _list(_LOCATION, unique=True), "fixes": _list(_FIX, unique=True)},
)
#: 3.14
_RUN = _object(
    {
        "tool": _object(
            {
                "driver": _object(
                    {"name": _TEXT, "version": _TEXT, "rules": _list(_RULE, unique=True)}
                )
            }
        ),
        "invocations": _list(_object({"executionSuccessful": {"type": "boolean"}}), 1),
        "columnKind": {"enum": ["utf16CodeUnits", "unicodeCodePoints"]},
        "results": _list(_RESULT),
    },
    {"logicalLocations": _list(_object(_NAME, {"parentIndex": _INDEX}), unique=True)},
)
#: 3.13
LOG = _object(
    {
        "$schema": {"type": "string", "pattern": "^https://.*sarif-schema-2\\.1\\.0\\.json$"},
        "version": {"const": "2.1.0"},
        "runs": {**_list(_RUN, 1), "maxItems": 1},
    }
)
