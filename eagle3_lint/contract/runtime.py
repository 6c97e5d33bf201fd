"""``runtime.toml`` of a runtime: its releases, and how a configuration reaches a draft class."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from functools import cache
from pathlib import Path
from re import fullmatch
from types import MappingProxyType
from typing import Any, Literal

from eagle3_lint.contract.model import KeyCondition, Raise
from eagle3_lint.contract.ranges import covers
from eagle3_lint.contract.rules_folder import read_toml, rules_folder
from eagle3_lint.frozen import frozen

#: Sections that each say one thing of some releases.
_TRAITS = ("draft_dtype", "inherits_quantisation", "one_kv_size", "buffer_of_draft_width")


@frozen
class ResolveStep:
    """One step from config.json to the architecture that is looked up, in the runtime's order.

    ``refuse`` raises · ``speculators`` lifts a nested speculators configuration to the top level ·
    ``class`` finds the configuration class of ``model_type`` and adds its defaults (``with`` names
    the class of a checkpoint that brings its own through ``auto_map``) · ``wrap`` copies the
    configuration into the class ``with`` · ``first_registered`` takes
    the first of the listed architectures that is known, if one is · ``registered`` raises unless
    one of them is known as it stands · ``replace`` puts another architecture in
    their place · ``prefix`` puts a word in front of each.

    Attributes:
        model_types, architectures: the step is taken only for these (empty: for any).
        unless_starts, unless_ends: the step is passed over for such architectures.
        when: expression over ``model_type``, ``architecture``, ``speculators`` (1 after the
            ``speculators`` step was taken), ``has_speculators_config``, ``has_auto_map``,
            ``has_model_type``, ``has_auto_config``,
            ``architectures`` (as written), ``architectures_type`` (what Python calls its type),
            ``architectures_count`` (how many) and the names of ``reads``.
        tensor: the step is taken only if a tensor of the checkpoint has such a name.
        present: dotted paths into the configuration; the step is taken only if each leads anywhere.
        reads: further names for ``when``, each with such a path; null where it leads nowhere.
            With ``_type`` behind it a name is what Python calls the value's type.
        to_type: ``replace``: the model_type that later steps see.
        copies: fields that ``speculators`` lifts, with the value an absent field gets.
        copies_if_set: fields that ``speculators`` lifts only when they are true.
        by_layer_type: ``speculators``: architecture per model_type of the layer configuration.
    """

    do: Literal[
        "refuse",
        "speculators",
        "class",
        "wrap",
        "first_registered",
        "registered",
        "replace",
        "prefix",
    ]
    source: str
    error: Raise | None = None
    model_types: tuple[str, ...] = ()
    architectures: tuple[str, ...] = ()
    unless_starts: tuple[str, ...] = ()
    unless_ends: tuple[str, ...] = ()
    into: str = ""
    when: str | None = None
    tensor: KeyCondition | None = None
    present: tuple[str, ...] = ()
    reads: Mapping[str, str] = field(default_factory=dict)
    to_type: str | None = None
    copies: Mapping[str, object] = field(default_factory=dict)
    copies_if_set: tuple[str, ...] = ()
    by_layer_type: Mapping[str, str] = field(default_factory=dict)


@frozen
class RuntimeRelease:
    """What one release of a runtime does before it builds a draft class.

    Attributes:
        drafts: architecture string → draft class.
        steps: the way from config.json to the architecture that is looked up.
        unknown: raised for an architecture that nothing is registered for.
        not_a_draft: raised when the architecture is a model, but no draft class.
        aux: how the ids of aux hidden states are read (see
            :mod:`eagle3_lint.simulate.aux_states`).
        runner: the model runner that was chosen (:meth:`started`), where the release has several.
        runners: which of them a plain start takes, by the target's architecture.
        aux_of_runner: runner → how that one reads the ids, where it is not as ``aux`` says.
        contexts: what is done with a draft that has fewer positions than the target model.
        last_state: target architectures that can hand over the state after their last layer; None
            when all can.
        traits: other things that hold of the release, by the section that says so.
    """

    runtime: str
    drafts: Mapping[str, str]
    draft_sources: Mapping[str, str]
    steps: tuple[ResolveStep, ...]
    unknown: Raise
    unknown_source: str
    not_a_draft: Raise
    not_a_draft_source: str
    aux: Mapping[str, Any]
    runner: str | None = None
    runners: tuple[Mapping[str, str], ...] = ()
    aux_of_runner: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    contexts: tuple[Mapping[str, Any], ...] = ()
    last_state: tuple[str, ...] | None = None
    traits: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def started(self, runner: str | None, architecture: str | None) -> RuntimeRelease:
        """The same release with the model runner that is asked for, or that it takes itself.

        Args:
            architecture: of the target model; None when that is not known.
        """
        if not self.runners:
            return self
        chosen = runner or self._plain(architecture or "")
        return replace(self, runner=chosen, aux=self.aux_of_runner.get(chosen, self.aux))

    def _plain(self, architecture: str) -> str:
        fitting = (
            r for r in self.runners if "targets" not in r or fullmatch(r["targets"], architecture)
        )
        return next(fitting)["default"]


def _step(entry: Mapping[str, Any]) -> ResolveStep:
    return ResolveStep(
        do=entry["do"],
        source=entry["source"],
        error=Raise.parse(entry["raises"]) if "raises" in entry else None,
        model_types=tuple(entry.get("model_types", ())),
        architectures=tuple(entry.get("architectures", ())),
        unless_starts=tuple(entry.get("unless_starts", ())),
        unless_ends=tuple(entry.get("unless_ends", ())),
        into=entry.get("with", ""),
        when=entry.get("when"),
        tensor=KeyCondition.parse(entry["tensor"]) if "tensor" in entry else None,
        present=tuple(entry.get("present", ())),
        reads=MappingProxyType(dict(entry.get("reads", {}))),
        to_type=entry.get("to_type"),
        copies=MappingProxyType(dict(entry.get("copies", {}))),
        copies_if_set=tuple(entry.get("copies_if_set", ())),
        by_layer_type=MappingProxyType(dict(entry.get("by_layer_type", {}))),
    )


class RuntimeFile:
    """The file of one runtime; ask it for a release."""

    def __init__(self, path: Path, raw: Mapping[str, Any] | None = None) -> None:
        self.path = path
        self.raw = read_toml(path) if raw is None else raw
        self.runtime: str = self.raw["runtime"]
        self.title: str = self.raw["title"]
        #: Python package whose releases these are, for ``@installed`` and ``pip download``.
        self.package: str = self.raw["package"]
        #: Known releases, oldest first.
        self.releases: tuple[str, ...] = tuple(self.raw["releases"])
        sections = (
            "draft", "resolve", "unknown", "not_a_draft", "aux", "aux_v1", "aux_v2", "runner",
            "context", *_TRAITS, "last_state",
        )  # fmt: skip
        entries = (entry for section in sections for entry in self.raw.get(section, ()))
        self._spans = tuple(dict.fromkeys(entry.get("in", "") for entry in entries))
        self._releases: dict[tuple[bool, ...], RuntimeRelease] = {}

    def _holding(self, section: str, release: str) -> list[Mapping[str, Any]]:
        entries: list[Mapping[str, Any]] = self.raw.get(section, [])
        return [e for e in entries if covers(e.get("in", ""), release)]

    def _only(self, section: str, release: str) -> Mapping[str, Any]:
        found = self._holding(section, release)
        if len(found) != 1:
            raise ValueError(f"{self.path}: {len(found)} [[{section}]] hold for {release}")
        return found[0]

    def release(self, release: str) -> RuntimeRelease:
        """What holds for ``release``; releases for which the same holds share one object."""
        signature = tuple(covers(span, release) for span in self._spans)
        if signature not in self._releases:
            self._releases[signature] = self._build(release)
        return self._releases[signature]

    def _build(self, release: str) -> RuntimeRelease:
        unknown = self._only("unknown", release)
        not_a_draft = self._only("not_a_draft", release)
        drafts = self._holding("draft", release)
        return RuntimeRelease(
            runtime=self.runtime,
            drafts={e["architecture"]: e["draft_class"] for e in drafts},
            draft_sources={e["architecture"]: e["source"] for e in drafts},
            steps=tuple(map(_step, self._holding("resolve", release))),
            unknown=Raise.parse(unknown["raises"]),
            unknown_source=unknown["source"],
            not_a_draft=Raise.parse(not_a_draft["raises"]),
            not_a_draft_source=not_a_draft["source"],
            aux=self._only("aux", release),
            runners=tuple(self._holding("runner", release)),
            aux_of_runner={
                runner: found[0]
                for runner in ("v1", "v2")
                if (found := self._holding(f"aux_{runner}", release))
            },
            contexts=tuple(self._holding("context", release)),
            last_state=tuple(t for e in self._holding("last_state", release) for t in e["targets"])
            if "last_state" in self.raw
            else None,
            traits={
                section: found[0]
                for section in _TRAITS
                if (found := self._holding(section, release))
            },
        )

    def first_release_of(self, draft_class: str) -> str | None:
        """The oldest known release in which some architecture string reaches ``draft_class``."""
        for release in self.releases:
            if draft_class in self.release(release).drafts.values():
                return release
        return None


@cache
def runtime_file(runtime: str, rules: Path | None = None) -> RuntimeFile:
    """The file of ``runtime``.

    Raises:
        FileNotFoundError: no such runtime is known.
    """
    folder = rules_folder() if rules is None else rules
    return RuntimeFile(folder / "contracts" / runtime / "runtime.toml")


@cache
def known_runtimes(rules: Path | None = None) -> tuple[str, ...]:
    """Names of all runtimes that have contracts, sorted."""
    folder = (rules_folder() if rules is None else rules) / "contracts"
    return tuple(sorted(p.parent.name for p in folder.glob("*/runtime.toml")))
