"""The Gaussian mechanism."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from .. import accounting
from ..arrays import Vector
from .additive import Additive
from .grid import Integers
from .randomness import GAUSSIAN_DISTANCE, Randomness, Shape


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

    def _integers(self, scale: Integers, shape: Shape, randomness: Randomness) -> Integers:
        return randomness.gaussian(scale, shape)

    def _log_density(self, noise: Vector) -> Vector:
        return -0.5 * noise**2
