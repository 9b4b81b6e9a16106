"""Losses of counts and amounts, with a log link.

Margins count within a declared range of means, and slopes follow. Outside the range a loss is continued as
a straight line. So it stays convex, and its slopes and curvatures are bounded by the ranges of means and
targets.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from scipy.special import xlogy

from .. import strict
from ..arrays import Vector
from .base import JOINT, SLOPE_UNIT, Loss, inside

_LEAST_MARGIN = -740.0
_HALVINGS = 80


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


class LogLinkLoss(Loss):
    """Family of losses with a log link whose slopes have no bound over all means and targets.

    Within a range of means m = exp(z) the slope is (m - y) m / V(m), V(m) being the variance; outside of it
    the loss is continued as a straight line. Targets above a limit count as the limit. A subclass is a frozen
    dataclass with the three fields below. It states value, slope and curvature within the range: slopes rise
    with z and fall with y.
    """

    kind: ClassVar[str] = "count"

    min_mean: float
    max_mean: float
    max_target: float

    @abstractmethod
    def _value(self, z: Vector, y: Vector) -> Vector:
        """The loss within the range of means."""

    @abstractmethod
    def _slope(self, z: Vector, y: Vector) -> Vector:
        """The derivative of the loss in z, within the range of means."""

    @abstractmethod
    def _bend(self, z: Vector, y: Vector) -> Vector:
        """The second derivative of the loss in z, within the range of means."""

    def _require_ranges(self, positive_mean: bool) -> None:
        """Refuse empty ranges, and a least mean of 0 where slopes have no bound for small means."""
        strict.positive("max_mean", self.max_mean)
        strict.positive("max_target", self.max_target)
        least = strict.level("min_mean", self.min_mean)
        if not least < self.max_mean:
            raise ValueError(f"min_mean must be below max_mean, got {self.min_mean!r} and {self.max_mean!r}")
        if positive_mean and least == 0:
            raise ValueError("min_mean must be positive: slopes have no bound for means near 0")

    @property
    def form_range(self) -> tuple[float, float, float, float]:
        return *self._ends, self.max_target, self.smoothness()

    @property
    def _ends(self) -> tuple[float, float]:
        """The margins of the ends of the range of means; 0 counts as the least mean that doubles have."""
        low = math.log(self.min_mean) if self.min_mean > 0 else _LEAST_MARGIN
        return low, math.log(self.max_mean)

    def value(self, z: Vector, y: Vector) -> Vector:
        nearest, y = np.clip(z, *self._ends), np.minimum(y, self.max_target)
        return self._value(nearest, y) + self._slope(nearest, y) * (z - nearest)

    def derivative(self, z: Vector, y: Vector) -> Vector:
        return self._slope(np.clip(z, *self._ends), np.minimum(y, self.max_target))

    def curvature(self, z: Vector, y: Vector) -> Vector:
        low, high = self._ends
        bend = self._bend(np.clip(z, low, high), np.minimum(y, self.max_target))
        return np.where((z >= low) & (z <= high), bend, 0.0)

    def lipschitz(self, target: tuple[float, float] | None = None) -> float:
        bottom, top = (0.0, self.max_target) if target is None else target
        ends = np.array(self._ends)[::-1]  # slopes rise with z and fall with y
        return float(np.abs(self.derivative(ends, np.array([bottom, top]))).max())

    def slope_unit(self) -> float:
        return SLOPE_UNIT * self.lipschitz()

    def joint_constant(self) -> float:
        return JOINT * self.smoothness() ** 2

    def slope_at_middle(self, target: tuple[float, float]) -> float:
        middle = np.full(2, self.link(sum(target) / 2))
        return float(np.abs(self.derivative(middle, np.array(target))).max())

    def conjugate(self, u: Vector, y: Vector) -> Vector:
        """Return the supremum of u z - loss: at the margin of slope u, which halving an interval finds."""
        u, y = np.broadcast_arrays(np.asarray(u, dtype=np.float64), np.asarray(y, dtype=np.float64))
        low, high = (np.full(u.shape, end) for end in self._ends)
        within = inside(u, self.derivative(low, y), self.derivative(high, y))
        for _ in range(_HALVINGS):
            z = (low + high) / 2
            below = self.derivative(z, y) < u
            low, high = np.where(below, z, low), np.where(below, high, z)
        z = (low + high) / 2
        return np.where(within, u * z - self.value(z, y), math.inf)

    def link(self, mean: float) -> float:
        """Return log(mean), with the mean kept in its range, and at least a millionth of its largest."""
        return math.log(min(max(mean, self.min_mean, 1e-6 * self.max_mean), self.max_mean))

    def mean(self, z: Vector) -> Vector:
        """Return exp(z), kept within the range of means."""
        return np.clip(np.exp(np.clip(z, *self._ends)), self.min_mean, self.max_mean)


@dataclass(frozen=True)
class NegativeBinomial(LogLinkLoss):
    """(y + 1/a) log(1 + a exp(z)) - y z for a count y >= 0 of mean m = exp(z) and variance m + a m².

    a is the dispersion; the Poisson loss is the limit for a = 0. Outside of a declared range of means the
    loss is continued as a straight line.

    Parameters
    ----------
    dispersion : float
        The dispersion a.
    min_mean, max_mean : float
        The range of means.
    max_target : float
        Larger counts count as this one.

    Examples
    --------
    >>> import numpy as np
    >>> NegativeBinomial(dispersion=1.0).derivative(np.log([1.0, 3.0]), np.array([2.0, 0.0]))
    array([-0.5 ,  0.75])
    """

    name: ClassVar[str] = "negative_binomial"
    form: ClassVar[int | None] = 9

    dispersion: float = 1.0
    min_mean: float = 0.0
    max_mean: float = 20.0
    max_target: float = 20.0

    def __post_init__(self) -> None:
        strict.positive("dispersion", self.dispersion)
        self._require_ranges(positive_mean=False)

    @classmethod
    def for_target(cls, target: tuple[float, float] | None) -> Self:
        """Return the loss with means and counts up to the largest declared target."""
        return cls() if target is None else cls(1.0, 0.0, target[1], target[1])

    @property
    def form_parameter(self) -> float:
        return self.dispersion

    def _value(self, z: Vector, y: Vector) -> Vector:
        a = self.dispersion
        value: Vector = (y + 1 / a) * np.log1p(a * np.exp(z)) - y * z
        return value

    def _slope(self, z: Vector, y: Vector) -> Vector:
        mean = np.exp(z)
        slope: Vector = (mean - y) / (1 + self.dispersion * mean)
        return slope

    def _bend(self, z: Vector, y: Vector) -> Vector:
        a = self.dispersion
        bend: Vector = np.exp(z) * (1 + a * y) / np.square(1 + a * np.exp(z))
        return bend

    def smoothness(self) -> float:
        a = self.dispersion
        steepest = min(max(1 / a, self.min_mean), self.max_mean)  # m / (1 + a m)² is largest at 1 / a
        return steepest * (1 + a * self.max_target) / (1 + a * steepest) ** 2


@dataclass(frozen=True)
class Tweedie(LogLinkLoss):
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
    form: ClassVar[int | None] = 8

    power: float = 1.5
    min_mean: float = 0.01
    max_mean: float = 20.0
    max_target: float = 20.0

    def __post_init__(self) -> None:
        strict.number("power", self.power, "from 1 to 2", lambda power: 1 <= power <= 2)
        self._require_ranges(positive_mean=self.power > 1)

    @classmethod
    def for_target(cls, target: tuple[float, float] | None) -> Self:
        """Return the loss with means from a ten thousandth of the largest declared target up to it."""
        return cls() if target is None else cls(1.5, 1e-4 * target[1], target[1], target[1])

    @property
    def form_parameter(self) -> float:
        return self.power

    def _value(self, z: Vector, y: Vector) -> Vector:
        return _power(2 - self.power, z) - y * _power(1 - self.power, z)

    def _slope(self, z: Vector, y: Vector) -> Vector:
        slope: Vector = np.exp((2 - self.power) * z) - y * np.exp((1 - self.power) * z)
        return slope

    def _bend(self, z: Vector, y: Vector) -> Vector:
        a = self.power - 1
        bend: Vector = (1 - a) * np.exp((1 - a) * z) + a * y * np.exp(-a * z)
        return bend

    def smoothness(self) -> float:
        # The curvature is convex in z and grows with y.
        return float(self._bend(np.array(self._ends), np.array([self.max_target] * 2)).max())

    def slope_unit(self) -> float:
        if self.power > 1:
            return super().slope_unit()
        # A large slope of a count is that of a small mean, whose curvature is as small.
        return max(self.lipschitz(), SLOPE_UNIT * self.max_mean)

    def joint_constant(self) -> float:
        if self.power > 1:
            return super().joint_constant()
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


def _power(a: float, z: Vector) -> Vector:
    """(exp(a z) - 1) / a, and its limit z for a = 0."""
    return z if a == 0 else np.expm1(a * z) / a
