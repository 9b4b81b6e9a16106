"""Losses of real targets."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from scipy.special import xlog1py

from .. import strict
from ..arrays import Vector, soft_threshold
from .base import JOINT, SLOPE_UNIT, SMALLEST, Loss, inside


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
