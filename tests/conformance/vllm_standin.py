"""What stands in for compiled kernels and a GPU while a vLLM release loads a draft.

Replaced: attention backends, the CPU platform's own restrictions, operators of the compiled
extension, the inspection of model classes in a subprocess, and the target model. Not replaced:
configuration, class resolution, layers, parameters, the weight iterator and ``load_weights``.
"""

from __future__ import annotations

import importlib
from typing import Any, Final

from tests.conformance.draft import VOCAB
from tests.conformance.vllm_runtime import optional

TARGET_EMBEDDING: Final = 512.0
TARGET_HEAD: Final = 1024.0

AnyAttention: Any = None
"""The attention backend that takes any head; made by ``install``, found by its dotted name."""


class AnyImplementation:
    """An attention implementation that computes nothing.

    It refuses the heads that every one of vLLM's own refuses in its constructor (0.8.5
    v1/attention/backends/flash_attn.py:459, flashinfer.py:523, triton_attn.py:92, pallas.py:117).
    """

    supports_quant_query_input = False
    can_return_lse_for_decode = True
    need_to_return_lse_for_decode = False
    dcp_world_size = 1
    dcp_rank = 0

    def __init__(
        self, num_heads: int = 1, *given: Any, num_kv_heads: int | None = None, **options: Any
    ) -> None:
        # By position: head_size, scale, num_kv_heads.
        kv_heads = num_kv_heads or (given[2] if len(given) > 2 else num_heads)
        assert num_heads % kv_heads == 0
        self.options = options

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return None

    def process_weights_after_loading(self, *_: Any, **__: Any) -> None:
        return None


class AnyKernel:
    """A kernel for quantised layers that is made and never run."""

    def __init__(self, *_: Any, **__: Any) -> None:
        return None

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return None


def install() -> None:
    """Put every stand-in in place. ``vllm_runtime.prepare`` comes first, once per process."""
    _choose_the_platform()
    _answer_for_accelerator()
    _name_missing_operators()
    _free_the_platform()
    _inspect_in_this_process()
    _take_the_v1_engine()
    find_a_kernel()
    choose_a_prefill()


def _choose_the_platform() -> None:
    """The plain CPU platform, whoever made the CPU. Raises RuntimeError when another one is in
    use."""
    platforms: Any = importlib.import_module("vllm.platforms")
    platforms.resolve_current_platform_cls_qualname = lambda: "vllm.platforms.cpu.CpuPlatform"
    if type(platforms.current_platform).__name__ != "CpuPlatform":
        raise RuntimeError(f"running on {type(platforms.current_platform)}")


def _answer_for_accelerator() -> None:
    import torch

    for name in (
        "empty_cache",
        "max_memory_allocated",
        "max_memory_reserved",
        "memory_allocated",
        "memory_reserved",
        "reset_peak_memory_stats",
    ):
        if hasattr(torch.accelerator, name):
            setattr(torch.accelerator, name, lambda *_, **__: 0)


class _Operator:
    """An operator of the compiled extension: can be named and compared, not called."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _Operator(f"{self.name}.{name}")

    def __call__(self, *_: Any, **__: Any) -> Any:
        raise RuntimeError(f"a kernel was called: {self.name}")

    def __hash__(self) -> int:
        return hash(self.name)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Operator) and other.name == self.name


# Operators whose mere names are looked up when a module is imported or a layer is made.
_NAMED: Final = frozenset(
    {
        "batched_rotary_embedding", "dynamic_per_token_scaled_fp8_quant",
        "dynamic_scaled_fp8_quant", "fatrelu_and_mul", "fused_add_rms_norm",
        "fused_add_rms_norm_static_fp8_quant", "gelu_and_mul", "gelu_fast", "gelu_new",
        "gelu_quick", "gelu_tanh_and_mul", "mul_and_silu", "rms_norm",
        "rms_norm_dynamic_per_token_quant", "rms_norm_static_fp8_quant", "rotary_embedding",
        "silu_and_mul", "silu_and_mul_quant", "static_scaled_fp8_quant",
    }
)  # fmt: skip


def _name_missing_operators() -> None:
    namespace: Any = importlib.import_module("torch._ops")._OpNamespace
    look_up = namespace.__getattr__

    def tolerant(self: Any, name: str) -> Any:
        try:
            return look_up(self, name)
        except AttributeError:
            if name not in _NAMED:
                raise
            return _Operator(name)

    namespace.__getattr__ = tolerant


def attend_anything() -> Any:
    """Give the CPU platform an attention backend for any head; returns the platform's class."""
    global AnyAttention
    abstract = optional("vllm.v1.attention.backend") or optional("vllm.attention.backends.abstract")

    class Backend(abstract.AttentionBackend):  # type: ignore[misc,name-defined]
        accept_output_buffer = True

        @staticmethod
        def get_name() -> str:
            return "FLASH_ATTN"

        @staticmethod
        def get_impl_cls() -> type[AnyImplementation]:
            return AnyImplementation

    AnyAttention = Backend
    platform: Any = importlib.import_module("vllm.platforms.cpu").CpuPlatform
    _answer(platform, get_attn_backend_cls=f"{__name__}.AnyAttention")
    return platform


