"""The exponential mechanism."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import softmax

from .. import accounting
from ..arrays import Vector
from ..errors import UnsupportedProblem
from .base import Kept, Selection, opposed_scores
from .binned import Binned
from .grid import public_grid
from .grouped import Grouped
from .gumbel import Gumbel
from .heap import Heap
from .randomness import GUMBEL_DISTANCE, Randomness

STRUCTURES: dict[str, type[Kept]] = {"binned": Binned, "grouped": Grouped, "gumbel": Gumbel, "heap": Heap}
"""What scores can be kept in, by name."""

_WEIGHT_ERROR = 2.0**-39
_MOST_NOISE = 2.0**37
_FEWEST_KEPT = 1 << 12
_SMALLEST = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True)
class Exponential(Selection):
    """Chooses index j with probability proportional to exp(score_j / (noise * sensitivity)).

    The sensitivity bounds how far any one score moves. The draw is the largest score after adding
    Gumbel noise, so its bounded range is 2 / noise; no other noise has that range. Scores are rounded to a
    public grid first. The scale is enlarged by what this rounding and that of Gumbel noise can change.
    """

    name: ClassVar[str] = "exponential"
    distance: ClassVar[float] = GUMBEL_DISTANCE

    @property
    def event(self) -> accounting.Event:
        return accounting.Exponential(self.noise)

    def release(self, answer: ArrayLike, sensitivity: float, randomness: Randomness) -> int:
        scores = np.asarray(answer, dtype=np.float64)
        if self.noise == 0 or sensitivity == 0:
            return int(np.argmax(scores))
        return Gumbel(scores, *self.law(sensitivity)).draw(randomness)

    def keep(self, scores: ArrayLike, sensitivity: float, structure: str = "auto") -> Kept | None:
        """Keep scores for many selections among them, with the law of ``release``, and updates in between.

        Parameters
        ----------
        scores : array
            Finite scores of all candidates.
        sensitivity : float
            How far neighbours move any one score.
        structure : {"auto", "binned", "grouped", "gumbel", "heap"}
            What the scores are kept in: a heap without noise, any of the others with it. "auto" takes bins,
            or returns None where ``release`` of all scores is needed or as fast: without noise, with very
            little noise, or with few candidates.
        """
        exact = self.noise == 0 or sensitivity == 0
        if structure == "auto":
            if exact or np.size(scores) < _FEWEST_KEPT or not self._divides(sensitivity):
                return None
            structure = "binned"
        if structure not in STRUCTURES:
            raise ValueError(f"structure must be 'auto' or one of {[*STRUCTURES]}, got {structure!r}")
        kind = STRUCTURES[structure]
        if kind.noisy == exact:
            others = [name for name, other in STRUCTURES.items() if other.noisy != exact]
            raise ValueError(
                f"structure {structure!r} is for selections {'with' if exact else 'without'} noise, and here "
                f"noise is {self.noise:g} and the sensitivity {sensitivity:g}: use one of {others}"
            )
        if exact:
            return kind(scores)
        if not self._divides(sensitivity):
            raise ValueError("scores cannot be kept with so little noise: use structure 'auto'")
        return kind(scores, *self.law(sensitivity))

    def _divides(self, sensitivity: float) -> bool:
        """Whether 1 / scale is finite."""
        return self.law(sensitivity)[1] >= _SMALLEST

    def require_drawable(self, entries: int) -> None:
        self.law(1.0)

    def law(self, sensitivity: float) -> tuple[float, float]:
        """(grid, scale): index j has probability proportional to exp(score_j on the grid / scale)."""
        if self.noise > _MOST_NOISE:
            raise UnsupportedProblem("this much noise cannot hide its rounding: the budget is too small")
        grid, _ = public_grid(sensitivity, self.noise, 1.0)
        return grid, self.noise * (sensitivity + grid) * (1 + (1 + 2 * self.noise) * _WEIGHT_ERROR)

    def probabilities(self, answer: ArrayLike, sensitivity: float) -> Vector:
        return np.asarray(softmax(Gumbel(answer, *self.law(sensitivity)).log_weights))

    def log_likelihood(self, released: int, answer: ArrayLike, sensitivity: float) -> float:
        return float(np.log(self.probabilities(answer, sensitivity)[released]))

    def worst_cases(self) -> dict[str, tuple[Vector, Vector]]:
        # Scores that are not monotone. An unlikely candidate shows the whole range of the loss at once; two
        # that are equally likely show most over many rounds.
        return opposed_scores({"unlikely candidate": 1.0 + 3.0 * self.noise, "equal candidates": 1.0})
