"""rules/build/targets.py reads made-up packages as it reads the runtimes."""

from __future__ import annotations

import sys
from pathlib import Path
from textwrap import dedent

import pytest

from eagle3_lint.contract.rules_folder import rules_folder

sys.path.insert(0, str(rules_folder() / "build"))

import targets

from eagle3_lint.probe import sglang_targets, vllm_targets
from eagle3_lint.probe.construction import held
from eagle3_lint.probe.files import FolderFiles
from eagle3_lint.probe.reading import Whitelist
from eagle3_lint.probe.source_tree import SourceTree


def package(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text))
    return root


HOOK = """
        def set_eagle3_layers_to_capture(self, layer_ids=None):
            if layer_ids is None:
                self.model.layers_to_capture = [2, 3, 4]
            else:
                self.model.layers_to_capture = {given}
"""
PLUS_1 = HOOK.format(given="[val + 1 for val in layer_ids]")
SGLANG = {
    "sglang/srt/models/base.py": f"""
    class Decoder:
        def forward(self):
            if 1 in self.layers_to_capture:
                pass
    class BaseForCausalLM:
        def __init__(self):
            self.model = self._init_model()
        def _init_model(self):
            return Decoder()
        def forward(self):
            hidden_states, aux_hidden_states = self.model()
            return self.logits_processor(hidden_states, aux_hidden_states)
        def get_embed_and_head(self):
            pass
{PLUS_1}
    EntryClass = BaseForCausalLM
    """,
    "sglang/srt/models/others.py": """
    from sglang.srt.models.base import BaseForCausalLM, Decoder
    class Deaf(Decoder):
        def forward(self):
            pass
    class HeirForCausalLM(BaseForCausalLM):
        pass
    class DeafForCausalLM(BaseForCausalLM):
        def _init_model(self):
            return Deaf()
    class ForgetfulForCausalLM(BaseForCausalLM):
        def forward(self):
            hidden_states, aux_hidden_states = self.model()
            return self.logits_processor(hidden_states)
    class WrapperForConditionalGeneration:
        def __init__(self):
            from sglang.srt.models.base import BaseForCausalLM
            self.language_model = BaseForCausalLM()
        def get_embed_and_head(self):
            pass
        def set_eagle3_layers_to_capture(self, layer_ids=None):
            self.language_model.set_eagle3_layers_to_capture(layer_ids)
        def forward(self):
            pass
    class HeadlessForCausalLM:
        def set_eagle3_layers_to_capture(self):
            pass
    class PlainForCausalLM:
        pass
    class BaseForCausalLMNextN(BaseForCausalLM):
        pass
    EntryClass = [
        HeirForCausalLM, DeafForCausalLM, ForgetfulForCausalLM, WrapperForConditionalGeneration,
        HeadlessForCausalLM, PlainForCausalLM, BaseForCausalLMNextN,
    ]
    """,
}


@pytest.fixture
def sglang(tmp_path: Path) -> SourceTree:
    return SourceTree(FolderFiles(package(tmp_path, SGLANG)), "sglang")


def test_sglang_inheritance_delegation_and_what_is_missing(sglang: SourceTree) -> None:
    read = sglang_targets.read(sglang, "")
    assert {name: (r.lacks, r.policy) for name, r in read.items()} == {
        "BaseForCausalLM": (None, "plus1"),
        "HeirForCausalLM": (None, "plus1"),
        "DeafForCausalLM": (None, "plus1"),
        "ForgetfulForCausalLM": (None, "plus1"),
        "WrapperForConditionalGeneration": (None, "plus1"),
        "HeadlessForCausalLM": ("no-embedding", None),
        "PlainForCausalLM": ("no-hook", None),
        "BaseForCausalLMNextN": ("no-hook", None),
    }
    assert read["BaseForCausalLMNextN"].draft
    assert read["HeirForCausalLM"].hook == "models/base.py:17"


def test_sglang_hooks_that_reach_nobody_are_doubted(sglang: SourceTree) -> None:
    doubts = {name: r.doubts for name, r in sglang_targets.read(sglang, "").items() if r.doubts}
    assert doubts == {
        "DeafForCausalLM": ("Deaf.forward never looks at what the hook sets",),
        "ForgetfulForCausalLM": ("forward unpacks aux_hidden_states and drops them",),
    }


