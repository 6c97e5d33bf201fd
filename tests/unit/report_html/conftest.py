"""The page that most tests look at: the big draft of the README before three targets."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from eagle3_lint.report.html.input import HtmlInput
from eagle3_lint.report.model import Report
from tests.unit.report_html.pages import page_of

FIXTURES = Path(__file__).parents[3] / "fixtures"
KIMI_TARGETS = ("sglang==0.5.9", "sglang==0.5.12", "vllm==0.33.0")


@pytest.fixture(scope="session")
def kimi(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A draft of 4.7 GB, which is sparse on disk."""
    folder = tmp_path_factory.mktemp("kimi") / "kimi-draft"
    script = FIXTURES / "build" / "materialise.py"
    made = [sys.executable, str(script), str(FIXTURES / "kimi-k2.5-layers0"), str(folder)]
    subprocess.run(made, check=True, capture_output=True)
    yield folder
    for file in folder.iterdir():
        file.unlink()


@pytest.fixture(scope="session")
def kimi_page(kimi: Path) -> tuple[Report, HtmlInput, str]:
    report, inputs, page = page_of(kimi, targets=KIMI_TARGETS, model="kimi-k2.5")
    return report, inputs[0], page
