"""The exponential mechanism by a look at every score: the largest after Gumbel noise."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from .base import one_score_each
from .grid import on_grid
from .randomness import Randomness


class Gumbel:
    """Rounded scores; a draw adds Gumbel noise to all of them and takes the largest.

    Guarantee
    ---------
    That of `Exponential` with this grid and scale. Proof: docs/proofs/grid_noise.md.

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
        self._grid, self._scale = grid, scale
        self._values = on_grid(np.asarray(scores, dtype=np.float64), grid)

    @property
    def log_weights(self) -> Any:
        """Rounded scores below the largest, in units of the scale."""
        return (self._values - self._values.max()) / self._scale

    def update(self, index: Any, scores: Any, everything: Callable[[], Any] | None = None) -> bool:
        """Set the scores of the candidates ``index``; where one is named twice, the last score counts."""
        index, scores = one_score_each(index, scores, self._values.size)
        self._values[index] = on_grid(scores, self._grid)
        return False

    def slack(self, index: Any) -> Any:
        """0: every score that moves must be set."""
        return np.zeros(len(index))

    def draw(self, randomness: Randomness, score: Callable[[int], float] | None = None) -> int:
        """Choose a candidate."""
        return int(np.argmax(self.log_weights + randomness.gumbel(self._values.shape)))