@pytest.mark.parametrize(
    ("hook", "expected"),
    [
        ("def set_eagle3_layers_to_capture(self): pass", "default-only"),
        (
            "def set_eagle3_layers_to_capture(self, layer_ids=None):\n"
            "    if layer_ids and layer_ids[0] == 1:\n"
            "        self.model.layers_to_capture = [val + 1 for val in layer_ids]",
            "plus1-if-first-is-1",
        ),
        (
            "def set_eagle3_layers_to_capture(self, layer_ids=None):\n"
            "    if layer_ids and max(layer_ids) == num_layers:\n"
            "        self.model.layers_to_capture = list(layer_ids)\n"
            "    else:\n"
            "        self.model.layers_to_capture = [val + 1 for val in layer_ids]",
            "plus1-unless-max-is-n",
        ),
        (
            "def set_eagle3_layers_to_capture(self, layer_ids=None):\n"
            "    if layer_ids is None:\n"
            "        layer_ids = [2, 3]\n"
            "    self.model.layers_to_capture = [val + 1 for val in layer_ids]",
            "plus1-also-on-default",
        ),
    ],
)
def test_sglang_id_policies(tmp_path: Path, hook: str, expected: str) -> None:
    body = "\n".join("    " + line for line in hook.splitlines())
    text = "class A:\n    get_embed_and_head = None\n    def forward(self): pass\n"
    text += f"{body}\nEntryClass = A\n"
    tree = SourceTree(FolderFiles(package(tmp_path, {"sglang/srt/models/a.py": text})), "sglang")
    assert sglang_targets.read(tree, "")["A"].policy == expected


def test_sglang_an_unheard_of_policy_stops_the_script(tmp_path: Path) -> None:
    text = """
    class A:
        get_embed_and_head = None
        def forward(self): pass
        def set_eagle3_layers_to_capture(self, layer_ids=None):
            self.model.layers_to_capture = [2 * val for val in layer_ids]
    EntryClass = A
    """
    tree = SourceTree(FolderFiles(package(tmp_path, {"sglang/srt/models/a.py": text})), "sglang")
    with pytest.raises(sglang_targets.UnknownPolicyError):
        sglang_targets.read(tree, "")


VLLM = {
    "vllm/model_executor/models/registry.py": """
    _TEXT = {
        "AForCausalLM": ("a", "AForCausalLM"),
        "OldForCausalLM": ("a", "OldForCausalLM"),
        "PlatformForCausalLM": ("vllm.models.p", "PlatformForCausalLM"),
        "WrapperForCausalLM": ("a", "WrapperForCausalLM"),
        "StrangerForCausalLM": ("a", "StrangerForCausalLM"),
    }
    _SPECULATIVE_DECODING_MODELS = {"Eagle3A": ("a", "AForCausalLM")}
    _VLLM_MODELS = {
        **_TEXT,
        **{k: v for k, v in _TEXT.items() if v},
        **_SPECULATIVE_DECODING_MODELS,
    }
    """,
    "vllm/model_executor/models/interfaces.py": """
    class EagleModelMixin:
        pass
    class SupportsEagle3:
        supports_eagle3 = True
        def set_aux_hidden_state_layers(self, layers):
            self.model._set_aux_hidden_state_layers(layers)
    """,
    "vllm/model_executor/models/a.py": """
    from .interfaces import EagleModelMixin, SupportsEagle3
    class Decoder(EagleModelMixin):
        def forward(self):
            self._maybe_add_hidden_state()
    class Bare:
        def forward(self):
            self.aux_hidden_state_layers
    class AForCausalLM(SupportsEagle3):
        def __init__(self):
            self.model = Decoder()
    class StrangerForCausalLM(SupportsEagle3):
        def __init__(self):
            self.model = Bare()
    class OldForCausalLM:
        def set_aux_hidden_state_layers(self, layers):
            pass
    class WrapperForCausalLM(SupportsEagle3):
        def __init__(self):
            self.language_model = build(architectures=["AForCausalLM"])
    """,
    "vllm/models/p/__init__.py": """
    from vllm.platforms import current_platform
    if current_platform.is_rocm():
        from .amd import PlatformForCausalLM
    else:
        from .nvidia import PlatformForCausalLM
    """,
    "vllm/models/p/amd.py": "class PlatformForCausalLM: pass\n",
    "vllm/models/p/nvidia.py": """
    from vllm.model_executor.models.a import AForCausalLM
    class PlatformForCausalLM(AForCausalLM): pass
    """,
}


def test_vllm_interface_mixin_and_platform(tmp_path: Path) -> None:
    read = vllm_targets.read(SourceTree(FolderFiles(package(tmp_path, VLLM)), "vllm"), "<5")
    assert {name: r.lacks for name, r in read.items() if not r.draft} == {
        "AForCausalLM": None,
        "OldForCausalLM": "no-hook",  # has the method, but neither the base class nor the flag
        "PlatformForCausalLM": None,
        "WrapperForCausalLM": None,
        "StrangerForCausalLM": "no-mixin",
    }
    assert [name for name, r in read.items() if r.draft] == ["Eagle3A"]
    assert not any(r.doubts for r in read.values())


