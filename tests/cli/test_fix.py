"""``fix`` and ``undo`` on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from eagle3_lint.checking import read_draft
from eagle3_lint.cli import main
from eagle3_lint.diagnostic import Edit
from eagle3_lint.load.header import read_header, read_header_text
from eagle3_lint.plan.change import folder_change
from eagle3_lint.plan.edits import Edited
from eagle3_lint.plan.json_text import without
from tests.drafts import DRAFT_VOCAB, shard, write_case

LAYERS = {"base": "llama", "rename": {"midlayer.": "layers.0."}}
MIDLAYER = {"base": "llama"}


def run(*words: str | Path) -> tuple[int, str]:
    ran = CliRunner().invoke(main, [str(word) for word in words])
    assert ran.exception is None or isinstance(ran.exception, SystemExit), ran.exception
    return ran.exit_code, ran.output


def names(folder: Path) -> list[str]:
    return [t.name for t in read_header(folder / "model.safetensors").tensors]


def contents(folder: Path) -> dict[str, bytes]:
    return {p.name: p.read_bytes() for p in folder.iterdir() if p.is_file()}


@pytest.fixture
def layers(tmp_path: Path) -> Path:
    return write_case(LAYERS, tmp_path / "draft")


def test_fix_and_undo(layers: Path) -> None:
    before = contents(layers)
    code, told = run("fix", layers, "-t", "sglang==0.5.9")
    assert code == 0
    assert "sglang 0.5.9: broken → serves" in told
    assert "layers.0.hidden_norm.weight → midlayer.hidden_norm.weight" in told
    assert "model.safetensors: header rewritten in place" in told
    assert f"eagle3-lint undo {layers} takes it back" in told
    assert "midlayer.hidden_norm.weight" in names(layers)
    code, told = run("undo", layers)
    assert code == 0
    assert contents(layers) == before
    code, told = run("undo", layers)
    assert code == 2
    assert "no fix to take back" in told


def test_diff_writes_nothing(layers: Path) -> None:
    before = contents(layers)
    code, told = run("fix", layers, "-t", "sglang==0.5.9", "--diff")
    # The draft on disk is still broken for that release.
    assert code == 1
    assert "nothing was written (--diff)" in told
    assert contents(layers) == before
    assert not (layers / ".eagle3-lint").exists()


def test_nothing_to_do(tmp_path: Path) -> None:
    draft = write_case(MIDLAYER, tmp_path / "draft")
    before = contents(draft)
    code, told = run("fix", draft, "-t", "sglang==0.5.9")
    assert code == 0
    assert "nothing to change" in told
    assert contents(draft) == before


def test_twice_is_once(layers: Path) -> None:
    run("fix", layers, "-t", "sglang==0.5.9")
    before = contents(layers)
    code, told = run("fix", layers, "-t", "sglang==0.5.9")
    assert code == 0
    assert "nothing to change" in told
    assert contents(layers) == before


def test_output_leaves_the_source_alone(layers: Path, tmp_path: Path) -> None:
    before = contents(layers)
    out = tmp_path / "fixed"
    code, _ = run("fix", layers, "-t", "sglang==0.5.9", "--output", out)
    assert code == 0
    assert contents(layers) == before
    assert "midlayer.hidden_norm.weight" in names(out)
    assert run("check", out, "-t", "sglang==0.5.9")[0] == 0
    code, told = run("fix", layers, "-t", "sglang==0.5.9", "--output", out)
    assert code == 2
    assert str(out) in told


def test_a_bare_runtime_takes_the_spelling_that_most_releases_read(layers: Path) -> None:
    # The newest SGLang reads both spellings (llama_eagle3.py:339), 0.5.11 and older only midlayer.
    code, told = run("fix", layers, "-t", "sglang")
    assert code == 0
    assert "midlayer.hidden_norm.weight" in names(layers)
    assert "10 tensors renamed" in told


def test_one_spelling_for_several_targets(layers: Path) -> None:
    code, _ = run("fix", layers, "-t", "sglang==0.5.9", "-t", "vllm==0.32.0")
    assert code == 0
    assert run("check", layers, "-t", "sglang==0.5.9", "-t", "vllm==0.32.0")[0] == 0


def test_targets_that_cannot_be_had_together(tmp_path: Path) -> None:
    # vLLM 0.8.5 knows its own class name alone, and SGLang none but its own
    # (registry.py:218; llama_eagle3.py EntryClass).
    draft = write_case(MIDLAYER, tmp_path / "draft")
    code, told = run("fix", draft, "-t", "sglang==0.5.9", "-t", "vllm==0.9.2", "--diff")
    assert code == 1
    assert "vllm 0.9.2 cannot be had together with the other targets" in told
    assert "Eagle3LlamaForCausalLM" in told


def test_json(layers: Path) -> None:
    code, told = run("fix", layers, "-t", "sglang==0.5.9", "--format", "json")
    assert code == 0
    report = json.loads(told)
    assert report["schema"] == "eagle3-lint/fix/1"
    assert report["before"]["checkpoints"][0]["results"][0]["verdict"] == "broken"
    assert report["after"]["checkpoints"][0]["results"][0]["verdict"] == "serves"
    assert len(report["edits"]) == 10
    assert report["written"]["files"][0]["step"] == "in place"


def test_the_configuration_keeps_its_form(tmp_path: Path) -> None:
    draft = write_case({"base": "llama", "unset": ["draft_vocab_size"]}, tmp_path / "draft")
    before = (draft / "config.json").read_text()
    code, told = run("fix", draft, "-t", "sglang==0.5.9")
    assert code == 0, told
    after = (draft / "config.json").read_text()
    assert json.loads(after)["draft_vocab_size"] == DRAFT_VOCAB
    assert without(after, "/draft_vocab_size") == before


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["fix", "nowhere", "-t", "sglang"], "no such file or folder"),
        (["undo", "nowhere"], "nowhere"),
        (["fix", ".", "-t", "tgi"], "no such runtime"),
    ],
)
def test_bad_input(words: list[str], told: str, tmp_path: Path) -> None:
    code, output = run(*words)
    assert code == 2
    assert told in output


def test_a_damaged_file_is_left_alone(layers: Path) -> None:
    path = layers / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-10])
    before = contents(layers)
    code, told = run("fix", layers, "-t", "sglang==0.5.9")
    assert code == 1
    assert contents(layers) == before
    assert "E3L002" in told


def test_a_torch_file_becomes_safetensors_on_the_way_out(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    from safetensors.torch import load_file

    draft = write_case(LAYERS, tmp_path / "draft")
    state = load_file(draft / "model.safetensors")
    (draft / "model.safetensors").unlink()
    torch.save(state, draft / "pytorch_model.bin")
    code, told = run("fix", draft, "-t", "sglang==0.5.9")
    assert code == 2
    assert "--output DIR writes the draft as safetensors" in told
    out = tmp_path / "fixed"
    code, told = run("fix", draft, "-t", "sglang==0.5.9", "--output", out)
    assert code == 0, told
    assert sorted(p.name for p in out.iterdir()) == ["config.json", "model.safetensors"]
    written = load_file(out / "model.safetensors")
    assert {n.replace("midlayer.", "layers.0."): t.dtype for n, t in written.items()} == {
        n: t.dtype for n, t in state.items()
    }
    assert all(
        torch.equal(t, state[n.replace("midlayer.", "layers.0.")]) for n, t in written.items()
    )
    assert (draft / "pytorch_model.bin").exists()


@pytest.mark.parametrize(
    ("ids", "how", "written"),
    [
        # The usual states 2, n / 2, n - 3 of 32 layers as inputs: SGLang reads outputs of layers.
        ([2, 16, 29], [], [1, 15, 28]),
        # Ids of a choice of one's own mean what the user says, before the fix and after it.
        ([8, 12, 20], ["--ids-mean", "input"], [7, 11, 19]),
        ([8, 12, 20], ["--ids-mean", "output"], [8, 12, 20]),
        ([8, 12, 20], [], [8, 12, 20]),
    ],
)
def test_layer_ids_are_written_as_the_target_reads_them(
    ids: list[int], how: list[str], written: list[int], tmp_path: Path
) -> None:
    nested = {"eagle_aux_hidden_state_layer_ids": ids, "use_aux_hidden_state": True}
    case = {
        "base": "llama",
        "config": {"eagle_config": nested, "max_position_embeddings": 131072},
    }
    draft = write_case(case, tmp_path / "draft")
    # The small draft of the tests is as wide as no Llama, which is another matter.
    words = ["fix", draft, "-t", "sglang==0.5.12", "-m", "llama-3.1-8b", "--ignore", "E3L60"]
    assert run(*words, *how)[0] == 0
    now = json.loads((draft / "config.json").read_text())["eagle_config"]
    assert now["eagle_aux_hidden_state_layer_ids"] == written


def values(folder: Path) -> dict[str, bytes]:
    raw = (folder / "model.safetensors").read_bytes()
    header = read_header(folder / "model.safetensors")
    start = header.data_start
    return {t.name: raw[start + t.begin : start + t.end] for t in header.tensors}


@pytest.mark.parametrize(("kind", "told"), [
    ("absolute", "d2t is rebuilt from the tokens it holds"),
    ("zeros", "d2t is rebuilt from the tokens t2d marks"),
])  # fmt: skip
def test_d2t_is_rebuilt(kind: str, told: str, tmp_path: Path) -> None:
    good = values(write_case(MIDLAYER, tmp_path / "good"))
    draft = write_case({**MIDLAYER, "d2t": kind}, tmp_path / "draft")
    before = contents(draft)
    code, output = run("fix", draft, "-t", "sglang==0.5.9", "-t", "vllm==0.32.0")
    assert code == 0, output
    assert told in output
    assert values(draft) == good
    run("undo", draft)
    assert contents(draft) == before


def test_a_d2t_that_nothing_confirms_is_unsafe_to_rebuild(tmp_path: Path) -> None:
    draft = write_case({**MIDLAYER, "d2t": "absolute", "remove": ["t2d"]}, tmp_path / "draft")
    before = contents(draft)
    assert run("fix", draft, "-t", "sglang==0.5.9")[0] == 1
    assert contents(draft) == before
    assert run("fix", draft, "-t", "sglang==0.5.9", "--unsafe")[0] == 0
    good = values(write_case(MIDLAYER, tmp_path / "good"))
    assert values(draft)["d2t"] == good["d2t"]


def test_a_rebuilt_d2t_goes_into_a_converted_draft(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    from safetensors.torch import load_file

    good = values(write_case(MIDLAYER, tmp_path / "good"))
    draft = write_case({**MIDLAYER, "d2t": "absolute"}, tmp_path / "draft")
    torch.save(load_file(draft / "model.safetensors"), draft / "pytorch_model.bin")
    (draft / "model.safetensors").unlink()
    out = tmp_path / "fixed"
    assert run("fix", draft, "-t", "sglang==0.5.9", "--output", out)[0] == 0
    assert values(out) == good
    assert run("check", out, "-t", "sglang==0.5.9")[0] == 0


def test_names_that_change_places_keep_their_shards(tmp_path: Path) -> None:
    draft = write_case(MIDLAYER, tmp_path / "draft")
    names = {t.name: t for t in read_draft(draft).tensors.values()}
    one, other = "midlayer.hidden_norm.weight", "midlayer.input_layernorm.weight"
    shard(draft, {n: (t.dtype, t.shape) for n, t in names.items()})
    edited = Edited.untouched(read_draft(draft)).then(
        [Edit.rename(one, other), Edit.rename(other, one)]
    )
    index = "model.safetensors.index.json"
    before = json.loads((draft / index).read_text())["weight_map"]
    headers = {f: read_header_text(draft / f) for f in set(before.values())}
    change = folder_change(edited, headers, (index, (draft / index).read_text()), (), "")
    [text] = change.texts
    after = json.loads(text.content or b"")["weight_map"]
    assert (after[one], after[other]) == (before[other], before[one])
    assert before[one] != before[other]
    for written in change.weights:
        there = [name for name, file in after.items() if file == written.file]
        assert sorted(n for n in json.loads(written.header) if n[0] != "_") == sorted(there)
