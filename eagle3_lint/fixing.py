"""``fix`` and ``undo``: a draft is rewritten for its targets, and taken back."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, replace
from pathlib import Path

from eagle3_lint.checking import prepare
from eagle3_lint.diagnostic import Applicability, Edit, Fix
from eagle3_lint.draft_spec import draft_spec
from eagle3_lint.errors import InputError
from eagle3_lint.examine import Question
from eagle3_lint.facts import Facts
from eagle3_lint.frozen import frozen
from eagle3_lint.load.folder import CONFIG, folder_of
from eagle3_lint.load.header import read_header_text
from eagle3_lint.plan.change import folder_change
from eagle3_lint.plan.conversion import Form, converted
from eagle3_lint.plan.edits import Edited
from eagle3_lint.plan.search import Plan, Planner, Wish, standing
from eagle3_lint.producer import recognise
from eagle3_lint.releases import Target, bare_runtimes
from eagle3_lint.report.model import CheckpointReport, Report, Result
from eagle3_lint.write import Seen, Undone, Written, apply, recover, seen
from eagle3_lint.write import undo as write_undo
from eagle3_lint.write.change import FolderChange, TextChange

_INDEX = ".safetensors.index.json"
Progress = Callable[[int, int], None]


@frozen
class Conflict:
    """A target that could be served better alone than beside the others.

    Attributes:
        target: which.
        edits: what would serve it alone.
    """

    target: Target
    edits: tuple[Edit, ...]


@frozen
class FixResult:
    """What a fix does, or would do.

    Attributes:
        path: the draft's folder.
        edits: every change, once.
        before, after: what the targets do with the draft on disk and with the edited one; which
            other releases load it is said of the edited one alone.
        left: fixes of findings that remain: manual ones, and unsafe ones that were not allowed.
        conflicts: targets that cannot be had together with the others.
        lost: what the draft said of itself and says otherwise or no more, in words.
        written: what was written; None when there was nothing to write, or it was only shown.
    """

    path: str
    edits: tuple[Edit, ...]
    before: Report
    after: Report
    left: tuple[Fix, ...] = ()
    conflicts: tuple[Conflict, ...] = ()
    lost: tuple[str, ...] = ()
    written: Written | None = None


def fix(
    path: str | Path,
    targets: Iterable[str] = (),
    target_model: str | None = None,
    *,
    unsafe: bool = False,
    diff: bool = False,
    output: str | Path | None = None,
    journal: bool = True,
    progress: Progress | None = None,
    ids_mean: str | None = None,
    trained_on: Sequence[int] | None = None,
    select: Sequence[str] = (),
    ignore: Sequence[str] = (),
    rules: Path | None = None,
    runner: str | None = None,
    as_: Form | None = None,
) -> FixResult:
    """Rewrite names and configuration of a draft so that every target is served better.

    Args:
        path: a draft folder or a file inside one.
        targets: as for :func:`eagle3_lint.check`. A bare runtime name asks for the newest known
            release, and for as many older ones as one spelling serves.
        unsafe: also use fixes that could change what the model computes.
        diff: say what would be done, and write nothing.
        output: write the fixed draft to this new folder and leave ``path`` alone.
        journal: keep what :func:`undo` needs.
        progress: called with bytes copied and bytes to copy, when data must move.
        target_model, ids_mean, trained_on, select, ignore, rules, runner: as
            for ``check``.
        as_: ``speculators`` gives config.json the nested form of that library, ``flat`` the usual
            one; None keeps the form unless a target cannot read it.

    Raises:
        InputError: bad input; or the folder cannot be written (:class:`eagle3_lint.write.Refused`,
            nothing was changed) or the system failed while writing.
    """
    asked = tuple(targets)
    folder = folder_of(path)
    recover(folder)
    # Taken before anything is read, so that no change in between goes unnoticed.
    looked = _look(folder)
    facts, wanted, question = prepare(
        path,
        asked,
        target_model,
        ids_mean=ids_mean,
        trained_on=trained_on,
        select=select,
        ignore=ignore,
        rules=rules,
        runner=runner,
    )
    allowed: set[Applicability] = {"safe", "unsafe"} if unsafe else {"safe"}
    wish = Wish(tuple(wanted), bare_runtimes(asked), frozenset(allowed))
    disk = Edited.untouched(facts)
    start = disk if as_ is None else converted(disk, as_, wanted, question)
    # From here on the form is what the user said, so that no target can take it back.
    planner = Planner(Edited.untouched(start.facts), question, wish, on_disk=disk)
    plan = planner.plan()
    plan = replace(plan, draft=start.then(plan.draft.edits()))
    result = FixResult(
        path=facts.path,
        edits=plan.draft.edits(),
        before=_report(facts, planner.results(disk), question),
        after=_report(plan.draft.facts, plan.results, question),
        left=plan.left,
        conflicts=_conflicts(disk, question, wish, plan) if as_ is None else (),
        lost=_lost(planner, disk, plan),
    )
    if diff or (not result.edits and output is None):
        return result
    where = Path(output) if output is not None else None
    change = _change(plan.draft, looked, where)
    written = apply(change, output=where, journal=journal, progress=progress)
    return replace(result, written=written)


def _lost(planner: Planner, disk: Edited, plan: Plan) -> tuple[str, ...]:
    """What a change of form took away, beside what was mended on purpose."""
    if not plan.draft.converted:
        return ()
    states = planner.states
    before = draft_spec(disk.facts, states)
    after = draft_spec(plan.draft.facts, states)
    shown = asdict(disk.facts.shown)
    # A size that is what the tensors show now was mended, not lost.
    mended = {n: v for n, v in after.values.items() if v is not None and v == shown.get(n)}
    return tuple(replace(before, values={**before.values, **mended}).lost_in(after))


def undo(path: str | Path, *, progress: Progress | None = None) -> Undone:
    """Take the last fix of a draft back, byte for byte.

    Raises:
        InputError: there is nothing to take back, the files were changed since, or the system
            failed (:class:`eagle3_lint.write.Refused`, :class:`eagle3_lint.write.WriteFailed`).
    """
    folder = folder_of(path)
    recover(folder)
    return write_undo(folder, progress=progress)


def _look(folder: Path) -> dict[str, Seen]:
    """Every file that a fix may rewrite, as it is now; what cannot be read is left to the reader,
    which says why."""
    try:
        names = [n for n in os.listdir(folder) if n.endswith((".safetensors", _INDEX))]
    except OSError:
        return {}
    found: dict[str, Seen] = {}
    for name in (CONFIG, *sorted(names)):
        try:
            found[name] = seen(folder, name)
        except (OSError, InputError):
            continue
    return found


def _change(draft: Edited, looked: dict[str, Seen], output: Path | None) -> FolderChange:
    folder = Path(draft.original.path)
    renames = {old: new for old, new in draft.names.items() if old != new}
    touched = bool(renames) or len(draft.names) < len(draft.original.tensors)
    touched = touched or draft.d2t is not None or draft.fc is not None
    if touched and draft.original.weights_format == "torch":
        if output is None:
            raise InputError(
                f"{folder}: the weights are a torch file, whose names cannot be changed in place;"
                " --output DIR writes the draft as safetensors"
            )
        return _converted(draft, looked)
    files = sorted({t.file for t in draft.original.tensors.values()}) if touched else []
    headers = {file: read_header_text(folder / file) for file in files}
    index = next((name for name in looked if name.endswith(_INDEX)), None)
    text = (folder / index).read_text(encoding="utf-8") if index is not None and touched else None
    return folder_change(
        draft,
        headers,
        (index, text) if index is not None and text is not None else None,
        tuple(looked.values()),
        title(draft.edits()),
    )


def _converted(draft: Edited, looked: dict[str, Seen]) -> FolderChange:
    """The same with safetensors in the place of torch files."""
    from eagle3_lint.load.conversion import Recast, as_safetensors

    folder = Path(draft.original.path)
    files = sorted({t.file for t in draft.original.tensors.values()})
    left = [*files, *(n for n in draft.original.files if n.endswith(".bin.index.json"))]
    # All of them are read from end to end in any case.
    looked = {**looked, **{file: seen(folder, file) for file in left}}
    rebuilt = {draft.d2t.tensor: draft.d2t.offsets} if draft.d2t is not None else {}
    recast = Recast(
        names=draft.names,
        parts=draft.parts,
        values=rebuilt if draft.added is None else {},
        added=rebuilt if draft.added is not None else {},
        blocks={draft.fc: draft.facts.fc_order} if draft.fc is not None else {},
    )
    try:
        content = as_safetensors([folder / file for file in files], recast)
    except Exception as error:
        text = f"{folder}: the weights cannot be written as safetensors: {error}"
        raise InputError(text) from error
    change = folder_change(draft, {}, None, tuple(looked.values()), title(draft.edits()))
    texts = (
        *change.texts,
        TextChange("model.safetensors", content),
        *(TextChange(file, None) for file in left),
    )
    return replace(change, texts=texts)


def title(edits: Sequence[Edit]) -> str:
    """What edits do, in a few words."""
    renames = sum(e.op == "rename_tensor" for e in edits)
    drops = sum(e.op == "drop_tensor" for e in edits)
    rebuilt = sum(e.op == "rebuild_d2t" for e in edits)
    added = sum(e.op == "add_d2t" for e in edits)
    split = sum(e.op == "split_tensor" for e in edits)
    sorted_ = sum(e.op == "sort_fc" for e in edits)
    fields = len(edits) - renames - drops - split - rebuilt - added - sorted_
    parts = [
        f"{count} {word}{'s' if count > 1 else ''} {what}"
        for count, word, what in (
            (renames, "tensor", "renamed"),
            (drops, "tensor", "dropped"),
            (split, "tensor", "split"),
            (rebuilt, "vocabulary map", "rebuilt"),
            (added, "vocabulary map", "added"),
            (sorted_, "fc", "sorted"),
            (fields, "config field", "changed"),
        )
        if count
    ]
    return ", ".join(parts) or "nothing changed"


def _conflicts(
    start: Edited, question: Question, wish: Wish, together: Plan
) -> tuple[Conflict, ...]:
    """The targets that a plan of their own would serve better."""
    if len(wish.targets) == 1:
        return ()
    found: list[Conflict] = []
    for target, result in zip(wish.targets, together.results, strict=True):
        if result.verdict == "serves":
            continue
        alone = Planner(start, question, Wish((target,), (), wish.allowed)).plan()
        if standing(alone.results[0]) < standing(result):
            found.append(Conflict(target, alone.draft.edits()))
    return tuple(found)


def _report(facts: Facts, results: Sequence[Result], question: Question) -> Report:
    producer = recognise(facts, question.rules)
    return Report((CheckpointReport(facts.path, producer, facts.dialect, tuple(results)),))
