"""Import what TensorRT-LLM loads a draft with from its sources, without a GPU.

Its package index entry has no sources, so a folder of them is put into the cache by hand:
``<cache>/tensorrt-llm/<release>/tensorrt_llm/…``, as in a checkout or an unpacked wheel. Of those
the modules in ``REAL`` are executed. All else is a stand-in: kernels, communication, the attention
backends, everything that serves. Where a folder has only some of a module's classes, those run.
"""

from __future__ import annotations

import importlib
import os
import sys
from pathlib import Path
from typing import Any, Final

from tests.conformance import no_gpu, standin
from tests.conformance import tensorrt_world as world

PACKAGE: Final = "tensorrt_llm"

#: Executed; some have moved between releases, and either place will do.
REAL: Final = (
    "_torch.model_config",
    "_torch.attention.attention",
    "_torch.attention.mla",
    "_torch.attention.backends.interface",
    "_torch.attention_backend.interface",
    "_torch.modules.attention",
    "_torch.modules.mla",
    "_torch.modules.decoder_layer",
    "_torch.modules.embedding",
    "_torch.modules.gated_mlp",
    "_torch.modules.linear",
    "_torch.modules.rms_norm",
    "_torch.models.modeling_deepseekv3",
    "_torch.models.modeling_speculative",
    "_torch.models.modeling_utils",
    "_torch.models.checkpoints.base_weight_mapper",
    "_torch.models.checkpoints.hf.weight_mapper",
    "_torch.pyexecutor.config_utils",
    "functional",
)

#: Stand-ins of which something is true or false, or has a size.
_NAMED: Final[dict[str, dict[str, Any]]] = {
    "_torch.attention.backends.sparse.hooks": {"get_sparse_attn_hooks": lambda _: world.NoHooks()},
    "_torch.attention.backends.utils": {
        "create_attention": lambda *_, **__: world.Backend(),
        "get_attention_backend": lambda *_, **__: world.Backend(),
    },
    "_torch.attention_backend.sparse.hooks": {"get_sparse_attn_hooks": lambda _: world.NoHooks()},
    "_torch.attention_backend.utils": {
        "create_attention": lambda *_, **__: world.Backend(),
        "get_attention_backend": lambda *_, **__: world.Backend(),
    },
    "_torch.speculative.interface": {"SpeculativeDecodingMode": world.SpeculativeDecodingMode},
    "_torch.speculative.utils": {"uses_mtp_head_checkpoint": lambda _: False},
    "_torch.ugpu.policy": {"UgpuExecutionPlanner": world.NoPartition, "UgpuPolicy": dict},
    "_torch.ugpu_utils": {"get_current_ugpu": lambda: None},
    "_torch.utils": {
        "get_model_extra_attrs": lambda: None,
        "is_nvfp4_marlin_enabled": lambda: False,
    },
    "_utils": {
        "get_sm_version": lambda: 90,
        "is_device_integrated": lambda: False,
        "is_sm_100f": lambda: False,
        "local_mpi_rank": lambda: 0,
        "mpi_disabled": lambda: True,
    },
    "mapping": {"Mapping": world.Mapping},
    "models.modeling_utils": {"QuantConfig": world.QuantConfig},
}

_UNINSTALLED: Final = ("flashinfer", "mpi4py", "triton", "filelock", "tqdm", "nvtx", "tensorrt")

#: Releases that are run → the transformers that each requires (``Requires-Dist`` of its package;
#: 1.2.0rc2 says none: rules/contracts/tensorrt-llm/runtime.toml).
RUN: Final = {"1.2.0rc2": "4.56.0", "1.3.0rc15": "5.5.3", "1.3.0rc25": "5.5.4"}


def transformers_for(release: str) -> str:
    """The transformers version to run ``release`` with. Raises KeyError for one that is not run."""
    return RUN[release]


def prepare(sources: Path, release: str, transformers_root: Path) -> None:
    """Make the modules of ``REAL`` importable from ``sources``. Once per process.

    Raises:
        FileNotFoundError: the transformers version or the sources are not there.
    """
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    os.environ.setdefault("TORCHDYNAMO_DISABLE", "1")
    # One module after the other: what is placed on the CPU is placed there in this thread alone.
    os.environ["TRT_LLM_DISABLE_LOAD_WEIGHTS_IN_PARALLEL"] = "True"
    root = transformers_root / transformers_for(release)
    for needed in (root, sources / PACKAGE / "_torch" / "models" / "modeling_speculative.py"):
        if not needed.exists():
            raise FileNotFoundError(needed)
    sys.path.insert(0, str(root))
    importlib.import_module("transformers")
    standin.install_parts(sources, PACKAGE, REAL)
    standin.install(PACKAGE, _UNINSTALLED)
    importlib.import_module(f"{PACKAGE}._torch")
    config = importlib.import_module("transformers").DeepseekV3Config
    vars(standin.module(f"{PACKAGE}._torch.configs"))["DeepseekV3Config"] = config
    for place, names in _NAMED.items():
        vars(standin.module(f"{PACKAGE}.{place}")).update(names)
    _without_cuda()


def module(name: str) -> Any:
    """A module of the package, imported."""
    return importlib.import_module(f"{PACKAGE}.{name}")


def _without_cuda() -> None:
    """Answer what is asked of a GPU while modules are made, and make tensors on the CPU."""
    import torch

    torch.cuda.set_device = lambda *_: None
    torch.cuda.current_device = lambda: 0
    torch.cuda.get_device_capability = lambda *_: (9, 0)
    torch.cuda.empty_cache = lambda: None
    vars(torch.cuda).update(Stream=standin.Standin, Event=standin.Standin)
    no_gpu.place_cuda_on_cpu()
