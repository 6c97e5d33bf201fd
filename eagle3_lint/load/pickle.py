"""pytorch_model.bin: read with torch when it is there (the ``torch`` extra), else named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from eagle3_lint.load.checkpoint import Problem, Tensor

_DTYPES = {
    "bfloat16": "BF16", "float16": "F16", "float32": "F32", "float64": "F64", "bool": "BOOL",
    "int8": "I8", "int16": "I16", "int32": "I32", "int64": "I64", "uint8": "U8",
    "float8_e4m3fn": "F8_E4M3", "float8_e5m2": "F8_E5M2",
}  # fmt: skip


def load_state(path: Path) -> dict[str, Any]:
    """The tensors of a torch file, memory-mapped where the format allows it.

    Raises:
        ImportError: torch is not installed.
        Exception: whatever torch raises for a file that is no plain state dict.
    """
    import torch

    try:
        state = torch.load(path, map_location="cpu", weights_only=True, mmap=True)
    except RuntimeError as error:
        if "mmap" not in str(error):
            raise
        # Files from before torch 1.6 are no zip and cannot be mapped.
        state = torch.load(path, map_location="cpu", weights_only=True)
    return {str(k): v for k, v in state.items() if isinstance(v, torch.Tensor)}


def read_torch_file(path: Path) -> tuple[list[Tensor], Problem | None]:
    """Names, dtypes and shapes of a torch file, or the problem with it."""
    name = path.name
    try:
        state = load_state(path)
    except ImportError:
        message = (
            "reading a torch file needs torch: pip install 'eagle3-lint[torch]', or save the"
            " weights as safetensors"
        )
        return [], Problem("needs-torch", name, message)
    except Exception as error:  # torch raises a dozen kinds for a damaged or unsafe pickle
        first = (str(error).strip() or type(error).__name__).splitlines()[0]
        return [], Problem("bad-torch-file", name, f"torch cannot read it safely: {first[:160]}")
    tensors = [
        Tensor(
            key,
            _DTYPES.get(str(value.dtype).removeprefix("torch."), str(value.dtype)),
            tuple(value.shape),
            name,
            -1,
            value.numel() * value.element_size(),
        )
        for key, value in state.items()
    ]
    return tensors, None
