"""Half the Tweedie deviance with a log link: Poisson, gamma and between them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from .. import strict
from ..arrays import Vector
from . import log_link
from .base import Loss


@dataclass(frozen=True)
class Tweedie(Loss):
    """Half the deviance of a Tweedie law of mean m = exp(z), for a power from 1 to 2, but for a constant.

    It is m^(2-power) / (2-power) - y m^(1-power) / (1-power): that of a Poisson law, exp(z) - y z, for a
    power of 1, and that of a gamma law, z + y exp(-z), for 2. Between them laws have a mass at 0, as the cost
    of claims has. Outside of a declared range of means the loss is continued as a straight line. Other powers
    are not convex with a log link.

    Parameters
    ----------
    power : float
        From 1 to 2: the variance is proportional to m^power.
    min_mean, max_mean : float
        The range of means. ``min_mean`` may be 0 only if the power is 1.
    max_target : float
        Larger targets count as this one.

    Examples
    --------
    >>> import numpy as np
    >>> gamma = Tweedie(power=2.0, min_mean=0.1, max_mean=10.0, max_target=30.0)
    >>> gamma.derivative(np.log([2.0, 1e-9]), np.array([1.0, 0.2]))
    array([ 0.5, -1. ])
    """

    name: ClassVar[str] = "tweedie"
    kind: ClassVar[str] = "count"
    form: ClassVar[int | None] = 8

    power: float = 1.5
    min_mean: float = 0.01
    max_mean: float = 20.0
    max_target: float = 20.0

    def __post_init__(self) -> None:
        strict.number("power", self.power, "from 1 to 2", lambda power: 1 <= power <= 2)
        log_link.require_ranges(self.min_mean, self.max_mean, self.max_target, self.power > 1)

    @classmethod
    def for_target(cls, target: tuple[float, float] | None) -> Self:
        """Return the loss with means from a ten thousandth of the largest declared target up to it."""
        return cls() if target is None else cls(1.5, 1e-4 * target[1], target[1], target[1])

    @property
    def form_parameter(self) -> float:
        return self.power

    @property
    def form_range(self) -> tuple[float, float, float, float]:
        return *self._ends, self.max_target, self.smoothness()

    @property
    def _ends(self) -> tuple[float, float]:
        return log_link.margins(self.min_mean, self.max_mean)

    def value(self, z: Vector, y: Vector) -> Vector:
        y = np.minimum(y, self.max_target)
        return log_link.continued(
            lambda kept: _power(2 - self.power, kept) - y * _power(1 - self.power, kept),
            lambda kept: self._slope(kept, y), z, self._ends,
        )  # fmt: skip

    def derivative(self, z: Vector, y: Vector) -> Vector:
        return self._slope(np.clip(z, *self._ends), np.minimum(y, self.max_target))

    def _slope(self, z: Vector, y: Vector) -> Vector:
        slope: Vector = np.exp((2 - self.power) * z) - y * np.exp((1 - self.power) * z)
        return slope

    def curvature(self, z: Vector, y: Vector) -> Vector:
        kept, (low, high) = np.clip(z, *self._ends), self._ends
        return np.where((z >= low) & (z <= high), self._bend(kept, np.minimum(y, self.max_target)), 0.0)

    def _bend(self, z: Vector, y: Vector) -> Vector:
        a = self.power - 1
        bend: Vector = (1 - a) * np.exp((1 - a) * z) + a * y * np.exp(-a * z)
        return bend

    def lipschitz(self, target: tuple[float, float] | None = None) -> float:
        bottom, top = (0.0, self.max_target) if target is None else target
        ends = np.array(self._ends)[::-1]  # slopes rise with z and fall with y
        return float(np.abs(self.derivative(ends, np.array([bottom, top]))).max())

    def smoothness(self) -> float:
        # The curvature is convex in z and grows with y.
        return float(self._bend(np.array(self._ends), np.array([self.max_target] * 2)).max())

    def slope_unit(self) -> float:
        if self.power > 1:
            return log_link.SLOPE_UNIT * self.lipschitz()
        # A large slope of a count is that of a small mean, whose curvature is as small.
        return max(self.lipschitz(), log_link.SLOPE_UNIT * self.max_mean)

    def joint_constant(self) -> float:
        if self.power > 1:
            return log_link.JOINT * self.smoothness() ** 2
        # m² / (1 - e²) grows with the mean m for the least and the largest count (docs/proofs/families.md).
        farthest = max(self.max_target - self.max_mean, self.max_mean) / self.slope_unit()
        return self.max_mean**2 / (4 * (1 - farthest**2))

    def fall(self, target: tuple[float, float] | None = None) -> float:
        if target is None or target[0] < self.min_mean or min(target[1], self.max_target) > self.max_mean:
            return math.inf  # the loss of such a target has no infimum
        # The fall is convex in y: minus the infimum over z of functions that are linear in y.
        return max(self._fall(min(y, self.max_target)) for y in target)

    def _fall(self, y: float) -> float:
        low, high = self._ends
        best = np.array(-math.inf if y == 0 else min(max(math.log(y), low), high))
        here = -_power(2 - self.power, best)
        return float(here + y * _power(1 - self.power, best)) if y else float(here)

    def slope_at_middle(self, target: tuple[float, float]) -> float:
        middle = np.full(2, self.link(sum(target) / 2))
        return float(np.abs(self.derivative(middle, np.array(target))).max())

    def conjugate(self, u: Vector, y: Vector) -> Vector:
        return log_link.conjugate(self, self._ends, u, y)

    def link(self, mean: float) -> float:
        """Return log(mean), with the mean kept within its range."""
        return log_link.link(mean, self.min_mean, self.max_mean)

    def mean(self, z: Vector) -> Vector:
        """Return exp(z), kept within the range of means."""
        return np.clip(np.exp(np.clip(z, *self._ends)), self.min_mean, self.max_mean)


def _power(a: float, z: Vector) -> Vector:
    """(exp(a z) - 1) / a, and its limit z for a = 0."""
    return z if a == 0 else np.expm1(a * z) / a
