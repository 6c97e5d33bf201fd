"""One draft before one target: resolve, simulate, look, word. Pure, and played by the hundred."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from eagle3_lint.catalogue import Catalogue, catalogue
from eagle3_lint.checks.aux import check_aux
from eagle3_lint.checks.aux_ids import check_aux_ids
from eagle3_lint.checks.config import check_config
from eagle3_lint.checks.container import check_container
from eagle3_lint.checks.forward import check_forward
from eagle3_lint.checks.fused import Apart, taken_apart
from eagle3_lint.checks.loading import check_loading
from eagle3_lint.checks.precision import check_precision, undescribed
from eagle3_lint.checks.spelling import Respelling, badness, better_spelling
from eagle3_lint.checks.subject import Subject
from eagle3_lint.checks.switches import check_switches
from eagle3_lint.checks.target import check_target
from eagle3_lint.checks.vocabulary import check_vocabulary
from eagle3_lint.config_classes import ConfigClassTable
from eagle3_lint.contract.model import Contract, SwitchStatement
from eagle3_lint.contract.read import contract_file
from eagle3_lint.contract.runtime import RuntimeRelease, known_runtimes, runtime_file
from eagle3_lint.diagnostic import Diagnostic, Finding
from eagle3_lint.facts import Facts
from eagle3_lint.forward import Need, needs
from eagle3_lint.frozen import frozen
from eagle3_lint.fused import known_fused
from eagle3_lint.producer import recognise, sorts_rows, trains_with
from eagle3_lint.releases import Target
from eagle3_lint.report.model import (
    AuxReport,
    ErrorReport,
    LoadReport,
    Result,
    TargetReport,
    Verdict,
)
from eagle3_lint.simulate.aux_states import aux_states
from eagle3_lint.simulate.load import simulate_load
from eagle3_lint.simulate.resolve import Resolution, resolve
from eagle3_lint.simulate.result import Load
from eagle3_lint.simulate.switches import taken
from eagle3_lint.support import SupportTable
from eagle3_lint.target_model import TargetModel
from eagle3_lint.trained import Trained, trained_states
from eagle3_lint.vocabulary import VocabularyMap, vocabulary_map

if TYPE_CHECKING:
    from eagle3_lint.comparison import Comparison
    from eagle3_lint.launch.parse import Launch
    from eagle3_lint.probe.patch import Patch

#: Problems of the container with which the runtimes' reader cannot open the weights.
_FATAL_EFFECT = "refused"


@frozen
class Question:
    """What the user wants to know beside the draft itself.

    Attributes:
        model: the target model, if it is known.
        trained_on: aux states the draft was trained on, when the user says so.
        ids_mean: how to read the draft's ids, when the user says so.
        select, ignore: rule ids, names or beginnings of ids.
        rules: another folder of rules than the built-in one.
        runner: the model runner (``v1``, ``v2``) where a release has several; None: the one that
            a plain start takes.
        launch: the command that starts the server, where it is to be checked too.
        patches: what the sources of a target say, where sources are asked for.
        comparison: what the draft's weights say beside the target model's, where those are at hand.
    """

    model: TargetModel | None = None
    trained_on: tuple[int, ...] | None = None
    ids_mean: str | None = None
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    rules: Path | None = None
    runner: str | None = None
    launch: Launch | None = None
    patches: Mapping[Target, Patch] = field(default_factory=dict)
    comparison: Comparison | None = None


class Played(NamedTuple):
    """How far a draft gets in one release: resolved, and simulated where that leads anywhere."""

    release: RuntimeRelease
    resolution: Resolution
    contract: Contract | None
    load: Load | None
    known: dict[str, object]
    switches: Mapping[str, SwitchStatement]


def _clean(load: Load | None) -> bool:
    return load is not None and load.outcome == "ok"


def outside_names(config: Mapping[str, object], model: TargetModel | None) -> dict[str, object]:
    """The names a contract is given: the target model's sizes, the draft's where none is known."""
    hidden = model.hidden_size if model is not None else None
    if hidden is None:
        hidden = config.get("target_hidden_size") or config.get("hidden_size")  # type: ignore[assignment]
    vocab = model.vocab_size if model is not None else None
    return {
        "target_hidden": hidden,
        "target_vocab": vocab if vocab is not None else config.get("vocab_size"),
        "target_layers": model.num_hidden_layers if model is not None else None,
        "tp": 1,
    }


class Examiner:
    """Examines one draft; what does not depend on the target is worked out once."""

    def __init__(self, facts: Facts, question: Question, like: Examiner | None = None) -> None:
        """Prepare to examine.

        Args:
            like: an examiner of the same draft as it is on disk; what it knows of the rules, of the
                values in d2t and of the training holds for an edited state too. Ids that were
                rewritten for a target would else be read in the old convention.
        """
        self.facts, self.question = facts, question
        self.catalogue: Catalogue = like.catalogue if like else catalogue(question.rules)
        self.container = [self.catalogue.rule(f.rule).word(f) for f in check_container(facts)]
        self.producer = recognise(facts, question.rules)
        known = like is not None and like.trained.states is not None
        self.trained: Trained = _sorted(like.trained, facts) if like and known else self._trained()
        same = like is not None and facts.d2t is like.facts.d2t
        self.vocabulary: VocabularyMap | None = (
            like.vocabulary if like and same else vocabulary_map(facts)
        )
        self.comparison = _moved(like, facts) if like else question.comparison
        self.classes: ConfigClassTable = like.classes if like else ConfigClassTable(question.rules)
        self.support: SupportTable = like.support if like else SupportTable(question.rules)
        named = facts.config.get("architectures")
        self._written = str(named[0]) if isinstance(named, list) and named else ""
        self._resolutions: dict[tuple[int, int, bool], Resolution] = {}
        self._loads: dict[tuple[int, str, str], Load] = {}
        self._respellings: dict[int, Respelling | None] = {}
        self._aparts: dict[int, Apart | None] = {}
        self._loads_in: dict[str, tuple[str, ...]] = {}
        self.needs: tuple[Need, ...] = needs(facts, question.rules)
        self._honoured: dict[str, str] = {}

    def _played(self, target: Target) -> Played:
        """Resolve and simulate; releases for which the same data hold share both."""
        runtime = runtime_file(target.runtime, self.question.rules)
        release = runtime.release(target.release)
        classes = self.classes.lookup(target.runtime, target.release)
        registered = self.support.registered(target.runtime, target.release)
        resolved_by = (id(release), id(classes), registered(self._written))
        if resolved_by not in self._resolutions:
            resolution = resolve(release, self.facts.config, classes, registered, self.facts.shapes)
            self._resolutions[resolved_by] = resolution
        resolution = self._resolutions[resolved_by]
        known = outside_names(resolution.config, self.question.model)
        known["config_class"] = resolution.config_class
        if resolution.draft_class is None:
            return Played(release, resolution, None, None, known, {})
        file = contract_file(target.runtime, resolution.draft_class, self.question.rules)
        contract = file.contract(target.release)
        if any(d.effect == _FATAL_EFFECT for d in self.container):
            return Played(release, resolution, contract, None, known, {})
        # A contract is one object for all releases with the same statements.
        key = (id(contract), resolution.config_class, repr(resolution.config))
        if key not in self._loads:
            config, shapes = resolution.config, self.facts.shapes
            self._loads[key] = simulate_load(contract, config, shapes, known)
        switches = file.switches(target.release)
        return Played(release, resolution, contract, self._loads[key], known, switches)

    def subject(self, target: Target) -> Subject:
        """One draft before one target, simulated, for the checks to look at."""
        played = self._played(target)
        model = self.question.model
        architecture = model.architecture if model is not None else None
        release = played.release.started(self.question.runner, architecture)
        patch = self.question.patches.get(target)
        support = self.support.of(target, model, patch) if model is not None else None
        fed = aux_states(
            release.aux,
            support.policy if support is not None else None,
            played.resolution.config,
            model.num_hidden_layers if model is not None else None,
        )
        return Subject(
            facts=self.facts,
            target=target,
            runtime=runtime_file(target.runtime, self.question.rules),
            release=release,
            resolution=played.resolution,
            contract=played.contract,
            load=played.load,
            known=played.known,
            model=model,
            support=support,
            fed=fed,
            trained=self.trained,
            vocabulary=self.vocabulary,
            patch=patch,
            is_model=self.support.registered(target.runtime, target.release)(self._written),
            producer=self.producer,
            needs=self.needs,
            switches=played.switches,
            trains_with=trains_with(self.producer, self.question.rules),
            sorts_rows=sorts_rows(self.producer, self.question.rules),
            comparison=self.comparison,
        )

    def examine(self, target: Target, spans: bool = True) -> Result:
        """What the target would do with the draft, in words.

        Args:
            spans: also say which other releases load it, for which all of them are played.
        """
        model = self.question.model
        named = TargetReport(
            target.runtime, target.release, model.name if model else None, target.sources
        )
        if not target.known:
            finding = Finding("E3L606", self._release_values(target))
            diagnostics = tuple(self._word([finding]))
            return Result(named, "unknown", None, None, diagnostics)
        subject = self.subject(target)
        unjudged = undescribed(subject)
        if unjudged is not None:
            words = tuple(d for d in self._word([unjudged]) if self._wanted(d))
            return Result(named, "unknown", None, _aux_report(subject), words)
        diagnostics = tuple(self._word(self._findings(subject)))
        return Result(
            target=named,
            verdict=_verdict(subject, [*self.container, *diagnostics]),
            load=_load_report(subject),
            aux=_aux_report(subject),
            diagnostics=tuple(d for d in (*self.container, *diagnostics) if self._wanted(d)),
            loads_in=self.loads_in(target.runtime) if spans and not _clean(subject.load) else (),
        )

    def loads_in(self, runtime: str) -> tuple[str, ...]:
        """Spans of the runtime's known releases that load the draft whole, as it is."""
        if runtime not in self._loads_in:
            releases = runtime_file(runtime, self.question.rules).releases
            loads = [_clean(self._played(Target(runtime, r)).load) for r in releases]
            self._loads_in[runtime] = _spans(releases, loads)
        return self._loads_in[runtime]

    def honoured(self, need: Need) -> str:
        """Which known releases of which runtimes do what the draft needs, in words."""
        name = need.switch.name
        if name not in self._honoured:
            found: list[str] = []
            for runtime in known_runtimes(self.question.rules):
                file = runtime_file(runtime, self.question.rules)
                does = [self._does(Target(runtime, release), need) for release in file.releases]
                found += [f"{file.title} {span}" for span in _spans(file.releases, does)]
            self._honoured[name] = ", ".join(found) or "none that is known"
        return self._honoured[name]

    def _does(self, target: Target, need: Need) -> bool:
        played = self._played(target)
        statement = played.switches.get(need.switch.name)
        if statement is None or played.load is None or played.load.error is not None:
            return False
        takes = taken(statement, played.resolution.config, played.load.environment)
        return need.switch.same(takes, need.value)

    def lost(self, target: Target) -> int:
        """How many tensors find no parameter of the target's draft class by their name."""
        load = self._played(target).load if target.known else None
        return badness(load)[0] if load is not None else 0

    def loading(self, runtime: str) -> int:
        """How many of the runtime's known releases load the draft whole, as it is."""
        releases = runtime_file(runtime, self.question.rules).releases
        return sum(_clean(self._played(Target(runtime, r)).load) for r in releases)

    def _release_values(self, target: Target) -> dict[str, object]:
        releases = runtime_file(target.runtime, self.question.rules).releases
        return {"target": str(target), "first": releases[0], "last": releases[-1]}

    def _findings(self, subject: Subject) -> Iterator[Finding]:
        yield from check_config(subject)
        yield from check_loading(subject, self._respelling(subject), self._apart(subject))
        yield from check_aux_ids(subject)
        yield from check_aux(subject)
        yield from check_vocabulary(subject)
        for finding in check_switches(subject):
            # The command says which lengths are served: E3L616 speaks of them instead.
            if finding.rule != "E3L501" or self.question.launch is None:
                yield finding
        yield from check_forward(subject, self.honoured)
        yield from check_precision(subject)
        yield from check_target(subject)
        if self.question.launch is not None:
            # Most checks are without a command, and do not import what reads one.
            from eagle3_lint.checks.launch import check_launch

            yield from check_launch(subject, self.question.launch)

    def _respelling(self, subject: Subject) -> Respelling | None:
        """The search for better names, once per load: a matrix has few loads and many releases."""
        load = subject.load
        if load is None or not load.parameters:
            return None
        if id(load) not in self._respellings:
            self._respellings[id(load)] = better_spelling(subject)
        return self._respellings[id(load)]

    def _apart(self, subject: Subject) -> Apart | None:
        """The search for fused tensors, once per load."""
        load = subject.load
        if load is None or load.outcome == "ok":
            return None
        if id(load) not in self._aparts:
            known = known_fused(self.question.rules)
            self._aparts[id(load)] = taken_apart(subject, known)
        return self._aparts[id(load)]

    def _word(self, findings: Iterable[Finding]) -> Iterator[Diagnostic]:
        for finding in findings:
            yield self.catalogue.rule(finding.rule).word(finding)

    def _wanted(self, diagnostic: Diagnostic) -> bool:
        def named(texts: tuple[str, ...]) -> bool:
            return any(
                diagnostic.rule.startswith(t.upper()) or diagnostic.name == t.lower() for t in texts
            )

        select, ignore = self.question.select, self.question.ignore
        return (not select or named(select)) and not named(ignore)

    def _trained(self) -> Trained:
        """What the draft was trained on; the same for every target."""
        model, question = self.question.model, self.question
        return trained_states(
            self.facts.config,
            self.producer,
            model.num_hidden_layers if model is not None else None,
            trained_on=question.trained_on,
            ids_mean=question.ids_mean,
            rules=question.rules,
        )


