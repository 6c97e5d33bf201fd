"""Every release of every runtime against its contract: not one disagreement.

    EAGLE3_LINT_ORACLE_PYTHON=VENV/bin/python python -m pytest -m conformance

downloads what is not there and runs for hours; one release is one test (``-k 0.5.9``). Sources of
TensorRT-LLM cannot be downloaded like that: its releases are asked where somebody put them.
"""

from __future__ import annotations

import pytest

from eagle3_lint.contract.runtime import known_runtimes, runtime_file
from tests.conformance import tensorrt_run
from tests.conformance.answers import PYTHON, answers, asked
from tests.conformance.compare import Disagreement, compare, report

pytestmark = [
    pytest.mark.conformance,
    pytest.mark.skipif(PYTHON is None, reason="EAGLE3_LINT_ORACLE_PYTHON is not set"),
]
RELEASES = [
    pytest.param(runtime, release, id=f"{runtime}-{release}")
    for runtime in known_runtimes()
    for release in runtime_file(runtime).releases
    if runtime != tensorrt_run.RUNTIME or release in tensorrt_run.releases()
]


@pytest.mark.parametrize(("runtime", "release"), RELEASES)
def test_release(runtime: str, release: str) -> None:
    found: list[Disagreement] = compare(
        runtime, release, answers(runtime, release), asked(runtime, release)
    )
    assert not found, "\n".join(report(found, 200))
