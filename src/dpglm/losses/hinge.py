"""Hinge loss."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..arrays import Vector
from .base import SMALLEST, Loss, inside


@dataclass(frozen=True)
class Hinge(Loss):
    """max(0, 1 - y z) for y in {-1, 1}; 1-Lipschitz and not smooth: its slope jumps at y z = 1.

    The derivative at the kink is 0. Solvers that rest on a bounded curvature refuse
    this loss; dual coordinate descent needs none.

    Examples
    --------
    >>> import numpy as np
    >>> Hinge().value(np.array([2.0, 0.0, -1.0]), np.ones(3))
    array([0., 1., 2.])
    """

    name: ClassVar[str] = "hinge"
    kind: ClassVar[str] = "classification"
    form: ClassVar[int | None] = 5

    def value(self, z: Vector, y: Vector) -> Vector:
        return np.maximum(1 - y * z, 0)

    def derivative(self, z: Vector, y: Vector) -> Vector:
        return np.where(y * z < 1, -y, 0.0)

    def curvature(self, z: Vector, y: Vector) -> Vector:
        return np.zeros_like(y * z)

    def lipschitz(self, target: tuple[float, float] | None = None) -> float:
        return 1.0

    def smoothness(self) -> float:
        return math.inf

    def conjugate(self, u: Vector, y: Vector) -> Vector:
        return np.where(inside(y * u, -1.0, 0.0), y * u, math.inf)

    def dual_step(self, alpha: Vector, z: Vector, y: Vector, weight: Vector) -> Vector:
        with np.errstate(over="ignore"):
            free = (1 - y * z + weight * y * alpha) / np.maximum(weight, SMALLEST)
        return y * np.clip(free, 0, 1) - alpha
