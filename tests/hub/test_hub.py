"""Drafts and target models on the Hub are read as folders on this disk are, for little traffic."""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from huggingface_hub import constants, hf_hub_download

from eagle3_lint import load
from eagle3_lint.checking import check, read_draft
from eagle3_lint.coverage import coverage
from eagle3_lint.errors import InputError
from eagle3_lint.load import remote
from eagle3_lint.load.header import read_header
from eagle3_lint.load.special_tokens import special_tokens
from eagle3_lint.models import find_target_model
from eagle3_lint.token_list import recorded_tokens
from fixtures.build.materialise import materialise
from tests.drafts import (
    VOCAB,
    llama_config,
    llama_tensors,
    spread,
    write_case,
    write_draft,
)
from tests.hub.server import TOKEN, Hub, Repository, commit_of
from tests.weights import TARGET_CONFIG, give_weights, write_target

TARGETS = ("sglang==0.5.9", "vllm==0.12.0")
WEIGHTS = "model.safetensors"


@pytest.fixture(name="draft")
def _draft(tmp_path: Path) -> Path:
    return write_draft(tmp_path / "draft", llama_config(), llama_tensors("layers.0."))


def results(path: str | Path, model: str | None = None) -> Any:
    """What a report says beside the path, the target model by any name."""
    found = check(path, TARGETS, model).to_json()["checkpoints"][0]
    del found["path"]
    text = json.dumps(found)
    return json.loads(text.replace(json.dumps(model)[1:-1], "TARGET") if model else text)


def kinds(found: Any) -> set[str]:
    return {d["rule"] for result in found["results"] for d in result["diagnostics"]}


def test_the_report_is_that_of_the_folder(hub: Hub, draft: Path) -> None:
    hub.add("org/draft", draft)
    assert "E3L201" in kinds(results(draft))
    assert results("hf://org/draft") == results(draft)


def test_the_commit_is_in_the_path_and_leads_back(hub: Hub, draft: Path) -> None:
    commit = hub.add("org/draft", draft)
    (checkpoint,) = check("hf://org/draft", TARGETS).checkpoints
    assert checkpoint.path == f"hf://org/draft@{commit}"
    assert check(checkpoint.path, TARGETS).checkpoints[0].path == checkpoint.path


@pytest.mark.parametrize(
    "damage",
    ["truncated", "trailing", "duplicate-name", "html", "lfs-pointer", "empty", "zeros",
     "zip", "garbage", "pickle"],
)  # fmt: skip
def test_damaged_weights_are_said_to_be_so(hub: Hub, draft: Path, damage: str) -> None:
    path = draft / WEIGHTS
    raw = path.read_bytes()
    path.write_bytes(
        {
            "truncated": raw[:-100],
            "trailing": raw + b"more",
            "duplicate-name": raw.replace(b'"d2t"', b'"t2d"', 1),
            "html": b"<!doctype html><html>Sign in</html>",
            "lfs-pointer": b"version https://git-lfs.github.com/spec/v1\noid sha256:1\nsize 9\n",
            "empty": b"",
            "zeros": bytes(len(raw)),
            "zip": b"PK\x03\x04" + bytes(1000),
            # A header of 90 MB, which the library would allow.
            "garbage": struct.pack("<Q", 90_000_000) + b"{" + bytes(1000),
            "pickle": b"\x80\x02}q\x00." + bytes(100),
        }[damage]
    )
    hub.add("org/draft", draft)
    local = results(draft)
    assert any(rule.startswith("E3L0") for rule in kinds(local))
    assert results("hf://org/draft") == local


def test_shards(hub: Hub, tmp_path: Path) -> None:
    draft = write_case({"base": "llama", "container": "shard-missing"}, tmp_path / "draft")
    hub.add("org/draft", draft)
    local = results(draft)
    assert "E3L011" in kinds(local)
    assert results("hf://org/draft") == local


def test_a_whole_set_of_shards(hub: Hub, tmp_path: Path) -> None:
    draft = write_draft(tmp_path / "draft", llama_config(), llama_tensors())
    give_weights(draft, "good")
    header = read_header(draft / WEIGHTS)
    raw = (draft / WEIGHTS).read_bytes()
    names = {t.name: f"model-0000{1 + i % 2}-of-00002.safetensors"
             for i, t in enumerate(header.tensors)}  # fmt: skip
    for shard in set(names.values()):
        entries, data = {}, b""
        for t in header.tensors:
            if names[t.name] == shard:
                piece = raw[header.data_start + t.begin : header.data_start + t.end]
                entries[t.name] = {"dtype": t.dtype, "shape": list(t.shape),
                                   "data_offsets": [len(data), len(data) + len(piece)]}  # fmt: skip
                data += piece
        text = json.dumps(entries).encode()
        (draft / shard).write_bytes(struct.pack("<Q", len(text)) + text + data)
    (draft / WEIGHTS).unlink()
    index = {"metadata": {}, "weight_map": names}
    (draft / f"{WEIGHTS}.index.json").write_text(json.dumps(index))
    hub.add("org/draft", draft)
    assert results("hf://org/draft") == results(draft)
    near, far = read_draft(draft), read_draft("hf://org/draft")
    assert near.problems == far.problems == ()
    assert near.tensors == far.tensors
    assert list(far.d2t or ()) == list(near.d2t or ())


