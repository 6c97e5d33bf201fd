"""Every producer's draft for SGLang, for vLLM and back: its numbers, and what it says of itself."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

import eagle3_lint
from eagle3_lint.checking import read_draft
from eagle3_lint.draft_spec import DraftSpec, draft_spec
from eagle3_lint.errors import InputError
from eagle3_lint.fixing import FixResult
from eagle3_lint.load.header import read_header
from eagle3_lint.producer import recognise
from eagle3_lint.report.inspection import role_of
from eagle3_lint.trained import trained_states
from tests.unit.test_fixtures import EXPECTED, FIXTURES

LAYERS = 36
#: The drafts' target model, as far as a conversion asks for it.
TARGET_CONFIG = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 64,
    "num_hidden_layers": LAYERS,
    "vocab_size": 1000,
    "max_position_embeddings": 512,
}
DRAFTS = [*EXPECTED, "acceptance-draft", "acceptance-draft-alt"]
#: Drafts whose layer the nested form has; the others are refused with the reason.
NESTED = [name for name in EXPECTED if "mla" not in name]


@pytest.fixture(name="target")
def _target(tmp_path: Path) -> str:
    path = tmp_path / "target" / "config.json"
    path.parent.mkdir()
    path.write_text(json.dumps(TARGET_CONFIG))
    return str(path)


def copied(name: str, folder: Path) -> Path:
    """A fixture that may be changed."""
    draft = folder / name
    shutil.copytree(FIXTURES / name, draft)
    return draft


def numbers(draft: Path) -> dict[str, str]:
    """Role of each tensor → SHA-256 of its bytes."""
    return dict(_numbers(draft))


def _numbers(draft: Path) -> Iterator[tuple[str, str]]:
    for path in sorted(draft.glob("*.safetensors")):
        header, content = read_header(path), path.read_bytes()
        for info in header.tensors:
            role = role_of(info.name) or info.name
            # The first norm of a later layer has two names for one place in the forward pass.
            role = re.sub(r"layer\.([1-9]\d*)\.hidden_norm", r"layer.\1.input_norm", role)
            start = header.data_start
            data = content[start + info.begin : start + info.end]
            yield role, f"{info.dtype} {info.shape} {hashlib.sha256(data).hexdigest()}"


def spec(draft: Path) -> DraftSpec:
    facts = read_draft(draft)
    trained = trained_states(facts.config, recognise(facts), LAYERS)
    return draft_spec(facts, trained.states)


def hop(draft: Path, runtime: str, target: str, **how: object) -> FixResult:
    return eagle3_lint.fix(draft, [runtime], target, **how)  # type: ignore[arg-type]


def unreported(before: DraftSpec, after: DraftSpec, told: list[str]) -> list[str]:
    """What is said otherwise than before, and was not reported on the way.

    Mended on purpose are fields that were wrong for the tensors: the count of layers, the size of
    the draft's vocabulary, and positions that are raised to the target model's.
    """
    mended = ("num_hidden_layers", "draft_vocab_size", "max_position_embeddings")
    return [
        line for line in before.lost_in(after) if line not in told and not line.startswith(mended)
    ]


@pytest.mark.parametrize("folder", sorted(p.parent for p in FIXTURES.glob("*/fixture.json")))
def test_the_producer_is_recognised(folder: Path) -> None:
    if (
        not any(folder.glob(pattern) for pattern in ("*.safetensors", "*.bin"))
        or (folder / "header.bin").is_file()
    ):
        pytest.skip("no weights before they are materialised")
    if list(folder.glob("*.bin")):
        pytest.importorskip("torch")
    written_by = json.loads((folder / "fixture.json").read_text())["producer"].lower()
    found = recognise(read_draft(folder))
    assert found.name in written_by
    if found.version is not None:
        assert found.version in folder.name or folder.name == "torchspec-pruned"


@pytest.mark.parametrize("name", DRAFTS)
def test_there_and_back(name: str, tmp_path: Path, target: str) -> None:
    draft = copied(name, tmp_path)
    tensors, said = numbers(draft), spec(draft)
    told: list[str] = []
    for runtime in ("sglang", "vllm", "sglang", "vllm"):
        told += hop(draft, runtime, target).lost
        assert numbers(draft) == tensors
    assert unreported(said, spec(draft), told) == []


@pytest.mark.parametrize("name", NESTED)
def test_nested_and_flat(name: str, tmp_path: Path, target: str) -> None:
    draft = copied(name, tmp_path)
    tensors, said = numbers(draft), spec(draft)
    told: list[str] = []
    for runtime, form in (("vllm", "speculators"), ("vllm", "flat"), ("vllm", "speculators")):
        done = hop(draft, runtime, target, as_=form)
        told += done.lost
        assert numbers(draft) == tensors
        config = json.loads((draft / "config.json").read_text())
        assert ("transformer_layer_config" in config) == (form == "speculators")
    assert unreported(said, spec(draft), told) == []
    verdict = done.after.checkpoints[0].results[0].verdict
    assert verdict == ("broken" if name == "torchspec-pruned" else "serves")


def test_latent_attention_cannot_be_nested(tmp_path: Path, target: str) -> None:
    draft = copied("modelopt-0.47.0-mla", tmp_path)
    before = (draft / "config.json").read_bytes()
    with pytest.raises(InputError, match="no layer with latent attention; keep the flat form"):
        hop(draft, "vllm", target, as_="speculators")
    assert (draft / "config.json").read_bytes() == before


def test_norms_of_queries_cannot_be_served_by_every_runtime(tmp_path: Path, target: str) -> None:
    draft = copied("speculators-0.9.0-qwen3", tmp_path)
    with pytest.raises(InputError, match=r"sglang 0\.\d+\.\d+ has no draft class for a layer"):
        hop(draft, "sglang", target, as_="flat")
    done = hop(draft, "sglang", target)
    assert done.edits == ()
    (finding,) = (d for d in done.after.checkpoints[0].results[0].diagnostics if d.rule == "E3L104")
    assert "norms of queries and keys" in finding.message


def test_a_draft_without_aux_states_cannot_be_nested(tmp_path: Path, target: str) -> None:
    draft = copied("specforge-0.2.0", tmp_path)
    path = draft / "config.json"
    config = json.loads(path.read_text())
    config["eagle_config"] = {"use_aux_hidden_state": False}
    path.write_text(json.dumps(config))
    with pytest.raises(InputError, match="no place for use_aux_hidden_state: false"):
        hop(draft, "vllm", target, as_="speculators")


def test_what_the_nested_form_does_not_say_is_told(tmp_path: Path, target: str) -> None:
    draft = copied("specforge-0.2.0", tmp_path)
    path = draft / "config.json"
    config = json.loads(path.read_text())
    config["eagle_config"]["use_last_layernorm"] = False
    path.write_text(json.dumps(config))
    done = hop(draft, "vllm", target, as_="speculators")
    assert done.lost == ("last_norm was False and is True",)


def test_undo_takes_a_conversion_back(tmp_path: Path, target: str) -> None:
    draft = copied("specforge-0.2.0-hf", tmp_path)
    before = {p.name: p.read_bytes() for p in draft.iterdir()}
    hop(draft, "vllm", target, as_="speculators")
    eagle3_lint.undo(draft)
    assert {p.name: p.read_bytes() for p in draft.iterdir() if p.is_file()} == before


def test_a_torch_file_comes_out_as_safetensors(tmp_path: Path, target: str) -> None:
    torch = pytest.importorskip("torch")
    draft, out = copied("safeailab-eagle", tmp_path), tmp_path / "out"
    hop(draft, "vllm", target, output=out, as_="speculators")
    state = torch.load(draft / "pytorch_model.bin", weights_only=True)
    assert len(numbers(out)) == len(state)
    assert json.loads((out / "config.json").read_text())["speculators_model_type"] == "eagle3"
