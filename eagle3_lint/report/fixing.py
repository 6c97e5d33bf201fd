"""What a fix did or would do, for people and for scripts."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from eagle3_lint.diagnostic import Edit
from eagle3_lint.fixing import Conflict, FixResult, title
from eagle3_lint.report.model import Result
from eagle3_lint.report.text import Style, diagnostic_lines

SCHEMA = "eagle3-lint/fix/1"


def render(result: FixResult, style: Style, diff: bool) -> str:
    """The text report, ending in a newline."""
    return "\n".join(_lines(result, style, diff)) + "\n"


def _lines(result: FixResult, style: Style, diff: bool) -> Iterator[str]:
    yield result.path
    before, after = result.before.checkpoints[0].results, result.after.checkpoints[0].results
    for was, now in zip(before, after, strict=True):
        yield f"{now.target}: {_verdicts(was, now, style)}"
    yield ""
    yield from _edits(result.edits)
    if result.written is not None:
        yield ""
        yield from result.written.lines
        if result.written.can_undo:
            yield f"eagle3-lint undo {result.path} takes it back"
    elif result.edits and diff:
        yield ""
        yield "nothing was written (--diff)"
    if result.lost:
        yield ""
        yield "what the draft said of itself and says no more:"
        for line in result.lost:
            yield from style.wrap(f"  {line}", "", "    ")
    yield from _remaining(result, style)


def _verdicts(was: Result, now: Result, style: Style) -> str:
    new = style.paint(now.verdict, now.verdict)
    return new if was.verdict == now.verdict else f"{was.verdict} → {new}"


def _edits(edits: Sequence[Edit]) -> Iterator[str]:
    if not edits:
        yield "nothing to change"
        return
    yield f"{title(edits)}:"
    for edit in edits:
        yield f"  {in_words(edit)}"


def in_words(edit: Edit) -> str:
    """An edit as one line."""
    fields: dict[str, Any] = dict(edit.fields)
    if edit.op == "rename_tensor":
        return f"{fields['tensor']} → {fields['to']}"
    if edit.op == "drop_tensor":
        return f"{fields['tensor']} is dropped"
    if edit.op == "split_tensor":
        into = ", ".join(f"{part['to']} ({part['rows']} rows)" for part in fields["parts"])
        return f"{fields['tensor']} is split into {into}"
    if edit.op == "rebuild_d2t":
        what = "the tokens it holds" if fields["from"] == "absolute" else "the tokens t2d marks"
        return f"{fields['tensor']} is rebuilt from {what}"
    if edit.op == "add_d2t":
        what = "a side file lists" if fields["from"] == "list" else "t2d marks"
        return f"{fields['tensor']} is added, from the tokens {what}"
    if edit.op == "sort_fc":
        order = ", ".join(str(i + 1) for i in fields["order"])
        return f"{fields['tensor']}: its column blocks in the order {order}"
    if edit.op == "set_config":
        return (
            f"config.json {fields['pointer']} = {json.dumps(fields['value'], ensure_ascii=False)}"
        )
    return f"config.json {fields['pointer']} is removed"


def _remaining(result: FixResult, style: Style) -> Iterator[str]:
    for conflict in result.conflicts:
        yield ""
        yield from style.wrap(_conflict(conflict), "", "  ")
    for one in result.after.checkpoints[0].results:
        shown = [d for d in one.diagnostics if d.severity != "info"]
        if shown:
            yield ""
            yield f"what remains for {one.target}:"
        for diagnostic in shown:
            yield from diagnostic_lines(diagnostic, style)


def _conflict(conflict: Conflict) -> str:
    alone = "; ".join(in_words(edit) for edit in conflict.edits[:3]) or "the draft as it is"
    more = f" and {len(conflict.edits) - 3} more" if len(conflict.edits) > 3 else ""
    return (
        f"{conflict.target} cannot be had together with the other targets: alone it would take"
        f" {alone}{more}. Fix a copy for it (--output DIR)."
    )


def render_json(result: FixResult) -> str:
    """The same for scripts; ``schema`` names its form."""
    written = result.written
    report = {
        "schema": SCHEMA,
        "path": result.path,
        "edits": [edit.to_json() for edit in result.edits],
        "before": result.before.to_json(),
        "after": result.after.to_json(),
        "left": [fix.to_json() for fix in result.left],
        "conflicts": [
            {"target": str(c.target), "edits": [e.to_json() for e in c.edits]}
            for c in result.conflicts
        ],
        "written": None
        if written is None
        else {
            "folder": str(written.folder),
            "bytes": written.bytes,
            "can_undo": written.can_undo,
            "files": [{"file": f.file, "step": f.step, "bytes": f.bytes} for f in written.files],
        },
    }
    return json.dumps(report, indent=2, ensure_ascii=False) + "\n"
