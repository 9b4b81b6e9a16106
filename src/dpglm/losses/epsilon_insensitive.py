"""Epsilon-insensitive loss."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from .. import strict
from ..arrays import Vector, soft_threshold
from .base import SMALLEST, Loss, inside


@dataclass(frozen=True)
class EpsilonInsensitive(Loss):
    """max(0, abs(z - y) - t): errors within the tube t cost nothing; 1-Lipschitz and not smooth.

    The derivative inside the tube is 0. Solvers that rest on a bounded curvature refuse this loss; dual
    coordinate descent needs none. The name is that of support vector regression; privacy's epsilon is
    another thing.

    Parameters
    ----------
    tube : float
        The error t that costs nothing; 0 makes the loss abs(z - y).

    Examples
    --------
    >>> import numpy as np
    >>> EpsilonInsensitive(tube=0.5).value(np.array([0.2, 2.0]), np.zeros(2))
    array([0. , 1.5])
    """

    name: ClassVar[str] = "epsilon_insensitive"
    kind: ClassVar[str] = "regression"
    form: ClassVar[int | None] = 6

    tube: float = 0.1

    def __post_init__(self) -> None:
        strict.level("tube", self.tube)

    @classmethod
    def for_target(cls, target: tuple[float, float] | None) -> Self:
        """Return the loss whose tube is a tenth of half the declared range."""
        return cls() if target is None else cls(tube=0.1 * ((target[1] - target[0]) / 2))

    @property
    def form_parameter(self) -> float:
        return self.tube

    def value(self, z: Vector, y: Vector) -> Vector:
        return np.maximum(np.abs(z - y) - self.tube, 0)

    def derivative(self, z: Vector, y: Vector) -> Vector:
        return np.where(np.abs(z - y) > self.tube, np.sign(z - y), 0.0)

    def curvature(self, z: Vector, y: Vector) -> Vector:
        return np.zeros_like(z - y)

    def lipschitz(self, target: tuple[float, float] | None = None) -> float:
        return 1.0

    def smoothness(self) -> float:
        return math.inf

    def conjugate(self, u: Vector, y: Vector) -> Vector:
        return np.where(inside(u, -1.0, 1.0), u * y + self.tube * np.abs(u), math.inf)

    def dual_step(self, alpha: Vector, z: Vector, y: Vector, weight: Vector) -> Vector:
        free = soft_threshold(weight * alpha + y - z, self.tube)
        with np.errstate(over="ignore"):
            return np.clip(free / np.maximum(weight, SMALLEST), -1, 1) - alpha
