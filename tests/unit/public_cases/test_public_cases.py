"""What became of drafts in public reports, before the releases on both sides of each change.

Expectations come from the reports and from the sources of the releases named; where they disagree,
the sources count, and the case's note says so.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from eagle3_lint import InputError, check, fix
from eagle3_lint.diagnostic import Diagnostic
from eagle3_lint.report.model import Result
from tests.drafts import Shapes, write_draft
from tests.unit.public_cases.case import LLAMA, Case, Expected, packed, serves
from tests.unit.public_cases.elsewhere import WHY_NOT
from tests.unit.public_cases.table import CASES, PAGE, renewed
from tests.unit.public_cases.threads import THREADS

#: The draft that the others differ from, without which their verdicts would mean nothing.
GOOD = Case(
    (),
    "a good draft",
    {},
    tuple(
        map(
            serves,
            ("sglang==0.4.9", "sglang==0.5.9", "sglang==0.5.23", "vllm==0.11.1", "vllm==0.33.0"),
        )
    ),
)
POINTS = [
    pytest.param(case, expected, id=f"{case.name}-{expected.target}{expected.runner or ''}")
    for case in (GOOD, *CASES)
    for expected in case.expected
]


def asked(case: Case, expected: Expected, draft: Path, target: Path) -> Result:
    """What is said of a draft on disk."""
    report = check(
        draft,
        [expected.target],
        str(target),
        trained_on=case.trained_on,
        runner=expected.runner,
    )
    [result] = report.checkpoints[0].results
    return result


def told(diagnostics: tuple[Diagnostic, ...]) -> dict[str, str]:
    """Warnings and errors: rule and message."""
    return {d.rule: f"{d.severity}: {d.message}" for d in diagnostics if d.severity != "info"}


@pytest.mark.parametrize(("case", "expected"), POINTS)
def test_verdict(case: Case, expected: Expected, tmp_path: Path) -> None:
    result = asked(case, expected, *case.write(tmp_path))
    said = told(result.diagnostics)
    if expected.verdicts:
        assert result.verdict in expected.verdicts, said
    assert not set(expected.rules) - set(said), said
    if expected.quiet:
        assert set(said) == set(expected.rules)
    if expected.loud:
        assert said
    if expected.error:
        assert result.load is not None
        assert result.load.error is not None
        assert result.load.error.type == expected.error


@pytest.mark.parametrize(
    ("case", "expected"),
    [p for p in POINTS if p.values[1].mended],  # type: ignore[union-attr]
)
def test_a_safe_fix(case: Case, expected: Expected, tmp_path: Path) -> None:
    draft, target = case.write(tmp_path)
    result = fix(
        draft,
        [expected.target],
        str(target),
        trained_on=case.trained_on,
        runner=expected.runner,
        diff=True,
    )
    [after] = result.after.checkpoints[0].results
    assert after.verdict == "serves", told(after.diagnostics)
    assert not told(after.diagnostics)


def test_a_whole_model_is_no_draft(tmp_path: Path) -> None:
    # Report 5: without a draft's path the target model itself was loaded as the draft.
    norms: Shapes = {
        f"model.layers.{index}.input_layernorm.weight": ("BF16", (64,)) for index in range(36)
    }
    config = {k: v for k, v in LLAMA.items() if k != "draft_vocab_size"}
    with pytest.raises(InputError, match="no EAGLE-3 draft: it looks like a whole model"):
        check(write_draft(tmp_path, config, norms), ["sglang"])


def test_every_report_has_a_case_or_a_reason() -> None:
    tested = {number for case in CASES for number in case.numbers}
    assert tested | set(WHY_NOT) == set(THREADS)
    assert not tested & set(WHY_NOT)


def test_names_of_cases_are_unlike() -> None:
    ids = [point.id for point in POINTS]
    assert len(ids) == len(set(ids))


def test_the_page_is_up_to_date() -> None:
    page = PAGE.read_text()
    assert page == renewed(page), "python -m tests.unit.public_cases.table --write"


def test_a_cast_rounds_as_torch_does() -> None:
    # bfloat16 has eight bits: 257 and 259 are halfway between neighbours and go to the even one.
    assert packed("BF16", [256, 257, 259]) == packed("BF16", [256, 256, 260])
    assert packed("BF16", [256]).hex() == "8043"
