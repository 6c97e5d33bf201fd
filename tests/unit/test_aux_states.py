"""Layer ids → aux states, policy by policy, with the arithmetic of each runtime shown."""

from __future__ import annotations

from typing import Any

import pytest

from eagle3_lint.contract.runtime import runtime_file
from eagle3_lint.simulate.aux_states import aux_states

KIMI_LAYERS = 61
#: [2, n // 2, n - 3] of SGLang's set_eagle3_layers_to_capture without ids (0.5.9 llama.py).
DEFAULT = (2, 30, 58)


def nested(*ids: int, **more: Any) -> dict[str, Any]:
    return {"eagle_config": {"eagle_aux_hidden_state_layer_ids": list(ids), **more}}


def states(release: str, policy: str | None, config: dict[str, Any]) -> tuple[int, ...] | None:
    statement = runtime_file("sglang").release(release).aux
    return aux_states(statement, policy, config, KIMI_LAYERS).states


@pytest.mark.parametrize(
    ("release", "policy", "config", "expected"),
    [
        # 0.4.8 reads no ids: models/llama.py:706.
        ("0.4.8", None, nested(5, 6, 7), DEFAULT),
        # [val + 1 for val in layer_ids], models/llama.py of every release from 0.4.9 on.
        ("0.5.9", None, nested(1, 29, 57), (2, 30, 58)),
        ("0.5.12", None, nested(2, 30, 58), (3, 31, 59)),
        # 0.5.13 deepseek_v2.py:2740: +1 only if the first id is 1.
        ("0.5.13", "plus1-if-first-is-1", nested(1, 29, 57), (2, 30, 58)),
        ("0.5.13", "plus1-if-first-is-1", nested(2, 30, 58), (2, 30, 58)),
        # 0.5.17 gpt_oss.py:1337: verbatim if an id names the state after the last layer.
        ("0.5.17", "plus1-unless-max-is-n", nested(24, 30, 61), (24, 30, 61)),
        ("0.5.17", "plus1-unless-max-is-n", nested(24, 30, 60), (25, 31, 61)),
        # 0.5.18 minimax_m3_vl.py:246: the default is shifted too.
        ("0.5.18", "plus1-also-on-default", {}, (3, 31, 59)),
        # Layers are captured as they run, each once.
        ("0.5.9", None, nested(57, 1, 1, 29), (2, 30, 58)),
        # Not read: the top level, an empty list, what is no list of integers.
        ("0.5.9", None, {"eagle_aux_hidden_state_layer_ids": [1, 2, 3]}, DEFAULT),
        ("0.5.9", None, {"eagle_config": None}, DEFAULT),
    ],
)
def test_sglang(
    release: str, policy: str | None, config: dict[str, Any], expected: tuple[int, ...]
) -> None:
    assert states(release, policy, config) == expected


def test_without_the_number_of_layers_the_default_is_not_known() -> None:
    statement = runtime_file("sglang").release("0.5.9").aux
    assert aux_states(statement, None, {}, None).states is None
