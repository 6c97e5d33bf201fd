"""``rules/catalog``: one file per rule, with its words, its page and its cases."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from eagle3_lint.contract.rules_folder import read_toml, rules_folder
from eagle3_lint.diagnostic import Diagnostic, Effect, Finding, Severity
from eagle3_lint.frozen import frozen
from eagle3_lint.simulate.configure import fill

RULE_ID = re.compile(r"E3L\d{3}$")


@frozen
class Rule:
    """One rule as its file has it.

    Attributes:
        messages: variant → message template; ``message`` is the usual one.
        page: what ``explain`` prints, in Markdown.
        cases: small drafts for which it must (``bad``) and must not (``good``) speak.
    """

    id: str
    name: str
    severity: Severity
    effect: Effect
    title: str
    messages: Mapping[str, str]
    page: str
    source: str
    good: tuple[Mapping[str, Any], ...]
    bad: tuple[Mapping[str, Any], ...]

    @property
    def url(self) -> str:
        """The rule's page, relative to the project."""
        return f"docs/rules/{self.id}.md"

    def to_markdown(self) -> str:
        """The rule's page, as ``explain`` prints it and docs/rules holds it."""
        return (
            f"# {self.id} {self.name}\n\n{self.title}\n\n"
            f"Severity: {self.severity}. Effect: {self.effect}.\n\n{self.page}\n"
            f"Source: {self.source}\n"
        )

    def word(self, finding: Finding) -> Diagnostic:
        """The finding in this rule's words."""
        return Diagnostic(
            rule=self.id,
            name=self.name,
            severity=finding.severity or self.severity,
            effect=finding.effect or self.effect,
            message=" ".join(fill(self.messages[finding.variant], finding.values).split()),
            where=finding.where,
            source=finding.source,
            fix=finding.fix,
            url=self.url,
        )


def _read(path: Path) -> Rule:
    raw = read_toml(path)
    return Rule(
        id=raw["id"],
        name=raw["name"],
        severity=raw["severity"],
        effect=raw["effect"],
        title=raw["title"],
        messages={"message": raw["message"], **raw.get("messages", {})},
        page=raw["page"].strip() + "\n",
        source=raw["source"],
        good=tuple(raw.get("good", ())),
        bad=tuple(raw.get("bad", ())),
    )


class Catalogue:
    """The rules; a file is read only when its rule is asked for, to keep a plain check fast."""

    def __init__(self, rules: Path | None = None) -> None:
        self.folder = (rules_folder() if rules is None else rules) / "catalog"
        self._rules: dict[str, Rule] = {}
        self._files: dict[str, Path] | None = None

    @property
    def files(self) -> dict[str, Path]:
        """Rule id → file, sorted by id."""
        if self._files is None:
            found = sorted(self.folder.glob("E3L*.toml"))
            self._files = {path.name[:6]: path for path in found}
        return self._files

    def rule(self, id: str) -> Rule:
        """The rule ``id``.

        Raises:
            KeyError: there is no such rule.
        """
        if id not in self._rules:
            self._rules[id] = _read(self.files[id])
        return self._rules[id]

    def all(self) -> list[Rule]:
        """Every rule, sorted by id."""
        return [self.rule(id) for id in self.files]

    def find(self, text: str) -> list[Rule]:
        """Rules that ``text`` names: an id, a name, or the beginning of an id (``E3L2``)."""
        by_id = [id for id in self.files if id.startswith(text.upper())]
        if text.upper().startswith("E3L") and by_id:
            return [self.rule(id) for id in by_id]
        return [self.rule(id) for id, p in self.files.items() if p.stem[7:] == text.lower()]


@cache
def catalogue(rules: Path | None = None) -> Catalogue:
    """The rules of a folder; what one draft needed of them is there for the next."""
    return Catalogue(rules)
