"""Smooth quantile loss."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from scipy.special import xlog1py

from .. import strict
from ..arrays import Vector
from .base import Loss, inside

_WIDE_ENOUGH = 1e4

_FROM_ENDS = 1e-9
"""No table has enough records for a level that is nearer to 0 or 1."""


@dataclass(frozen=True)
class Quantile(Loss):
    """The pinball loss of a quantile, smooth where a residual r = z - y is small.

    The slope is tanh(r / h) / 2 + 1/2 - level for the width h: from -level to 1 - level. For residuals far
    above h the loss is that of the pinball, level (y - z) below and (1 - level) (z - y) above the target. It
    exceeds the pinball loss by at most h log(2) / 2 anywhere.

    Parameters
    ----------
    level : float
        Share of the targets below the prediction, strictly between 0 and 1.
    width : float
        Residuals of about this size and less are smoothed.

    Examples
    --------
    >>> import numpy as np
    >>> Quantile(level=0.9, width=0.1).derivative(np.array([-5.0, 5.0]), np.zeros(2)).round(3)
    array([-0.9,  0.1])
    """

    name: ClassVar[str] = "quantile"
    kind: ClassVar[str] = "regression"
    form: ClassVar[int | None] = 10

    level: float = 0.5
    width: float = 0.5

    def __post_init__(self) -> None:
        needed = f"strictly between 0 and 1, by {_FROM_ENDS:g} at least"
        strict.number("level", self.level, needed, lambda level: _FROM_ENDS <= level <= 1 - _FROM_ENDS)
        strict.positive("width", self.width)

    @classmethod
    def for_target(cls, target: tuple[float, float] | None) -> Self:
        """Return the median's loss, smooth over a twentieth of the declared range."""
        return cls() if target is None else cls(0.5, (target[1] - target[0]) / 20)

    @property
    def form_parameter(self) -> float:
        return self.level

    @property
    def form_range(self) -> tuple[float, float, float, float]:
        return 0.0, 0.0, self.width, self.smoothness()

    def value(self, z: Vector, y: Vector) -> Vector:
        r = (z - y) / self.width
        return self.width * (np.logaddexp(r, -r) / 2 + (0.5 - self.level) * r)

    def derivative(self, z: Vector, y: Vector) -> Vector:
        slope: Vector = np.tanh((z - y) / self.width) / 2 + (0.5 - self.level)
        return slope

    def curvature(self, z: Vector, y: Vector) -> Vector:
        curvature: Vector = (1 - np.square(np.tanh((z - y) / self.width))) / (2 * self.width)
        return curvature

    def lipschitz(self, target: tuple[float, float] | None = None) -> float:
        return max(self.level, 1 - self.level)

    def smoothness(self) -> float:
        return 1 / (2 * self.width)

    def curvature_lipschitz(self) -> float:
        return 2 / (math.sqrt(27) * self.width**2)

    def joint_constant(self) -> float:
        # With t the hyperbolic tangent, 1 - e² is at least (1 - t²) / (2 lipschitz)².
        return (self.lipschitz() / (2 * self.width)) ** 2

    def wider(self) -> Loss | None:
        return Quantile(self.level, 3 * self.width) if self.width < _WIDE_ENOUGH else None

    def fall(self, target: tuple[float, float] | None = None) -> float:
        if target is None:
            return math.inf
        least = float(self.value(np.array(self.width * math.atanh(2 * self.level - 1)), np.array(0.0)))
        return max(float(self.value(np.array(0.0), np.array(end))) for end in target) - least

    def conjugate(self, u: Vector, y: Vector) -> Vector:
        given = 2 * (u + self.level) - 1
        t = np.clip(given, -1, 1)
        inner = (xlog1py(1 + t, t) + xlog1py(1 - t, -t)) / 2 - math.log(2)
        return np.where(inside(given, -1.0, 1.0), self.width / 2 * inner + u * y, math.inf)
