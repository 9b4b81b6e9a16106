"""Huber loss."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from .. import strict
from ..arrays import Vector
from .base import Loss, inside
from .log_link import JOINT, SLOPE_UNIT


@dataclass(frozen=True)
class Huber(Loss):
    """r² / 2 for a residual r = z - y within the threshold d, and d (abs(r) - d/2) beyond it.

    d-Lipschitz and 1-smooth in z.

    Parameters
    ----------
    threshold : float
        The residual d at which the loss turns from quadratic to linear.

    Examples
    --------
    >>> import numpy as np
    >>> Huber(threshold=1.0).derivative(np.array([0.5, 9.0]), np.zeros(2))
    array([0.5, 1. ])
    """

    name: ClassVar[str] = "huber"
    kind: ClassVar[str] = "regression"
    form: ClassVar[int | None] = 2

    threshold: float = 1.0

    def __post_init__(self) -> None:
        strict.positive("threshold", self.threshold)

    @classmethod
    def for_target(cls, target: tuple[float, float] | None) -> Self:
        """Return the loss that turns linear at half the declared range."""
        return cls() if target is None else cls(threshold=(target[1] - target[0]) / 2)

    @property
    def form_parameter(self) -> float:
        return self.threshold

    def value(self, z: Vector, y: Vector) -> Vector:
        size = np.abs(z - y)
        inner = np.minimum(size, self.threshold)
        return inner * (size - inner / 2)

    def derivative(self, z: Vector, y: Vector) -> Vector:
        return np.clip(z - y, -self.threshold, self.threshold)

    def curvature(self, z: Vector, y: Vector) -> Vector:
        residual = z - y
        return (np.abs(residual) <= self.threshold).astype(residual.dtype)

    def lipschitz(self, target: tuple[float, float] | None = None) -> float:
        return self.threshold

    def smoothness(self) -> float:
        return 1.0

    def slope_unit(self) -> float:
        return SLOPE_UNIT * self.threshold

    def joint_constant(self) -> float:
        return JOINT  # the curvature is 1 up to where slopes reach their bound

    def fall(self, target: tuple[float, float] | None = None) -> float:
        size = math.inf if target is None else max(abs(end) for end in target)
        inner = min(size, self.threshold)
        return inner * (size - inner / 2)

    def conjugate(self, u: Vector, y: Vector) -> Vector:
        return np.where(inside(u / self.threshold, -1.0, 1.0), u * (u / 2 + y), math.inf)

    def dual_step(self, alpha: Vector, z: Vector, y: Vector, weight: Vector) -> Vector:
        free = (y - z + weight * alpha) / (1 + weight)
        return np.clip(free, -self.threshold, self.threshold) - alpha
