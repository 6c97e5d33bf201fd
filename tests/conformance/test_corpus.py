"""The corpus is what it says: readable files, one constant per tensor, healthy maps."""

from __future__ import annotations

import json
from pathlib import Path

import numpy
import pytest
from safetensors import safe_open

from tests.conformance.corpus import Case, cases, write
from tests.conformance.draft import DRAFT_VOCAB, OFFSETS, VOCAB, llama

CASES = {case.name: case for case in cases()}


def test_enough_cases_of_every_family() -> None:
    assert len(CASES) >= 240
    assert sum("pair" in case.tags for case in CASES.values()) >= 60
    assert sum("mla" in case.tags for case in CASES.values()) >= 20


def test_healthy_map_stays_in_the_vocabulary() -> None:
    ids = [i + offset for i, offset in enumerate(OFFSETS)]
    assert len(set(ids)) == DRAFT_VOCAB
    assert min(ids) >= 0 and max(ids) < VOCAB


def test_edits_that_hit_nothing_are_refused() -> None:
    with pytest.raises(KeyError):
        llama().drop("no_such_tensor")
    with pytest.raises(KeyError):
        llama().rename("no_such_prefix.", "x.")


@pytest.mark.parametrize(
    "name",
    [
        "spelling/layer under midlayer.",
        "mla/split a-projections",
        "vocabulary/d2t a column",
        "config/float32 tensors",
        "config/float16 tensors",
        "class/speculators trained",
    ],
)
def test_written_files_hold_the_case(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    write(case, tmp_path)
    assert json.loads((tmp_path / "config.json").read_text()) == case.config
    with safe_open(tmp_path / "model.safetensors", framework="numpy") as stored:
        assert set(stored.keys()) == set(case.tensors)
        for key in case.tensors:
            assert tuple(stored.get_slice(key).get_shape()) == case.tensors[key][1]
        check_map(case, stored.get_tensor("d2t"), stored.get_tensor("t2d"))


def check_map(case: Case, d2t: numpy.ndarray, t2d: numpy.ndarray) -> None:
    if case.d2t is None:
        return
    assert d2t.ravel().tolist() == list(case.d2t)
    assert numpy.flatnonzero(t2d).tolist() == [i + o for i, o in enumerate(case.d2t)]


def test_every_float_tensor_has_a_constant_of_its_own(tmp_path: Path) -> None:
    case = CASES["config/float32 tensors"]
    write(case, tmp_path)
    with safe_open(tmp_path / "model.safetensors", framework="numpy") as stored:
        floats = [stored.get_tensor(key) for key in case.tensors if key not in ("d2t", "t2d")]
    constants = [set(tensor.ravel().tolist()) for tensor in floats]
    assert all(len(values) == 1 for values in constants)
    assert len(set.union(*constants)) == len(floats)
    assert max(len(case.tensors) for case in CASES.values()) < 256  # exact in bfloat16
