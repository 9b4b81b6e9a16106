"""The exponential mechanism over scores in groups: a draw of a group by its sum, then of a member."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from .base import one_score_each
from .grid import on_grid
from .randomness import Randomness


class Grouped:
    """About sqrt(p) groups of about sqrt(p) consecutive candidates, with the sum of the weights of each.

    The weight of candidate j is exp((rounded score_j - reference) / scale). An update adds up the groups of
    its candidates anew from all of their members, never by differences, so nothing drifts. A draw halves the
    set of groups by coins until one is left, and then its members. If the sum of all weights leaves a wide
    range, the largest score becomes the reference.

    Guarantee
    ---------
    That of `Exponential` with this grid and scale, after any updates.
    Proof: docs/proofs/grouped_selection.md.

    Parameters
    ----------
    scores : array
        Finite scores of all candidates.
    grid : float
        Power of two that scores are rounded to.
    scale : float
        Scale of the mechanism.
    """

    noisy: ClassVar[bool] = True

    def __init__(self, scores: Any, grid: float, scale: float) -> None:
        from ..kernels import grouped  # compiled code is loaded by those who use it

        self._kernels = grouped
        self._grid, self._scale = grid, scale
        self._values = on_grid(np.asarray(scores, dtype=np.float64), grid)
        count = self._values.size
        size = 1 << ((count - 1).bit_length() + 1) // 2
        groups = -(-count // size)
        self._weights = np.zeros((groups, size))
        self._sums = np.zeros(2 << (groups - 1).bit_length())
        self._refer()

    def update(self, index: Any, scores: Any, everything: Callable[[], Any] | None = None) -> bool:
        """Set the scores of the candidates ``index``; where one is named twice, the last score counts."""
        index, scores = one_score_each(index, scores, self._values.size)
        self._values[index] = on_grid(scores, self._grid)
        if not self._kernels.LOWEST <= self._weigh(index) <= self._kernels.HIGHEST:
            self._refer()
        return False

    def slack(self, index: Any) -> Any:
        """0: every score that moves must be set."""
        return np.zeros(len(index))

    def draw(self, randomness: Randomness, score: Callable[[int], float] | None = None) -> int:
        """Choose a candidate."""
        return randomness.run(self._kernels.draw, self._weights, self._sums)

    def _refer(self) -> None:
        """Weigh all candidates against the largest score."""
        self._reference = float(self._values.max())
        self._weigh(np.arange(self._values.size))

    def _weigh(self, index: Any) -> float:
        return self._kernels.weigh(
            index, self._values, self._weights, self._sums, self._reference, self._scale
        )
