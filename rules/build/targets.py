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
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from packaging.version import Version

from eagle3_lint.probe.compare import READERS
from eagle3_lint.probe.origin import find_origin
from eagle3_lint.probe.reading import Reading
from eagle3_lint.probe.source_tree import SourceTree

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

TARGETS = Path(__file__).resolve().parent.parent / "targets"

#: Architecture → release → what was read.
Readings = dict[str, dict[str, Reading]]


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


class Table:
    """Everything that is known about the targets of one runtime."""

    def __init__(self, runtime: str, releases: Sequence[str], overrides: Mapping[str, Any]) -> None:
        self.runtime = runtime
        self.ranges = Ranges(releases)
        self.overrides = {
            kind: [entry for entry in entries if entry["runtime"] == runtime]
            for kind, entries in overrides.items()
        }
        self.complaints: list[str] = []

    def entry(self, name: str, seen: Mapping[str, Reading]) -> dict[str, Any]:
        """What the file says of one architecture, given what each release that has it says."""
        entry: dict[str, Any] = {"registered": self.ranges.hull(list(seen))}
        if all(reading.draft for reading in seen.values()):
            return {**entry, "draft": True, "source": _places(seen)}
        broken = self._broken(name, seen)
        feeds = {r: reading for r, reading in seen.items() if not reading.lacks and r not in broken}
        if feeds:
            entry["eagle3"] = self.ranges.spans(feeds)
        if why := self._grouped("case", {r: _case(seen[r], broken.get(r)) for r in seen}):
            entry["why_not"] = why
        if policies := self._grouped("policy", {r: feeds[r].policy for r in feeds}):
            entry["policy"] = policies
        for kind in self.overrides["model_type"]:
            if name in kind["of"]:
                entry["model_type"] = kind["of"][name]
        notes = [
            {"in": note["in"][name], "note": note["why"], "source": note["source"]}
            for note in [*self.overrides["defect"], *self.overrides["note"]]
            if name in note["in"]
        ]
        if notes:
            entry["notes"] = notes
        return {**entry, "source": _places(feeds or seen)}

    def _broken(self, name: str, seen: Mapping[str, Reading]) -> dict[str, str]:
        """Releases whose hook does not work, as a human found, with the case."""
        broken = {
            release: defect["case"]
            for defect in self.overrides["defect"]
            if name in defect["in"]
            for release in self.ranges.covered(defect["in"][name])
        }
        for release in broken:
            if release not in seen or seen[release].lacks:
                self.complaints.append(f"{name} {release}: has no hook that could be defective")
        sound = {
            release
            for checked in self.overrides["sound"]
            if name in checked["in"]
            for release in self.ranges.covered(checked["in"][name])
        }
        for release, reading in seen.items():
            if not reading.lacks and reading.doubts and release not in broken.keys() | sound:
                self.complaints.append(f"{name} {release}: {'; '.join(reading.doubts)}")
        return broken

    def _grouped(self, key: str, values: Mapping[str, str | None]) -> list[dict[str, str]]:
        """Ranges in which a value holds; releases without one are left out."""
        releases: dict[str, list[str]] = {}
        for release, value in values.items():
            if value is not None:
                releases.setdefault(value, []).append(release)
        return [
            {"in": span, key: value}
            for value, holding in releases.items()
            for span in self.ranges.spans(holding)
        ]

    def errors(self, entries: Mapping[str, Mapping[str, Any]]) -> list[dict[str, str]]:
        """What is raised in each state; complains when a state that occurs has not exactly one."""
        listed = [
            {key: value for key, value in error.items() if key != "runtime"}
            for error in self.overrides["error"]
        ]
        occurring = {("no-hook", release) for release in self.ranges.releases}
        for entry in entries.values():
            for why in entry.get("why_not", ()):
                occurring |= {(why["case"], r) for r in self.ranges.covered(why["in"])}
        for case, release in sorted(occurring):
            matching = [
                error
                for error in listed
                if error["state"] == case and release in self.ranges.covered(error["in"])
            ]
            if len(matching) != 1:
                self.complaints.append(f"{len(matching)} errors for {case} in {release}")
        return listed


def _case(reading: Reading, defect: str | None) -> str | None:
    """Why a release cannot feed a draft, other than for want of a hook."""
    case = defect or reading.lacks
    return None if case == "no-hook" else case


def _places(seen: Mapping[str, Reading]) -> list[str]:
    """Where it was read, in the first and in the newest of some releases."""
    ends = (next(iter(seen)), list(seen)[-1])
    return list(dict.fromkeys(f"{r} {seen[r].hook or seen[r].place}" for r in ends))


def read_releases(
    folder: Path, runtime: str, releases: Sequence[str]
) -> tuple[Readings, list[dict[str, Any]]]:
    """What every release says, and the lists of model types (where a runtime has any)."""
    readings: Readings = {}
    lists: dict[tuple[tuple[str, ...], str], list[tuple[str, str]]] = {}
    reader = READERS[runtime]
    for release in releases:
        origin = find_origin(str(folder / release), (runtime,))
        tree = SourceTree(origin.files, runtime)
        found = reader.read(tree, origin.transformers)
        allowed = reader.whitelist(tree)
        if allowed is not None:
            same = lists.setdefault((allowed.substrings, allowed.raises), [])
            same.append((release, allowed.place))
        for name, reading in found.items():
            readings.setdefault(name, {})[release] = reading
    ranges = Ranges(releases)
    whitelists = [
        {
            "in": span,
            "model_types": list(words),
            "raises": message,
            "source": "; ".join(f"{r} {place}" for r, place in (where[0], where[-1])),
        }
        for (words, message), where in lists.items()
        for span in ranges.spans([release for release, _ in where])
    ]
    return readings, whitelists


def dump(table: Mapping[str, Any]) -> str:
    """JSON with one architecture a line, so that a new release shows as a short diff."""

    def compact(value: object) -> str:
        return json.dumps(value, ensure_ascii=False, separators=(", ", ": "))

    lines = [
        f"{compact(key)}: {compact(value)}"
        for key, value in table.items()
        if key != "architectures"
    ]
    entries = [f"{compact(k)}: {compact(v)}" for k, v in sorted(table["architectures"].items())]
    return "{\n" + ",\n".join([*lines, '"architectures": {\n' + ",\n".join(entries)]) + "\n}}\n"


def build(folder: Path, runtime: str) -> str:
    """The text of ``rules/targets/<runtime>.json``.

    Raises:
        SystemExit: something was read that a human has to look at first.
    """
    overrides = tomllib.loads((TARGETS / "overrides.toml").read_text(encoding="utf-8"))
    overrides.pop("schema")
    releases = unpacked(folder, runtime)
    readings, whitelists = read_releases(folder, runtime, releases)
    table = Table(runtime, releases, overrides)
    entries = {name: table.entry(name, seen) for name, seen in readings.items()}
    errors = table.errors(entries)
    if table.complaints:
        raise SystemExit("\n".join([f"{runtime}: look at these first:", *table.complaints]))
    return dump(
        {
            "schema": "eagle3-lint/targets/1",
            "runtime": runtime,
            "releases": releases,
            "errors": errors,
            "whitelists": whitelists,
            "architectures": entries,
        }
    )


def main(folder: Path, runtimes: Sequence[str]) -> None:
    """Write the file of each runtime."""
    for runtime in runtimes:
        text = build(folder / runtime, runtime)
        (TARGETS / f"{runtime}.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:] or ["sglang", "vllm"])
