"""Several JSON reports → one, as if everything had been checked at once.

What a report says of a draft is taken as it stands, fields that a newer release added included;
only what is counted over all drafts is counted anew.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from eagle3_lint.diagnostic import Edit
from eagle3_lint.errors import InputError
from eagle3_lint.frozen import frozen
from eagle3_lint.report.model import SCHEMA, CheckpointReport, Report
from eagle3_lint.version import __version__

_ANEW = "write it with eagle3-lint check --format json"
_JSON = {
    str: "a string", int: "a whole number", bool: "true or false", list: "a list",
    dict: "an object", float: "a number", NoneType: "null",
}  # fmt: skip


@frozen
class Checked:
    """One draft of one report.

    Attributes:
        file: the report.
        version: of the eagle3-lint that checked the draft.
        raw: what the report says, word for word. checkpoint: as far as this release understands it.
    """

    file: str
    version: str
    raw: Mapping[str, Any]
    checkpoint: CheckpointReport


@frozen
class Merged:
    """Several reports as one.

    Attributes:
        drafts: in the order of the reports; one that several reports speak of stands where the
            first one has it, and is what the last one says.
        notes: what is not plain concatenation, a line each.
    """

    drafts: tuple[Checked, ...]
    notes: tuple[str, ...]

    @property
    def report(self) -> Report:
        return Report(tuple(draft.checkpoint for draft in self.drafts))

    def to_json(self) -> dict[str, object]:
        """The JSON format; a draft that another release checked has that release's ``tool``."""
        return {
            **self.report.to_json(),
            "checkpoints": [
                {k: v for k, v in draft.raw.items() if k != "tool"}
                | ({"tool": {"version": draft.version}} if draft.version != __version__ else {})
                for draft in self.drafts
            ],
        }


def merge(files: Iterable[str | Path]) -> Merged:
    """Read reports and make one of them.

    Raises:
        InputError: one of them is no report of this schema.
    """
    found: dict[str, Checked] = {}
    replaced: Counter[tuple[str, str]] = Counter()
    examples: dict[tuple[str, str], str] = {}
    for file in files:
        for draft in read_report(file):
            path = draft.checkpoint.path
            if path in found:
                pair = (found[path].file, draft.file)
                replaced[pair] += 1
                examples.setdefault(pair, path)
            found[path] = draft
    drafts = tuple(found.values())
    notes = [_replaced(*pair, count, examples[pair]) for pair, count in replaced.items()]
    return Merged(drafts, (*notes, *_versions(drafts)))


def _replaced(before: str, after: str, count: int, path: str) -> str:
    which = path if count == 1 else f"{count} drafts, the first of them {path}"
    where = f"twice in {after}" if before == after else f"in {before} and in {after}"
    return f"{where}: {which}; what is said last counts"


def _versions(drafts: Sequence[Checked]) -> list[str]:
    counts = Counter(draft.version for draft in drafts)
    if len(counts) < 2:
        return []
    told = ", ".join(f"{version} ({count})" for version, count in counts.items())
    return [f"checked by different releases of eagle3-lint: {told}; each draft says which"]


# -- one report ---------------------------------------------------------------------------------


def read_report(file: str | Path) -> list[Checked]:
    """The drafts of a report.

    Raises:
        InputError: it cannot be read, or is no report of this schema.
    """
    try:
        # Not load_document: a report on ten thousand drafts is larger than any config.json.
        text = Path(file).read_bytes().decode()
    except (OSError, ValueError) as error:
        raise InputError(f"{file}: cannot be read: {_reason(error)}; give a JSON report") from None
    try:
        raw = json.loads(text)
    except json.JSONDecodeError as error:
        where = f"{file}:{error.lineno}:{error.colno}"
        cut = " (it ends early)" if error.pos >= len(text.rstrip()) else ""
        raise InputError(f"{where}: not JSON: {error.msg}{cut}; {_ANEW}") from None
    except (RecursionError, ValueError) as error:
        raise InputError(f"{file}: not JSON that can be read: {error}; {_ANEW}") from None
    version = _version(file, raw)
    try:
        return [
            Checked(str(file), _own_version(entry, pointer) or version, entry, checkpoint)
            for entry, pointer, checkpoint in _checkpoints(raw)
        ]
    except _Unfit as error:
        newer = f" (eagle3-lint {version} wrote it)" if version != __version__ else ""
        raise InputError(f"{file}: {error.pointer or '/'}: {error}{newer}; {_ANEW}") from None


