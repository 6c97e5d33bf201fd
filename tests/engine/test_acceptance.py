"""Our verdicts against the acceptance that vLLM's engine measures.

Every test runs twice: on the measurements that are kept in this folder, always, and on new ones,
when ``EAGLE3_LINT_ENGINE_PYTHON`` names a Python that has vLLM. The second serves 38 drafts, which
takes seven to twenty minutes, and is marked ``engine``.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from tests.engine import serve
from tests.engine.outcome import (
    RELEASE,
    Run,
    agrees,
    is_as_expected,
    measured_verdict,
    our_verdict,
    read_run,
)
from tests.engine.table import DOCUMENT, STORED, printed, renewed
from tests.engine.variants import TARGET_MODEL, VARIANTS, Variant, write_variants

PYTHON = os.environ.get("EAGLE3_LINT_ENGINE_PYTHON")

#: Variants of which we do not say what the engine does, and what we would have to know.
#: An entry whose verdict has become right fails the suite: then it goes.
NOT_YET: Final[Mapping[str, str]] = {}


@pytest.fixture(scope="session")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Every variant, written once."""
    return write_variants(tmp_path_factory.mktemp("variants"))


def measure(folders: Mapping[str, Path], out: Path) -> Run:
    """Serve every variant on the engine of ``PYTHON``."""
    command = [str(PYTHON), serve.__file__, "--target", str(TARGET_MODEL), "--out", str(out)]
    # Without the project's folder on the path: what is imported is vLLM's Python alone.
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    done = subprocess.run(
        [*command, *map(str, folders.values())],
        env={"OMP_NUM_THREADS": "1", **environment},
        cwd=out.parent,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return read_run(out)


@pytest.fixture(
    scope="session",
    params=[
        "stored",
        pytest.param(
            "measured",
            marks=[
                pytest.mark.engine,
                pytest.mark.skipif(PYTHON is None, reason="EAGLE3_LINT_ENGINE_PYTHON is not set"),
            ],
        ),
    ],
)
def run(
    request: pytest.FixtureRequest,
    folders: dict[str, Path],
    tmp_path_factory: pytest.TempPathFactory,
) -> Run:
    """The kept measurements, or new ones."""
    if request.param == "stored":
        return read_run(STORED)
    return measure(folders, tmp_path_factory.mktemp("engine") / "results.jsonl")


def each(reasons: Mapping[str, str] | None = None) -> list[Any]:
    """All variants as parameters; those that ``reasons`` names are to fail."""
    return [
        pytest.param(
            variant,
            id=variant.name,
            marks=[pytest.mark.xfail(strict=True, reason=reasons[variant.name])]
            if reasons and variant.name in reasons
            else [],
        )
        for variant in VARIANTS
    ]


@pytest.mark.parametrize("variant", each(NOT_YET))
def test_our_verdict_is_what_was_measured(
    run: Run, variant: Variant, folders: dict[str, Path]
) -> None:
    verdict = our_verdict(variant, folders[variant.name])
    assert agrees(run, variant, verdict), f"we: {verdict}, vLLM: {measured_verdict(run, variant)}"


@pytest.mark.parametrize("variant", each())
def test_the_engine_does_what_the_table_of_variants_says(run: Run, variant: Variant) -> None:
    assert is_as_expected(run, variant), run.of(variant)


@pytest.mark.parametrize("variant", each())
def test_the_measurement_is_of_this_draft(
    run: Run, variant: Variant, folders: dict[str, Path]
) -> None:
    assert run.of(variant).sha256 == serve.fingerprint(folders[variant.name])


@pytest.mark.parametrize("variant", each())
def test_a_defect_never_changes_the_text(run: Run, variant: Variant) -> None:
    """Speculation is lossless: what a bad draft costs is speed, so that no output gives it away."""
    assert run.of(variant).same_as_target is (None if run.of(variant).error else True)


def test_the_run_is_of_the_release_that_we_speak_of(run: Run) -> None:
    assert run.about["versions"]["vllm"].partition("+")[0] == RELEASE
    assert set(run.measurements) == {variant.name for variant in VARIANTS}


def test_what_is_not_known_yet_names_variants() -> None:
    assert set(NOT_YET) <= {variant.name for variant in VARIANTS}


def test_the_document_holds_the_table() -> None:
    """`python -m tests.engine.table --write` renews it."""
    page = DOCUMENT.read_text(encoding="utf-8")
    assert renewed(page, printed(STORED)) == page
