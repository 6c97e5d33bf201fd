"""The synthetic language that the acceptance pair speaks.

Token t+1 is one of four fixed candidates of token t. Which one is likely depends on one bit of
token t-1 and one bit of token t-4, so that the best guess needs context at two distances and the
target model's layers hold different things. 256 scattered ids carry 96 % of the mass: they make a
draft vocabulary whose ``d2t`` is not trivial.

Only numpy: the prompts are made without torch.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

Ids = npt.NDArray[np.int64]

VOCAB: Final = 512
COMMON: Final = 256
"""Tokens that carry most of the mass; as many as the draft vocabulary has."""
CONTEXT: Final = 5
"""Tokens that are drawn freely, before the first one that follows from others."""

_CANDIDATES = 4
_FIRST_ID = 2  # 0 and 1 begin and end a text
_MASS_OF_COMMON = 0.96
_LIKELY = 0.85


class Language:
    """A distribution over texts, wholly given by its seed."""

    def __init__(self, seed: int = 0) -> None:
        random = np.random.default_rng(seed)
        ids = random.permutation(np.arange(_FIRST_ID, VOCAB))
        common, rare = ids[:COMMON], ids[COMMON:]
        self.mass: npt.NDArray[np.float64] = np.zeros(VOCAB)
        self.mass[common] = _MASS_OF_COMMON / len(common)
        self.mass[rare] = (1 - _MASS_OF_COMMON) / len(rare)
        self._candidates = np.stack(
            [random.choice(VOCAB, _CANDIDATES, replace=False, p=self.mass) for _ in range(VOCAB)]
        )
        self._near_bit = random.integers(0, 2, VOCAB)
        self._far_bit = random.integers(0, 2, VOCAB)

    def sample(self, texts: int, length: int, random: np.random.Generator) -> Ids:
        """``texts`` texts of ``length`` tokens: ids [texts, length]."""
        ids: Any = np.zeros((texts, length), dtype=np.int64)
        ids[:, :CONTEXT] = random.choice(VOCAB, (texts, CONTEXT), p=self.mass)
        for t in range(CONTEXT - 1, length - 1):
            likely = self._near_bit[ids[:, t - 1]] + 2 * self._far_bit[ids[:, t - 4]]
            is_likely = random.random(texts) < _LIKELY
            other = random.integers(1, _CANDIDATES, texts)
            chosen = (likely + np.where(is_likely, 0, other)) % _CANDIDATES
            ids[:, t + 1] = self._candidates[ids[:, t], chosen]
        return np.asarray(ids)