def _reason(error: Exception) -> str:
    if isinstance(error, UnicodeDecodeError):
        return "it is not UTF-8"
    return getattr(error, "strerror", None) or str(error)


def _version(file: str | Path, raw: Any) -> str:
    """The release that wrote a report.

    Raises:
        InputError: it is something else than a report of this schema.
    """
    schema = raw.get("schema") if isinstance(raw, dict) else None
    if schema != SCHEMA:
        begin, _, number = SCHEMA.rpartition("/")
        what = f"its schema is {schema!r}, and not {SCHEMA!r}" if schema else f"no {SCHEMA!r}"
        hint = _ANEW
        if isinstance(schema, str) and schema.startswith(f"{begin}/"):
            hint = f"this eagle3-lint ({__version__}) reads number {number}; merge with the other's"
        raise InputError(f"{file}: {what}; {hint}")
    tool = raw.get("tool")
    version = tool.get("version") if isinstance(tool, dict) else None
    if not isinstance(version, str):
        raise InputError(f"{file}: /tool/version: a string has to be there; {_ANEW}")
    return version


def _checkpoints(raw: Any) -> list[tuple[dict[str, Any], str, CheckpointReport]]:
    entries = raw.get("checkpoints")
    if not isinstance(entries, list):
        raise _Unfit("/checkpoints", "a list has to be there")
    pointers = [f"/checkpoints/{index}" for index in range(len(entries))]
    return [
        (entry, pointer, _build(CheckpointReport, entry, pointer))
        for entry, pointer in zip(entries, pointers, strict=True)
    ]


def _own_version(entry: Mapping[str, Any], pointer: str) -> str | None:
    """What a draft of a merged report says of who checked it."""
    if "tool" not in entry:
        return None
    tool = entry["tool"]
    version = tool.get("version") if isinstance(tool, dict) else None
    if not isinstance(version, str):
        raise _Unfit(f"{pointer}/tool/version", "a string has to be there")
    return version


# -- JSON → the model ---------------------------------------------------------------------------


class _Unfit(ValueError):
    """JSON that is not what the model says; the message says what should be there."""

    def __init__(self, pointer: str, message: str) -> None:
        super().__init__(message)
        self.pointer = pointer


@cache
def _hints(cls: type) -> dict[str, Any]:
    return get_type_hints(cls)


def _build(kind: Any, value: Any, pointer: str) -> Any:
    """A value of a type of the report's model, from what its ``to_json`` writes.

    The types are those that the model uses: frozen records, tuples of one type, literals, strings,
    numbers, and None beside any of them. Fields that a record does not have are passed over.

    Raises:
        _Unfit: it is none.
    """
    origin = get_origin(kind)
    if kind is Edit:
        return _edit(value, pointer)
    if origin in (Union, UnionType):
        if value is None:
            return None
        [inner] = [arm for arm in get_args(kind) if arm is not NoneType]
        return _build(inner, value, pointer)
    if origin is tuple:
        _expect(list, value, pointer)
        inner = get_args(kind)[0]
        return tuple(_build(inner, item, f"{pointer}/{i}") for i, item in enumerate(value))
    if origin is Literal:
        if value not in get_args(kind):
            known = ", ".join(get_args(kind))
            raise _Unfit(pointer, f"{_shown(value)} is none of {known}")
        return value
    if is_dataclass(kind):
        return _record(kind, value, pointer)
    _expect(kind, value, pointer)
    return value


def _record(cls: Any, value: Any, pointer: str) -> Any:
    _expect(dict, value, pointer)
    known = {}
    for field in fields(cls):
        if field.name in value:
            inner = _hints(cls)[field.name]
            known[field.name] = _build(inner, value[field.name], f"{pointer}/{field.name}")
        elif field.default is MISSING:
            raise _Unfit(f"{pointer}/{field.name}", "it is missing")
    return cls(**known)


def _edit(value: Any, pointer: str) -> Edit:
    """An edit is told as one object: what it does, and the fields that this takes."""
    _expect(dict, value, pointer)
    op = value.get("op")
    _expect(str, op, f"{pointer}/op")
    return Edit(op, tuple((name, field) for name, field in value.items() if name != "op"))


def _expect(kind: type, value: Any, pointer: str) -> None:
    # By type and not isinstance: true is no number.
    if type(value) is not kind:
        raise _Unfit(pointer, f"{_shown(value)} is not {_JSON[kind]}")


def _shown(value: Any) -> str:
    if isinstance(value, (dict, list)):
        return _JSON[type(value)]
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 40 else f"{text[:37]}..."
