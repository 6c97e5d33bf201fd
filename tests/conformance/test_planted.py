"""A wrong statement in a contract makes the suite fail.

Each plant edits a copy of the rules; the answers of the release's own loader must then disagree,
and did not before.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest

from eagle3_lint.contract.rules_folder import rules_folder
from tests.conformance import tensorrt_run
from tests.conformance.answers import PYTHON, answers, asked
from tests.conformance.compare import compare

pytestmark = [
    pytest.mark.conformance,
    pytest.mark.skipif(PYTHON is None, reason="EAGLE3_LINT_ORACLE_PYTHON is not set"),
]
LLAMA = "contracts/sglang/LlamaForCausalLMEagle3.toml"
RUNTIME = "contracts/sglang/runtime.toml"
TENSORRT = "contracts/tensorrt-llm/Eagle3ForCausalLM.toml"


@dataclass(frozen=True)
class Plant:
    """A mistake: in ``file``, ``true`` becomes ``false`` in every statement that has ``within``.

    Attributes:
        release: the release that must notice.
        within: what the statement holds, line by line; the mistake is made in those alone.
    """

    name: str
    release: str
    file: str
    within: str
    true: str
    false: str

    @property
    def runtime(self) -> str:
        return self.file.split("/")[1]


PLANTS = [
    # Ranges off by one release, on both sides of a change.
    Plant("layers a release late", "0.5.12", LLAMA, 'prefix = "model.layers.{index}."',
          "0.5.12", "0.5.13"),
    Plant("one layer allowed a release early", "0.5.11", LLAMA,
          'refuse = "ValueError: EAGLE3 currently only supports 1 layer"', "<0.5.12", "<0.5.11"),
    Plant("the target's head a release late", "0.5.2", LLAMA, 'name = "head_from_target"',
          "0.5.2", "0.5.3"),
    Plant("midlayer known a release late", "0.5.12", LLAMA, 'find = "midlayer"',
          ">=0.5.12", ">=0.5.13"),
    Plant("MLA class a release late", "0.5.12", RUNTIME,
          'architecture = "Eagle3DeepseekV2ForCausalLM"', ">=0.5.12", ">=0.5.13"),
    # Parameters renamed or resized.
    Plant("norm renamed", "0.5.11", LLAMA, 'name = "model.norm.weight"',
          "model.norm.weight", "model.final_norm.weight"),
    Plant("hidden_norm renamed", "0.5.12", LLAMA, 'name = "{layer}hidden_norm.weight"',
          "hidden_norm.weight", "hidden_layernorm.weight"),
    Plant("fc from two states", "0.5.11", LLAMA, 'name = "aux"\nvalue = "3"', '"3"', '"2"'),
    # Policies flipped.
    Plant("an unknown key raises", "0.5.11", LLAMA, 'missing = "discard"\nin = ">=0.4.9"',
          'missing = "discard"', "missing = \"KeyError: '{key}'\""),
    Plant("rows beyond the end raise", "0.5.2", LLAMA, 'loader = "qkv"\nrows_more = "cut"',
          'rows_more = "cut"', 'rows_more = "AssertionError: "'),
    Plant("too few columns raise", "0.5.11", LLAMA, 'columns_fewer = "pad"',
          '"pad"', '"RuntimeError: "'),
    Plant("d2t is no map", "0.5.12", LLAMA, 'do = "map"', '"map"', '"discard"'),
    Plant("the embedding is never the target's", "0.5.11", LLAMA,
          'name = "model.embed_tokens.weight"',
          "not own_embedding or head_from_target", "false"),
    Plant("k taken for q", "0.5.2", LLAMA, 'find = ".k_proj"', 'part = "k"', 'part = "q"'),
    # TensorRT-LLM, where its sources are at hand.
    Plant("every parameter may be missing", "1.2.0rc2", TENSORRT,
          'when = "empty_qkv or empty_copy or empty_norm"', "empty_qkv or", "false and"),
    Plant("layers renamed some releases late", "1.3.0rc15", TENSORRT, 'find = "layers.0."',
          ">=1.3.0rc3", ">=1.3.0rc22"),
    Plant("input_norm some releases late", "1.3.0rc15", TENSORRT,
          'name = "model.input_norm.weight"', ">=1.3.0rc11", ">=1.3.0rc22"),
    Plant("q, k and v may be missing", "1.3.0rc25", TENSORRT, "empty_qkv or halved",
          "(empty_qkv or halved)", "halved"),
    Plant("a single row is refused", "1.3.0rc25", TENSORRT, "repeats = true",
          "repeats = true", "repeats = false"),
]  # fmt: skip


def planted(plant: Plant, folder: Path) -> Path:
    """A copy of the rules with the mistake in it."""
    rules = folder / "rules"
    shutil.copytree(rules_folder(), rules, ignore=shutil.ignore_patterns("build"))
    path = rules / plant.file
    statements = path.read_text(encoding="utf-8").split("\n\n")
    meant = [n for n, text in enumerate(statements) if _holds(text, plant.within)]
    assert meant, "no statement holds what the plant is looking for"
    for number in meant:
        assert plant.true in statements[number]
        statements[number] = statements[number].replace(plant.true, plant.false)
    path.write_text("\n\n".join(statements), encoding="utf-8")
    return rules


def _holds(statement: str, within: str) -> bool:
    return all(line in statement for line in within.splitlines())


@pytest.mark.parametrize("plant", PLANTS, ids=[plant.name for plant in PLANTS])
def test_plant_is_noticed(plant: Plant, tmp_path: Path) -> None:
    runtime, release = plant.runtime, plant.release
    if runtime == tensorrt_run.RUNTIME and release not in tensorrt_run.releases():
        pytest.skip(f"the sources of {runtime} {release} are not in the cache")
    theirs, drafts = answers(runtime, release), asked(runtime, release)
    assert compare(runtime, release, theirs, drafts) == []
    try:
        found = compare(runtime, release, theirs, drafts, planted(plant, tmp_path))
    except ValueError:
        # Statements that contradict each other (a name that nothing gives, two layer statements
        # for one release) are noticed before any draft is.
        return
    assert found
