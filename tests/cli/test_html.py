"""``check`` and ``matrix`` with ``--format html``: the command's own part of it."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from eagle3_lint.cli import main
from tests.drafts import write_case
from tests.unit.report_html.pages import by_class, text_of, tree


@pytest.mark.parametrize(("layer", "code"), [("midlayer.", 0), ("layers.0.", 1)])
def test_a_page_and_the_exit_code(tmp_path: Path, layer: str, code: int) -> None:
    draft = write_case({"base": "llama", "rename": {"midlayer.": layer}}, tmp_path / "draft")
    arguments = ["check", str(draft), "-t", "sglang==0.5.9", "--format", "html"]
    page = tmp_path / "report.html"
    assert CliRunner().invoke(main, [*arguments, "--output", str(page)]).exit_code == code
    root = tree(page.read_text(encoding="utf-8"))
    assert len(by_class(root, "panel")) == 1
    assert CliRunner().invoke(main, arguments).output == page.read_text(encoding="utf-8")
    never = CliRunner().invoke(main, [*arguments, "--fail-on", "never"])
    assert never.exit_code == 0


def test_what_the_options_say_reaches_the_page(tmp_path: Path) -> None:
    draft = write_case({"base": "llama"}, tmp_path / "draft")
    script = tmp_path / "serve.sh"
    script.write_text(f"python -m sglang.launch_server --speculative-draft-model-path {draft}\n")
    asked = ["check", str(draft), "--launch", str(script), "-m", "kimi-k2.5",
             "--trained-on", "2,30,58", "--format", "html"]  # fmt: skip
    told = text_of(tree(CliRunner().invoke(main, asked).output))
    assert "launch-without-draft" in told
    assert "Trained on aux states 2, 30, 58 (as the user says)" in told


def test_the_matrix_asks_for_everything(tmp_path: Path) -> None:
    draft = write_case({"base": "llama"}, tmp_path / "draft")
    root = tree(CliRunner().invoke(main, ["matrix", str(draft), "--format", "html"]).output)
    assert by_class(root, "field")
    assert len(by_class(root, "field", "asked")) == len(by_class(root, "field"))
