"""A user's own rule folder is validated before it is used; the built-in one in the tests."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from eagle3_lint.contract.expression import ExpressionError, compile_expression
from eagle3_lint.contract.rules_folder import read_json, read_toml, rules_folder
from eagle3_lint.errors import InputError

#: Files of a rule folder → the schema they must fit, by name in ``schema/``.
_FILES = (
    ("contracts/*/runtime.toml", "runtime"),
    ("contracts/*/[!r]*.toml", "contract"),
    ("catalog/*.toml", "rule"),
    ("producers/*.toml", "producer"),
    ("launch/*.toml", "launch"),
    ("fused.toml", "fused"),
)


def rule_files(folder: Path) -> Iterator[tuple[Path, str]]:
    """Every TOML file of a rule folder with the name of its schema."""
    for pattern, schema in _FILES:
        for path in sorted(folder.glob(pattern)):
            yield path, schema


def complaints(folder: Path) -> Iterator[str]:
    """What is wrong with the files of a rule folder, a line each."""
    from jsonschema import Draft202012Validator

    schemas = rules_folder() / "schema"
    for path, name in rule_files(folder):
        validator = Draft202012Validator(read_json(schemas / f"{name}.schema.json"))
        try:
            raw: Any = read_toml(path)
        except ValueError as error:
            yield str(error)
            continue
        found = False
        for complaint in validator.iter_errors(raw):
            found = True
            place = "/".join(map(str, complaint.absolute_path))
            yield f"{path}: {place or 'top level'}: {complaint.message}"
        if name == "fused" and not found:
            yield from _about_parts(path, raw["fused"])


def _about_parts(path: Path, entries: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Sizes of parts that cannot be worked out, and parts that are named twice."""
    for number, entry in enumerate(entries):
        names = [part["name"] for part in entry["parts"]]
        if len(set(names)) < len(names):
            yield f"{path}: fused/{number}: a part is named twice"
        for part in entry["parts"]:
            try:
                compile_expression(part["rows"])
            except ExpressionError as error:
                yield f"{path}: fused/{number}: {error}"


def validate(folder: Path) -> None:
    """Refuse a rule folder that is not whole.

    Raises:
        InputError: no contracts in it, or a file that does not fit its schema.
    """
    if not (folder / "contracts").is_dir():
        raise InputError(f"{folder}: no rule folder (no contracts/ in it); copy the built-in rules")
    for complaint in complaints(folder):
        raise InputError(complaint)
