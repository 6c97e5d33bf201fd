"""Which target models each release knows, and which of them can feed an EAGLE-3 draft.

    python rules/build/targets.py FOLDER [sglang] [vllm]

FOLDER holds the unpacked wheels, one folder per runtime and release
(``FOLDER/sglang/0.5.9/sglang/...`` beside ``FOLDER/sglang/0.5.9/sglang-0.5.9.dist-info``). Every
release in it is read by AST, nothing is imported, and rules/targets/<runtime>.json is written
anew. What cannot be read that way is in rules/targets/overrides.toml: confirmed defects, the
errors of each case, model types. The script stops when an architecture with the hook looks as if
its states reach nobody and no override says what is true.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from email.parser import HeaderParser
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.version import Version

import sglang_targets
import vllm_targets
from reading import Reading
from source_tree import SourceTree

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

TARGETS = Path(__file__).resolve().parent.parent / "targets"

#: Architecture → release → what was read.
Readings = dict[str, dict[str, Reading]]
Test = Callable[[Reading], bool]


class Ranges:
    """Turns lists of releases into PEP 440 ranges over the releases that were read."""

    def __init__(self, releases: Sequence[str]) -> None:
        self.releases = list(releases)
        self._place = {release: place for place, release in enumerate(self.releases)}

    def spans(self, wanted: Iterable[str]) -> list[str]:
        """One range per unbroken run; a run that reaches the newest release is left open."""
        runs: list[list[int]] = []
        for place in sorted(self._place[release] for release in wanted):
            if runs and runs[-1][1] == place - 1:
                runs[-1][1] = place
            else:
                runs.append([place, place])
        return [self._span(first, last) for first, last in runs]

    def _span(self, first: int, last: int) -> str:
        if last == len(self.releases) - 1:
            return f">={self.releases[first]}"
        if first == last:
            return f"=={self.releases[first]}"
        return f">={self.releases[first]},<={self.releases[last]}"

    def hull(self, wanted: Sequence[str]) -> str:
        """One range from the first to the last; what is missing between is taken out."""
        places = [self._place[release] for release in wanted]
        missing = set(range(min(places), max(places) + 1)) - set(places)
        holes = [f"!={self.releases[place]}" for place in sorted(missing)]
        return ",".join([self._span(min(places), max(places)), *holes])

    def covered(self, span: str) -> list[str]:
        """The releases in a range of ``==``, ``>=`` and ``<=``, compared as points in time."""
        tests = {"==": "__eq__", ">=": "__ge__", "<=": "__le__"}
        found = self.releases
        for clause in filter(None, span.split(",")):
            test, bound = tests[clause[:2]], Version(clause[2:])
            found = [r for r in found if getattr(Version(r), test)(bound)]
        return found


def unpacked(folder: Path, package: str) -> list[str]:
    """The releases in ``folder`` that are whole, oldest first."""
    whole = (path.name for path in folder.iterdir() if (path / package).is_dir())
    return sorted(whole, key=Version)


def transformers_pin(folder: Path) -> str:
    """The requirement on transformers in a wheel's METADATA, without extras."""
    text = next(folder.glob("*.dist-info/METADATA")).read_text(encoding="utf-8")
    for line in HeaderParser().parsestr(text).get_all("Requires-Dist", []):
        requirement = Requirement(line)
        if requirement.name == "transformers":
            return str(requirement.specifier)
    return ""


class Table:
    """Everything that is known about the targets of one runtime."""

    def __init__(
        self, runtime: str, ranges: Ranges, readings: Readings, overrides: Mapping[str, Any]
    ) -> None:
        self.runtime, self.ranges, self.readings = runtime, ranges, readings
        self.errors = [e for e in overrides["error"] if e["runtime"] == runtime]
        self.defects = [d for d in overrides["defect"] if d["runtime"] == runtime]
        self.sound = [s for s in overrides["sound"] if s["runtime"] == runtime]
        self.model_types = {
            name: entry["model_type"]
            for entry in overrides["model_type"]
            if entry["runtime"] == runtime
            for name in entry["architectures"]
        }
        self.complaints: list[str] = []

    def entry(self, name: str) -> dict[str, Any]:
        """What the file says of one architecture."""
        seen = self.readings[name]
        entry: dict[str, Any] = {"registered": self.ranges.hull(list(seen))}
        if all(reading.draft for reading in seen.values()):
            return {**entry, "draft": True, "source": _places(seen, lambda r: r.place)}
        broken = self._broken(name)
        feeds = [r for r, reading in seen.items() if reading.lacks is None and r not in broken]
        if feeds:
            entry["eagle3"] = self.ranges.spans(feeds)
        entry |= self._policies(seen, feeds)
        why = self._why_not(seen) + [self._defect(d) for d in self.defects if name in d["in"]]
        if why:
            entry["why_not"] = why
        if name in self.model_types:
            entry["model_type"] = self.model_types[name]
        fed = {r: seen[r] for r in feeds}
        entry["source"] = _places(fed or seen, lambda r: r.hook or r.place)
        return entry

    def _broken(self, name: str) -> set[str]:
        """Releases in which a hook is there and a human found that it does not work."""
        seen = self.readings[name]
        doubted = {r for r, reading in seen.items() if reading.lacks is None and reading.doubts}
        broken: set[str] = set()
        for entry in self.defects:
            if name in entry["in"]:
                broken |= set(self.ranges.covered(entry["in"][name]))
        stale = [r for r in broken if r not in seen or seen[r].lacks is not None]
        if stale:
            self.complaints.append(f"{name}: a defect covers {stale}, which have no hook")
        for entry in self.sound:
            if name in entry["architectures"]:
                doubted -= set(self.ranges.covered(entry.get("in", "")))
        for release in sorted(doubted - broken, key=Version):
            self.complaints.append(f"{name} {release}: {'; '.join(seen[release].doubts)}")
        return broken

    def _policies(self, seen: Mapping[str, Reading], feeds: Sequence[str]) -> dict[str, Any]:
        named: dict[str, list[str]] = {}
        for release in feeds:
            policy = seen[release].policy
            if policy is not None:
                named.setdefault(policy, []).append(release)
        spans = [
            {"in": span, "policy": policy}
            for policy, releases in named.items()
            for span in self.ranges.spans(releases)
        ]
        return {"policy": spans} if spans else {}

    def _why_not(self, seen: Mapping[str, Reading]) -> list[dict[str, Any]]:
        """The cases other than the usual one, that the hook is not there."""
        cases: dict[str, list[str]] = {}
        for release, reading in seen.items():
            if reading.lacks not in (None, "no-hook"):
                cases.setdefault(str(reading.lacks), []).append(release)
        return [
            {"in": span, "case": case}
            for case, releases in cases.items()
            for span in self.ranges.spans(releases)
        ]

    def _defect(self, entry: Mapping[str, Any]) -> dict[str, Any]:
        raise NotImplementedError


def _places(seen: Mapping[str, Reading], place: Callable[[Reading], str]) -> list[str]:
    """Where it was read in the first and in the newest of some releases."""
    first, last = next(iter(seen)), list(seen)[-1]
    return list(dict.fromkeys(f"{r} {place(seen[r])}" for r in (first, last)))
