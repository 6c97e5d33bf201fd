"""Ray Data: a dataset of drafts' paths → a dataset with a row for every draft and target.

>>> import ray
>>> from eagle3_lint.integrations.ray import check_dataset
>>> drafts = ray.data.read_parquet("drafts.parquet")          # a column ``path``
>>> found = check_dataset(drafts, ["sglang==0.5.9", "vllm"], "kimi-k2.5")
>>> found.write_parquet("report")

``pip install 'eagle3-lint[ray]'``, on every node; every node has to see the drafts too. Nothing of
Ray is imported before it is used.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING, Any

from eagle3_lint.errors import InputError
from eagle3_lint.fleet import check_one, check_question, unreadable
from eagle3_lint.report.model import CheckpointReport, Result

if TYPE_CHECKING:
    import pyarrow
    from ray.data import Dataset

#: Column → type of its values, each of which can be null but the path's.
COLUMNS: dict[str, str] = {
    "path": "string",
    "producer": "string",
    "runtime": "string",
    "release": "string",
    "model": "string",
    "verdict": "string",
    "outcome": "string",
    "errors": "int64",
    "warnings": "int64",
    "rules": "list",
    "message": "string",
    "error": "string",
}


def check_dataset(
    ds: Dataset,
    targets: Iterable[str] = (),
    target_model: str | None = None,
    *,
    column: str = "path",
    batch_size: int = 32,
    concurrency: int | None = None,
    **question: Any,
) -> Dataset:
    """Check every draft of a dataset; lazy, as datasets are.

    Rows come in no particular order unless the dataset's context asks for it
    (``execution_options.preserve_order``). A draft that cannot be read is a row too.

    Args:
        ds: has a column of draft folders or files in them. Its other columns stay behind; join on
            ``path``, which is as the dataset has it.
        column: the name of that column.
        batch_size: drafts that one task checks, some 20 ms each. Large blocks are cut, since a
            dataset that was read from one small file is one block, which one worker would do.
        concurrency: tasks at once; None takes as many as there are free processors.
        question: as :func:`eagle3_lint.check` takes it. Paths in it are looked up on the workers.

    Returns:
        The rows of :func:`rows`, with the columns :data:`COLUMNS`.

    Raises:
        InputError: the question is wrong whatever the draft, or there is no such column.
    """
    asked = tuple(targets)
    check_question(asked, target_model, **question)
    known = ds.columns(fetch_if_missing=False)
    if known is not None and column not in known:
        raise InputError(f"dataset: no column {column!r} among {', '.join(known)}; name it")
    check = partial(_check_batch, column, asked, target_model, question)
    # num_blocks has no default in older releases of Ray.
    cut = ds.repartition(num_blocks=None, target_num_rows_per_block=batch_size)
    return cut.map_batches(
        check, batch_size=batch_size, batch_format="pyarrow", concurrency=concurrency
    )


def rows(path: str, checkpoint: CheckpointReport) -> list[dict[str, object]]:
    """The report on one draft as flat rows, one for every target; one row when it is unreadable.

    Args:
        path: as it was asked for; the report names the folder.

    Returns:
        Values for :data:`COLUMNS`: ``model`` is the target model, ``outcome`` that of loading,
        ``rules`` what spoke, each once and in the report's order, ``message`` that of the first
        error. Of an unreadable draft all are null but ``path`` and ``error``, which says why.
    """
    if checkpoint.error is not None:
        return [{**dict.fromkeys(COLUMNS), "path": path, "error": checkpoint.error}]
    return [_row(path, checkpoint, result) for result in checkpoint.results]


def _row(path: str, checkpoint: CheckpointReport, result: Result) -> dict[str, object]:
    errors = [d.message for d in result.diagnostics if d.severity == "error"]
    return {
        "path": path,
        "producer": checkpoint.producer.name,
        "runtime": result.target.runtime,
        "release": result.target.release,
        "model": result.target.model,
        "verdict": result.verdict,
        "outcome": result.load.outcome if result.load is not None else None,
        "errors": len(errors),
        "warnings": sum(d.severity == "warning" for d in result.diagnostics),
        "rules": list(dict.fromkeys(d.rule for d in result.diagnostics)),
        "message": errors[0] if errors else None,
        "error": None,
    }


def _check_batch(
    column: str,
    targets: tuple[str, ...],
    target_model: str | None,
    question: dict[str, Any],
    batch: pyarrow.Table,
) -> pyarrow.Table:
    """What a worker does with some rows."""
    import pyarrow

    found = [
        row
        for path in batch.column(column).to_pylist()
        for row in rows(str(path), _checked(path, targets, target_model, question))
    ]
    return pyarrow.Table.from_pylist(found, schema=_schema())


def _checked(
    path: object, targets: tuple[str, ...], target_model: str | None, question: dict[str, Any]
) -> CheckpointReport:
    if not isinstance(path, str):
        return unreadable(str(path), f"{path!r} is no path; the column has to hold strings")
    return check_one(path, targets, target_model, **question)


def _schema() -> pyarrow.Schema:
    """Types are said and not guessed: a batch without errors would else have no type for them."""
    import pyarrow

    strings = pyarrow.string()
    kinds = {"string": strings, "int64": pyarrow.int64(), "list": pyarrow.list_(strings)}
    return pyarrow.schema([(name, kinds[kind]) for name, kind in COLUMNS.items()])