# -- which folder ----------------------------------------------------------------------------------


@pytest.fixture(name="nested")
def _nested(hub: Hub, tmp_path: Path) -> Path:
    """A repository with a draft in a folder, and another one on a branch."""
    root = tmp_path / "repository"
    write_draft(root / "epoch_1" / "draft", llama_config(), llama_tensors())
    (root / "README.md").write_text("# A draft")
    other = write_draft(tmp_path / "other", llama_config(), llama_tensors("layers.0."))
    hub.repositories["org/name"] = Repository({"main": root, "dev": other, "feature/x": other})
    return root


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("hf://org/name/epoch_1/draft", "hf://org/name@{main}/epoch_1/draft"),
        ("hf://org/name@main/epoch_1/draft", "hf://org/name@{main}/epoch_1/draft"),
        ("hf://org/name/epoch_1/draft@main", "hf://org/name@{main}/epoch_1/draft"),
        ("hf://org/name/epoch_1/draft/config.json", "hf://org/name@{main}/epoch_1/draft"),
        ("hf://org/name/epoch_1/draft/model.safetensors", "hf://org/name@{main}/epoch_1/draft"),
        ("hf://org/name@dev", "hf://org/name@{dev}"),
        ("org/name@dev", "hf://org/name@{dev}"),
        ("hf://org/name@{dev}", "hf://org/name@{dev}"),
        ("hf://org/name@feature%2Fx", "hf://org/name@{feature/x}"),
        ("{url}/org/name/tree/dev", "hf://org/name@{dev}"),
    ],
)
def test_revisions_and_folders(
    hub: Hub, nested: Path, text: str, shown: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_ENDPOINT", hub.url)
    folders = hub.repositories["org/name"].revisions
    commits = {name: commit_of(folder, name) for name, folder in folders.items()}
    for name, commit in {**commits, "url": hub.url}.items():
        text, shown = text.replace(f"{{{name}}}", commit), shown.replace(f"{{{name}}}", commit)
    assert read_draft(text).path == shown


def test_a_repository_that_was_renamed_goes_by_its_name(hub: Hub, draft: Path) -> None:
    commit = hub.add("org/new", draft)
    hub.renamed["org/old"] = "org/new"
    assert read_draft("hf://org/old").path == f"hf://org/new@{commit}"


def test_a_folder_of_that_name_comes_first(
    hub: Hub, draft: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub.add("org/draft", draft)
    write_draft(tmp_path / "org" / "draft", llama_config(), llama_tensors())
    monkeypatch.chdir(tmp_path)
    assert read_draft("org/draft").path == "org/draft"
    assert hub.seen == []


def test_a_draft_further_down_is_pointed_out(hub: Hub, nested: Path) -> None:
    with pytest.raises(InputError) as caught:
        check("hf://org/name/epoch_1", TARGETS)
    commit = commit_of(nested)
    inner = f"hf://org/name@{commit}/epoch_1/draft"
    message = str(caught.value)
    assert f"hf://org/name@{commit}/epoch_1: no config.json; did you mean {inner}?" in message


def test_names_that_lead_out_of_the_folder_are_left_out(hub: Hub, draft: Path) -> None:
    """The names are the server's; a mirror makes files of them."""
    from eagle3_lint.load.remote.listing import folder_in

    files = dict.fromkeys(
        [
            "config.json",
            "../up",
            "/etc/passwd",
            "a/../../up",
            "a\\..\\up",
            "C:up",
            "",
            "x\0y",
            "./z",
        ]
    )
    assert set(folder_in(files, "", "hf://org/name").files) == {"config.json"}


@pytest.mark.parametrize("width", [64, 65_536])
def test_torch_files(hub: Hub, tmp_path: Path, width: int) -> None:
    """Small ones come whole; of a large one its directory, its pickle and d2t, not the matrices."""
    torch = pytest.importorskip("torch")
    draft = write_draft(tmp_path / "draft", llama_config(), {})
    (draft / WEIGHTS).unlink()
    shapes = {name: shape for name, (_, shape) in llama_tensors("layers.0.").items()}
    shapes |= dict.fromkeys(("embed_tokens.weight", "fc.weight"), (VOCAB, width))
    # In the order in which they are written: d2t stands alone between the two large matrices.
    order = dict.fromkeys(("embed_tokens.weight", "d2t", "fc.weight", *shapes))
    state = {name: torch.ones(shapes[name], dtype=torch.bfloat16) for name in order}
    # Longer than what is fetched at its sides.
    state["d2t"] = torch.arange(1, 4001)
    state["t2d"] = torch.tensor([token in set(spread()) for token in range(VOCAB)])
    torch.save(state, draft / "pytorch_model.bin")
    hub.add("org/draft", draft)
    near, far = read_draft(draft), read_draft("hf://org/draft")
    assert near.problems == far.problems == ()
    assert near.tensors == far.tensors
    assert list(far.d2t or ()) == list(near.d2t or ()) == list(range(1, 4001))
    assert list(far.t2d or ()) == list(near.t2d or ())
    assert results("hf://org/draft") == results(draft)
    if width > 64:
        assert (draft / "pytorch_model.bin").stat().st_size > 260e6
        assert hub.traffic < 500_000


def test_a_damaged_torch_file(hub: Hub, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    draft = write_draft(tmp_path / "draft", llama_config(), {})
    (draft / WEIGHTS).unlink()
    with (draft / "pytorch_model.bin").open("wb") as file:
        file.write(b"PK\x03\x04")
        file.truncate(10**8)
    hub.add("org/draft", draft)
    near, far = results(draft), results("hf://org/draft")
    assert "E3L017" in kinds(near)
    assert far == near


def test_a_token_list_beside_the_weights(hub: Hub, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    tensors = {n: t for n, t in llama_tensors().items() if n not in ("d2t", "t2d")}
    draft = write_draft(tmp_path / "draft", llama_config(), tensors)
    torch.save(torch.tensor(spread()), draft / "speculative_token_map.pt")
    hub.add("org/draft", draft)
    near, far = read_draft(draft), read_draft("hf://org/draft")
    assert list(recorded_tokens(near) or ()) == spread()
    assert recorded_tokens(far) == recorded_tokens(near)


# -- how much --------------------------------------------------------------------------------------


def test_a_draft_of_4_7_gb_costs_less_than_a_megabyte(hub: Hub, tmp_path: Path) -> None:
    """d2t has 32,000 x 8 bytes and t2d 163,840: 420 KB, and the rest is to fit in 160 KB."""
    fixture = Path(__file__).parents[2] / "fixtures" / "kimi-k2.5-layers0"
    weights = materialise(fixture, tmp_path / "kimi")
    assert weights.stat().st_size > 4.7e9
    hub.add("org/kimi", tmp_path / "kimi")
    near, far = read_draft(tmp_path / "kimi"), read_draft("hf://org/kimi")
    assert (far.tensors, list(far.d2t or ())) == (near.tensors, list(near.d2t or ()))
    assert list(far.t2d or ()) == list(near.t2d or ())
    assert hub.traffic < 600_000
    assert len(hub.seen) <= 7
    mirrored = load.folder_shown_as(far.path) / WEIGHTS
    assert mirrored.stat().st_size == weights.stat().st_size
    if hasattr(os.stat_result, "st_blocks"):
        assert mirrored.stat().st_blocks * 512 < 2**20


def test_nothing_is_asked_for_twice(hub: Hub, draft: Path) -> None:
    commit = hub.add("org/draft", draft)
    for path in ("hf://org/draft", "org/draft", "hf://org/draft@main", "hf://org/draft"):
        check(path, TARGETS)
    # The commit was known already, but not that this is what it is: one description more.
    check(f"hf://org/draft@{commit}", TARGETS)
    asked = [(seen.path, seen.range) for seen in hub.seen]
    assert len(asked) == len(set(asked))
    assert len([path for path, _ in asked if path.startswith("/api/")]) == 2
    fetched = [seen for seen in hub.seen if "/signed/" in seen.path]
    covered: set[int] = set()
    for seen in fetched:
        first, last = (seen.range or "").removeprefix("bytes=").split("-")
        stretch = range(int(first), int(last) + 1)
        assert covered.isdisjoint(stretch)
        covered.update(stretch)


def test_a_branch_is_asked_again_after_a_while(
    hub: Hub, draft: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub.add("org/draft", draft)
    first = read_draft("hf://org/draft").path
    other = write_draft(tmp_path / "later", llama_config(), llama_tensors())
    later = hub.add("org/draft", other)
    assert read_draft("hf://org/draft").path == first
    monkeypatch.setattr(remote, "FRESH", 0.0)
    assert read_draft("hf://org/draft").path == f"hf://org/draft@{later}"


def test_sizes_that_the_hub_does_not_tell(hub: Hub, draft: Path) -> None:
    """A mirror of the Hub may not know ``blobs=true``; Content-Range tells them, too."""
    hub.add("org/draft", draft, sizes=False)
    assert results("hf://org/draft") == results(draft)


def test_many_threads(hub: Hub, tmp_path: Path) -> None:
    """Four drafts, each opened by four threads at once, beside one target model."""
    target = write_target(tmp_path / "target")
    hub.add("org/target", target)
    near: dict[str, Any] = {}
    for i, kind in enumerate(("good", "head-shuffled", "embedding-random", "neighbours")):
        draft = write_draft(tmp_path / f"draft{i}", llama_config(), llama_tensors())
        give_weights(draft, kind)
        hub.add(f"org/draft{i}", draft)
        near[f"hf://org/draft{i}"] = results(draft, str(target))
    with ThreadPoolExecutor(16) as pool:
        addresses = [*near] * 4
        far = pool.map(lambda address: results(address, "hf://org/target"), addresses)
        for address, found in zip(addresses, far, strict=True):
            assert found == near[address], address
    asked = [(seen.path, seen.range) for seen in hub.seen]
    assert len(asked) == len(set(asked))


def test_mirrors_are_not_kept_without_end(
    hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote, "_KEPT", 3)
    folders = []
    for i in range(5):
        hub.add(f"org/draft{i}", write_draft(tmp_path / str(i), llama_config(), llama_tensors()))
        folders.append(load.folder_shown_as(read_draft(f"hf://org/draft{i}").path))
    assert [folder.exists() for folder in folders] == [False, False, True, True, True]
    # And what is gone comes back.
    assert read_draft("hf://org/draft0").d2t is not None
    assert read_draft("hf://org/draft4").d2t is not None
    assert len(load.MIRRORS) == 6  # each by folder and by address


# -- who may ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("access", ["private", "gated"])
def test_a_token_opens(hub: Hub, draft: Path, monkeypatch: pytest.MonkeyPatch, access: str) -> None:
    hub.add("org/draft", draft, access=access)
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    assert results("hf://org/draft") == results(draft)
    to_store = [seen for seen in hub.seen if hub.store_url.endswith(f":{seen.port}")]
    assert to_store, "the weights lie there"
    assert {seen.token for seen in to_store} == {None}, "the token is the Hub's alone"


def test_a_token_is_kept_back_when_huggingface_hub_is_told_to(
    hub: Hub, draft: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub.add("org/draft", draft)
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_IMPLICIT_TOKEN", True)
    read_draft("hf://org/draft")
    assert {seen.token for seen in hub.seen} == {None}


# -- target models ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "rule", "near"),
    [("good", None, "neither"), ("head-shuffled", "E3L411", "neither"),
     ("head-shuffled", "E3L411", "draft"), ("head-shuffled", "E3L411", "target"),
     ("embedding-random", "E3L409", "neither"), ("d2t-unsorted", "E3L407", "neither"),
     ("head-by-offsets", "E3L413", "neither")],
)  # fmt: skip
def test_the_rows_that_are_compared(
    hub: Hub, tmp_path: Path, kind: str, rule: str | None, near: str
) -> None:
    """A row that was not fetched would be zeros, which say nothing; the findings are the same."""
    draft = write_draft(tmp_path / "draft", llama_config(), llama_tensors())
    give_weights(draft, kind)
    target = write_target(tmp_path / "target")
    hub.add("org/draft", draft)
    hub.add("org/target", target)
    local = results(draft, str(target))
    assert rule is None or rule in kinds(local)
    path = draft if near == "draft" else "hf://org/draft"
    model = str(target) if near == "target" else "hf://org/target"
    assert results(path, model) == local


def write_big_target(folder: Path) -> Path:
    """A target model of 64 GB in two shards, with a wide embedding."""
    folder.mkdir()
    width, index = 8192, {}
    sizes = {"model.embed_tokens.weight": (2**21, 1), "lm_head.weight": (2**21, 2)}
    for name, (rows, number) in sizes.items():
        file = f"model-0000{number}-of-00002.safetensors"
        text = json.dumps({name: {"dtype": "BF16", "shape": [rows, width],
                                  "data_offsets": [0, rows * width * 2]}}).encode()  # fmt: skip
        with (folder / file).open("wb") as opened:
            opened.write(struct.pack("<Q", len(text)) + text)
            opened.truncate(8 + len(text) + rows * width * 2)
        index[name] = file
    (folder / f"{WEIGHTS}.index.json").write_text(json.dumps({"weight_map": index}))
    (folder / "config.json").write_text(json.dumps({**TARGET_CONFIG, "hidden_size": width}))
    return folder


def test_rows_of_a_target_model_of_64_gb(hub: Hub, tmp_path: Path, draft: Path) -> None:
    from eagle3_lint.load.rows import read_rows
    from eagle3_lint.load.target_weights import EMBEDDING, find_matrix

    hub.add("org/target", write_big_target(tmp_path / "target"))
    model = find_target_model("hf://org/target")
    assert model.folder is not None
    matrix = find_matrix(model.folder, EMBEDDING)
    assert matrix is not None
    assert matrix.shape == (2**21, 8192)
    rows = read_rows(model.folder, matrix, range(0, 2**21, 2**15), 256)
    assert rows is not None
    assert len(rows) == 64
    # 64 stretches of 512 bytes and their HTTP, a description, two indices, one header.
    assert hub.traffic < 200_000
    assert not hub.paths("00002-of-00002.safetensors"), "the index says where it is"


@pytest.mark.parametrize("text", ["hf://org/target", "hf://org/target/config.json"])
def test_a_target_models_configuration(hub: Hub, tmp_path: Path, text: str) -> None:
    commit = hub.add("org/target", write_target(tmp_path / "target"))
    model = find_target_model(text)
    assert (model.name, model.vocab_size) == (text, VOCAB)
    assert model.source == f"hf://org/target@{commit}/config.json"
    assert hub.paths(".safetensors") == []


def test_special_tokens_are_read_when_asked_for(hub: Hub, tmp_path: Path, draft: Path) -> None:
    target = write_target(tmp_path / "target")
    entry = {"content": "<|im_end|>", "special": True}
    (target / "tokenizer_config.json").write_text(
        json.dumps({"added_tokens_decoder": {"7": entry}})
    )
    (target / "generation_config.json").write_text('{"eos_token_id": 9}')
    hub.add("org/target", target)
    model = find_target_model("hf://org/target")
    assert not hub.paths("tokenizer_config.json")
    found = special_tokens({}, model.folder)
    assert found == special_tokens({}, target) == {7: "<|im_end|>", 9: "eos"}
    assert coverage(read_draft(draft), VOCAB, found)


# -- the cache of huggingface_hub ------------------------------------------------------------------


def cached(hub: Hub, name: str, files: Mapping[str, object]) -> None:
    for file in files:
        hf_hub_download(name, str(file), endpoint=hub.url, cache_dir=constants.HF_HUB_CACHE)


def test_what_was_downloaded_is_not_fetched(
    hub: Hub, draft: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_DISABLE_XET", "1")
    hub.add("org/draft", draft)
    cached(hub, "org/draft", dict.fromkeys(["config.json", WEIGHTS]))
    hub.seen.clear()
    assert results("hf://org/draft") == results(draft)
    assert [path.split("?")[0] for path in hub.paths()] == ["/api/models/org/draft/revision/main"]


def test_without_the_network_the_cache_is_read(
    hub: Hub, draft: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit = hub.add("org/draft", draft)
    cached(hub, "org/draft", dict.fromkeys(["config.json", WEIGHTS]))
    hub.seen.clear()
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    for text in ("hf://org/draft", "org/draft", f"hf://org/draft@{commit}"):
        assert read_draft(text).path == f"hf://org/draft@{commit}"
    assert results("hf://org/draft") == results(draft)
    assert hub.seen == []


def test_without_the_network_a_part_is_no_draft(
    hub: Hub, draft: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That the weights are not in the cache says nothing of the draft."""
    hub.add("org/draft", draft)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(
        InputError, match=r"config\.json is not in huggingface_hub's cache"
    ) as caught:
        read_draft("hf://org/draft@v1")
    assert "hf download org/draft --revision v1" in str(caught.value)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    cached(hub, "org/draft", {"config.json": None})
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(InputError, match="the weights are not in huggingface_hub's cache"):
        read_draft("hf://org/draft")
    # A target model's configuration is all that is asked of it.
    (draft / "config.json").write_text(json.dumps(TARGET_CONFIG))
    assert find_target_model("hf://org/draft").architecture == "LlamaForCausalLMEagle3"


def test_without_the_network_and_any_such_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(InputError, match="no such file or folder, and HF_HUB_OFFLINE is set"):
        read_draft("o--rg/na..me")
