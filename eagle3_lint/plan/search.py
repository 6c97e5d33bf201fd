"""Which edits make a draft better for all targets that are asked for.

Fixes of findings are played until none is left, then the usual spellings are tried on what came
out. The best state is taken; no target may be worse off than before, and edits that nothing depends
on are taken back.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from operator import gt

from eagle3_lint.checks.spelling import apart, spellings
from eagle3_lint.diagnostic import Applicability, Edit, Fix
from eagle3_lint.examine import Examiner, Question
from eagle3_lint.frozen import frozen
from eagle3_lint.plan.edits import Edited
from eagle3_lint.releases import Target
from eagle3_lint.report.model import Result

_RANK = {"serves": 0, "unknown": 0, "degraded": 1, "broken": 2, "refused": 3}
_ROUNDS = 8
#: What a score counts for one target: errors, rank of the verdict, warnings. Errors come first: a
#: draft that is refused for one reason is better than one that starts with two.
Standing = tuple[int, int, int]


@frozen
class Wish:
    """What a plan is for.

    Attributes:
        targets: all of them are to be served.
        widely: runtimes of which as many releases as possible are to load the draft too.
        allowed: which fixes may be used.
    """

    targets: tuple[Target, ...]
    widely: tuple[str, ...] = ()
    allowed: frozenset[Applicability] = frozenset({"safe"})


@frozen
class Plan:
    """The best state that was found.

    Attributes:
        draft: the state, with the edits that lead to it.
        results: what each target does with it, in the order of the wish.
        left: fixes of findings that remain and were not applied.
    """

    draft: Edited
    results: tuple[Result, ...]
    left: tuple[Fix, ...]


class Planner:
    """Searches for one draft; results of examined states are kept."""

    def __init__(
        self, draft: Edited, question: Question, wish: Wish, on_disk: Edited | None = None
    ) -> None:
        """Prepare to plan.

        Args:
            draft: what to start from.
            on_disk: the draft before a change that the user asked for; its own files say what it
                was trained on.
        """
        self.draft, self.question, self.wish = draft, question, wish
        disk = on_disk or draft
        self._first = Examiner(disk.facts, question)
        self._examiners: dict[object, Examiner] = {disk.key: self._first}
        self._examined: dict[object, tuple[Result, ...]] = {}
        self._reached: dict[object, int] = {}
        self._before = self.standings(draft)

    @property
    def states(self) -> tuple[int, ...] | None:
        """The aux states that the draft on disk was trained on, if that is known."""
        return self._first.trained.states

    def plan(self) -> Plan:
        """The best state, pruned."""
        candidates = [self.draft, *self._repaired(self.draft)]
        end = candidates[-1]
        # Another spelling can serve targets that contradict each other, or more releases.
        if self.wish.widely or any(errors or rank for errors, rank, _ in self.standings(end)):
            candidates += self._respelled(end)
        best = min(candidates, key=self._score)
        best = self._pruned(best)
        results = self.told(best)
        left: list[Fix] = []
        for diagnostic in (d for r in results for d in r.diagnostics):
            if diagnostic.fix is not None and diagnostic.fix not in left:
                left.append(diagnostic.fix)
        return Plan(best, results, tuple(left))

    # -- judging a state ---------------------------------------------------------------------------

    def results(self, draft: Edited) -> tuple[Result, ...]:
        """What each target does with a state."""
        if draft.key not in self._examined:
            examiner = self._examiner(draft)
            self._examined[draft.key] = tuple(
                examiner.examine(target, spans=False) for target in self.wish.targets
            )
        return self._examined[draft.key]

    def told(self, draft: Edited) -> tuple[Result, ...]:
        """The same with everything that a report says."""
        examiner = self._examiner(draft)
        return tuple(examiner.examine(target) for target in self.wish.targets)

    def _examiner(self, draft: Edited) -> Examiner:
        """The examiner of a state, with what it has played so far."""
        if draft.key not in self._examiners:
            self._examiners[draft.key] = Examiner(draft.facts, self.question, self._first)
        return self._examiners[draft.key]

    def standings(self, draft: Edited) -> tuple[Standing, ...]:
        """How each target stands."""
        return tuple(standing(result) for result in self.results(draft))

    def _score(self, draft: Edited) -> tuple[object, ...]:
        """Smaller is better; a state in which a target is worse off than before comes last."""
        standings = self.standings(draft)
        worse = any(now > before for now, before in zip(standings, self._before, strict=True))
        total = tuple(sum(part) for part in zip(*standings, strict=True))
        edits = draft.edits()
        return worse, total, -self._reach(draft), len(edits)

    def _reach(self, draft: Edited) -> int:
        """How many releases of the runtimes to be served widely load a state whole."""
        if not self.wish.widely:
            return 0
        if draft.key not in self._reached:
            examiner = self._examiner(draft)
            self._reached[draft.key] = sum(examiner.loading(r) for r in self.wish.widely)
        return self._reached[draft.key]

    # -- finding states ----------------------------------------------------------------------------

    def _repaired(self, draft: Edited) -> Iterator[Edited]:
        """The states on the way of applying the fixes of all findings, until none is left."""
        seen = {draft.key}
        for _ in range(_ROUNDS):
            moved = False
            for number in range(len(self.wish.targets)):
                for fix in self._fixes(self.results(draft)[number]):
                    further = _then(draft, fix.edits)
                    if further is not None and further.key not in seen:
                        seen.add(further.key)
                        draft, moved = further, True
                        yield draft
                        break
            if not moved:
                return

    def _fixes(self, result: Result) -> Iterator[Fix]:
        for diagnostic in result.diagnostics:
            fix = diagnostic.fix
            if fix is not None and fix.edits and fix.applicability in self.wish.allowed:
                yield fix

    def _respelled(self, draft: Edited) -> Iterator[Edited]:
        """The draft in every usual spelling by which no target loses a tensor.

        A tensor that does not fit must not be renamed away: dropped, it would only be missed.
        """
        lost = self._lost(draft)
        for names in spellings(list(draft.facts.tensors)):
            further = _then(draft, (Edit.rename(old, new) for old, new in names.items()))
            if further is not None and not any(map(gt, self._lost(further), lost)):
                yield further

    def _lost(self, draft: Edited) -> tuple[int, ...]:
        """How many tensors find no parameter by their name, for each target."""
        examiner = self._examiner(draft)
        return tuple(examiner.lost(target) for target in self.wish.targets)

    def _pruned(self, draft: Edited) -> Edited:
        """The state without edits that make no target better."""
        for group in _groups(draft.edits(), converted=draft.converted):
            fewer = _then(self.draft, (e for e in draft.edits() if e not in group))
            if fewer is not None and self._score(fewer) < self._score(draft):
                draft = fewer
        return draft


def standing(result: Result) -> Standing:
    """Errors, rank of the verdict and warnings of one target; smaller is better."""
    severities = [d.severity for d in result.diagnostics]
    return severities.count("error"), _RANK[result.verdict], severities.count("warning")


def _groups(edits: Sequence[Edit], *, converted: bool) -> Iterator[list[Edit]]:
    """Edits that are taken back together: renames of one beginning, and each other by itself.

    Args:
        converted: config.json was given another form, which is done whole or not at all.
    """
    renames: dict[tuple[str, str], list[Edit]] = {}
    if converted:
        yield [edit for edit in edits if edit.op.endswith("_config")]
        edits = [edit for edit in edits if not edit.op.endswith("_config")]
    for edit in edits:
        if edit.op == "rename_tensor":
            fields = dict(edit.fields)
            beginnings = apart(str(fields["tensor"]), str(fields["to"]))
            renames.setdefault(beginnings, []).append(edit)
        else:
            yield [edit]
    yield from renames.values()


def _then(draft: Edited, edits: Iterable[Edit]) -> Edited | None:
    """The state after the edits; None when they cannot be carried out."""
    try:
        return draft.then(edits)
    except (KeyError, ValueError):
        return None