@pytest.mark.parametrize(
    ("wanted", "pin", "too_old"),
    [("5.2.0", ">=4.56,<5", True), ("5.0.0.dev0", "<5", True), ("5.2.0", ">=5.5.3", False)],
)
def test_vllm_a_backend_that_wants_a_newer_transformers(
    tmp_path: Path, wanted: str, pin: str, too_old: bool
) -> None:
    setter = f"""
    class SupportsEagle3:
        pass
    class AForCausalLM(SupportsEagle3):
        def set_aux_hidden_state_layers(self, layers):
            self.check_version("{wanted}", "Eagle3 support")
            self.model._can_record_outputs = {{}}
    """
    files = {**VLLM, "vllm/model_executor/models/a.py": setter}
    read = vllm_targets.read(SourceTree(FolderFiles(package(tmp_path, files)), "vllm"), pin)
    assert read["AForCausalLM"].lacks == ("transformers-too-old" if too_old else None)


def test_vllm_list_of_model_types(tmp_path: Path) -> None:
    text = """
    from pydantic.dataclasses import dataclass
    @dataclass
    class SpeculativeConfig:
        def _verify_args(self):
            aux_hidden_states_supported = ["llama", "qwen"]
            if self.method == "eagle3" and not any(
                supported in self.target_model_config.hf_text_config.model_type
                for supported in aux_hidden_states_supported
            ):
                raise ValueError(
                    f"{self.method} is only supported for {aux_hidden_states_supported}"
                    f" models. Got {self.target_model_config.hf_text_config.model_type=}"
                )
    """
    tree = SourceTree(FolderFiles(package(tmp_path, {"vllm/config/speculative.py": text})), "vllm")
    found = vllm_targets.whitelist(tree)
    assert found == Whitelist(
        ("llama", "qwen"),
        "ValidationError: 1 validation error for SpeculativeConfig\n"
        "  Value error, eagle3 is only supported for {known} models. "
        "Got self.target_model_config.hf_text_config.model_type='{model_type}'",
        "config/speculative.py:11",
    )
    assert vllm_targets.whitelist(SourceTree(FolderFiles(tmp_path / "none"), "vllm")) is None


def test_a_class_handed_down_as_a_parameter_is_found(tmp_path: Path) -> None:
    text = """
    class Inner: pass
    class Other: pass
    class Base:
        def __init__(self, language_model_cls=Inner):
            self.model = language_model_cls()
    class Heir(Base):
        def __init__(self, language_model_cls=Other):
            super().__init__(language_model_cls)
    """
    tree = SourceTree(FolderFiles(package(tmp_path, {"p/m.py": text})), "p")
    cls = tree.find("p.m", "Heir")
    assert cls is not None
    assert [c.name for c in held(tree, cls, "model")] == ["Other"]


def test_ranges() -> None:
    ranges = targets.Ranges(["1.0", "1.0.post1", "1.1", "1.2", "2.0"])
    assert ranges.spans(["1.1", "1.2", "2.0"]) == [">=1.1"]
    assert ranges.spans(["1.0", "1.0.post1", "1.2"]) == [">=1.0,<=1.0.post1", "==1.2"]
    assert ranges.hull(["1.0", "1.1", "1.2"]) == ">=1.0,<=1.2,!=1.0.post1"
    assert ranges.covered(">=1.0,<=1.1") == ["1.0", "1.0.post1", "1.1"]
    assert ranges.covered("") == ["1.0", "1.0.post1", "1.1", "1.2", "2.0"]


def test_a_doubt_without_an_override_is_complained_about(sglang: SourceTree) -> None:
    defect: dict[str, object] = {
        "runtime": "sglang",
        "case": "nothing-captured",
        "why": "made up",
        "source": "1.0 models/others.py",
        "in": {"DeafForCausalLM": "==1.0"},
    }
    kinds = ("defect", "error", "sound", "note", "model_type")
    overrides: dict[str, list[dict[str, object]]] = {kind: [] for kind in kinds}
    overrides["defect"] = [defect]
    table = targets.Table("sglang", ["1.0"], overrides)
    read = sglang_targets.read(sglang, "")
    deaf = table.entry("DeafForCausalLM", {"1.0": read["DeafForCausalLM"]})
    assert deaf["why_not"] == [{"in": ">=1.0", "case": "nothing-captured"}]
    assert "eagle3" not in deaf
    assert table.complaints == []
    table.entry("ForgetfulForCausalLM", {"1.0": read["ForgetfulForCausalLM"]})
    assert table.complaints == [
        "ForgetfulForCausalLM 1.0: forward unpacks aux_hidden_states and drops them"
    ]
