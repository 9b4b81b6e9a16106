"""Loss of the negative binomial law of a given dispersion, with a log link."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from .. import strict
from ..arrays import Vector
from . import log_link
from .base import Loss


@dataclass(frozen=True)
class NegativeBinomial(Loss):
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
    kind: ClassVar[str] = "count"
    form: ClassVar[int | None] = 9

    dispersion: float = 1.0
    min_mean: float = 0.0
    max_mean: float = 20.0
    max_target: float = 20.0

    def __post_init__(self) -> None:
        strict.positive("dispersion", self.dispersion)
        log_link.require_ranges(self.min_mean, self.max_mean, self.max_target, False)

    @classmethod
    def for_target(cls, target: tuple[float, float] | None) -> Self:
        """Return the loss with means and counts up to the largest declared target."""
        return cls() if target is None else cls(1.0, 0.0, target[1], target[1])

    @property
    def form_parameter(self) -> float:
        return self.dispersion

    @property
    def form_range(self) -> tuple[float, float, float, float]:
        return *self._ends, self.max_target, self.smoothness()

    @property
    def _ends(self) -> tuple[float, float]:
        return log_link.margins(self.min_mean, self.max_mean)

    def value(self, z: Vector, y: Vector) -> Vector:
        a, y = self.dispersion, np.minimum(y, self.max_target)
        return log_link.continued(
            lambda kept: (y + 1 / a) * np.log1p(a * np.exp(kept)) - y * kept,
            lambda kept: self._slope(kept, y), z, self._ends,
        )  # fmt: skip

    def derivative(self, z: Vector, y: Vector) -> Vector:
        return self._slope(np.clip(z, *self._ends), np.minimum(y, self.max_target))

    def _slope(self, z: Vector, y: Vector) -> Vector:
        mean = np.exp(z)
        slope: Vector = (mean - y) / (1 + self.dispersion * mean)
        return slope

    def curvature(self, z: Vector, y: Vector) -> Vector:
        kept, (low, high) = np.clip(z, *self._ends), self._ends
        a, y = self.dispersion, np.minimum(y, self.max_target)
        bend = np.exp(kept) * (1 + a * y) / np.square(1 + a * np.exp(kept))
        return np.where((z >= low) & (z <= high), bend, 0.0)

    def lipschitz(self, target: tuple[float, float] | None = None) -> float:
        bottom, top = (0.0, self.max_target) if target is None else target
        ends = np.array(self._ends)[::-1]  # slopes rise with z and fall with y
        return float(np.abs(self.derivative(ends, np.array([bottom, top]))).max())

    def smoothness(self) -> float:
        a = self.dispersion
        steepest = min(max(1 / a, self.min_mean), self.max_mean)  # m / (1 + a m)² is largest at 1 / a
        return steepest * (1 + a * self.max_target) / (1 + a * steepest) ** 2

    def slope_unit(self) -> float:
        return log_link.SLOPE_UNIT * self.lipschitz()

    def joint_constant(self) -> float:
        return log_link.JOINT * self.smoothness() ** 2

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
