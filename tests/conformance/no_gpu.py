"""Tensors that sources ask for on a GPU, made on the CPU."""

from __future__ import annotations

from typing import Any


def place_cuda_on_cpu() -> None:
    """Every tensor asked for on a CUDA device is made on the CPU, for the rest of the process."""
    import torch

    class OnCpu(torch.overrides.TorchFunctionMode):  # type: ignore[misc]
        def __torch_function__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            given = {k: _on_cpu(torch, v) for k, v in (kwargs or {}).items()}
            return func(*(_on_cpu(torch, v) for v in args), **given)

    OnCpu().__enter__()


def _on_cpu(torch: Any, value: Any) -> Any:
    if isinstance(value, torch.device):
        return torch.device("cpu") if value.type == "cuda" else value
    if isinstance(value, str) and value.partition(":")[0] == "cuda":
        return "cpu"
    return value
