"""Objective perturbation: a random linear term in what is minimised."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal, Protocol

import numpy as np

from .. import accounting, strict
from ..arrays import Vector
from .additive import Gaussian
from .base import Mechanism
from .grid import MOST_GRID_STEPS, power_of_two
from .randomness import GAUSSIAN_DISTANCE, Randomness

_FARTHEST = 40.0  # deviations: the probability of a normal number beyond is below the distance of a draw


class PublicPart(Protocol):
    """The public facts about an objective: a sum over records plus public terms."""

    @property
    def dimension(self) -> int: ...

    def perturbed_error(self, length: float, moved: float) -> float:
        """Upper bound on the distance of what is found from the exact minimiser.

        The linear term is at most ``length`` long, and at most ``moved`` away from the exact one.
        """
        ...


class Perturbable(Protocol):
    """An objective over records that a linear term can be added to."""

    @property
    def query(self) -> PublicPart: ...

    def minimiser(self, linear: Vector) -> Vector:
        """Nearly the minimiser of the objective with that linear term in the sum."""
        ...

    def implied(self, w: Vector) -> tuple[Vector, float]:
        """The linear term that has its minimiser at w, and the log-determinant of the Hessian there."""
        ...


@dataclass(frozen=True)
class LinearTerm(Mechanism):
    """Adds b · w with b ~ N(0, (noise * sensitivity)²) to an objective and releases its minimiser.

    The sensitivity is that of the sum of gradients. The minimiser is found up to a small distance that is
    known beforehand. A second Gaussian release hides that error: its noise, relative to twice the distance,
    is ``finish`` times that of the linear term, so it costs little.

    Parameters
    ----------
    noise : float
        Deviation of the linear term over the sensitivity.
    curvature, slopes, reach, neighbours
        As in `dpglm.accounting.ObjectivePerturbation`.
    finish : float
        How many times more relative noise hides that the minimiser is not exact.

    Guarantee
    ---------
    The linear term lies on a grid, so it is a normal one moved by a bounded length; that and the inexact
    minimisation put the result within a known distance of the exact minimiser for a normal term. Its release
    with noise for twice that distance is priced after the release of the exact one.
    """

    name: ClassVar[str] = "linear term"
    distance: ClassVar[float] = GAUSSIAN_DISTANCE
    curvature: float
    slopes: Literal["any", "signed", "logistic"]
    reach: float
    neighbours: Literal["zero-out", "replace-one"]
    finish: float = 10.0

    def __post_init__(self) -> None:
        strict.keep(self, noise=strict.level, curvature=strict.level, finish=strict.positive)
        _ = self.event  # refuses what has no price

    @property
    def relation(self) -> str:
        return self.neighbours

    @property
    def event(self) -> accounting.Event:
        moved = 2 if self.neighbours == "replace-one" else 1
        objective = accounting.ObjectivePerturbation(
            self.noise * moved, self.curvature, self.slopes, self.reach, self.neighbours
        )
        return accounting.Composed((objective, accounting.Gaussian(self.noise * self.finish)))

    def entries(self, answer: Perturbable) -> int:
        return 2 * answer.query.dimension  # those of the linear term, and of the noise after it

    def release(self, answer: Perturbable, sensitivity: float, randomness: Randomness) -> Vector:
        dimension = answer.query.dimension
        if self.noise == 0:
            return answer.minimiser(np.zeros(dimension))
        grid, scale = self._grid(sensitivity)
        linear = np.multiply(randomness.gaussian(scale, (dimension,)), grid, dtype=np.float64)
        error = self._error(answer.query, sensitivity)
        return Gaussian(self.noise * self.finish).release(answer.minimiser(linear), 2 * error, randomness)

    def require_drawable(self, entries: int) -> None:
        Gaussian(self.noise * self.finish).require_drawable(entries)

    def deviation(self, problem: PublicPart, sensitivity: float) -> float:
        """Deviation of the noise that hides that the minimiser is not exact."""
        return self.noise * self.finish * 2 * self._error(problem, sensitivity) if self.noise else 0.0

    def _error(self, problem: PublicPart, sensitivity: float) -> float:
        """Upper bound on the distance of what is found from the exact minimiser for a normal linear term."""
        root = math.sqrt(problem.dimension)
        grid, scale = self._grid(sensitivity)
        return problem.perturbed_error(_FARTHEST * scale * grid * root, grid / 2 * root)

    def _grid(self, sensitivity: float) -> tuple[float, int]:
        """The grid of the linear term, as fine as can be drawn, and its deviation in whole steps of it."""
        deviation = self.noise * sensitivity
        grid = float(power_of_two(np.asarray(deviation / (MOST_GRID_STEPS - 1))))
        return grid, math.ceil(deviation / grid)

    def log_likelihood(self, released: Vector, answer: Perturbable, sensitivity: float) -> float:
        linear, log_determinant = answer.implied(released)
        return log_determinant - 0.5 * float(np.sum((linear / (self.noise * sensitivity)) ** 2))

    def worst_cases(self) -> dict[str, tuple[Perturbable, Perturbable]]:
        # Its answers are objectives over records: the solver that uses it is audited instead.
        return {}
