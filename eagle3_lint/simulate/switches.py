"""What the forward pass of a draft class takes for a switch that the configuration sets."""

from __future__ import annotations

from collections.abc import Mapping

from eagle3_lint.contract.expression import compile_expression
from eagle3_lint.contract.model import SwitchStatement
from eagle3_lint.simulate.configure import look_up

_ABSENT = object()


def taken(
    statement: SwitchStatement, config: Mapping[str, object], names: Mapping[str, object]
) -> object:
    """The value that a release takes.

    Args:
        config: the configuration as the class sees it.
        names: the names of the contract (:attr:`Load.environment`), with :func:`windowed`.
    """
    known = {**names, "windowed": windowed(config)}
    if statement.value is not None:
        return compile_expression(statement.value)(known)
    if statement.when is None or compile_expression(statement.when)(known):
        for path in statement.read:
            found = look_up(config, path, _ABSENT)
            if found is not _ABSENT:
                return found
    return compile_expression(statement.absent)(known)


def windowed(config: Mapping[str, object]) -> bool:
    """Whether a configuration asks for a sliding window in its first layer.

    The types of the layers say so, or without them a switch (transformers 4.57.1
    models/qwen3/configuration_qwen3.py).
    """
    kinds = config.get("layer_types")
    if isinstance(kinds, list):
        return kinds[:1] == ["sliding_attention"]
    return config.get("use_sliding_window") is True
