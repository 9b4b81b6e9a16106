"""The exponential mechanism."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.special import softmax

from .. import accounting
from ..errors import UnsupportedProblem
from .base import Mechanism
from .binned import Binned
from .grid import on_grid, public_grid
from .randomness import GUMBEL_DISTANCE, Randomness

_ROUNDING = 2.0**-39
_MOST_NOISE = 2.0**37
_FEWEST_KEPT = 1 << 12
_SMALLEST = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True)
class Exponential(Mechanism):
    """Chooses index j with probability proportional to exp(score_j / (noise * sensitivity)).

    The sensitivity bounds how far any one score moves. The draw is the largest score after adding
    Gumbel noise, so its bounded range is 2 / noise; no other noise has that range. Scores are rounded to a
    public grid first, and the scale is larger by what that and the rounding of Gumbel noise can change.
    """

    name: ClassVar[str] = "exponential"
    distance: ClassVar[float] = GUMBEL_DISTANCE

    @property
    def event(self) -> accounting.Event:
        return accounting.Exponential(self.noise)

    def release(self, answer: Any, sensitivity: Any, randomness: Randomness) -> int:
        scores = np.asarray(answer, dtype=np.float64)
        if self.noise == 0 or sensitivity == 0:
            return int(np.argmax(scores))
        return int(np.argmax(self._scaled(scores, sensitivity) + randomness.gumbel(scores.shape)))

    def keep(self, scores: Any, sensitivity: float) -> Binned | None:
        """Keep scores for many selections among them, with the law of ``release``, and updates in between.

        None where looking at every score must serve, or is as fast: without noise, or with few candidates.
        """
        if self.noise == 0 or sensitivity == 0 or np.size(scores) < _FEWEST_KEPT:
            return None
        grid, scale = self.law(sensitivity)
        return Binned(scores, grid, scale) if scale >= _SMALLEST else None

    def law(self, sensitivity: float) -> tuple[float, float]:
        """(grid, scale): index j has probability proportional to exp(score_j on the grid / scale)."""
        if self.noise > _MOST_NOISE:
            raise UnsupportedProblem("this much noise cannot hide its rounding: the budget is too small")
        grid, _ = public_grid(sensitivity, self.noise, 1.0)
        return grid, self.noise * (sensitivity + grid) * (1 + (1 + 2 * self.noise) * _ROUNDING)

    def _scaled(self, scores: Any, sensitivity: float) -> Any:
        """Scores on their grid, below the largest, in units of the scale of the noise."""
        grid, scale = self.law(sensitivity)
        rounded = on_grid(scores, grid)
        return (rounded - rounded.max()) / scale

    def probabilities(self, answer: Any, sensitivity: Any) -> Any:
        return softmax(self._scaled(np.asarray(answer, dtype=np.float64), sensitivity))

    def log_likelihood(self, released: Any, answer: Any, sensitivity: Any) -> float:
        return float(np.log(self.probabilities(answer, sensitivity)[released]))

    def worst_cases(self) -> dict[str, tuple[Any, Any]]:
        # Scores that are not monotone: one rises while the other falls. An unlikely candidate shows the
        # whole range of the loss at once; two that are equally likely show most over many rounds.
        gaps = {"unlikely candidate": 1.0 + 3.0 * self.noise, "equal candidates": 1.0}
        return {name: (np.array([1.0 - gap, -1.0]), np.array([-gap, 0.0])) for name, gap in gaps.items()}
