"""What ``probe`` read, as text and as JSON."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterable, Iterator

from eagle3_lint.probe.compare import Probe
from eagle3_lint.report.text import Style

SCHEMA = "eagle3-lint/probe/1"


def render_text(probe: Probe, style: Style) -> str:
    """The report for people."""
    return "\n".join(_lines(probe, style)) + "\n"


def _lines(probe: Probe, style: Style) -> Iterator[str]:
    origin = probe.origin
    stated = origin.release or "of an unnamed release"
    yield f"{origin.runtime} {stated} ({origin.label})"
    yield f"held against the contract of {probe.against}"
    yield ""
    yield "draft classes"
    widest = max(map(len, probe.drafts), default=0)
    for architecture, (name, place) in sorted(probe.drafts.items()):
        built = "" if name == architecture else f"{name}, "
        yield f"  {architecture:<{widest}}  {built}{place}"
    yield ""
    yield "layer ids are read from"
    yield from (f"  {path}" for path in probe.id_paths or ("nowhere: the default is captured",))
    models = {name: r for name, r in probe.targets.items() if not r.draft}
    hooked = [name for name, reading in models.items() if reading.lacks is None]
    yield ""
    yield f"target models with the EAGLE-3 hook ({len(hooked)} of {len(models)})"
    yield from _wrapped(hooked, style.width)
    yield ""
    yield "target models without it"
    yield from _wrapped((name for name in models if name not in hooked), style.width)
    yield ""
    yield from _differences(probe, style)


def _wrapped(names: Iterable[str], width: int) -> list[str]:
    text = " ".join(sorted(names)) or "none"
    return textwrap.wrap(
        text, width, initial_indent="  ", subsequent_indent="  ", break_long_words=False
    )


def _differences(probe: Probe, style: Style) -> Iterator[str]:
    found = probe.differences
    if not found:
        yield style.paint("no difference", "serves") + f" from the contract of {probe.against}"
        return
    count = f"{len(found)} difference{'s' if len(found) > 1 else ''}"
    yield style.paint(count, "error") + f" from the contract of {probe.against}"
    for one in found:
        yield f"  {one.about}: {one.subject}" + (f" ({one.place})" if one.place else "")
        yield f"    the sources:  {one.theirs}"
        yield f"    the contract: {one.ours}"


def render_json(probe: Probe) -> str:
    """The report for scripts; ``schema`` names its form."""
    targets = {
        name: {
            "feeds_eagle3": reading.lacks is None,
            "lacks": reading.lacks,
            "id_policy": reading.policy,
            "place": reading.hook or reading.place,
        }
        for name, reading in sorted(probe.targets.items())
        if not reading.draft
    }
    report = {
        "schema": SCHEMA,
        "runtime": probe.origin.runtime,
        "release": probe.origin.release,
        "origin": probe.origin.label,
        "against": probe.against,
        "drafts": {a: {"class": c, "place": p} for a, (c, p) in sorted(probe.drafts.items())},
        "ids_read_from": list(probe.id_paths),
        "targets": targets,
        "differences": [one.to_json() for one in probe.differences],
    }
    return json.dumps(report, indent=2, ensure_ascii=False) + "\n"
