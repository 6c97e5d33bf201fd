"""Import one vLLM release's own sources on a machine without a GPU.

``prepare`` puts the unpacked wheel and a transformers version that the release admits on the path,
lets the packages it declares be stood in for, and leaves it on its own CPU platform.
``vllm_standin.install`` then replaces what needs compiled kernels.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import logging
import os
import re
import sys
from pathlib import Path
from typing import Any, Final

from tests.conformance import standin

# Distribution name -> the modules it installs, where the two differ.
_MODULES: Final[dict[str, tuple[str, ...]]] = {
    "apache-tvm-ffi": ("tvm_ffi",),
    "flashinfer-python": ("flashinfer",),
    "lm-format-enforcer": ("lmformatenforcer",),
    "nvidia-cutlass-dsl": ("cutlass",),
    "opencv-python-headless": ("cv2",),
    "oss-harmony": ("openai_harmony",),
    "prometheus-client": ("prometheus_client",),
    "protobuf": ("google",),
    "py-cpuinfo": ("cpuinfo",),
    "python-json-logger": ("pythonjsonlogger",),
    "quack-kernels": ("quack",),
}

# Come with torch, with another requirement, or are imported without being declared.
_UNDECLARED: Final = frozenset(
    {
        "av", "cachetools", "intel_extension_for_pytorch", "jsonschema", "llguidance", "openai",
        "opentelemetry", "outlines_core", "ray", "soundfile", "starlette", "torchvision", "triton",
        "uvicorn", "xgrammar",
    }
)  # fmt: skip

# Installed for real, because what they compute while a draft is loaded matters, or (zentorch, which
# turns the CPU platform into another one) not at all.
_REAL: Final = frozenset(
    {
        "huggingface_hub", "numpy", "pydantic", "safetensors", "torch", "transformers", "vllm",
        "zentorch",
    }
)  # fmt: skip

# The newest transformers that was out when the release came, that its METADATA admits (a range
# without an upper end for most) and that runs with it: from this release on, this version.
_TRANSFORMERS: Final[tuple[tuple[str, str], ...]] = (
    ("0.8.5", "4.51.1"),
    ("0.9.0", "4.52.3"),
    ("0.10.0", "4.53.2"),
    ("0.10.1", "4.55.2"),
    ("0.10.2", "4.56.1"),
    ("0.11.0", "4.57.0"),
    ("0.11.1", "4.57.1"),
    ("0.19.1", "5.6.0"),
    ("0.24.0", "5.8.1"),
    ("0.29.0", "5.12.1"),
    ("0.32.0", "5.19.0"),
)

_ENVIRONMENT: Final[dict[str, str]] = {
    "HF_HUB_OFFLINE": "1",
    "TORCHDYNAMO_DISABLE": "1",
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_LOGGING_LEVEL": "CRITICAL",
    "VLLM_NO_USAGE_STATS": "1",
    "VLLM_TARGET_DEVICE": "cpu",
}


def order(release: str) -> tuple[tuple[int, ...], int]:
    """A sorting key: ``0.8.5.post1`` -> ((0, 8, 5), 1)."""
    base, _, post = release.partition(".post")
    return tuple(int(n) for n in base.split(".")), int(post or 0)


def transformers_for(release: str) -> str:
    """The transformers version to run ``release`` with."""
    fitting = [version for since, version in _TRANSFORMERS if order(since) <= order(release)]
    return fitting[-1]


def requirements(sources: Path) -> list[str]:
    """The names in ``Requires-Dist`` of the release's METADATA, without versions."""
    texts = [p.read_text(encoding="utf-8") for p in sources.glob("*.dist-info/METADATA")]
    return [
        name
        for text in texts
        for name in re.findall(r"^Requires-Dist: ([A-Za-z0-9._-]+)", text, flags=re.MULTILINE)
    ]


def _declared(sources: Path) -> set[str]:
    names = set(_UNDECLARED)
    for dist in requirements(sources):
        plain = re.sub(r"[-_.]+", "-", dist).lower()
        names.update(_MODULES.get(plain, (dist.replace("-", "_"),)))
    return names - _REAL


def environment() -> None:
    """Settings of the process: offline, quiet, the CPU platform, the V1 engine."""
    for name, value in _ENVIRONMENT.items():
        os.environ.setdefault(name, value)


def prepare(sources: Path, release: str, transformers_root: Path) -> None:
    """Make ``import vllm`` give the release at ``sources``. Once per process.

    ``transformers_root`` has one folder per transformers version. Raises FileNotFoundError when the
    one for this release is not there.
    """
    environment()
    if order(release) < order("0.11.0"):
        # Before, the V0 engine is still there and is what a CPU gets.
        os.environ["VLLM_USE_V1"] = "1"
    root = transformers_root / transformers_for(release)
    if not root.is_dir():
        raise FileNotFoundError(root)
    sys.path[:0] = [str(root), str(sources)]
    logging.disable(logging.CRITICAL)
    _settle_libraries()
    standin.install("vllm", _declared(sources))
    _answer_for_version(release)


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
    for name in ("AutoProcessor", "ProcessorMixin", "AutoImageProcessor", "PreTrainedModel"):
        getattr(transformers, name, None)


def _answer_for_version(release: str) -> None:
    """The unpacked wheel is not installed: say its version, as the CPU build does."""
    real = importlib.metadata.version

    def version(name: str) -> str:
        return f"{release}+cpu" if name == "vllm" else real(name)

    importlib.metadata.version = version


def optional(name: str) -> Any:
    """The module ``name``, or None when this release has no such module."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not name.startswith(error.name):
            raise
        return None