def _spans(releases: Sequence[str], holds: Sequence[bool]) -> tuple[str, ...]:
    """The releases for which something holds, neighbours together."""
    spans: list[str] = []
    for good, group in groupby(zip(holds, releases, strict=True), key=lambda pair: pair[0]):
        names = [release for _, release in group]
        if good:
            spans.append(names[0] if len(names) == 1 else f"{names[0]} to {names[-1]}")
    return tuple(spans)


def _sorted(trained: Trained, facts: Facts) -> Trained:
    """What a draft on disk was trained on, in the order in which its fc has the states now."""
    states, order = trained.states, facts.fc_order
    if states is None or len(order) != len(states):
        return trained
    return replace(trained, states=tuple(states[i] for i in order))


def _moved(like: Examiner, facts: Facts) -> Comparison | None:
    """The comparison of a draft on disk, after d2t was rebuilt: from t2d, the other one holds."""
    found = like.comparison
    if found is None or facts.d2t is like.facts.d2t or found.head_by_t2d is None:
        return found
    return replace(found, head=found.head_by_t2d)


def _aux_report(subject: Subject) -> AuxReport:
    fed, trained = subject.fed, subject.trained
    return AuxReport(
        ids=fed.ids,
        read_from=fed.read_from,
        states=fed.states,
        trained_on=trained.states,
        basis=trained.basis,
    )


def _load_report(subject: Subject) -> LoadReport:
    failure = subject.resolution.failure
    draft_class = subject.resolution.draft_class
    if failure is None and subject.load is not None:
        failure = subject.load.error
    elif failure is None:
        return LoadReport(
            "error", draft_class, error=ErrorReport("SafetensorError", "the weights cannot be read")
        )
    if failure is not None:
        return LoadReport("error", draft_class, error=ErrorReport(failure.type, failure.message))
    load = subject.load
    assert load is not None
    return LoadReport(
        outcome=load.outcome,
        draft_class=draft_class,
        unfilled=load.unfilled,
        dropped=load.dropped,
        altered=tuple(sorted({a.tensor for a in load.altered})),
    )


def _verdict(subject: Subject, diagnostics: Iterable[Diagnostic]) -> Verdict:
    effects = {d.effect for d in diagnostics}
    failed = subject.resolution.failure is not None or subject.load is None
    if failed or subject.load.outcome == "error" or "refused" in effects:  # type: ignore[union-attr]
        return "refused"
    if "broken" in effects:
        return "broken"
    return "degraded" if "degraded" in effects else "serves"
