"""The process that SGLang's draft worker runs in: server arguments and process groups of one rank.

Everything is set up with the release's own functions (a gloo group in place of nccl); what differs
between releases is only which of them exist.
"""

from __future__ import annotations

import importlib
import inspect
import socket
from pathlib import Path
from typing import Any

ONE_RANK = {
    "tp_rank": 0, "tp_size": 1, "dp_size": 1, "pp_size": 1,
    "enable_dp_attention": False, "moe_dense_tp_size": None,
}  # fmt: skip


def optional(name: str) -> Any:
    """The module ``name``, or None when this release has no such module."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not name.startswith(error.name):
            raise
        return None


def server_args(target: Path, draft: Path) -> Any:
    """The arguments of ``sglang.launch_server`` for EAGLE3 with a given target and draft, resolved.

    Raises whatever the release's own resolution raises.
    """
    module = importlib.import_module("sglang.srt.server_args")
    _answer_for_nvidia_smi(module)
    return module.ServerArgs(
        model_path=str(target),
        speculative_algorithm="EAGLE3",
        speculative_draft_model_path=str(draft),
        speculative_num_steps=3,
        speculative_eagle_topk=1,
        speculative_num_draft_tokens=4,
        device="cuda",
    )


def _answer_for_nvidia_smi(*modules: Any) -> None:
    """80 GiB of memory, wherever a release keeps the function that asks the driver."""
    for module in (*modules, optional("sglang.srt.utils"), optional("sglang.srt.utils.common")):
        if module is not None and hasattr(module, "get_nvgpu_memory_capacity"):
            module.get_nvgpu_memory_capacity = lambda: 80 * 1024


def publish(args: Any) -> None:
    """Make ``args`` the process-wide arguments, the way a scheduler process of this release
    does."""
    context = optional("sglang.srt.runtime_context")
    if context is not None and hasattr(context, "publish"):
        ranks = getattr(context, "SpawnRanks", None)
        known = inspect.signature(context.publish).parameters
        extra = {"ranks": ranks(world_rank=0, gpu_id=0)} if ranks and "ranks" in known else {}
        context.publish(args, role="scheduler", **extra)
        return
    module = importlib.import_module("sglang.srt.server_args")
    if hasattr(module, "set_global_server_args_for_scheduler"):
        module.set_global_server_args_for_scheduler(args)
    batch = importlib.import_module("sglang.srt.managers.schedule_batch")
    shared = getattr(batch, "global_server_args_dict", None)
    if shared is not None:
        shared.update({name: getattr(args, name) for name in list(shared) if hasattr(args, name)})


def one_rank(args: Any) -> None:
    """Initialise the release's process groups with one rank. ``publish`` comes first."""
    state = importlib.import_module("sglang.srt.distributed.parallel_state")
    if hasattr(state, "set_custom_all_reduce"):
        state.set_custom_all_reduce(False)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    state.init_distributed_environment(
        world_size=1,
        rank=0,
        distributed_init_method=f"tcp://127.0.0.1:{port}",
        local_rank=0,
        backend="gloo",
    )
    state.initialize_model_parallel()
    _attention_groups(args)


def _attention_groups(args: Any) -> None:
    attention = importlib.import_module("sglang.srt.layers.dp_attention")
    parameters = inspect.signature(attention.initialize_dp_attention).parameters
    given: dict[str, Any] = {**ONE_RANK, "server_args": args}
    if "model_config" in parameters:
        given["model_config"] = _AnyModel()
    attention.initialize_dp_attention(**{name: given[name] for name in parameters if name in given})


class _AnyModel:
    """Sizes of a buffer that is used with data-parallel attention only."""

    hidden_size = 64
    dtype = None
    hf_config = None
