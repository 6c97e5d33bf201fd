"""pytorch_model.bin: read with torch where it is installed (the ``torch`` extra), else named."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from eagle3_lint.load.checkpoint import Problem, Tensor
from eagle3_lint.load.foreign import SNIFFED, recognise

_DTYPES = {
    "bfloat16": "BF16", "float16": "F16", "float32": "F32", "float64": "F64", "bool": "BOOL",
    "int8": "I8", "int16": "I16", "int32": "I32", "int64": "I64", "uint8": "U8", "uint16": "U16",
    "uint32": "U32", "uint64": "U64", "float8_e4m3fn": "F8_E4M3", "float8_e5m2": "F8_E5M2",
    "float8_e8m0fnu": "F8_E8M0", "float8_e4m3fnuz": "F8_E4M3FNUZ",
    "float8_e5m2fnuz": "F8_E5M2FNUZ", "complex64": "C64",
}  # fmt: skip


class NeedsTorchError(Exception):
    """torch is not installed, or it does not import here."""


def load_state(path: Path) -> dict[str, Any]:
    """The state dict of a torch file, memory-mapped where the format allows it.

    Raises:
        NeedsTorchError: torch cannot be imported.
        Exception: whatever torch raises for a damaged file or one that holds more than data.
    """
    state = load_object(path)
    if not isinstance(state, Mapping):
        raise TypeError(f"it holds a {type(state).__name__}, not a state dict")
    return {str(key): value for key, value in state.items()}


def load_object(path: Path) -> Any:
    """What a torch file holds: tensors, numbers, texts and containers of those, nothing else.

    Raises:
        NeedsTorchError: torch cannot be imported.
        Exception: whatever torch raises for a damaged file or one that holds more than data.
    """
    try:
        import torch
    except Exception as error:  # a broken installation raises OSError, RuntimeError, …
        raise NeedsTorchError(str(error)) from error

    try:
        state = torch.load(path, map_location="cpu", weights_only=True, mmap=True)
    except RuntimeError as error:
        if "mmap" not in str(error):
            raise
        # Files from before torch 1.6 are not zips and cannot be mapped.
        state = torch.load(path, map_location="cpu", weights_only=True)
    return state


def read_torch_file(path: Path) -> tuple[list[Tensor], Problem | None]:
    """Names, dtypes and shapes of a torch file, and the problem with it, if any."""
    name = path.name
    try:
        with path.open("rb") as file:
            start = file.read(SNIFFED)
        foreign = recognise(start, path.stat().st_size)
        if foreign is not None and not foreign[0].startswith("torch-"):
            return [], Problem(foreign[0], name, foreign[1])
        return _read(load_state(path), name)
    except NeedsTorchError as error:
        message = (
            "reading a torch file needs torch: pip install 'eagle3-lint[torch]', or convert the"
            f" weights to safetensors ({_first_line(error)})"
        )
        return [], Problem("needs-torch", name, message)
    except OSError as error:
        return [], Problem("unreadable", name, f"it cannot be read: {_first_line(error)}")
    except Exception as error:  # torch raises a dozen kinds for a damaged or unsafe pickle
        message = f"torch cannot read it safely: {_first_line(error)}"
        if start[8:10] in (b'{"', b"{ "):
            message = "it seems to be safetensors under the name of a torch file: rename it"
        return [], Problem("bad-torch-file", name, message)


def _read(state: Mapping[str, Any], file: str) -> tuple[list[Tensor], Problem | None]:
    tensors, others = [], []
    for name, value in state.items():
        if not hasattr(value, "element_size"):
            others.append(name)
            continue
        dtype = str(value.dtype).removeprefix("torch.")
        nbytes = value.numel() * value.element_size()
        shape = tuple(value.shape)
        tensors.append(Tensor(name, _DTYPES.get(dtype, dtype), shape, file, -1, nbytes))
    if not others:
        return tensors, None
    listed = ", ".join(map(repr, others[:3])) + (", …" if len(others) > 3 else "")
    nested = [n for n in others if isinstance(state[n], Mapping)]
    message = f"runtimes expect tensors alone in it, and {listed} is something else"
    if not tensors and nested:
        message = f"its tensors lie a level too deep, under {nested[0]!r}: save that state dict"
    return tensors, Problem("bad-torch-file", file, message)


def _first_line(error: BaseException) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0][:160]
