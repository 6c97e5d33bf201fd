"""Published drafts before the runtimes they were published for, and before some that fail them.

Nothing of a draft is downloaded: names and shapes are made from what is known of it, at true size.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from eagle3_lint.checking import check
from eagle3_lint.errors import InputError
from eagle3_lint.report.model import Result
from tests.unit.published.configurations import NO_DRAFTS, PUBLISHED, by_name
from tests.unit.published.entry import Case, NoDraft, Published
from tests.unit.published.layouts import elements, size_in_bytes, tensors, write
from tests.unit.published.page import PAGE, page

Examine = Callable[[Published], dict[str, Result]]


@pytest.fixture(scope="module")
def examine(tmp_path_factory: pytest.TempPathFactory) -> Examine:
    """Writes a draft and checks it against all of its releases, once."""
    known: dict[str, dict[str, Result]] = {}

    def examine(entry: Published) -> dict[str, Result]:
        if entry.name not in known:
            folder = tmp_path_factory.mktemp("published")
            draft = write(folder / "draft", entry.config, tensors(entry.config, entry.layout))
            for name in entry.files:
                (draft / name).write_bytes(b"PK")
            model = entry.model
            if model is not None and not isinstance(model, str):
                (folder / "config.json").write_text(json.dumps(model))
                model = str(folder / "config.json")
            targets = [case.target for case in entry.cases]
            [report] = check(draft, targets, model).checkpoints
            # Where a file system has no holes, all of them together would fill it.
            (draft / "model.safetensors").unlink()
            known[entry.name] = dict(zip(targets, report.results, strict=True))
        return known[entry.name]

    return examine


def _expected_to_fail(reason: str) -> pytest.MarkDecorator:
    return pytest.mark.xfail(strict=True, raises=AssertionError, reason=reason)


def _cases() -> list[Any]:
    return [
        pytest.param(
            entry,
            case,
            id=f"{entry.name} in {case.target}",
            marks=_expected_to_fail(case.missed) if case.missed else (),
        )
        for entry in PUBLISHED
        for case in entry.cases
    ]


@pytest.mark.parametrize(("entry", "case"), _cases())
def test_what_a_release_does_with_it(entry: Published, case: Case, examine: Examine) -> None:
    result = examine(entry)[case.target]
    found = sorted({d.rule for d in result.diagnostics if d.severity == "error"})
    assert {d.rule for d in result.diagnostics} >= set(case.says)
    if case.verdict is None:
        assert (found, result.verdict in ("serves", "degraded")) == ([], True)
        return
    assert result.verdict == case.verdict
    # What is missed has no rule yet where none is named.
    if case.errors or not case.missed:
        assert found == sorted(case.errors)


@pytest.mark.parametrize("entry", PUBLISHED, ids=lambda entry: entry.name)
def test_every_entry_says_where_it_comes_from(entry: Published) -> None:
    assert entry.source
    assert all(case.why for case in entry.cases)
    assert all(reason for case in entry.cases for reason in case.errors.values())
    targets = [case.target for case in entry.cases]
    assert len(targets) == len(set(targets))


@pytest.mark.parametrize("head", NO_DRAFTS, ids=lambda head: head.name)
def test_a_head_of_the_first_eagle_is_told_apart(
    head: NoDraft, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("published") / "head"
    write(folder, head.config, {name: ("F16", shape) for name, shape in head.shapes.items()})
    with pytest.raises(InputError, match="EAGLE-1"):
        check(folder, ["sglang==0.5.23"])


# -- the layouts, against what was published of sizes ----------------------------------------------


@pytest.mark.parametrize(
    ("name", "tensor", "shape"),
    [
        # EAGLE issue 294: fc 12288 to 4096.
        ("AngelSlim/Qwen3-8B_eagle3, Tengyunw/qwen3_8b_eagle3", "fc.weight", (4096, 12288)),
        # sglang PR 32334: 8640 columns, and a norm as wide before them.
        ("nvidia/gpt-oss-120b-Eagle3-v3", "fc.weight", (2880, 8640)),
        ("nvidia/gpt-oss-120b-Eagle3-v3", "input_norm.weight", (8640,)),
        # speculators PR 50; EAGLE issue 249.
        ("yuhuili/EAGLE3-DeepSeek-R1-Distill-LLaMA-8B", "lm_head.weight", (32000, 4096)),
        ("yuhuili/EAGLE3-DeepSeek-R1-Distill-LLaMA-8B", "d2t", (32000,)),
        ("yuhuili/EAGLE3-DeepSeek-R1-Distill-LLaMA-8B", "t2d", (128256,)),
        # Automodel PR 2322: one norm a state.
        ("lightseekorg/kimi-k2.6-eagle3.1-mla", "model.fc_norm.2.weight", (7168,)),
    ],
)
def test_shapes_are_those_that_were_published(
    name: str, tensor: str, shape: tuple[int, ...]
) -> None:
    entry = by_name(name)
    assert tensors(entry.config, entry.layout)[tensor][1] == shape


def test_sizes_are_those_that_were_published() -> None:
    apertus = by_name("thomaskiefer/EAGLE3-Apertus-8B-Instruct-2509")
    assert round(elements(tensors(apertus.config, apertus.layout)) / 1e6) == 513
    # Its card says 6.0 GB; TorchSpec's template makes 5.92 of 2^30 bytes.
    kimi = by_name("lightseekorg/kimi-k2.5-eagle3")
    assert size_in_bytes(tensors(kimi.config, kimi.layout)) / 2**30 == pytest.approx(6.0, rel=0.02)


def test_the_page_says_what_the_entries_say() -> None:
    assert PAGE.read_text(encoding="utf-8") == page()
