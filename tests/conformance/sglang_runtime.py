"""Import one SGLang release's own sources on a machine without a GPU.

``prepare`` puts the unpacked wheel and the transformers version it pins on the path, lets the
packages it declares be stood in for, and gives the process the world that a draft worker with
tensor parallel size 1 lives in. Nothing of a model, a loader or a config is replaced.
"""

from __future__ import annotations

import importlib
import os
import re
import sys
from pathlib import Path
from typing import Any, Final

from tests.conformance import no_gpu, standin

# Distribution name -> the modules it installs, where the two differ.
_MODULES: Final[dict[str, tuple[str, ...]]] = {
    "apache-tvm-ffi": ("tvm_ffi",),
    "cuda-python": ("cuda",),
    "decord2": ("decord",),
    "flashinfer-python": ("flashinfer",),
    "grpcio": ("grpc",),
    "nvidia-cutlass-dsl": ("cutlass",),
    "nvidia-ml-py": ("pynvml",),
    "outlines": ("outlines", "outlines_core"),
    "pillow": ("PIL",),
    "quack-kernels": ("quack",),
    "sgl-deep-gemm": ("deep_gemm",),
    "sgl-kernel": ("sgl_kernel", "deep_gemm", "flash_mla"),
    "sglang-kernel": ("sgl_kernel", "deep_gemm", "flash_mla"),
}

# Come with torch for CUDA, with fastapi, or are imported without being declared.
_UNDECLARED: Final = frozenset(
    {"triton", "triton_kernels", "starlette", "torchvision", "compressed_tensors"}
)

# Where the sources of just-in-time kernels are looked for on import; a kernel is never built here.
_COMPILED: Final = (
    "sglang.jit_kernel.utils",
    "sglang.jit_kernel.utils.compile",
    "sglang.kernels.jit.utils.compile",
    "sglang.kernels.jit.utils.compile.paths",
)

# Installed for real: what they compute while a draft is loaded matters.
_REAL: Final = frozenset({"torch", "transformers", "sglang", "numpy"})

# The extras that ``sglang[srt]``, an install for NVIDIA GPUs, takes in older releases.
_EXTRAS: Final = frozenset({"srt", "runtime-common", "runtime_common"})


def requirements(sources: Path, release: str) -> list[str]:
    """The ``Requires-Dist`` lines of the release's METADATA."""
    text = (sources / f"sglang-{release}.dist-info" / "METADATA").read_text(encoding="utf-8")
    return re.findall(r"^Requires-Dist: (.*)$", text, flags=re.MULTILINE)


def transformers_pin(sources: Path, release: str) -> str:
    """The transformers version that the release requires. Raises LookupError when it pins none."""
    for line in requirements(sources, release):
        found = re.match(r"transformers\s*==\s*([\w.]+)", line)
        if found:
            return found.group(1)
    raise LookupError(f"sglang {release} pins no transformers version")


def _declared(sources: Path, release: str) -> set[str]:
    names = set(_UNDECLARED)
    for line in requirements(sources, release):
        found = re.match(r"[A-Za-z0-9._-]+", line)
        extra = re.search(r"extra == [\"']([^\"']+)", line)
        if found is None or (extra is not None and extra.group(1) not in _EXTRAS):
            continue
        dist = re.sub(r"[-_.]+", "-", found.group()).lower()
        names.update(_MODULES.get(dist, (found.group().replace("-", "_"),)))
    return names - _REAL


class _NoDriver:
    """What triton has for a driver on a machine without a GPU."""

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError("0 active drivers ([]). There should only be one.")


class _NoProcessor:
    """In the place of an image processor class that needs torchvision."""

    @classmethod
    def register(cls, *_: Any, **__: Any) -> None:
        return None


