"""``rules/targets``: which target models a release knows, and which can feed an EAGLE-3 draft."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eagle3_lint.contract.model import Raise
from eagle3_lint.contract.ranges import covers
from eagle3_lint.contract.rules_folder import read_json, rules_folder
from eagle3_lint.contract.runtime import runtime_file
from eagle3_lint.releases import Target
from eagle3_lint.simulate.configure import fill
from eagle3_lint.target_model import Support, TargetModel

if TYPE_CHECKING:
    # Reading sources is for those who ask for them; a plain check does not import that.
    from eagle3_lint.probe.patch import Patch

#: ``yes``, ``refused``, ``unregistered``, ``unknown``, ``no-hook`` or another case of the table.
State = str
#: States that a runtime's sources show; the other cases of the tables were found by hand.
READABLE = frozenset(
    {"yes", "unregistered", "no-hook", "no-embedding", "no-mixin", "transformers-too-old"}
)

#: The entry of an architecture that no published release registers, only patched sources.
_NOWHERE: Mapping[str, Any] = {"registered": "==0"}


@cache
def _table(runtime: str, rules: Path | None) -> dict[str, Any]:
    folder = rules_folder() if rules is None else rules
    table: dict[str, Any] = read_json(folder / "targets" / f"{runtime}.json")
    return table


class SupportTable:
    """Answers for one folder of rules."""

    def __init__(self, rules: Path | None = None) -> None:
        self.rules = rules
        self._since: dict[tuple[str, str, str | None], list[str]] = {}

    def registered(self, runtime: str, release: str) -> Callable[[str], bool]:
        """Whether a release has a model class of some name."""
        known = _table(runtime, self.rules)["architectures"]

        def look_up(architecture: str) -> bool:
            entry = known.get(architecture)
            return entry is not None and covers(entry["registered"], release)

        return look_up

    def architectures(self, runtime: str, release: str) -> frozenset[str]:
        """Every architecture that a release registers."""
        entries = _table(runtime, self.rules)["architectures"]
        return frozenset(a for a, e in entries.items() if covers(e["registered"], release))

    def case(self, runtime: str, release: str, architecture: str) -> State:
        """What an architecture is to a release, model types aside: ``draft`` or a state."""
        entry = _table(runtime, self.rules)["architectures"].get(architecture)
        if entry is None or not covers(entry["registered"], release):
            return "unregistered"
        return "draft" if entry.get("draft") else self._hooked(entry, release)

    def policy(self, runtime: str, release: str, architecture: str) -> str | None:
        """How a release turns ids into aux states for an architecture, where that depends."""
        entry = _table(runtime, self.rules)["architectures"].get(architecture, {})
        return self._policy(entry, release)

    def model_types(self, runtime: str, release: str) -> tuple[str, ...] | None:
        """Substrings, one of which a target's model_type must contain; None: any will do."""
        whitelist = self._whitelist(_table(runtime, self.rules), release)
        return tuple(whitelist["model_types"]) if whitelist is not None else None

    def of(self, target: Target, model: TargetModel, patch: Patch | None = None) -> Support:
        """What ``target`` says of ``model``; what its own sources say goes before the table."""
        table = _table(target.runtime, self.rules)
        entry = table["architectures"].get(model.architecture)
        if entry is None and (patch is None or patch.target_model is None):
            return Support("unknown")
        entry = entry or _NOWHERE
        releases = runtime_file(target.runtime, self.rules).releases
        supported = self._supported(target.runtime, model, releases)
        state = self._state(table, entry, model, target.release)
        policy = self._policy(entry, target.release)
        if patch is not None and state in READABLE:
            read = patch.target_model
            state = "unregistered" if read is None else read.lacks or "yes"
            policy = read.policy if read is not None else None
        error, source = self._error(table, state, model, target.release)
        later = [r for r in releases if supported and covers(f">{supported[-1]}", r)]
        return Support(
            state=state,
            error_type=error.type,
            error_message=error.message,
            since=supported[0] if supported else None,
            until=supported[-1] if supported and later else None,
            policy=policy,
            note=self._note(entry, target.release),
            hint=self._hint(table, state, target.release),
            source=source,
        )

    def _supported(
        self, runtime: str, model: TargetModel, releases: Sequence[str]
    ) -> Sequence[str]:
        """The releases that can feed a draft from ``model``, worked out once per model."""
        key = (runtime, model.architecture, model.model_type)
        if key not in self._since:
            table = _table(runtime, self.rules)
            entry = table["architectures"].get(model.architecture, _NOWHERE)
            states = ((r, self._state(table, entry, model, r)) for r in releases)
            self._since[key] = [r for r, state in states if state == "yes"]
        return self._since[key]

    def _state(
        self, table: Mapping[str, Any], entry: Mapping[str, Any], model: TargetModel, release: str
    ) -> State:
        if not covers(entry["registered"], release):
            return "unregistered"
        # The list of model types is asked before the model is loaded and its hook is missed.
        whitelist = self._whitelist(table, release)
        if whitelist is not None and not self._listed(whitelist, entry, model):
            return "refused"
        return self._hooked(entry, release)

    @staticmethod
    def _hooked(entry: Mapping[str, Any], release: str) -> State:
        if any(covers(span, release) for span in entry.get("eagle3", ())):
            return "yes"
        cases = (w["case"] for w in entry.get("why_not", ()) if covers(w["in"], release))
        return next(cases, "no-hook")

    @staticmethod
    def _whitelist(table: Mapping[str, Any], release: str) -> Mapping[str, Any] | None:
        found: Mapping[str, Any] | None = next(
            (w for w in table["whitelists"] if covers(w["in"], release)), None
        )
        return found

    @staticmethod
    def _listed(whitelist: Mapping[str, Any], entry: Mapping[str, Any], model: TargetModel) -> bool:
        kind = model.model_type or entry.get("model_type", "")
        return any(word in kind for word in whitelist["model_types"])

    def _error(
        self, table: Mapping[str, Any], state: State, model: TargetModel, release: str
    ) -> tuple[Raise, str]:
        values = {"architecture": model.architecture, "model_type": model.model_type}
        if state == "refused":
            whitelist = self._whitelist(table, release)
            assert whitelist is not None
            values["known"] = repr(whitelist["model_types"])
            chosen = whitelist
        else:
            holding = (
                e for e in table["errors"] if e["state"] == state and covers(e["in"], release)
            )
            chosen = next(holding, {"raises": ":", "source": ""})
        error = Raise.parse(chosen["raises"])
        return Raise(error.type, fill(error.message, values)), chosen["source"]

    @staticmethod
    def _hint(table: Mapping[str, Any], state: State, release: str) -> str:
        """What not to try instead, as a template over the draft's sizes."""
        hints = (
            e.get("hint", "")
            for e in table["errors"]
            if e["state"] == state and covers(e["in"], release)
        )
        return next(hints, "")

    @staticmethod
    def _policy(entry: Mapping[str, Any], release: str) -> str | None:
        policies = (p["policy"] for p in entry.get("policy", ()) if covers(p["in"], release))
        return next(policies, None)

    @staticmethod
    def _note(entry: Mapping[str, Any], release: str) -> str:
        notes = [n["note"] for n in entry.get("notes", ()) if covers(n["in"], release)]
        return f"({notes[0]})" if notes else ""
