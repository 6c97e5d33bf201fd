"""Settings from ``[tool.eagle3-lint]`` of the nearest pyproject.toml, or from eagle3-lint.toml.

pydantic guards this edge and is imported only when there is something to guard.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from eagle3_lint.contract.rules_folder import read_toml
from eagle3_lint.errors import InputError
from eagle3_lint.frozen import frozen

FailOn = Literal["error", "warning", "never"]


@frozen
class Settings:
    """What a project asks for; a command line option takes the place of its field.

    Attributes:
        source: the file they come from, None when there is none.
        ignore: rule (id, name or beginning of an id) → the reason it is ignored for.
    """

    source: Path | None = None
    targets: tuple[str, ...] = ()
    target_model: str | None = None
    select: tuple[str, ...] = ()
    ignore: Mapping[str, str] | None = None
    fail_on: FailOn = "error"


def _table(path: Path) -> Mapping[str, Any] | None:
    """The table of a file that speaks of us; None when it does not."""
    try:
        # A pyproject.toml without us is the usual case, and parsing it would cost more than this.
        if path.name == "pyproject.toml" and "tool.eagle3-lint" not in path.read_text("utf-8"):
            return None
        raw = read_toml(path)
    except (OSError, UnicodeDecodeError, ValueError) as error:
        raise InputError(f"settings {path}: cannot be read: {error}") from None
    if path.name == "pyproject.toml":
        table: Mapping[str, Any] | None = raw.get("tool", {}).get("eagle3-lint")
        return table
    return raw


def _nearest(start: Path) -> tuple[Path, Mapping[str, Any]] | None:
    for folder in (start, *start.parents):
        for name in ("eagle3-lint.toml", "pyproject.toml"):
            path = folder / name
            if path.is_file():
                table = _table(path)
                if table is not None:
                    return path, table
    return None


def _parse(path: Path, table: Mapping[str, Any]) -> Settings:
    from difflib import get_close_matches

    from pydantic import ValidationError

    from eagle3_lint.settings_model import SettingsModel

    known = [field.alias or name for name, field in SettingsModel.model_fields.items()]
    for key in table:
        if key not in known:
            close = get_close_matches(key, known, 1)
            hint = f"; did you mean {close[0]!r}?" if close else f"; known are {', '.join(known)}"
            raise InputError(f"settings {path}: unknown key {key!r}{hint}")
    try:
        model = SettingsModel.model_validate(dict(table))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        if where.startswith("ignore.") and first["type"] == "string_too_short":
            raise InputError(f"settings {path}: {where}: say why it is ignored") from None
        raise InputError(f"settings {path}: {where}: {first['msg']}") from None
    return Settings(
        path, model.targets, model.target_model, model.select, model.ignore, model.fail_on
    )


def load_settings(config: Path | None, start: Path) -> Settings:
    """The settings of ``config``, or of the nearest file above ``start``; defaults when none.

    Raises:
        InputError: the file is missing, or something in it is unknown or of the wrong kind.
    """
    if config is not None:
        if not config.is_file():
            raise InputError(f"settings {config}: no such file")
        return _parse(config, _table(config) or {})
    found = _nearest(start)
    return _parse(*found) if found is not None else Settings()
