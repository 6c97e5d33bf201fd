"""Every draft of the conformance corpus is fixed, checked, fixed again, and taken back.

An eighth of the drafts goes through one of the targets each; all of them through all with
``EAGLE3_LINT_FIX=all`` (minutes; docs/conformance.md has when that was last done).
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from eagle3_lint.checking import check
from eagle3_lint.diagnostic import Edit
from eagle3_lint.errors import InputError
from eagle3_lint.fixing import FixResult, fix, undo
from eagle3_lint.load.header import read_header
from tests.conformance.corpus import Case, cases, write

#: Both spellings of SGLang's layers, vLLM, and a pair that one spelling must serve.
TARGETS = (
    ("sglang==0.5.9",),
    ("sglang==0.5.23",),
    ("vllm==0.32.0",),
    ("sglang==0.5.11", "vllm==0.25.0"),
)
#: Tensors of the corpus hold one number each, so that rows of the head are equal.
IGNORED = ("E3L413",)
EVERY = os.environ.get("EAGLE3_LINT_FIX") == "all"
CASES = [
    pytest.param(case, targets, id=f"{case.name} for {' and '.join(targets)}")
    for number, case in enumerate(cases())
    for place, targets in enumerate(TARGETS)
    if EVERY or (number % 8 == 0 and number // 8 % len(TARGETS) == place)
]


def picture(folder: Path) -> dict[str, tuple[int, str]]:
    """Mode and content of every file."""
    return {
        path.relative_to(folder).as_posix(): (
            path.stat().st_mode,
            hashlib.sha256(path.read_bytes()).hexdigest(),
        )
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def tensors(folder: Path) -> dict[str, bytes]:
    """Tensor → its bytes, of the one file that the corpus writes."""
    path = folder / "model.safetensors"
    header, raw = read_header(path), path.read_bytes()
    start = header.data_start
    return {t.name: raw[start + t.begin : start + t.end] for t in header.tensors}


def as_promised(data: dict[str, bytes], edits: Iterable[Edit]) -> dict[str, bytes]:
    """The tensors that edits of their names leave."""
    of_tensor = {dict(e.fields).get("tensor"): e for e in edits}
    kept: dict[str, bytes] = {}
    for name, content in data.items():
        edit = of_tensor.get(name)
        fields: dict[str, Any] = dict(edit.fields) if edit is not None else {}
        if edit is None:
            kept[name] = content
        elif edit.op == "rename_tensor":
            kept[fields["to"]] = content
        elif edit.op == "split_tensor":
            row = len(content) // sum(part["rows"] for part in fields["parts"])
            for part in fields["parts"]:
                kept[part["to"]], content = (
                    content[: part["rows"] * row],
                    content[part["rows"] * row :],
                )
            assert content == b""
        else:
            assert edit.op == "drop_tensor"
    return kept


def fixed(draft: Path, targets: tuple[str, ...]) -> FixResult | None:
    """What the fix did; None for what is no draft, which cannot be checked either."""
    try:
        return fix(draft, targets, ignore=IGNORED)
    except InputError:
        with pytest.raises(InputError, match="no EAGLE-3 draft"):
            check(draft, targets, ignore=IGNORED)
        return None


def comparable(report: dict[str, Any]) -> dict[str, Any]:
    """A report without who says what the draft was trained on: a configuration that was given
    another form no longer shows its producer, and says the same itself."""
    for result in report["checkpoints"][0]["results"]:
        result["aux"] = {k: v for k, v in (result["aux"] or {}).items() if k != "basis"}
    return report


@pytest.mark.parametrize(("case", "targets"), CASES)
def test_fix_check_fix_undo(case: Case, targets: tuple[str, ...], tmp_path: Path) -> None:
    draft = write(case, tmp_path / "draft")
    before, data = picture(draft), tensors(draft)
    result = fixed(draft, targets)
    if result is None:
        assert picture(draft) == before
        return
    if result.written is None:
        assert result.edits == ()
        assert picture(draft) == before
        return
    after = check(draft, targets, ignore=IGNORED)
    assert comparable(after.to_json()) == comparable(result.after.to_json())
    if len(targets) == 1:
        # Several can ask for what contradicts.
        _promised(result.after.to_json())
    assert tensors(draft) == as_promised(data, result.edits)
    again = fix(draft, targets, ignore=IGNORED)
    assert again.edits == ()
    undo(draft)
    assert picture(draft) == before


def _promised(after: dict[str, Any]) -> None:
    """No error is left that has a safe fix. One error can hide others, which have none."""
    for result in after["checkpoints"][0]["results"]:
        for diagnostic in result["diagnostics"]:
            fix = diagnostic["fix"]
            if diagnostic["severity"] == "error" and fix is not None:
                assert fix["applicability"] != "safe", diagnostic["message"]
