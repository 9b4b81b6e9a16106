"""Squared loss."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..arrays import Vector
from .base import Loss
from .log_cosh import LogCosh


@dataclass(frozen=True)
class Squared(Loss):
    """(z - y)² / 2; 1-smooth in z and not Lipschitz.

    Its slope z - y has no bound over all z, so a private fit rests on clipping alone.

    Examples
    --------
    >>> import numpy as np
    >>> Squared().value(np.array([3.0]), np.array([1.0]))
    array([2.])
    """

    name: ClassVar[str] = "squared"
    kind: ClassVar[str] = "regression"
    form: ClassVar[int | None] = 0

    def value(self, z: Vector, y: Vector) -> Vector:
        return np.square(z - y) / 2

    def derivative(self, z: Vector, y: Vector) -> Vector:
        return z - y

    def curvature(self, z: Vector, y: Vector) -> Vector:
        return np.ones_like(z - y)

    def lipschitz(self, target: tuple[float, float] | None = None) -> float:
        return math.inf

    def smoothness(self) -> float:
        return 1.0

    def curvature_lipschitz(self) -> float:
        return 0.0

    def softened(self, clip: float) -> LogCosh:
        return LogCosh(clip)

    def fall(self, target: tuple[float, float] | None = None) -> float:
        return math.inf if target is None else max(abs(end) for end in target) ** 2 / 2

    def conjugate(self, u: Vector, y: Vector) -> Vector:
        return u * (u / 2 + y)
