"""What adds noise to an answer: integer noise on a public grid."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from .base import Mechanism
from .grid import on_grid, public_grid
from .randomness import Randomness


@dataclass(frozen=True)
class Additive(Mechanism):
    """Rounds an answer to a public grid and adds a whole number of its steps.

    Guarantee
    ---------
    Noise is a continuous variable rounded to the grid, so what is released is post-processing of the
    continuous mechanism on the rounded answer, whose sensitivity is the answer's plus what rounding adds.
    """

    @abstractmethod
    def _rounding(self, entries: int) -> float:
        """How many steps rounding so many entries can add to the sensitivity, in its norm."""

    @abstractmethod
    def _integers(self, scale: Any, shape: tuple[int, ...], randomness: Randomness) -> Any:
        """Noise of that scale, rounded to whole numbers."""

    def draw(self, sensitivity: Any, shape: tuple[int, ...], randomness: Randomness) -> tuple[Any, Any]:
        """Noise alone, for answers that are known only inside compiled code, and the grid to round them to.

        A grid of 0 stands for no noise and no rounding.
        """
        if self.noise == 0:
            return np.zeros(shape), np.zeros(np.shape(sensitivity))
        # With a sensitivity for each, entries are released alone.
        entries = 1 if np.ndim(sensitivity) else math.prod(shape)
        grid, steps = public_grid(sensitivity, self.noise, self._rounding(entries))
        return self._integers(steps, shape, randomness) * grid, grid

    def grid(self, sensitivity: float, entries: int) -> float:
        """The grid of a release of so many numbers."""
        return float(public_grid(sensitivity, self.noise, self._rounding(entries))[0])

    def release(self, answer: Any, sensitivity: Any, randomness: Randomness) -> Any:
        if self.noise == 0:
            return answer
        noise, grid = self.draw(sensitivity, np.shape(answer), randomness)
        return on_grid(answer, grid) + noise
