"""The Laplace mechanism."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from .. import accounting
from ..arrays import Vector
from .additive import Additive
from .grid import Integers
from .randomness import Randomness, Shape


@dataclass(frozen=True)
class Laplace(Additive):
    """Adds Laplace noise of scale noise * sensitivity, on a grid; the sensitivity is in the L1 norm."""

    name: ClassVar[str] = "Laplace"

    @property
    def event(self) -> accounting.Event:
        return accounting.Laplace(self.noise)

    def _rounding(self, entries: int) -> float:
        return float(entries)

    def _integers(self, scale: Integers, shape: Shape, randomness: Randomness) -> Integers:
        return randomness.laplace(scale, shape)

    def _log_density(self, noise: Vector) -> Vector:
        return -np.abs(noise)