def _settle_libraries() -> None:
    """Let torch and transformers find out what is really installed before anything is stood in
    for."""
    for name in (
        "torch._dynamo",
        "torch._functorch.aot_autograd",
        "torch._inductor.codecache",
        "torch._inductor.compile_fx",
        "torch.utils.cpp_extension",
    ):
        importlib.import_module(name)
    transformers = importlib.import_module("transformers")
    checks = importlib.import_module("transformers.utils.import_utils")
    for name in dir(checks):
        if name.startswith("is_") and name.endswith("_available"):
            try:
                getattr(checks, name)()
            except Exception:
                continue
    processors = ("AutoProcessor", "ProcessorMixin", "AutoImageProcessor", "LlamaTokenizerFast")
    for name in processors:
        getattr(transformers, name)
    transformers = sys.modules["transformers"]  # loading lazily may put another object there
    for name in processors:
        if type(getattr(transformers, name)).__name__ == "DummyObject":
            setattr(transformers, name, _NoProcessor)


def prepare(sources: Path, release: str, transformers_root: Path) -> None:
    """Make ``import sglang`` give the release at ``sources``. Once per process.

    ``transformers_root`` has one folder per transformers version, as ``pip install --target`` fills
    it.
    """
    os.environ.setdefault("TORCHDYNAMO_DISABLE", "1")
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    pin = transformers_root / transformers_pin(sources, release)
    if not pin.is_dir():
        raise FileNotFoundError(pin)
    sys.path[:0] = [str(pin), str(sources)]
    _settle_libraries()
    standin.install("sglang", _declared(sources, release))
    for name in _COMPILED:
        if (sources / f"{name.replace('.', '/')}.py").is_file():
            standin.module(name)
    _stand_in_for_triton()
    # From 0.4.7 to 0.5.x rotary embedding asks vLLM for a kernel when head_dim is none of 64, 128,
    # 256 and 512; published drafts have those, the small ones here do not
    # (layers/rotary_embedding.py).
    standin.module("vllm")
    standin.module("vllm._custom_ops")
    _pretend_cuda()


class _Kernel:
    """A Triton kernel that is never launched."""

    def __init__(self, fn: Any) -> None:
        self.fn = fn

    def __getitem__(self, grid: Any) -> Any:
        raise RuntimeError("a kernel was launched")


def _jit(fn: Any = None, **_: Any) -> Any:
    return _jit if fn is None else _Kernel(fn)


def _stand_in_for_triton() -> None:
    """What sources look at beyond decorators: the class of a kernel, and that there is no
    driver."""
    triton, runtime, driver, jit = (
        standin.module(name)
        for name in ("triton", "triton.runtime", "triton.runtime.driver", "triton.runtime.jit")
    )
    vars(driver)["active"] = _NoDriver()
    vars(jit)["JITFunction"] = _Kernel
    vars(runtime).update(driver=driver, jit=jit, JITFunction=_Kernel)
    vars(triton).update(runtime=runtime, jit=_jit, JITFunction=_Kernel)


def _pretend_cuda() -> None:
    """Answer like an H100 to what sources ask at import, so that they take the way they take on
    one."""
    import torch

    torch.version.cuda = torch.version.cuda or "12.8"
    answers: dict[str, Any] = {
        "is_available": True,
        "device_count": 1,
        "current_device": 0,
        "get_device_capability": (9, 0),
        "get_device_name": "NVIDIA H100 80GB HBM3",
        "synchronize": None,
        "empty_cache": None,
        "is_bf16_supported": True,
        "mem_get_info": (80 << 30, 80 << 30),
    }
    for name, answer in answers.items():
        setattr(torch.cuda, name, lambda *_, _answer=answer, **__: _answer)
    vars(torch.cuda).update(Stream=standin.Standin, Event=standin.Standin)
    no_gpu.place_cuda_on_cpu()
    _register_fakes_of_missing_operators(torch)
    cpu: Any = torch._C._cpu
    if not hasattr(cpu, "_is_amx_tile_supported"):
        cpu._is_amx_tile_supported = lambda: False


def _register_fakes_of_missing_operators(torch: Any) -> None:
    """Shape functions are registered for operators of compiled kernels that are not there: let
    them."""
    register = torch.library.register_fake

    def tolerant(op: Any, func: Any = None, /, **kwargs: Any) -> Any:
        def decorate(function: Any) -> Any:
            try:
                return register(op, function, **kwargs)
            except RuntimeError:
                return function

        return decorate if func is None else decorate(func)

    torch.library.register_fake = tolerant

