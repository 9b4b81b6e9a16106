"""The exponential mechanism by a look at every score: the largest after Gumbel noise."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..arrays import Vector
from .base import Kept
from .randomness import Randomness


class Gumbel(Kept):
    """Rounded scores; a draw adds Gumbel noise to all of them and takes the largest.

    Guarantee
    ---------
    That of `Exponential` with this grid and scale. Proof: docs/proofs/grid_noise.md.
    """

    @property
    def log_weights(self) -> Vector:
        """Rounded scores below the largest, in units of the scale."""
        return (self._values - float(self._values.max())) / self._scale

    def draw(self, randomness: Randomness, score: Callable[[int], float] | None = None) -> int:
        return int(np.argmax(self.log_weights + randomness.gumbel(self._values.shape)))
