"""What a rule says about a draft: plain frozen data, ready for every report format."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import field
from typing import Literal

from eagle3_lint.frozen import frozen

Severity = Literal["error", "warning", "info"]
Effect = Literal["refused", "broken", "degraded", "none"]
Applicability = Literal["safe", "unsafe", "manual"]

SEVERITIES: tuple[Severity, ...] = ("info", "warning", "error")


@frozen
class Place:
    """Where something is: a tensor of a file, or a JSON pointer with its line (from 1)."""

    file: str
    tensor: str | None = None
    pointer: str | None = None
    line: int | None = None

    def to_json(self) -> dict[str, object]:
        fields = {"tensor": self.tensor, "pointer": self.pointer, "line": self.line}
        return {"file": self.file, **{k: v for k, v in fields.items() if v is not None}}


@frozen
class Edit:
    """One change to a checkpoint, as data; ``op`` says which, ``fields`` the rest."""

    op: Literal[
        "rename_tensor",
        "set_config",
        "remove_config",
        "drop_tensor",
        "split_tensor",
        "rebuild_d2t",
        "add_d2t",
        "sort_fc",
    ]
    fields: tuple[tuple[str, object], ...]

    @classmethod
    def rename(cls, tensor: str, to: str) -> Edit:
        return cls("rename_tensor", (("tensor", tensor), ("to", to)))

    @classmethod
    def set_config(cls, pointer: str, value: object) -> Edit:
        return cls("set_config", (("pointer", pointer), ("value", value)))

    @classmethod
    def remove_config(cls, pointer: str) -> Edit:
        return cls("remove_config", (("pointer", pointer),))

    @classmethod
    def drop(cls, tensor: str) -> Edit:
        return cls("drop_tensor", (("tensor", tensor),))

    @classmethod
    def split(cls, tensor: str, parts: Iterable[tuple[str, int]]) -> Edit:
        """Several tensors in the place of one: name and number of rows of each, in the order of its
        rows, all of which they take."""
        into = [{"to": name, "rows": rows} for name, rows in parts]
        return cls("split_tensor", (("tensor", tensor), ("parts", into)))

    @classmethod
    def rebuild_d2t(cls, tensor: str, source: Literal["absolute", "t2d"]) -> Edit:
        """New offsets: from the tokens that d2t holds instead, or from those that t2d marks."""
        return cls("rebuild_d2t", (("tensor", tensor), ("from", source)))

    @classmethod
    def add_d2t(cls, tensor: str, source: Literal["t2d", "list"] = "t2d") -> Edit:
        """A d2t where there is none: int64 offsets of the tokens that t2d marks, or of those that a
        side file lists."""
        return cls("add_d2t", (("tensor", tensor), ("from", source)))

    @classmethod
    def sort_fc(cls, tensor: str, order: Sequence[int]) -> Edit:
        """Column blocks of fc in another order: block j is what was block ``order[j]``."""
        return cls("sort_fc", (("tensor", tensor), ("order", list(order))))

    def to_json(self) -> dict[str, object]:
        return {"op": self.op, **dict(self.fields)}


@frozen
class Fix:
    """What mends a finding. ``manual`` is shown and never applied."""

    title: str
    applicability: Applicability
    edits: tuple[Edit, ...] = ()

    def to_json(self) -> dict[str, object]:
        return {
            "title": self.title,
            "applicability": self.applicability,
            "edits": [edit.to_json() for edit in self.edits],
        }


@frozen
class Finding:
    """What a check saw; the rule's file has the words.

    Attributes:
        rule: id, ``E3Lnnn``.
        variant: which of the rule's messages fits.
        values: what the message's placeholders stand for.
        effect: what it does to serving, when it is not the rule's usual effect.
        severity: likewise.
    """

    rule: str
    values: dict[str, object] = field(default_factory=dict)
    where: tuple[Place, ...] = ()
    source: str | None = None
    fix: Fix | None = None
    variant: str = "message"
    effect: Effect | None = None
    severity: Severity | None = None


@frozen
class Diagnostic:
    """A finding in its rule's words."""

    rule: str
    name: str
    severity: Severity
    effect: Effect
    message: str
    where: tuple[Place, ...]
    source: str | None
    fix: Fix | None
    url: str

    def to_json(self) -> dict[str, object]:
        return {
            "rule": self.rule,
            "name": self.name,
            "severity": self.severity,
            "effect": self.effect,
            "message": self.message,
            "where": [place.to_json() for place in self.where],
            "source": self.source,
            "fix": self.fix.to_json() if self.fix is not None else None,
            "url": self.url,
        }
