"""Logistic loss."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from scipy.special import entr, expit

from ..arrays import Vector
from .base import Loss, inside


@dataclass(frozen=True)
class Logistic(Loss):
    """log(1 + exp(-y z)) for y in {-1, 1}; 1-Lipschitz and 1/4-smooth in z.

    Examples
    --------
    >>> import numpy as np
    >>> Logistic().derivative(np.array([0.0]), np.array([1.0]))
    array([-0.5])
    """

    name: ClassVar[str] = "logistic"
    kind: ClassVar[str] = "classification"
    form: ClassVar[int | None] = 1
    slopes: ClassVar[Literal["any", "signed", "logistic"]] = "logistic"

    def value(self, z: Vector, y: Vector) -> Vector:
        return np.logaddexp(0, -y * z)

    def derivative(self, z: Vector, y: Vector) -> Vector:
        slope: Vector = -y * expit(-y * z)
        return slope

    def curvature(self, z: Vector, y: Vector) -> Vector:
        curvature: Vector = expit(z) * expit(-z)
        return curvature

    def lipschitz(self, target: tuple[float, float] | None = None) -> float:
        return 1.0

    def smoothness(self) -> float:
        return 0.25

    def curvature_lipschitz(self) -> float:
        return 1 / math.sqrt(108)

    def joint_constant(self) -> float:
        return (5 * math.sqrt(5) - 11) / 8  # the curvature is e (1 - e) at a slope of e

    def fall(self, target: tuple[float, float] | None = None) -> float:
        return 0.7  # log(2)

    def conjugate(self, u: Vector, y: Vector) -> Vector:
        share = np.clip(-y * u, 0, 1)
        return np.where(inside(-y * u, 0.0, 1.0), -entr(share) - entr(1 - share), math.inf)
