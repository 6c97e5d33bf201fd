"""What TensorRT-LLM's draft is built in: the mapping of one GPU, a speculative config."""

from __future__ import annotations

import enum
from pathlib import Path
from types import SimpleNamespace
from typing import Any

TARGET_LAYERS = 24
#: Aux states without ``eagle3_layers_to_capture`` (llmapi/llm_args.py, num_capture_layers).
CAPTURED = 3


class Mapping:
    """One rank: tensor, pipeline and context parallel sizes of one."""

    def __init__(self, **_: Any) -> None:
        self.world_size = self.tp_size = self.pp_size = self.cp_size = self.moe_tp_size = 1
        self.dp_size = self.moe_ep_size = self.attn_tp_size = self.attn_cp_size = 1
        self.rank = self.tp_rank = self.pp_rank = self.cp_rank = 0
        self.tp_group = [0]
        self.gpus_per_node = 1
        self.cp_config: dict[str, Any] = {}
        self.enable_attention_dp = self.enable_lm_head_tp_in_adp = False

    def has_pp(self) -> bool:
        return False

    def has_tp(self) -> bool:
        return False

    def has_cp_helix(self) -> bool:
        return False

    has_cp_ulysses = has_cp = has_cp_helix

    def is_last_pp_rank(self) -> bool:
        return True

    is_first_pp_rank = is_last_pp_rank


class _NoQuantisation:
    """A quantisation mode in which nothing is."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith(("has_", "is_")):
            return lambda *_, **__: False
        raise AttributeError(name)


class QuantConfig:
    """No quantisation; with one in config.json the draft is not described by the contracts."""

    def __init__(self, **given: Any) -> None:
        self.quant_algo = self.kv_cache_quant_algo = self.exclude_modules = None
        self.layer_quant_mode = self.quant_mode = _NoQuantisation()
        vars(self).update(given)

    def is_module_excluded_from_quantization(self, name: str) -> bool:
        return False


class Backend:
    """What an attention layer asks of its backend while it is made."""

    sparse_params = None

    def support_fused_qkv(self) -> bool:
        return True

    def update_quant_config(self, config: Any) -> None:
        return None

    support_mla = support_nvfp4_output = support_fused_rope = support_fused_qkv


class NoHooks:
    """Hooks of sparse attention: none."""

    def __getattr__(self, name: str) -> None:
        return None


class NoPartition:
    """A planner that leaves every matrix whole."""

    def __init__(self, *_: Any) -> None:
        return

    def plan_linear(self, *_: Any) -> Any:
        return SimpleNamespace(enabled=False, num_partitions=1)


class SpeculativeDecodingMode(enum.Enum):
    """The one mode that matters here; whatever else is asked of it, it is not."""

    EAGLE3_ONE_MODEL = 1

    def is_eagle3_one_model(self) -> bool:
        return True

    def use_one_engine(self) -> bool:
        return True

    def __getattr__(self, name: str) -> Any:
        if name.startswith(("is_", "use_", "support")):
            return lambda: False
        raise AttributeError(name)


def speculative_config(draft: Path) -> Any:
    """``EagleDecodingConfig`` of a draft folder without any other option."""
    return SimpleNamespace(
        spec_dec_mode=SpeculativeDecodingMode.EAGLE3_ONE_MODEL,
        speculative_model=str(draft),
        speculative_model_dir=str(draft),
        eagle3_model_arch="llama3",
        eagle3_layers_to_capture=None,
        num_capture_layers=CAPTURED,
        max_draft_len=3,
        tokens_per_gen_step=4,
        uses_external_draft_model=False,
    )