def _answer(owner: Any, **answers: Any) -> None:
    """Replace methods of a class by answers."""
    for name, answer in answers.items():
        method = classmethod(lambda cls, *_, _answer=answer, **__: _answer)
        setattr(owner, name, method)


def _free_the_platform() -> None:
    """Take away what the CPU platform refuses and a GPU does not."""
    platform = attend_anything()
    _answer(
        platform,
        import_kernels=None,
        is_pin_memory_available=False,
        verify_quantization=None,
    )
    platform.check_and_update_config = classmethod(_settle_config)


def _settle_config(cls: Any, config: Any) -> None:
    """No graphs are captured; where a release asks for their sizes, there are none."""
    if config.compilation_config.cudagraph_capture_sizes is None:
        config.compilation_config.cudagraph_capture_sizes = []


def _inspect_in_this_process() -> None:
    """The registry asks a fresh interpreter about a model class; here it is imported."""
    registry: Any = importlib.import_module("vllm.model_executor.models.registry")

    def inspect(self: Any) -> Any:
        return registry._ModelInfo.from_model_cls(self.load_model_cls())

    registry._LazyRegisteredModel.inspect_model_cls = inspect


def _take_the_v1_engine() -> None:
    """Up to 0.10 a check that knows devices decides between engines; a GPU gets V1."""
    arguments: Any = importlib.import_module("vllm.engine.arg_utils").EngineArgs
    if hasattr(arguments, "_is_v1_supported_oracle"):
        arguments._is_v1_supported_oracle = lambda self, *_: True


def find_a_kernel() -> None:
    """Quantised layers choose a kernel when they are made; a CPU without AMX has none of them."""
    kernels = optional("vllm.model_executor.kernels.linear")
    if kernels is not None and hasattr(kernels, "choose_scaled_mm_linear_kernel"):
        kernels.choose_scaled_mm_linear_kernel = lambda *_, **__: AnyKernel


def choose_a_prefill() -> None:
    """Latent attention makes its prefill (flash attention on most GPUs) when it is made."""
    for name in (
        "vllm.v1.attention.backends.mla.prefill",
        "vllm.v1.attention.backends.mla.prefill.selector",
        "vllm.model_executor.layers.attention.mla_attention",
    ):
        module = optional(name)
        if module is not None and hasattr(module, "get_mla_prefill_backend"):
            module.get_mla_prefill_backend = lambda *_, **__: AnyKernel


def target_model(config: Any, hidden: int) -> Any:
    """The target as the proposer sees it: an embedding and a head of known constants.

    Made of the release's own layers, in bfloat16, with a vocabulary of 1000.
    """
    import torch

    layers = importlib.import_module("vllm.model_executor.layers.vocab_parallel_embedding")
    model = torch.nn.Module()
    model.model = torch.nn.Module()
    model.model.embed_tokens = layers.VocabParallelEmbedding(
        VOCAB, hidden, params_dtype=torch.bfloat16
    )
    model.lm_head = layers.ParallelLMHead(VOCAB, hidden, params_dtype=torch.bfloat16)
    model.model.embed_tokens.weight.data.fill_(TARGET_EMBEDDING)
    model.lm_head.weight.data.fill_(TARGET_HEAD)
    return model
