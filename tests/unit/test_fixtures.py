"""The fixtures are whole, are what their records say, and hold what their producers write.

Expected names and shapes are worked out here from the sizes in ``fixtures/build/tiny.py`` and from
each producer's model class; nothing is read back from the files to be expected of them.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import pickletools
import re
import struct
import sys
import zipfile
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy
import pytest
import safetensors
import safetensors.numpy

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"
FOLDERS = sorted(path.parent for path in FIXTURES.glob("*/fixture.json"))

Shapes = dict[str, tuple[str, tuple[int, ...]]]


def _script(name: str) -> ModuleType:
    """A module of ``fixtures/build``, which is no package."""
    spec = importlib.util.spec_from_file_location(name, FIXTURES / "build" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


tiny = _script("tiny")
kimi = _script("materialise")

# hidden 64, 8 query heads and 2 key heads of width 8, intermediate 160, 320 of 1000 tokens.
HIDDEN, QUERY, KEY, MLP, VOCAB, DRAFT_VOCAB = 64, 64, 16, 160, 1000, 320


def bf16(**shapes: tuple[int, ...]) -> Shapes:
    """Weights in bfloat16; ``__`` stands for a dot."""
    return {f"{name.replace('__', '.')}.weight": ("BF16", dims) for name, dims in shapes.items()}


def prefixed(prefix: str, tensors: Shapes) -> Shapes:
    return {prefix + name: value for name, value in tensors.items()}


def layer(inputs: int) -> Shapes:
    """A Llama decoder layer whose attention reads ``inputs`` features."""
    return bf16(
        self_attn__q_proj=(QUERY, inputs),
        self_attn__k_proj=(KEY, inputs),
        self_attn__v_proj=(KEY, inputs),
        self_attn__o_proj=(HIDDEN, QUERY),
        mlp__gate_proj=(MLP, HIDDEN),
        mlp__up_proj=(MLP, HIDDEN),
        mlp__down_proj=(HIDDEN, MLP),
        input_layernorm=(HIDDEN,),
        post_attention_layernorm=(HIDDEN,),
    )


# The first layer of an EAGLE-3 draft reads the embedding beside the hidden state.
FIRST = layer(2 * HIDDEN) | bf16(hidden_norm=(HIDDEN,))
AROUND = bf16(fc=(HIDDEN, 3 * HIDDEN), norm=(HIDDEN,))
HEAD = bf16(lm_head=(DRAFT_VOCAB, HIDDEN))
EMBEDDING = bf16(embed_tokens=(VOCAB, HIDDEN))
D2T: Shapes = {"d2t": ("I64", (DRAFT_VOCAB,))}
MAPS: Shapes = D2T | {"t2d": ("BOOL", (VOCAB,))}
# Ranks of latent attention: 24 for queries, 16 for keys and values; widths 8 + 4 and 8; 8 heads.
LATENT = bf16(
    self_attn__q_a_proj=(24, 2 * HIDDEN),
    self_attn__q_a_layernorm=(24,),
    self_attn__q_b_proj=(8 * (8 + 4), 24),
    self_attn__kv_a_proj_with_mqa=(16 + 4, 2 * HIDDEN),
    self_attn__kv_a_layernorm=(16,),
    self_attn__kv_b_proj=(8 * (8 + 8), 16),
    self_attn__o_proj=(HIDDEN, 8 * 8),
) | {name: value for name, value in FIRST.items() if not name.startswith("self_attn")}

MIDLAYER = prefixed("midlayer.", FIRST) | AROUND | HEAD
LAYERS = prefixed("layers.0.", FIRST) | AROUND | HEAD
SPECULATORS = LAYERS | MAPS | EMBEDDING | bf16(input_norm=(3 * HIDDEN,))
FC_NORMS = {f"fc_norm.{i}.weight": ("BF16", (HIDDEN,)) for i in range(3)}

EXPECTED: dict[str, Shapes] = {
    "speculators-0.9.0-llama": SPECULATORS,
    "speculators-0.9.0-qwen3": SPECULATORS
    | bf16(layers__0__self_attn__q_norm=(8,), layers__0__self_attn__k_norm=(8,)),
    "speculators-0.9.0-two-layers": SPECULATORS | prefixed("layers.1.", layer(HIDDEN)),
    "specforge-0.2.0": MIDLAYER | MAPS,
    "specforge-0.2.0-hf": MIDLAYER | MAPS | EMBEDDING,
    "specforge-0.2.0-eagle3.1": MIDLAYER | MAPS | FC_NORMS,
    "modelopt-0.47.0-llama": LAYERS | D2T,
    "modelopt-0.47.0-mla": prefixed("layers.0.", LATENT) | AROUND | bf16(lm_head=(VOCAB, HIDDEN)),
    "angelslim-0.3.0": MIDLAYER | MAPS | EMBEDDING,
    "nemo-automodel-0.7.0": prefixed("model.", prefixed("layers.0.", FIRST) | AROUND | EMBEDDING)
    | HEAD
    | MAPS,
    "torchspec-pruned": MIDLAYER | MAPS | EMBEDDING,
}
TRUE_SIZE = ("kimi-k2.5-layers0", "kimi-k2.5-mla")
PICKLED = ("safeailab-eagle",)

RECORD_FIELDS = {
    "fixture",
    "producer",
    "producer_version",
    "written_by",
    "special",
    "command",
    "arguments",
    "changed_in_producer",
    "versions",
    "built_on",
    "notes",
    "licence",
    "files",
}


def record(folder: Path) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((folder / "fixture.json").read_text(encoding="utf-8"))
    return loaded


def weights(name: str) -> dict[str, dict[str, Any]]:
    """Tensors of a small fixture by name: dtype, shape and data as safetensors reads them."""
    (file,) = (FIXTURES / name).glob("*.safetensors")
    return dict(safetensors.deserialize(file.read_bytes()))


def offsets(tensor: dict[str, Any]) -> list[int]:
    """``d2t`` as signed numbers."""
    data = bytes(tensor["data"])
    return list(struct.unpack(f"<{len(data) // 8}q", data))


def rows(tensor: dict[str, Any]) -> list[bytes]:
    """The rows of a matrix of 2-byte elements, as bytes."""
    data = bytes(tensor["data"])
    width = 2 * tensor["shape"][1]
    return [data[start : start + width] for start in range(0, len(data), width)]


def test_every_fixture_is_known_here() -> None:
    assert {folder.name for folder in FOLDERS} == {*EXPECTED, *TRUE_SIZE, *PICKLED}


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
class TestRecord:
    def test_is_complete(self, folder: Path) -> None:
        written = record(folder)
        assert set(written) == RECORD_FIELDS
        assert written["fixture"] == folder.name
        assert written["built_on"] == "2026-11-30"
        texts = ("producer", "producer_version", "written_by", "special", "command", "licence")
        assert all(written[field] for field in texts)
        assert all(written["versions"].values())
        script = re.search(r"fixtures/build/\w+\.py", written["command"])
        assert script is not None
        assert (FIXTURES.parent / script[0]).is_file()

    def test_lists_the_files_as_they_are(self, folder: Path) -> None:
        listed = record(folder)["files"]
        there = {path.name for path in folder.iterdir()} - {"fixture.json"}
        assert set(listed) == there
        for name, entry in listed.items():
            data = (folder / name).read_bytes()
            assert len(data) == entry["bytes"]
            assert hashlib.sha256(data).hexdigest() == entry["sha256"]

    def test_no_file_holds_an_absolute_path(self, folder: Path) -> None:
        for path in folder.glob("*.json"):
            text = path.read_text(encoding="utf-8")
            assert not re.search(r'"(/|~|[A-Z]:\\)', text), path.name

    def test_config_names_one_class(self, folder: Path) -> None:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        (architecture,) = config["architectures"]
        assert re.search("Eagle3|LlamaForCausalLM", architecture)


class TestSmallDrafts:
    @pytest.mark.parametrize("name", EXPECTED)
    def test_tensors_are_those_of_the_producers_model(self, name: str) -> None:
        found = {
            key: (value["dtype"], tuple(value["shape"])) for key, value in weights(name).items()
        }
        assert found == EXPECTED[name]

    @pytest.mark.parametrize("name", [name for name in EXPECTED if "d2t" in EXPECTED[name]])
    def test_d2t_leads_to_the_frequent_tokens(self, name: str) -> None:
        d2t = offsets(weights(name)["d2t"])
        assert sorted(index + offset for index, offset in enumerate(d2t)) == tiny.frequent_tokens()
        # Neighbours among the kept tokens share one offset, others do not: what tells offsets
        # from absolute ids.
        assert 0 < len(set(d2t)) < len(d2t)

    @pytest.mark.parametrize("name", [name for name in EXPECTED if "t2d" in EXPECTED[name]])
    def test_t2d_marks_the_frequent_tokens(self, name: str) -> None:
        marks = bytes(weights(name)["t2d"]["data"])
        assert [token for token, mark in enumerate(marks) if mark] == tiny.frequent_tokens()
        assert set(marks) == {0, 1}

    @pytest.mark.parametrize("name", [name for name in EXPECTED if "d2t" in EXPECTED[name]])
    def test_order_of_the_draft_vocabulary(self, name: str) -> None:
        d2t = offsets(weights(name)["d2t"])
        if name in ("modelopt-0.47.0-llama", "nemo-automodel-0.7.0"):
            # The most frequent token first: counts fall from 1000 by one each.
            counts = tiny.token_frequencies()
            kept = [counts[index + offset] for index, offset in enumerate(d2t)]
            assert kept == list(range(VOCAB, VOCAB - DRAFT_VOCAB, -1))
            assert min(d2t) < 0
        else:
            assert d2t == sorted(d2t)
            assert d2t[0] >= 0

    def test_training_moved_every_norm(self) -> None:
        one = struct.pack("<H", 0x3F80)
        for name in EXPECTED:
            # The one draft that cannot be trained without its producer's own decoder.
            if name == "modelopt-0.47.0-mla":
                continue
            for key, tensor in weights(name).items():
                if "norm" in key:
                    assert bytes(tensor["data"]) != one * tensor["shape"][0], (name, key)

    def test_torchspec_head_has_equal_rows_where_offsets_are_equal(self) -> None:
        tensors = weights("torchspec-pruned")
        d2t, head = offsets(tensors["d2t"]), rows(tensors["lm_head.weight"])
        pairs = list(zip(d2t, d2t[1:], head, head[1:], strict=False))
        assert all((a == b) == (x == y) for a, b, x, y in pairs)
        assert any(a == b for a, b, _, _ in pairs)

    def test_specforge_exports_share_their_weights(self) -> None:
        plain, whole = weights("specforge-0.2.0"), weights("specforge-0.2.0-hf")
        assert all(plain[key]["data"] == whole[key]["data"] for key in plain)

    def test_nemo_index_names_its_one_shard(self) -> None:
        folder = FIXTURES / "nemo-automodel-0.7.0"
        index = json.loads((folder / "model.safetensors.index.json").read_text(encoding="utf-8"))
        assert set(index["weight_map"]) == set(EXPECTED[folder.name])
        assert set(index["weight_map"].values()) == {"model-00001-of-00001.safetensors"}

    def test_safeailab_weights_are_a_pickle_in_a_zip(self) -> None:
        with zipfile.ZipFile(FIXTURES / "safeailab-eagle" / "pytorch_model.bin") as archive:
            (pickled,) = (name for name in archive.namelist() if name.endswith("/data.pkl"))
            operations = list(pickletools.genops(archive.read(pickled)))
        words = {argument for _, argument, _ in operations if isinstance(argument, str)}
        # Like SpecForge's SGLang export, but in half precision.
        names = {word for word in words if word.endswith(".weight") or word in ("d2t", "t2d")}
        assert names == set(EXPECTED["specforge-0.2.0"])
        assert {"torch HalfStorage", "torch LongStorage", "torch BoolStorage"} <= words

    @pytest.mark.parametrize(
        ("name", "where", "ids"),
        [
            # Inputs of layers 2, N//2 and N-3 of 36; or the outputs of the layers before those.
            ("speculators-0.9.0-llama", "top", [2, 18, 33]),
            ("specforge-0.2.0", "nested", [1, 17, 32]),
            ("modelopt-0.47.0-llama", "nested", [1, 17, 32]),
            ("modelopt-0.47.0-mla", "nested", [1, 17, 32]),
            ("specforge-0.2.0-eagle3.1", None, None),
            ("angelslim-0.3.0", None, None),
            ("nemo-automodel-0.7.0", None, None),
            ("torchspec-pruned", None, None),
        ],
    )
    def test_layer_ids(self, name: str, where: str | None, ids: list[int] | None) -> None:
        config = json.loads((FIXTURES / name / "config.json").read_text(encoding="utf-8"))
        key = "eagle_aux_hidden_state_layer_ids"
        assert config.get(key) == (ids if where == "top" else None)
        assert config.get("eagle_config", {}).get(key) == (ids if where == "nested" else None)


class TestTrueSize:
    """Kimi-K2.5: hidden 7168, 64 heads of width 128, MLP 18432, 163840 tokens.  Milliseconds."""

    H, V, D, I = 7168, 163840, 32000, 18432  # noqa: E741

    def llama_elements(self) -> int:
        attention = 3 * (64 * 128) * (2 * self.H) + self.H * (64 * 128)
        mlp = 3 * self.I * self.H
        fc, head = self.H * 3 * self.H, self.D * self.H
        return attention + mlp + fc + head + 4 * self.H

    @staticmethod
    def header_length(file: Path) -> int:
        with file.open("rb") as stream:
            return 8 + int(struct.unpack("<Q", stream.read(8))[0])

    def test_has_the_size_of_its_shapes(self, tmp_path: Path) -> None:
        file = kimi.materialise(FIXTURES / "kimi-k2.5-layers0", tmp_path)
        data = 2 * (self.llama_elements() + self.V * self.H) + 8 * self.D + self.V
        # 2 * 2_365_353_984 + 256_000 + 163_840
        assert data == 4_731_127_808
        assert file.stat().st_size == self.header_length(file) + data

    def test_takes_no_room_on_disk(self, tmp_path: Path) -> None:
        file = kimi.materialise(FIXTURES / "kimi-k2.5-layers0", tmp_path)
        assert file.stat().st_blocks * 512 < 1_000_000

    def test_opens_in_safetensors(self, tmp_path: Path) -> None:
        file = kimi.materialise(FIXTURES / "kimi-k2.5-layers0", tmp_path)
        with safetensors.safe_open(file, framework="numpy") as opened:
            names = set(opened.keys())
            assert len([name for name in names if name.startswith("layers.0.")]) == 10
            assert {re.sub(r"^layers\.0\.", "", name) for name in names} == {
                re.sub(r"^layers\.0\.", "", name) for name in LAYERS | MAPS | EMBEDDING
            }
            assert opened.get_slice("fc.weight").get_shape() == [self.H, 3 * self.H]
            assert opened.get_slice("lm_head.weight").get_shape() == [self.D, self.H]
            d2t, t2d = opened.get_tensor("d2t"), opened.get_tensor("t2d")
        assert d2t.dtype == numpy.int64
        assert t2d.dtype == numpy.bool_
        tokens = d2t + numpy.arange(self.D)
        assert (tokens == numpy.flatnonzero(t2d)).all()
        # The documented formula, one token at a time.
        kept = [t for t in range(self.V) if (37 * (t % 512) + 64 * (t // 512)) % 512 < 100]
        assert tokens.tolist() == kept

    def test_midlayer_without_embedding(self, tmp_path: Path) -> None:
        file = kimi.materialise(
            FIXTURES / "kimi-k2.5-layers0",
            tmp_path,
            prefix="midlayer.",
            without=["embed_tokens.weight"],
        )
        with safetensors.safe_open(file, framework="numpy") as opened:
            assert set(opened.keys()) == set(MIDLAYER | MAPS)
            assert int(opened.get_tensor("t2d").sum()) == self.D
        data = 2 * self.llama_elements() + 8 * self.D + self.V
        assert data == 2_382_317_568
        assert file.stat().st_size == self.header_length(file) + data

    def test_latent_attention(self, tmp_path: Path) -> None:
        file = kimi.materialise(FIXTURES / "kimi-k2.5-mla", tmp_path)
        h = self.H
        expected = {
            "layers.0.self_attn.q_a_proj.weight": [1536, 2 * h],
            "layers.0.self_attn.q_a_layernorm.weight": [1536],
            "layers.0.self_attn.q_b_proj.weight": [64 * (128 + 64), 1536],
            "layers.0.self_attn.kv_a_proj_with_mqa.weight": [512 + 64, 2 * h],
            "layers.0.self_attn.kv_a_layernorm.weight": [512],
            "layers.0.self_attn.kv_b_proj.weight": [64 * (128 + 128), 512],
            "layers.0.self_attn.o_proj.weight": [h, 64 * 128],
            "layers.0.mlp.gate_proj.weight": [self.I, h],
            "layers.0.mlp.up_proj.weight": [self.I, h],
            "layers.0.mlp.down_proj.weight": [h, self.I],
            "layers.0.input_layernorm.weight": [h],
            "layers.0.hidden_norm.weight": [h],
            "layers.0.post_attention_layernorm.weight": [h],
            "norm.weight": [h],
            "fc.weight": [h, 3 * h],
            "lm_head.weight": [self.V, h],
        }
        with safetensors.safe_open(file, framework="numpy") as opened:
            found = {name: opened.get_slice(name).get_shape() for name in opened.keys()}  # noqa: SIM118
            assert found == expected
            assert opened.metadata() is None
        elements = sum(int(numpy.prod(shape)) for shape in expected.values())
        assert file.stat().st_size == self.header_length(file) + 2 * elements

    def test_a_cut_file_is_an_interrupted_download(self, tmp_path: Path) -> None:
        file = kimi.materialise(FIXTURES / "kimi-k2.5-layers0", tmp_path, 1_000_000)
        assert file.stat().st_size == 1_000_000
        with (
            pytest.raises(safetensors.SafetensorError),
            safetensors.safe_open(file, framework="numpy"),
        ):
            pass

    @pytest.mark.parametrize("size", [100, 5_000_000_000])
    def test_refuses_a_size_outside_the_file(self, tmp_path: Path, size: int) -> None:
        with pytest.raises(ValueError, match="size must be from"):
            kimi.materialise(FIXTURES / "kimi-k2.5-layers0", tmp_path, size)

    def test_refuses_to_leave_out_what_is_not_there(self, tmp_path: Path) -> None:
        with pytest.raises(KeyError, match="no such tensor: enorm"):
            kimi.materialise(FIXTURES / "kimi-k2.5-layers0", tmp_path, without=["enorm"])


@pytest.mark.parametrize("metadata", [None, {"format": "pt"}])
def test_header_is_byte_for_byte_what_safetensors_writes(metadata: dict[str, str] | None) -> None:
    arrays = {
        "t2d": numpy.zeros(7, numpy.bool_),
        "norm.weight": numpy.zeros(3, numpy.float16),
        "d2t": numpy.zeros(5, numpy.int64),
        "layers.0.mlp.up_proj.weight": numpy.zeros((2, 3), numpy.float16),
        "fc.weight": numpy.zeros((2, 2), numpy.float16),
    }
    names = {"bool": "BOOL", "float16": "F16", "int64": "I64"}
    specs = {
        name: kimi.TensorSpec(names[array.dtype.name], array.shape)
        for name, array in arrays.items()
    }
    header = kimi.header_bytes(specs, metadata)
    assert safetensors.numpy.save(arrays, metadata)[: len(header)] == header
    assert kimi.parse_header(header) == (specs, metadata)


def test_draft_vocabulary_wants_whole_blocks() -> None:
    with pytest.raises(ValueError, match="do not divide into blocks"):
        kimi.draft_vocabulary(1000, 320)
