"""``rules/launch/<runtime>.toml``: what the releases of a runtime take on their command line.

A file is a list of statements, each with the releases it holds for and where it was read; what a
section's statements say is written above them in the files.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

from eagle3_lint.contract.ranges import covers
from eagle3_lint.contract.rules_folder import read_toml, rules_folder
from eagle3_lint.errors import InputError
from eagle3_lint.frozen import frozen

Statement = Mapping[str, Any]


@frozen
class LaunchRelease:
    """What one release takes on its command line.

    Attributes:
        held: section → the statements that hold, in the order of the file.
        watched: beginnings of options; one that the release does not know ends the server.
        underscores: whether an underscore in an option's name is a dash.
    """

    runtime: str
    held: Mapping[str, tuple[Statement, ...]]
    watched: tuple[str, ...]
    underscores: bool

    def all(self, section: str, **fields: object) -> tuple[Statement, ...]:
        """The statements of a section that have these fields."""
        statements = self.held.get(section, ())
        return tuple(s for s in statements if all(s.get(k) == v for k, v in fields.items()))

    def first(self, section: str, **fields: object) -> Statement | None:
        """The first of them; None when nothing is said."""
        return next(iter(self.all(section, **fields)), None)


class LaunchFile:
    """The file of one runtime; ask it for a release."""

    def __init__(self, path: Path, raw: Mapping[str, Any] | None = None) -> None:
        self.path = path
        self.raw = read_toml(path) if raw is None else raw
        self.runtime: str = self.raw["runtime"]
        self.sections = {k: v for k, v in self.raw.items() if k != "watched" and type(v) is list}
        entries = (entry for section in self.sections.values() for entry in section)
        self._spans = tuple(dict.fromkeys(entry.get("in", "") for entry in entries))
        self._releases: dict[tuple[bool, ...], LaunchRelease] = {}

    def release(self, release: str) -> LaunchRelease:
        """What holds for ``release``; releases for which the same holds share one object."""
        signature = tuple(covers(span, release) for span in self._spans)
        if signature not in self._releases:
            self._releases[signature] = self._of(lambda span: covers(span, release))
        return self._releases[signature]

    def any_release(self) -> LaunchRelease:
        """Every statement at once, for what does not depend on the release."""
        return self._of(lambda span: True)

    def _of(self, holds: Any) -> LaunchRelease:
        held = {
            name: tuple(entry for entry in section if holds(entry.get("in", "")))
            for name, section in self.sections.items()
        }
        return LaunchRelease(
            runtime=self.runtime,
            held=MappingProxyType(held),
            watched=tuple(self.raw.get("watched", ())),
            underscores=self.raw.get("underscores", False),
        )


@cache
def launch_file(runtime: str, rules: Path | None = None) -> LaunchFile:
    """The file of ``runtime``.

    Raises:
        InputError: a user's rule folder has none.
    """
    folder = (rules_folder() if rules is None else rules) / "launch"
    path = folder / f"{runtime}.toml"
    if not path.is_file():
        raise InputError(f"{path}: no such file; copy launch/ of the built-in rules")
    return LaunchFile(path)


@cache
def launch_runtimes(rules: Path | None = None) -> tuple[str, ...]:
    """Names of the runtimes whose command lines can be read, not only written, sorted."""
    folder = (rules_folder() if rules is None else rules) / "launch"
    names = sorted(path.stem for path in folder.glob("*.toml"))
    return tuple(name for name in names if "command" in launch_file(name, rules).raw)
