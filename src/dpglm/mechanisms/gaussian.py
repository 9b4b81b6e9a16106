"""The Gaussian mechanism."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from .. import accounting
from .additive import Additive
from .randomness import GAUSSIAN_DISTANCE, Randomness


@dataclass(frozen=True)
class Gaussian(Additive):
    """Adds N(0, (noise * sensitivity)²), on a grid, to each entry; the sensitivity is in the L2 norm."""

    name: ClassVar[str] = "Gaussian"
    distance: ClassVar[float] = GAUSSIAN_DISTANCE

    @property
    def event(self) -> accounting.Event:
        return accounting.Gaussian(self.noise)

    def _rounding(self, entries: int) -> float:
        # Twice: the price of a Poisson batch sets two records apart, and each has its own rounding.
        return 2 * math.sqrt(entries)

    def _integers(self, scale: Any, shape: tuple[int, ...], randomness: Randomness) -> Any:
        return randomness.gaussian(scale, shape)

    def log_likelihood(self, released: Any, answer: Any, sensitivity: Any) -> float:
        deviations = (np.asarray(released) - answer) / (self.noise * np.asarray(sensitivity))
        return -0.5 * float(np.sum(deviations**2))

    def worst_cases(self) -> dict[str, tuple[Any, Any]]:
        return {"one number": (1.0, 0.0)}
