"""What a runtime's sources say, held against the contract of one of its releases."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, Protocol

from eagle3_lint.contract.ranges import covers
from eagle3_lint.contract.read import contract_file
from eagle3_lint.contract.runtime import RuntimeFile, runtime_file
from eagle3_lint.errors import InputError
from eagle3_lint.frozen import frozen
from eagle3_lint.probe import sglang_targets, vllm_targets
from eagle3_lint.probe.ids import paths_read
from eagle3_lint.probe.origin import Origin
from eagle3_lint.probe.parameters import parameters
from eagle3_lint.probe.reading import Reading, Whitelist
from eagle3_lint.probe.source_tree import ClassSource, SourceTree
from eagle3_lint.support import READABLE, SupportTable

About = Literal["draft class", "parameter", "target model", "id policy", "model types", "ids"]

_LAST = re.compile(r"\.(weight|bias|weight_scale_inv|weight_scale|input_scale)$")
_FILES = re.compile(r"[\w/]+\.py")


class Reader(Protocol):
    """What reads the sources of one runtime: a module of this package."""

    def read(self, tree: SourceTree, transformers: str, only: str = "") -> dict[str, Reading]:
        """Every architecture, or ``only`` one."""

    def drafts(self, tree: SourceTree) -> dict[str, ClassSource]:
        """EAGLE-3 architectures that are registered, with their classes."""

    def whitelist(self, tree: SourceTree) -> Whitelist | None:
        """The model types that may be targets, where a release has such a list."""


READERS: Mapping[str, Reader] = {"sglang": sglang_targets, "vllm": vllm_targets}


@frozen
class Difference:
    """One point on which sources and contract differ.

    Attributes:
        subject: what it is about: an architecture, a parameter, a field.
        theirs, ours: what the sources and what the contract say.
        place: file and line in the sources, below the package; empty when nothing is there.
    """

    about: About
    subject: str
    theirs: str
    ours: str
    place: str = ""

    def __str__(self) -> str:
        place = f" ({self.place})" if self.place else ""
        return f"{self.about} {self.subject}: {self.theirs}, not {self.ours}{place}"

    def to_json(self) -> dict[str, str]:
        return {
            "about": self.about,
            "subject": self.subject,
            "sources": self.theirs,
            "contract": self.ours,
            "place": self.place,
        }


@frozen
class Probe:
    """What was read.

    Attributes:
        origin: the sources.
        against: the release whose contract they were held against.
        drafts: EAGLE-3 architecture that is registered → its class and place.
        targets: architecture that is registered → what the sources say of it.
        id_paths: fields that layer ids are read from.
        differences: all that differ.
    """

    origin: Origin
    against: str
    drafts: Mapping[str, tuple[str, str]]
    targets: Mapping[str, Reading]
    id_paths: tuple[str, ...]
    differences: tuple[Difference, ...]


def release_of(origin: Origin, wanted: str | None, rules: Path | None = None) -> str:
    """The known release whose contract an origin is held against.

    Args:
        wanted: what the user asks for; None takes the release that the sources state, or the
            newest one older than it.

    Raises:
        InputError: the release is not known, or the sources state none.
    """
    from packaging.version import InvalidVersion, Version

    releases = runtime_file(origin.runtime, rules).releases
    named = wanted or origin.release
    if named is None:
        raise InputError(
            f"{origin.label}: the sources do not say which release they are; say whose contract"
            f" to hold them against (--release {releases[-1]})"
        )
    if named in releases:
        return named
    try:
        version = Version(named)
    except InvalidVersion:
        raise InputError(f"{named!r} is no release number of {origin.runtime}") from None
    public = Version(version.public)
    older = [r for r in releases if Version(r) <= (public if wanted else version)]
    same = [r for r in older if Version(r) == public]
    if wanted and not same:
        raise InputError(
            f"{origin.runtime} {wanted}: no contract knows that release; known are {releases[0]}"
            f" to {releases[-1]}"
        )
    if not older:
        raise InputError(
            f"{origin.label}: {named} is older than every known release of {origin.runtime}"
            f" ({releases[0]})"
        )
    return (same or older)[-1]


class Prober:
    """Reads one origin; each kind of fact is read when it is asked for."""

    def __init__(self, origin: Origin, against: str, rules: Path | None = None) -> None:
        """Prepare to read.

        Raises:
            InputError: nobody knows how to read this runtime.
        """
        self.origin, self.against, self.rules = origin, against, rules
        if origin.runtime not in READERS:
            raise InputError(f"{origin.runtime}: its sources cannot be read yet")
        self.reader = READERS[origin.runtime]
        self.tree = SourceTree(origin.files, origin.runtime)
        self.runtime: RuntimeFile = runtime_file(origin.runtime, rules)

    def probe(self) -> Probe:
        """Everything.

        Raises:
            InputError: the sources do not look like those of the runtime.
        """
        drafts = self.draft_classes()
        targets = self.targets()
        named = {a: (cls.name, self.tree.place(cls)) for a, cls in drafts.items()}
        differences = (
            *self._drafts(drafts),
            *self._parameters(drafts),
            *self._targets(targets),
            *self._model_types(),
            *self._ids(),
        )
        paths = tuple(sorted(self._id_paths(self.runtime.release(self.against).aux)))
        return Probe(self.origin, self.against, named, targets, paths, differences)

    def targets(self, only: str = "") -> dict[str, Reading]:
        """What the sources say of every target model, or of one architecture.

        Raises:
            InputError: the sources do not look like those of the runtime.
        """
        with self._readable():
            return self.reader.read(self.tree, self.origin.transformers, only)

    def draft_classes(self) -> dict[str, ClassSource]:
        """EAGLE-3 architectures that are registered, with their classes.

        Raises:
            InputError: the sources do not look like those of the runtime.
        """
        with self._readable():
            return self.reader.drafts(self.tree)

    def drafts_and_ids(self) -> Iterator[Difference]:
        """The differences that concern the draft whatever its target model is."""
        drafts = self.draft_classes()
        yield from self._drafts(drafts)
        yield from self._parameters(drafts)
        yield from self._ids()

    @contextmanager
    def _readable(self) -> Iterator[None]:
        """What the readers raise for sources of another shape, as one line for the user."""
        try:
            yield
        except (LookupError, SyntaxError, sglang_targets.UnknownPolicyError) as error:
            raise InputError(f"{self.origin.label}: cannot be read: {error}") from None

    # -- one kind of difference each ---------------------------------------------------------------

    def _drafts(self, drafts: Mapping[str, ClassSource]) -> Iterator[Difference]:
        ours = self.runtime.release(self.against).drafts
        for name in sorted(drafts.keys() | ours.keys()):
            cls = drafts.get(name)
            theirs = cls.name if cls is not None else "not registered"
            said = ours.get(name, "not registered")
            if theirs != said:
                place = self.tree.place(cls) if cls is not None else ""
                yield Difference("draft class", name, theirs, said, place)

    def _parameters(self, drafts: Mapping[str, ClassSource]) -> Iterator[Difference]:
        release = self.runtime.release(self.against)
        classes = {cls.name: cls for cls in drafts.values()}
        for draft_class in sorted(set(release.drafts.values()) & classes.keys()):
            cls = classes[draft_class]
            contract = contract_file(self.origin.runtime, draft_class, self.rules).contract(
                self.against
            )
            ours = {
                _LAST.sub("", p.name.replace("{layer}", contract.layer.prefix)).replace(
                    "{index}", "*"
                )
                for p in contract.parameters
            }
            built = list(parameters(self.tree, cls))
            theirs = {b.name for b in built}
            for name in sorted(ours - theirs):
                yield Difference("parameter", f"{draft_class} {name}", "not built", "built")
            # What base classes of the package build under conditions is often never built here.
            own = {b.name: b.place for b in built if b.module == cls.module}
            for name in sorted(own.keys() - ours):
                subject = f"{draft_class} {name}"
                yield Difference("parameter", subject, "built", "not built", own[name])

    def _targets(self, targets: Mapping[str, Reading]) -> Iterator[Difference]:
        table = SupportTable(self.rules)
        known = table.architectures(self.origin.runtime, self.against)
        for name in sorted(targets.keys() | known):
            yield from self._target(name, targets.get(name), table)

    def _target(
        self, name: str, reading: Reading | None, table: SupportTable
    ) -> Iterator[Difference]:
        ours = table.case(self.origin.runtime, self.against, name)
        theirs = "unregistered"
        if reading is not None:
            theirs = "draft" if reading.draft else reading.lacks or "yes"
        found_by_hand = ours not in READABLE | {"draft"}
        if theirs != ours and not (found_by_hand and theirs == "yes"):
            place = (reading.hook or reading.place) if reading is not None else ""
            yield Difference("target model", name, _words(theirs), _words(ours), place)
        elif reading is not None and theirs == "yes" and not found_by_hand:
            policy = table.policy(self.origin.runtime, self.against, name)
            if policy != reading.policy:
                theirs, ours = reading.policy or "the usual", policy or "the usual"
                yield Difference("id policy", name, theirs, ours, reading.hook or "")

    def _model_types(self) -> Iterator[Difference]:
        read = self.reader.whitelist(self.tree)
        ours = SupportTable(self.rules).model_types(self.origin.runtime, self.against)
        theirs = read.substrings if read is not None else None
        if theirs != ours:
            yield Difference(
                "model types",
                "that may be targets",
                ", ".join(theirs) if theirs is not None else "any",
                ", ".join(ours) if ours is not None else "any",
                read.place if read is not None else "",
            )

    def _ids(self) -> Iterator[Difference]:
        for section in ("aux", "aux_v1", "aux_v2"):
            for statement in self.runtime.raw.get(section, ()):
                if not covers(statement.get("in", ""), self.against):
                    continue
                theirs, ours = self._id_paths(statement), set(statement["read"])
                for path in sorted(theirs - ours):
                    yield Difference("ids", path, "read", "not read")
                for path in sorted(ours - theirs):
                    yield Difference("ids", path, "not read", "read")

    def _id_paths(self, statement: Mapping[str, object]) -> set[str]:
        """The paths that are read in the files which a statement names as its source."""
        found: set[str] = set()
        package = self.origin.runtime
        for file in dict.fromkeys(_FILES.findall(str(statement["source"]))):
            for path in (f"{package}/{file}", f"{package}/srt/{file}"):
                if self.origin.files.exists(path):
                    found |= paths_read(self.origin.files.read(path))
        return found


def _words(case: str) -> str:
    return {
        "yes": "feeds EAGLE-3 drafts",
        "no-hook": "no hook",
        "no-embedding": "a hook, but no get_embed_and_head",
        "no-mixin": "a hook, but no EagleModelMixin",
        "transformers-too-old": "a hook that needs a newer transformers",
        "unregistered": "not registered",
        "draft": "a draft class",
    }.get(case, case)
