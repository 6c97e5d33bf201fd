"""What a training leaves that is no draft yet is named, with the step that is missing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from eagle3_lint.checking import read_draft
from eagle3_lint.errors import InputError
from eagle3_lint.fixing import fix
from tests.drafts import llama_config, llama_tensors, write_draft

#: Name of a file → who leaves it there, and what exports the draft (trainers' own documentation).
FILES = {
    "training_state.pt": ("SpecForge", "specforge.export.to_sglang"),
    "draft_model.pt": ("NeMo Automodel", "serve_sglang"),
    "eagle_meta.pt": ("NeMo Automodel", "model/consolidated"),
    "modelopt_state.pth": ("ModelOpt", "export_hf_checkpoint.py"),
    "__0_0.distcp": ("torch.distributed.checkpoint", "tools/convert_to_hf.py"),
    "zero_to_fp32.py": ("DeepSpeed", "zero_to_fp32.py . pytorch_model.bin"),
    "optimizer_state_dict.pt": ("optimiser", "save_pretrained"),
    "draft.gguf": ("llama.cpp", "before the conversion"),
}


@pytest.mark.parametrize(("name", "words"), FILES.items(), ids=FILES)
def test_a_file_of_a_training(name: str, words: tuple[str, str], tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(b"x")
    with pytest.raises(InputError, match="not an exported draft") as caught:
        read_draft(tmp_path)
    assert all(word in str(caught.value) for word in (name, *words))


def test_a_whole_model_with_the_draft_inside(tmp_path: Path) -> None:
    # ModelOpt's save_pretrained before the export: the base model, and eagle_module.*.
    base = {f"model.layers.{i}.input_layernorm.weight": ("BF16", (64,)) for i in range(4)}
    inner = {f"eagle_module.{n}": t for n, t in llama_tensors("layers.0.").items()}
    draft = write_draft(tmp_path / "draft", llama_config(), {**base, **inner})
    with pytest.raises(InputError, match=r"eagle_module\.\*.*export_hf_checkpoint\.py"):
        read_draft(draft)


def test_shards_of_fsdp(tmp_path: Path) -> None:
    tensors = {"_fsdp_wrapped_module._flat_param": ("F32", (1000,)), "fc.weight": ("F32", (4, 12))}
    draft = write_draft(tmp_path / "draft", llama_config(), tensors)
    with pytest.raises(InputError, match=r"shards of an FSDP module.*full state dict"):
        read_draft(draft)


def test_ddp_prefixes_are_mended_by_names(tmp_path: Path) -> None:
    tensors = {f"module.{n}": t for n, t in llama_tensors().items()}
    draft = write_draft(tmp_path / "draft", llama_config(), tensors)
    done = fix(draft, ["sglang==0.5.9"], diff=True)
    assert done.after.checkpoints[0].results[0].verdict == "serves"
    assert {e.op for e in done.edits} == {"rename_tensor"}


def test_a_whole_target_model(tmp_path: Path) -> None:
    config = {"architectures": ["LlamaForCausalLM"], "model_type": "llama"}
    tensors = {f"model.layers.{i}.mlp.up_proj.weight": ("BF16", (4, 4)) for i in range(5)}
    draft = write_draft(tmp_path / "draft", config, tensors)
    with pytest.raises(InputError, match="a whole model of 5 layers"):
        read_draft(draft)


def test_the_draft_beside_its_training_state_is_a_draft(tmp_path: Path) -> None:
    draft = write_draft(tmp_path / "draft", llama_config(), llama_tensors())
    (draft / "training_state.pt").write_bytes(b"x")
    assert json.loads((draft / "config.json").read_text())["hidden_size"] == 64
    assert read_draft(draft).tensors
