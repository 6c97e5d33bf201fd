"""Checks EAGLE-3 draft checkpoints against what each SGLang and vLLM release would do with them.

>>> import eagle3_lint
>>> report = eagle3_lint.check("my-draft", targets=["sglang==0.5.9"], target_model="kimi-k2.5")
>>> report.checkpoints[0].results[0].verdict
'refused'
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from eagle3_lint.version import __version__

if TYPE_CHECKING:
    from eagle3_lint.checking import check as check
    from eagle3_lint.errors import InputError as InputError
    from eagle3_lint.fixing import FixResult as FixResult
    from eagle3_lint.fixing import fix as fix
    from eagle3_lint.fixing import undo as undo
    from eagle3_lint.gating import GateError as GateError
    from eagle3_lint.gating import gate as gate
    from eagle3_lint.report.model import Report as Report

__all__ = [
    "FixResult", "GateError", "InputError", "Report", "__version__", "check", "fix", "gate", "undo",
]  # fmt: skip

#: Public name → module that defines it; imported when first asked for, since an import of this
#: package alone should cost nothing.
_HOMES = {
    "check": "eagle3_lint.checking",
    "fix": "eagle3_lint.fixing",
    "undo": "eagle3_lint.fixing",
    "gate": "eagle3_lint.gating",
    "FixResult": "eagle3_lint.fixing",
    "GateError": "eagle3_lint.gating",
    "InputError": "eagle3_lint.errors",
    "Report": "eagle3_lint.report.model",
}


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
