"""TOML → the :class:`Contract` of one release.

Built-in files are trusted here; the tests validate them against ``rules/schema``. Releases for
which the same statements hold share one object, so that whoever plays contracts can reuse results.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

from eagle3_lint.contract.model import (
    AfterStatement,
    ConfigStatement,
    Contract,
    KeyCondition,
    KeyStatement,
    LayerStatement,
    LookupStatement,
    ParameterStatement,
    PresentStatement,
    Raise,
    ShapeStatement,
    SwitchStatement,
)
from eagle3_lint.contract.ranges import covers
from eagle3_lint.contract.rules_folder import read_toml, rules_folder

Statement = TypeVar("Statement")
_SECTIONS = ("config", "layer", "parameters", "present", "keys", "lookup", "shapes", "after")
_ERROR_NAMES = ("Error:", "Exception:")


def _raise_or_text(value: str | None) -> str | Raise | None:
    """``"ValueError: text"`` is an exception; anything else stays a word or an expression."""
    if value is not None and any(name in value for name in _ERROR_NAMES):
        return Raise.parse(value)
    return value


def _raise(entry: Mapping[str, Any], name: str) -> Raise | None:
    return Raise.parse(entry[name]) if name in entry else None


def _config(entry: Mapping[str, Any]) -> ConfigStatement:
    return ConfigStatement(
        source=entry["source"],
        name=entry.get("name", ""),
        read=tuple(entry.get("read", ())),
        value=entry.get("value"),
        take=entry.get("take", "value"),
        absent=_raise_or_text(entry.get("absent")),
        null=_raise_or_text(entry.get("null")),
        when=entry.get("when"),
        refuse=_raise(entry, "refuse"),
    )


def _parameter(entry: Mapping[str, Any]) -> ParameterStatement:
    return ParameterStatement(
        name=entry["name"],
        role=entry["role"],
        shape=tuple(entry["shape"]),
        loader=entry["loader"],
        initial=entry["initial"],
        source=entry["source"],
        parts=MappingProxyType(dict(entry.get("parts", {}))),
        each=entry.get("each"),
        when=entry.get("when"),
        used=entry.get("used"),
        from_target=entry.get("from_target"),
        lost=entry.get("lost", False),
    )


def _key(entry: Mapping[str, Any]) -> KeyStatement:
    return KeyStatement(
        do=entry["do"],
        source=entry["source"],
        condition=KeyCondition.parse(entry),
        when=entry.get("when"),
        find=entry.get("find", ""),
        into=entry.get("with", ""),
        part=entry.get("part", ""),
        partners=tuple(entry.get("partners", ())),
        at_start=entry.get("at_start", False),
        differs=_raise(entry, "differs"),
    )


def _lookup(entry: Mapping[str, Any]) -> LookupStatement:
    missing = _raise_or_text(entry["missing"])
    fused = _raise_or_text(entry.get("fused_missing", entry["missing"]))
    assert missing is not None and fused is not None
    return LookupStatement(
        tries=tuple(entry["try"]),
        missing=missing,
        fused_missing=fused,
        condition=KeyCondition.parse(entry),
        source=entry["source"],
        unknown=KeyCondition.parse(entry.get("unknown", {})),
        within=entry.get("within", ""),
    )


def _shape(entry: Mapping[str, Any]) -> ShapeStatement:
    rows, columns = _raise_or_text(entry.get("rows")), _raise_or_text(entry.get("columns"))
    return ShapeStatement(
        loader=entry["loader"],
        source=entry["source"],
        differs=_raise(entry, "differs"),
        rows_more=_raise_or_text(entry.get("rows_more")) or rows,
        rows_fewer=_raise_or_text(entry.get("rows_fewer")) or rows,
        columns_more=_raise_or_text(entry.get("columns_more")) or columns,
        columns_fewer=_raise_or_text(entry.get("columns_fewer")) or columns,
        columns_one=_raise_or_text(entry.get("columns_one")),
        fewer_dimensions=_raise(entry, "fewer_dimensions"),
        more_dimensions=_raise(entry, "more_dimensions"),
        repeats=entry.get("repeats", False),
        of_whole=entry.get("of_whole", False),
    )


def _switch(entry: Mapping[str, Any]) -> SwitchStatement:
    return SwitchStatement(
        name=entry["name"],
        source=entry["source"],
        read=tuple(entry.get("read", ())),
        absent=entry.get("absent", "null"),
        value=entry.get("value"),
        when=entry.get("when"),
    )


class ContractFile:
    """One file of ``rules/contracts``: every statement with its range."""

    def __init__(self, path: Path, raw: Mapping[str, Any] | None = None) -> None:
        self.path = path
        self.raw = read_toml(path) if raw is None else raw
        self.runtime: str = self.raw["runtime"]
        self.draft_class: str = self.raw["draft_class"]
        self.range: str = self.raw["in"]
        entries = (entry for section in _SECTIONS for entry in self.raw.get(section, ()))
        self._spans = tuple(dict.fromkeys(entry.get("in", "") for entry in entries))
        self._contracts: dict[tuple[bool, ...], Contract] = {}
        # The raw entries live as long as this object, so their identity is a key.
        self._statements: dict[int, Any] = {}

    def knows(self, release: str) -> bool:
        """Whether the file speaks of ``release``."""
        return covers(self.range, release)

    def contract(self, release: str) -> Contract:
        """The statements that hold for ``release``; equal selections give the same object."""
        # A file has a hundred statements and a dozen ranges, so the ranges are what is compared.
        signature = tuple(covers(span, release) for span in self._spans)
        if signature not in self._contracts:
            holding = {span for span, holds in zip(self._spans, signature, strict=True) if holds}
            chosen = {
                section: [e for e in self.raw.get(section, ()) if e.get("in", "") in holding]
                for section in _SECTIONS
            }
            self._contracts[signature] = self._build(release, chosen)
        return self._contracts[signature]

    def switches(self, release: str) -> dict[str, SwitchStatement]:
        """What the forward pass of ``release`` takes for each switch, by name.

        Apart from the contract, so that releases that load alike still share one.
        """
        entries = [e for e in self.raw.get("switch", ()) if covers(e.get("in", ""), release)]
        return {s.name: s for s in self._made(_switch, entries)}

    def _made(
        self, make: Callable[[Mapping[str, Any]], Statement], entries: list[Mapping[str, Any]]
    ) -> tuple[Statement, ...]:
        """The entries as statements; contracts of many releases share each of them."""
        for entry in entries:
            if id(entry) not in self._statements:
                self._statements[id(entry)] = make(entry)
        return tuple(self._statements[id(entry)] for entry in entries)

    def _build(self, release: str, chosen: Mapping[str, list[Mapping[str, Any]]]) -> Contract:
        layer = chosen["layer"]
        if len(layer) != 1:
            raise ValueError(f"{self.path}: {len(layer)} [[layer]] statements hold for {release}")
        shapes = self._made(_shape, chosen["shapes"])
        return Contract(
            runtime=self.runtime,
            draft_class=self.draft_class,
            release=release,
            config=self._made(_config, chosen["config"]),
            layer=LayerStatement(layer[0]["prefix"], layer[0]["each"], layer[0]["source"]),
            parameters=self._made(_parameter, chosen["parameters"]),
            present=tuple(
                PresentStatement(e["name"], KeyCondition.parse(e), e["source"])
                for e in chosen["present"]
            ),
            keys=self._made(_key, chosen["keys"]),
            lookups=self._made(_lookup, chosen["lookup"]),
            shapes=MappingProxyType({s.loader: s for s in shapes if not s.of_whole}),
            shapes_of_whole=MappingProxyType({s.loader: s for s in shapes if s.of_whole}),
            after=tuple(
                AfterStatement(
                    Raise.parse(e["refuse"]), e["when"], e["source"], e.get("because", "")
                )
                for e in chosen["after"]
            ),
            quantisations=tuple(self.raw.get("quantisations", ())),
        )


@cache
def contract_file(runtime: str, draft_class: str, rules: Path | None = None) -> ContractFile:
    """The contract of a draft class.

    Raises:
        FileNotFoundError: no contract is known for that class.
    """
    folder = rules_folder() if rules is None else rules
    return ContractFile(folder / "contracts" / runtime / f"{draft_class}.toml")
