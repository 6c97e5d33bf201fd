"""What a user asks for with ``-t``: ``sglang==0.5.9``, ``vllm>=0.12,<0.22``, ``sglang``.

``sglang@installed`` asks for what this Python environment has, ``sglang@FOLDER`` for the sources in
a folder or a wheel: their release, and what a patch made of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from eagle3_lint.contract.runtime import known_runtimes, runtime_file
from eagle3_lint.errors import InputError
from eagle3_lint.frozen import frozen

_SPEC = re.compile(r"\s*([A-Za-z][A-Za-z0-9_.-]*?)\s*(@.+|(?:[<>=!~].*)?)\s*$")
_EXACT = re.compile(r"==\s*([0-9][0-9A-Za-z.]*)$")


@frozen
class Target:
    """A runtime and a release of it.

    Attributes:
        known: False when no contract speaks of the release.
        sources: the sources that are asked for, where it is not a release as published: the
            runtime's name (the installed package), a folder or a wheel.
    """

    runtime: str
    release: str
    known: bool = True
    sources: str | None = None

    def __str__(self) -> str:
        return f"{self.runtime} {self.release}"


def parse_target(text: str, rules: Path | None = None) -> list[Target]:
    """The targets that ``text`` names, oldest release first.

    Raises:
        InputError: unknown runtime, no release range, or a range that covers no known release.
    """
    match = _SPEC.match(text)
    runtimes = known_runtimes(rules)
    runtime = match[1].lower().replace("_", "-") if match is not None else ""
    if match is None or runtime not in runtimes:
        names = ", ".join(runtimes)
        raise InputError(
            f"target {text!r}: no such runtime; known are {names} "
            "(write sglang, sglang==0.5.9 or 'vllm>=0.12,<0.22')"
        )
    releases = runtime_file(runtime, rules).releases
    wanted = match[2].strip()
    if wanted.startswith("@"):
        return [_of_sources(runtime, wanted[1:].strip(), releases, rules)]
    if not wanted:
        return [Target(runtime, releases[-1])]
    exact = _EXACT.match(wanted)
    if exact is not None:
        return [_exact(runtime, exact[1], releases)]
    return _in_range(text, runtime, wanted, releases)


def _exact(runtime: str, wanted: str, releases: Sequence[str]) -> Target:
    from packaging.version import InvalidVersion, Version

    if wanted in releases:
        return Target(runtime, wanted)
    try:
        version = Version(wanted)
    except InvalidVersion:
        raise InputError(f"target {runtime}=={wanted}: {wanted!r} is no release number") from None
    for release in releases:
        if Version(release) == version:
            return Target(runtime, release)
    return Target(runtime, wanted, known=False)


def _in_range(text: str, runtime: str, wanted: str, releases: Sequence[str]) -> list[Target]:
    from packaging.specifiers import InvalidSpecifier, SpecifierSet

    try:
        specifier = SpecifierSet(wanted)
    except InvalidSpecifier:
        raise InputError(
            f"target {text!r}: {wanted!r} is no release range (PEP 440, such as >=0.5.9,<0.5.12)"
        ) from None
    found = [
        Target(runtime, release)
        for release in releases
        if specifier.contains(release, prereleases=True)
    ]
    if not found:
        raise InputError(
            f"target {text!r}: no known release lies in that range; "
            f"known are {releases[0]} to {releases[-1]}"
        )
    return found


def _of_sources(runtime: str, wanted: str, releases: Sequence[str], rules: Path | None) -> Target:
    # Costs 60 ms, and only those pay who ask for sources.
    from eagle3_lint.probe.origin import find_origin

    package = runtime_file(runtime, rules).package
    sources = package if wanted == "installed" else wanted
    try:
        origin = find_origin(sources, known_runtimes(rules), package)
    except InputError as error:
        raise InputError(f"target {runtime}@{wanted}: {error}") from None
    if origin.release is None:
        raise InputError(
            f"target {runtime}@{wanted}: the sources do not say which release they are"
            f" (no dist-info, no _version.py); eagle3-lint probe {wanted} --release R compares them"
        )
    # A local version (0.5.9+patch) is that release with something done to it.
    found = _exact(runtime, origin.release.partition("+")[0], releases)
    return Target(found.runtime, found.release, found.known, sources)


def newest(rules: Path | None = None) -> list[Target]:
    """The newest known release of SGLang and vLLM: what is checked when nothing is asked for."""
    wanted = [name for name in ("sglang", "vllm") if name in known_runtimes(rules)]
    return [Target(name, runtime_file(name, rules).releases[-1]) for name in wanted]


def every(rules: Path | None = None) -> list[Target]:
    """Every known release of every runtime, oldest first within each."""
    return [
        Target(name, release)
        for name in known_runtimes(rules)
        for release in runtime_file(name, rules).releases
    ]


def parse_targets(texts: Iterable[str], rules: Path | None = None) -> list[Target]:
    """All targets that ``texts`` name, each once, in the order asked for."""
    found: dict[Target, None] = {}
    for text in texts:
        found.update(dict.fromkeys(parse_target(text, rules)))
    return list(found) or newest(rules)


def bare_runtimes(texts: Iterable[str]) -> tuple[str, ...]:
    """The runtimes that are asked for by name alone."""
    names = (text.strip().lower().replace("_", "-") for text in texts)
    return tuple(dict.fromkeys(name for name in names if name.replace("-", "").isalnum()))
