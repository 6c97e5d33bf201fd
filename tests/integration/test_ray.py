"""Rows for Ray Data, and a local cluster of two nodes that makes them of a few hundred drafts.

The cluster needs ``pip install 'eagle3-lint[ray]'`` and ``EAGLE3_LINT_RAY=1``: Ray takes half a
minute to start and to stop.
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import eagle3_lint
from eagle3_lint.errors import InputError
from eagle3_lint.fleet import check_one, unreadable
from eagle3_lint.integrations import ray as ours
from eagle3_lint.report.model import LoadReport, TargetReport
from eagle3_lint.report.model import Result as TargetResult
from tests.drafts import llama_config, llama_tensors, mla_config, mla_tensors, write_draft
from tests.unit.report.samples import diagnostic, report, result

TARGETS = ("sglang==0.5.9", "vllm==0.33.0")
#: A few hundred, of which one is broken for SGLang 0.5.9 and one is not there.
DRAFTS, BROKEN, GONE = 300, 112, 211
BATCH = 32


# -- rows ---------------------------------------------------------------------------------------


def test_a_row_for_every_target() -> None:
    found = report(
        result(
            diagnostic("first", rule="E3L301", severity="warning"),
            diagnostic("second", rule="E3L201"),
            diagnostic("third", rule="E3L301"),
            diagnostic("fourth", rule="E3L603", severity="info"),
        ),
        TargetResult(TargetReport("vllm", "99", None), "unknown", None, None, ()),
        path="drafts/a",
    )
    first, second = ours.rows("drafts/a/config.json", found.checkpoints[0])
    assert first == {
        "path": "drafts/a/config.json",
        "producer": "unknown",
        "runtime": "sglang",
        "release": "0.5.9",
        "model": "kimi-k2.5",
        "verdict": "broken",
        "outcome": "ok",
        "errors": 2,
        "warnings": 1,
        "rules": ["E3L301", "E3L201", "E3L603"],
        "message": "second",
        "error": None,
    }
    assert second == {
        **dict.fromkeys(ours.COLUMNS),
        "path": "drafts/a/config.json",
        "producer": "unknown",
        "runtime": "vllm",
        "release": "99",
        "verdict": "unknown",
        "errors": 0,
        "warnings": 0,
        "rules": [],
    }


def test_an_unreadable_draft_is_one_row() -> None:
    [row] = ours.rows("gone", unreadable("gone", "gone: no such file"))
    nothing = dict.fromkeys(ours.COLUMNS)
    assert row == {**nothing, "path": "gone", "error": "gone: no such file"}


def test_a_row_has_the_columns_in_their_order() -> None:
    loads = LoadReport("silent", "Some")
    good = TargetResult(TargetReport("sglang", "1", None), "serves", loads, None, ())
    for told in (report(good).checkpoints[0], unreadable("gone", "gone: no such file")):
        assert [list(row) for row in ours.rows("x", told)] == [list(ours.COLUMNS)]


class Dataset:
    """As much of a dataset as is looked at before anything runs."""

    def __init__(self, columns: list[str] | None) -> None:
        self._columns = columns

    def columns(self, fetch_if_missing: bool) -> list[str] | None:
        assert not fetch_if_missing  # which would run what comes before
        return self._columns


@pytest.mark.parametrize(
    ("columns", "question", "words"),
    [
        (["file", "size"], {}, "no column 'path' among file, size"),
        (["path"], {"column": "draft"}, "no column 'draft' among path"),
        (None, {"targets": ["trt"]}, "no such runtime"),
        (None, {"target_model": "kimi-k25x"}, "did you mean"),
    ],
)
def test_a_wrong_question_is_told_before_anything_runs(
    columns: list[str] | None, question: dict[str, Any], words: str
) -> None:
    dataset: Any = Dataset(columns)
    with pytest.raises(InputError, match=words):
        ours.check_dataset(dataset, **question)


# -- a cluster ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def drafts(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    folder = tmp_path_factory.mktemp("drafts")
    for number in range(DRAFTS):
        if number % 3 == 2:
            config, tensors = mla_config(), mla_tensors()
        else:
            layer = "layers.0." if number == BROKEN else "midlayer."
            config, tensors = llama_config(), llama_tensors(layer)
        if number != GONE:
            write_draft(folder / f"{number:03}", config, tensors)
    return [str(folder / f"{number:03}") for number in range(DRAFTS)]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """Two nodes with a processor each."""
    if not os.environ.get("EAGLE3_LINT_RAY"):
        pytest.skip("EAGLE3_LINT_RAY is not set")
    ray = pytest.importorskip("ray", reason="needs pip install 'eagle3-lint[ray]'")
    pytest.importorskip("ray.data", reason="needs pip install 'eagle3-lint[ray]'")
    from ray.cluster_utils import Cluster

    store = 80 * 2**20  # bytes, the least that a node takes
    head = {"num_cpus": 1, "include_dashboard": False, "object_store_memory": store}
    nodes = Cluster(initialize_head=True, head_node_args=head)
    nodes.add_node(num_cpus=1, object_store_memory=store)
    try:
        ray.init(address=nodes.address, log_to_driver=False)
        assert ray.cluster_resources()["CPU"] == 2
        yield ray
    finally:
        ray.shutdown()
        nodes.shutdown()


# Ray warns of much that is its own business.
@pytest.mark.filterwarnings("ignore")
def test_two_nodes_make_the_rows_that_one_process_would(
    cluster: Any, drafts: list[str], tmp_path: Path
) -> None:
    import pyarrow

    # From one table: one block, which has to be cut for two nodes to share it.
    others = list(range(DRAFTS))
    dataset = cluster.data.from_arrow(pyarrow.table({"path": drafts, "other": others}))
    made = ours.check_dataset(dataset, TARGETS, batch_size=BATCH).materialize()
    assert made.num_blocks() >= DRAFTS // BATCH
    assert made.columns() == list(ours.COLUMNS)

    made.write_parquet(str(tmp_path / "rows"))
    import pyarrow.parquet

    found = pyarrow.parquet.read_table(tmp_path / "rows").to_pylist()
    check = partial(check_one, targets=TARGETS)
    wanted = [row for path in drafts for row in ours.rows(path, check(path))]
    # In no particular order, but that of its targets for each draft.
    assert sorted(found, key=lambda row: row["path"]) == wanted

    assert len(found) == 2 * DRAFTS - 1
    [gone] = [row for row in found if row["error"] is not None]
    assert gone["path"] == drafts[GONE]
    assert "no such file or folder" in gone["error"]
    # SGLang reads layers.0 from 0.5.12 on (0.5.11 srt/models/llama_eagle3.py:251).
    [broken] = [row for row in found if row["verdict"] == "broken"]
    assert (broken["path"], broken["runtime"]) == (drafts[BROKEN], "sglang")
    assert "E3L201" in broken["rules"]
    assert (broken["errors"], broken["outcome"]) == (1, "silent")


@pytest.mark.filterwarnings("ignore")
def test_values_that_are_no_paths(cluster: Any, drafts: list[str]) -> None:
    dataset = cluster.data.from_items([{"draft": value} for value in (None, drafts[0])])
    made = ours.check_dataset(dataset, TARGETS[:1], column="draft").take_all()
    assert {row["path"]: row["error"] for row in made} == {
        "None": "None is no path; the column has to hold strings",
        drafts[0]: None,
    }


def test_what_workers_are_sent_is_picklable(drafts: list[str]) -> None:
    told = pickle.loads(pickle.dumps(partial(check_one, targets=TARGETS)))(drafts[BROKEN])
    assert told == eagle3_lint.check(drafts[BROKEN], TARGETS).checkpoints[0]
