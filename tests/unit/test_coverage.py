"""How a draft's vocabulary covers the target model's."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from eagle3_lint.checking import read_draft
from eagle3_lint.cli import main
from eagle3_lint.coverage import Coverage, coverage
from eagle3_lint.load.special_tokens import special_tokens
from eagle3_lint.report.vocabulary import PLAIN_SHADES, render_vocabulary
from tests.drafts import DRAFT_VOCAB, VOCAB, spread, write_case
from tests.weights import write_target


def covered(folder: Path, cells: int = 10, special: dict[int, str] | None = None, **case: object):
    draft = write_case({"base": "llama", **case}, folder / "draft")
    return coverage(read_draft(draft), VOCAB, special or {}, cells)


def test_by_d2t(tmp_path: Path) -> None:
    found = covered(tmp_path, special={0: "bos", 1: "eos"})
    assert isinstance(found, Coverage)
    assert (found.source, found.covered, found.outside) == ("d2t", DRAFT_VOCAB, 0)
    assert found.share == DRAFT_VOCAB / VOCAB
    # Ten ranges of a hundred ids each, counted one by one.
    assert found.shares == tuple(
        sum(100 * cell <= t < 100 * cell + 100 for t in spread()) / 100 for cell in range(10)
    )
    assert [(s.token, s.covered) for s in found.special] == [(0, True), (1, False)]


def test_by_t2d_where_there_is_no_d2t(tmp_path: Path) -> None:
    found = covered(tmp_path, remove=["d2t"])
    assert isinstance(found, Coverage)
    assert (found.source, found.covered) == ("t2d", DRAFT_VOCAB)


def test_rows_that_lead_outside(tmp_path: Path) -> None:
    found = covered(tmp_path, d2t="absolute")
    assert isinstance(found, Coverage)
    assert found.outside == sum(row + token >= VOCAB for row, token in enumerate(spread()))


def test_the_whole_vocabulary(tmp_path: Path) -> None:
    whole = {"lm_head.weight": [VOCAB, 64]}
    found = covered(tmp_path, remove=["d2t", "t2d"], shape=whole)
    assert isinstance(found, Coverage)
    assert (found.source, set(found.shares)) == ("all", {1.0})


def test_nothing_says_which(tmp_path: Path) -> None:
    found = covered(tmp_path, remove=["d2t", "t2d"])
    assert found is None
    assert "unknown" in render_vocabulary(found)


@pytest.mark.parametrize("cells", [7, 64, 999])
def test_each_token_is_in_one_range(tmp_path: Path, cells: int) -> None:
    found = covered(tmp_path, cells)
    assert isinstance(found, Coverage)
    ends = [(cell + 1) * VOCAB // cells for cell in range(cells)]
    starts = [0, *ends[:-1]]
    for start, end, share in zip(starts, ends, found.shares, strict=True):
        assert share == sum(start <= t < end for t in spread()) / (end - start)


def test_the_picture(tmp_path: Path) -> None:
    found = Coverage("d2t", 128, 65, 0, (1.0,) * 64 + (1 / 2,) * 2 + (0.0,) * 62, ())
    lines = render_vocabulary(found, PLAIN_SHADES).splitlines()
    assert lines[2] == "  0 |" + "#" * 64 + "|"
    assert lines[3] == " 64 |" + "::" + " " * 62 + "|"


def test_special_tokens_of_the_target_model(tmp_path: Path) -> None:
    target = write_target(tmp_path / "target")
    (target / "generation_config.json").write_text(json.dumps({"eos_token_id": [7, 8]}))
    added = {
        "9": {"content": "<|end|>", "special": True},
        "10": {"content": "word", "special": False},
    }
    (target / "tokenizer_config.json").write_text(json.dumps({"added_tokens_decoder": added}))
    found = special_tokens({"bos_token_id": 1, "pad_token_id": None}, target)
    assert found == {1: "bos", 7: "eos", 8: "eos", 9: "<|end|>"}
    (target / "tokenizer_config.json").write_text("no JSON")
    assert 9 not in special_tokens({}, target)


def test_the_command(tmp_path: Path) -> None:
    draft = write_case({"base": "llama"}, tmp_path / "draft")
    ran = CliRunner().invoke(main, ["inspect", str(draft), "--vocab"])
    assert ran.exit_code == 0
    assert ran.output.startswith("vocabulary    320 of 1000 tokens (32.0 %), by d2t\n")
    ran = CliRunner().invoke(main, ["inspect", str(draft), "--vocab", "--format", "json"])
    found = json.loads(ran.output)
    assert found["vocabulary"]["covered"] == DRAFT_VOCAB
    assert found["tensors"], "the rest stays"


def test_a_wrong_target_model(tmp_path: Path) -> None:
    draft = write_case({"base": "llama"}, tmp_path / "draft")
    ran = CliRunner().invoke(main, ["inspect", str(draft), "--vocab", "-m", "nothing-known"])
    assert ran.exit_code == 2
    assert "nothing-known" in ran.output
