"""Edits on a draft, and the edits that lead from one state of it to another."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from eagle3_lint.checking import read_draft
from eagle3_lint.diagnostic import Edit
from eagle3_lint.plan.edits import CollisionError, Edited
from tests.drafts import DRAFT_VOCAB, write_case

NORM, FC = "norm.weight", "fc.weight"


@pytest.fixture
def draft(tmp_path: Path) -> Edited:
    return Edited.untouched(read_draft(write_case({"base": "llama"}, tmp_path / "draft")))


def test_untouched(draft: Edited) -> None:
    assert draft.edits() == ()


def test_edits_in_steps_come_out_as_one_each(draft: Edited) -> None:
    after = (
        draft.then([Edit.rename(NORM, "a"), Edit.set_config("/x", 1)])
        .then([Edit.rename("a", "b"), Edit.set_config("/x", 2), Edit.drop(FC)])
        .then([Edit.remove_config("/hidden_act")])
    )
    assert set(after.facts.tensors) == (set(draft.facts.tensors) - {NORM, FC}) | {"b"}
    assert after.facts.config["x"] == 2
    edits = after.edits()
    assert sorted(e.op for e in edits) == [
        "drop_tensor", "remove_config", "rename_tensor", "set_config",
    ]  # fmt: skip
    assert Edit.rename(NORM, "b") in edits
    assert Edit.set_config("/x", 2) in edits


def test_there_and_back_is_nothing(draft: Edited) -> None:
    after = draft.then([Edit.rename(NORM, "a")]).then([Edit.rename("a", NORM)])
    assert after.edits() == ()
    assert after.key == draft.key


def test_two_names_can_be_swapped(draft: Edited) -> None:
    after = draft.then([Edit.rename(NORM, FC), Edit.rename(FC, NORM)])
    assert after.facts.tensors[FC].shape == draft.facts.tensors[NORM].shape


def test_a_collision_is_refused(draft: Edited) -> None:
    with pytest.raises(CollisionError, match="both be called"):
        draft.then([Edit.rename(NORM, FC)])


def test_an_absent_tensor_is_refused(draft: Edited) -> None:
    with pytest.raises(KeyError):
        draft.then([Edit.rename("nothing", "something")])


def test_nested_fields_are_told_apart(draft: Edited) -> None:
    after = draft.then([Edit.set_config("/eagle_config", {"a": True, "b": 1})])
    assert after.edits() == (Edit.set_config("/eagle_config", {"a": True, "b": 1}),)
    deeper = Edited.untouched(after.facts).then([Edit.set_config("/eagle_config/a", 1)])
    # 1 == True in Python, and not in JSON.
    assert deeper.edits() == (Edit.set_config("/eagle_config/a", 1),)


@pytest.mark.parametrize("dtype", ["U8", "I16", "F32"])
def test_a_d2t_that_cannot_hold_the_offsets_is_left_alone(tmp_path: Path, dtype: str) -> None:
    draft = Edited.untouched(read_draft(write_case({"base": "llama"}, tmp_path / "draft")))
    tensor = replace(draft.facts.tensors["d2t"], dtype=dtype)
    facts = replace(
        draft.facts,
        tensors={**draft.facts.tensors, "d2t": tensor},
        d2t=[40_000, *range(1, DRAFT_VOCAB)],
    )
    with pytest.raises(ValueError, match=dtype):
        Edited.untouched(facts).then([Edit.rebuild_d2t("d2t", "absolute")])


GATE_UP = [("a", 100), ("b", 60)]


def test_a_split_goes_with_later_names(draft: Edited) -> None:
    gate = "midlayer.mlp.gate_proj.weight"
    begin = draft.facts.tensors[gate].offset
    after = draft.then([Edit.rename(gate, "gate")]).then([Edit.split("gate", GATE_UP)])
    after = after.then([Edit.rename("b", "c")])
    assert after.edits() == (Edit.split(gate, [("a", 100), ("c", 60)]),)
    # 160 rows of 64 two-byte numbers.
    first, second = after.facts.tensors["a"], after.facts.tensors["c"]
    assert (first.shape, first.offset, first.nbytes) == ((100, 64), begin, 12_800)
    assert (second.shape, second.offset, second.nbytes) == ((60, 64), begin + 12_800, 7_680)
    assert draft.then(after.edits()).key == after.key != draft.key


@pytest.mark.parametrize(
    ("parts", "error"),
    [
        ([("a", 100), ("b", 61)], ValueError),
        ([("a", 160), ("b", 0)], ValueError),
        ([("a", 161), ("b", -1)], ValueError),
        ([], ValueError),
        ([("a", 100), (NORM, 60)], CollisionError),
        ([("a", 100), ("a", 60)], CollisionError),
    ],
)
def test_a_split_that_cannot_be(
    draft: Edited, parts: list[tuple[str, int]], error: type[Exception]
) -> None:
    with pytest.raises(error):
        draft.then([Edit.split("midlayer.mlp.gate_proj.weight", parts)])


def test_a_part_may_have_a_name_that_another_gives_up(draft: Edited) -> None:
    """Edits of one state, whichever steps led to it, lead to it again in one."""
    gate, up = (f"midlayer.mlp.{name}_proj.weight" for name in ("gate", "up"))
    after = draft.then([Edit.rename(up, "z")]).then([Edit.split(gate, [(up, 100), ("b", 60)])])
    assert after.facts.tensors[up].shape == (100, 64)
    assert draft.then(after.edits()).key == after.key
    assert draft.then(after.edits()).facts.tensors == after.facts.tensors


def test_a_part_is_neither_split_again_nor_dropped(draft: Edited) -> None:
    after = draft.then([Edit.split("midlayer.mlp.gate_proj.weight", GATE_UP)])
    with pytest.raises(KeyError):
        after.then([Edit.split("a", [("x", 50), ("y", 50)])])
    with pytest.raises(KeyError):
        after.then([Edit.drop("a")])
