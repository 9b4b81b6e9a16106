"""Log-cosh loss."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from scipy.special import xlog1py

from .. import strict
from ..arrays import Vector
from .base import Loss, inside


@dataclass(frozen=True)
class LogCosh(Loss):
    """c² log(cosh(r / c)) of a residual r = z - y: about r² / 2 below the scale c, and c abs(r) far above it.

    c-Lipschitz and 1-smooth in z. A residual is clipped softly: its slope is c tanh(r / c).

    Parameters
    ----------
    scale : float
        The residual c around which the loss turns from quadratic to linear.

    Examples
    --------
    >>> import numpy as np
    >>> LogCosh(scale=1.0).derivative(np.array([0.01, 9.0]), np.zeros(2)).round(3)
    array([0.01, 1.  ])
    """

    name: ClassVar[str] = "log_cosh"
    kind: ClassVar[str] = "regression"
    form: ClassVar[int | None] = 7

    scale: float = 1.0

    def __post_init__(self) -> None:
        strict.positive("scale", self.scale)

    @classmethod
    def for_target(cls, target: tuple[float, float] | None) -> Self:
        """Return the loss whose scale is half the declared range."""
        return cls() if target is None else cls(scale=(target[1] - target[0]) / 2)

    @property
    def form_parameter(self) -> float:
        return self.scale

    def value(self, z: Vector, y: Vector) -> Vector:
        r = (z - y) / self.scale
        value: Vector = self.scale**2 * (np.logaddexp(r, -r) - math.log(2))
        return value

    def derivative(self, z: Vector, y: Vector) -> Vector:
        slope: Vector = self.scale * np.tanh((z - y) / self.scale)
        return slope

    def curvature(self, z: Vector, y: Vector) -> Vector:
        curvature: Vector = 1 - np.square(np.tanh((z - y) / self.scale))
        return curvature

    def lipschitz(self, target: tuple[float, float] | None = None) -> float:
        return self.scale

    def smoothness(self) -> float:
        return 1.0

    def curvature_lipschitz(self) -> float:
        return 4 / (math.sqrt(27) * self.scale)

    def joint_constant(self) -> float:
        return 0.25  # the curvature is 1 - e² at a slope of e times the scale

    def fall(self, target: tuple[float, float] | None = None) -> float:
        if target is None:
            return math.inf
        return float(self.value(np.array(max(abs(end) for end in target)), np.array(0.0)))

    def conjugate(self, u: Vector, y: Vector) -> Vector:
        slope = np.clip(u / self.scale, -1, 1)
        inner = (xlog1py(1 + slope, slope) + xlog1py(1 - slope, -slope)) / 2
        return np.where(inside(u / self.scale, -1.0, 1.0), self.scale**2 * inner + u * y, math.inf)
