"""What a training leaves that is no draft yet: what it is, and the step that is missing.

Data: ``[[unfinished]]`` in ``rules/producers``, and files of other programs here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cache
from typing import Any

from eagle3_lint.contract.rules_folder import read_toml, rules_folder

#: Not a trainer's, but what people hand over all the same.
_OTHERS: tuple[Mapping[str, Any], ...] = (
    {
        "files": ["*.gguf"],
        "what": "a model of llama.cpp",
        "step": "SGLang and vLLM need the weights from before the conversion",
    },
)


@cache
def _states() -> tuple[Mapping[str, Any], ...]:
    paths = sorted((rules_folder() / "producers").glob("*.toml"))
    return (*(e for path in paths for e in read_toml(path).get("unfinished", ())), *_OTHERS)


def unfinished_files(names: Sequence[str]) -> str:
    """What the names of files show; empty when nothing."""
    for state in _states():
        for pattern in state.get("files", ()):
            for name in names:
                if fnmatchcase(name, pattern):
                    return f"{name} is {state['what']}: {state['step']}"
    return ""


def unfinished_tensors(names: Iterable[str]) -> str:
    """What the names of tensors show; empty when nothing."""
    held = list(names)
    for state in _states():
        for piece in state.get("tensors", ()):
            beside = state.get("beside", "")
            if any(piece in n for n in held) and any(beside in n and piece not in n for n in held):
                return f"it is {state['what']}: {state['step']}"
    return ""
