"""Poisson loss with a clipped rate."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from scipy.special import xlogy

from .. import strict
from ..arrays import Vector
from .base import Loss, inside


@dataclass(frozen=True)
class Poisson(Loss):
    """exp(z) - y z for a count y >= 0, continued linearly where exp(z) exceeds a declared rate.

    The slope is min(exp(z), r) - y with the largest rate r: the loss stays convex and
    continuously differentiable, is r-smooth, and is Lipschitz as soon as counts are bounded.

    Parameters
    ----------
    max_rate : float
        The largest rate r. Where counts average more than r the loss falls without end as z
        grows, so declare a rate above any mean count worth predicting.

    Examples
    --------
    >>> import numpy as np
    >>> Poisson(max_rate=5.0).derivative(np.array([0.0, 1e6]), np.array([1.0, 2.0]))
    array([0., 3.])
    """

    name: ClassVar[str] = "poisson"
    kind: ClassVar[str] = "count"
    form: ClassVar[int | None] = 4

    max_rate: float = 100.0

    def __post_init__(self) -> None:
        strict.positive("max_rate", self.max_rate)

    @classmethod
    def for_target(cls, target: tuple[float, float] | None) -> Self:
        """Return the loss whose rate is capped at the largest declared count."""
        return cls() if target is None else cls(max_rate=target[1])

    @property
    def form_parameter(self) -> float:
        """The z at which the rate reaches `max_rate`."""
        return math.log(self.max_rate)

    def value(self, z: Vector, y: Vector) -> Vector:
        beyond = np.maximum(z - self.form_parameter, 0)
        return self.mean(z) + self.max_rate * beyond - y * z

    def derivative(self, z: Vector, y: Vector) -> Vector:
        return self.mean(z) - y

    def curvature(self, z: Vector, y: Vector) -> Vector:
        return np.where(z <= self.form_parameter, self.mean(z), 0.0)

    def lipschitz(self, target: tuple[float, float] | None = None) -> float:
        if target is None:
            return math.inf
        low, high = target
        return float(max(self.max_rate - low, high))

    def smoothness(self) -> float:
        return self.max_rate

    def fall(self, target: tuple[float, float] | None = None) -> float:
        if target is None or target[1] > self.max_rate:  # the loss of a count above the rate has no infimum
            return math.inf
        # 1 - y + y log(y) is convex in y; with a rate below 1, the loss at 0 is smaller.
        return max(1 - y + y * math.log(y) if y > 0 else 1.0 for y in target)

    def largest_curvature(self, z: Vector, other: Vector) -> Vector:
        return self.mean(np.maximum(z, other))

    def conjugate(self, u: Vector, y: Vector) -> Vector:
        rate = u + y
        kept = np.clip(rate, 0, self.max_rate)
        return np.where(inside(rate, 0.0, self.max_rate), xlogy(kept, kept) - kept, math.inf)

    def link(self, mean: float) -> float:
        """Return log(mean), with the mean kept between a millionth of `max_rate` and `max_rate`."""
        return math.log(min(max(mean, 1e-6 * self.max_rate), self.max_rate))

    def mean(self, z: Vector) -> Vector:
        """Return the rate min(exp(z), max_rate)."""
        return np.minimum(np.exp(np.minimum(z, self.form_parameter)), self.max_rate)
