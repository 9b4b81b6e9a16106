"""Smoothed hinge loss."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from .. import strict
from ..arrays import Vector
from .base import Loss, inside


@dataclass(frozen=True)
class SmoothedHinge(Loss):
    """The hinge max(0, 1 - y z) for y in {-1, 1}, its corner rounded over a width w.

    With the shortfall m = 1 - y z: 0 for m <= 0, m² / (2 w) for m up to w, and m - w/2 beyond.
    1-Lipschitz and 1/w-smooth in z.

    Parameters
    ----------
    width : float
        The shortfall w at which the loss turns from quadratic to linear.

    Examples
    --------
    >>> import numpy as np
    >>> SmoothedHinge(width=1.0).value(np.array([2.0, 0.0, -1.0]), np.ones(3))
    array([0. , 0.5, 1.5])
    """

    name: ClassVar[str] = "smoothed_hinge"
    kind: ClassVar[str] = "classification"
    form: ClassVar[int | None] = 3
    slopes: ClassVar[Literal["any", "signed", "logistic"]] = "signed"

    width: float = 1.0

    def __post_init__(self) -> None:
        strict.positive("width", self.width)

    @property
    def form_parameter(self) -> float:
        return self.width

    def value(self, z: Vector, y: Vector) -> Vector:
        shortfall = np.maximum(1 - y * z, 0)
        inner = np.minimum(shortfall, self.width)
        return inner / self.width * (shortfall - inner / 2)

    def derivative(self, z: Vector, y: Vector) -> Vector:
        return -y * (np.clip(1 - y * z, 0, self.width) / self.width)

    def curvature(self, z: Vector, y: Vector) -> Vector:
        shortfall = 1 - y * z
        inside = (shortfall >= 0) & (shortfall <= self.width)
        return inside.astype(shortfall.dtype) / self.width

    def lipschitz(self, target: tuple[float, float] | None = None) -> float:
        return 1.0

    def smoothness(self) -> float:
        return 1 / self.width

    def fall(self, target: tuple[float, float] | None = None) -> float:
        return 1.0  # less than the hinge's

    def conjugate(self, u: Vector, y: Vector) -> Vector:
        value = y * u + self.width / 2 * np.square(u)
        return np.where(inside(y * u, -1.0, 0.0), value, math.inf)

    def dual_step(self, alpha: Vector, z: Vector, y: Vector, weight: Vector) -> Vector:
        free = (1 - y * z + weight * y * alpha) / (self.width + weight)
        return y * np.clip(free, 0, 1) - alpha
