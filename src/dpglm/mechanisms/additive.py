"""Mechanisms that add noise to an answer: integer noise on a public grid."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar, overload

import numpy as np
from numpy.typing import NDArray

from .. import accounting
from ..arrays import Total, Vector
from .base import Mechanism
from .grid import Integers, Numbers, on_grid, public_grid
from .randomness import GAUSSIAN_DISTANCE, Randomness, Shape


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
    def _integers(self, scale: Integers, shape: Shape, randomness: Randomness) -> Integers:
        """Noise of that scale, rounded to whole numbers."""

    @abstractmethod
    def _log_density(self, noise: Vector) -> Vector:
        """Log-density of each entry of noise of scale 1, up to a constant."""

    @overload
    def draw(self, sensitivity: Vector, shape: Shape, randomness: Randomness) -> tuple[Vector, Vector]: ...
    @overload
    def draw(self, sensitivity: Numbers, shape: Shape, randomness: Randomness) -> tuple[Numbers, Numbers]: ...
    def draw(self, sensitivity: Numbers, shape: Shape, randomness: Randomness) -> tuple[Numbers, Numbers]:
        """Noise alone, for answers that are known only inside compiled code, and the grid to round them to.

        A grid of 0 stands for no noise and no rounding.
        """
        if self.noise == 0:
            return np.zeros(shape), np.zeros(np.shape(sensitivity))
        # With a sensitivity for each, entries are released alone.
        entries = 1 if np.ndim(sensitivity) else math.prod(shape)
        grid, steps = public_grid(sensitivity, self.noise, self._rounding(entries))
        noise = self._integers(steps, shape, randomness)
        return (noise * grid if isinstance(noise, int) else noise * np.asarray(grid)), grid

    def draw_each(
        self, sensitivity: Vector, index: NDArray[np.int64], randomness: Randomness
    ) -> tuple[Vector, Vector]:
        """Noise of numbers that are released alone, and the grid of each sensitivity.

        Number k has the sensitivity ``index[k]``. The noise is that of ``draw(sensitivity[index], ...)``.
        """
        if self.noise == 0:
            return np.zeros(index.shape), np.zeros(sensitivity.shape)
        grid, steps = public_grid(sensitivity, self.noise, self._rounding(1))
        noise = grid[index]
        noise *= self._integers(steps[index], index.shape, randomness)
        return noise, grid

    def grid(self, sensitivity: float, entries: int) -> float:
        """The grid of a release of so many numbers."""
        return public_grid(sensitivity, self.noise, self._rounding(entries))[0]

    @overload
    def release(self, answer: float, sensitivity: float, randomness: Randomness) -> float: ...
    @overload
    def release(self, answer: Vector | Total, sensitivity: Numbers, randomness: Randomness) -> Vector: ...
    def release(self, answer: Numbers | Total, sensitivity: Numbers, randomness: Randomness) -> Numbers:
        if isinstance(answer, Total):
            return self._on_total(answer, float(sensitivity), randomness)
        if self.noise == 0:
            return answer
        noise, grid = self.draw(sensitivity, np.shape(answer), randomness)
        return on_grid(answer, grid) + noise

    def _on_total(self, answer: Total, sensitivity: float, randomness: Randomness) -> Vector:
        """Noise added to an exact sum: to its whole steps, before they become doubles."""
        if self.noise == 0:
            return np.asarray(answer)
        rounding = self._rounding(answer.size)
        if answer.unit is None:
            grid, scale = public_grid(sensitivity, self.noise, rounding, answer.grid)
            noisy = self._integers(scale, answer.shape, randomness)
            noisy += answer.on(grid)
            released = np.asarray(noisy, dtype=np.float64)
            released *= grid
            return released
        # Grids differ between entries, in their units by a factor of less than two: so twice the rounding.
        grids, scales = public_grid(sensitivity / answer.unit, self.noise, 2 * rounding, answer.grid)
        noisy = answer.on(grids) + self._integers(scales, answer.shape, randomness)
        return noisy.astype(np.float64) * grids * answer.unit

    def require_drawable(self, entries: int) -> None:
        # The scale in steps depends on the noise, not on the sensitivity. Twice the rounding: as on a sum in
        # units.
        public_grid(1.0, self.noise, 2 * self._rounding(entries))

    def log_likelihood(self, released: Numbers, answer: Numbers, sensitivity: Numbers) -> float:
        noise = (np.asarray(released) - np.asarray(answer)) / (self.noise * np.asarray(sensitivity))
        return float(np.sum(self._log_density(noise)))

    def log_likelihoods(self, released: Vector, answers: Vector, sensitivity: Numbers) -> Vector:
        """How likely released numbers are for each of several exact answers, which are rows."""
        noise = (released - answers) / (self.noise * np.asarray(sensitivity))
        likely: Vector = self._log_density(noise).sum(axis=-1)
        return likely

    def worst_cases(self) -> dict[str, tuple[float, float]]:
        return {"one number": (1.0, 0.0)}


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
