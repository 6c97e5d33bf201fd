"""A user's own rule folder is validated before it is used; the built-in one in the tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

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
        for complaint in validator.iter_errors(raw):
            place = "/".join(map(str, complaint.absolute_path))
            yield f"{path}: {place or 'top level'}: {complaint.message}"


def validate(folder: Path) -> None:
    """Refuse a rule folder that is not whole.

    Raises:
        InputError: no contracts in it, or a file that does not fit its schema.
    """
    if not (folder / "contracts").is_dir():
        raise InputError(f"{folder}: no rule folder (no contracts/ in it); copy the built-in rules")
    for complaint in complaints(folder):
        raise InputError(complaint)
