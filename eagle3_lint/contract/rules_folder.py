"""Where the rule data lie: beside the package in a checkout, inside it in an installed wheel."""

from __future__ import annotations

import json
import sys
from functools import cache
from pathlib import Path
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


@cache
def rules_folder() -> Path:
    """The folder of rule data.

    Raises:
        FileNotFoundError: the installation is damaged.
    """
    package = Path(__file__).resolve().parent.parent
    for candidate in (package / "_rules", package.parent / "rules"):
        if (candidate / "contracts").is_dir():
            return candidate
    raise FileNotFoundError(f"the rule data are missing beside {package}; reinstall eagle3-lint")


def read_toml(path: Path) -> dict[str, Any]:
    """Parse a TOML rule file; a syntax error names the file."""
    try:
        table: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"{path}: {error}") from None
    return table


def read_json(path: Path) -> Any:
    """Parse a JSON rule file."""
    return json.loads(path.read_text(encoding="utf-8"))
