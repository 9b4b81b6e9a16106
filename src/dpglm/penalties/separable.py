"""Separable penalties, sums over coordinates, and the L1 ball."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from .. import strict
from ..arrays import Vector
from .base import TOLERANCE, Ends, Penalty, Separable


@dataclass(frozen=True)
class Zero(Separable):
    """No penalty at all."""

    def scaled(self, factor: float) -> Self:
        return self

    def coordinate_form(self) -> tuple[float, float, float, float]:
        return 0.0, 0.0, -math.inf, math.inf


@dataclass(frozen=True)
class L1(Separable):
    """strength * sum of abs(w_j): the lasso's penalty.

    Parameters
    ----------
    strength : float
        Weight of the penalty beside the mean loss.

    Examples
    --------
    >>> import numpy as np
    >>> L1(1.0).prox(np.array([3.0, -2.0]), step=1.0)
    array([ 2., -1.])
    """

    strength: float

    def __post_init__(self) -> None:
        strict.level("strength", self.strength)

    def scaled(self, factor: float) -> Self:
        return replace(self, strength=factor * self.strength)

    def coordinate_form(self) -> tuple[float, float, float, float]:
        return self.strength, 0.0, -math.inf, math.inf


@dataclass(frozen=True)
class L2(Separable):
    """strength / 2 * sum of w_j²: the ridge penalty.

    Parameters
    ----------
    strength : float
        Weight of the penalty beside the mean loss; also its strong convexity.

    Examples
    --------
    >>> import numpy as np
    >>> L2(1.0).prox(np.array([3.0]), step=2.0)
    array([1.])
    """

    strength: float

    def __post_init__(self) -> None:
        strict.level("strength", self.strength)

    def scaled(self, factor: float) -> Self:
        return replace(self, strength=factor * self.strength)

    def coordinate_form(self) -> tuple[float, float, float, float]:
        return 0.0, self.strength, -math.inf, math.inf


@dataclass(frozen=True)
class ElasticNet(Separable):
    """l1 * sum of abs(w_j) + l2 / 2 * sum of w_j².

    Parameters
    ----------
    l1, l2 : float
        Weights of the two parts. scikit-learn's `alpha` and `l1_ratio` are
        `l1 = alpha * l1_ratio` and `l2 = alpha * (1 - l1_ratio)`.

    Examples
    --------
    >>> import numpy as np
    >>> ElasticNet(l1=1.0, l2=1.0).prox(np.array([3.0]), step=1.0)
    array([1.])
    """

    l1: float
    l2: float

    def __post_init__(self) -> None:
        strict.level("l1", self.l1)
        strict.level("l2", self.l2)

    def scaled(self, factor: float) -> Self:
        return replace(self, l1=factor * self.l1, l2=factor * self.l2)

    def coordinate_form(self) -> tuple[float, float, float, float]:
        return self.l1, self.l2, -math.inf, math.inf


@dataclass(frozen=True)
class Box(Separable):
    """Every coefficient kept in [low, high].

    Parameters
    ----------
    low, high : float
        The ends of the interval; either may be infinite.

    Examples
    --------
    >>> import numpy as np
    >>> Box(low=0.0, high=math.inf).prox(np.array([-1.0, 2.0]), step=1.0)
    array([0., 2.])
    """

    low: float
    high: float

    def __post_init__(self) -> None:
        strict.number("low", self.low, "a number below infinity", lambda low: low < math.inf)
        strict.number("high", self.high, "a number above -infinity", lambda high: high > -math.inf)
        if self.low > self.high:
            raise ValueError(f"low must not exceed high, got low={self.low!r} and high={self.high!r}")

    def scaled(self, factor: float) -> Self:
        return self

    def coordinate_form(self) -> tuple[float, float, float, float]:
        return 0.0, 0.0, self.low, self.high


@dataclass(frozen=True)
class Bounded(Separable):
    """l1 * sum of abs(w_j) + l2 / 2 * sum of w_j², with each coefficient kept in [low_j, high_j].

    Parameters
    ----------
    low, high : float or tuple of float
        The ends of the interval of all coefficients, or of each; either may be infinite.
    l1, l2 : float
        Weights of the two parts of the elastic net.

    Examples
    --------
    >>> import numpy as np
    >>> Bounded(low=(0.0, -1.0), high=(math.inf, 1.0), l2=1.0).prox(np.array([-3.0, 3.0]), step=1.0)
    array([0., 1.])
    """

    low: float | tuple[float, ...]
    high: float | tuple[float, ...]
    l1: float = 0.0
    l2: float = 0.0

    def __post_init__(self) -> None:
        strict.level("l1", self.l1)
        strict.level("l2", self.l2)
        for name in ("low", "high"):
            given = getattr(self, name)
            ends = strict.doubles(given)
            if ends is None or ends.ndim > 1 or np.isnan(ends).any():
                raise strict.wrong(name, given, "a number, or one for each coefficient")
            object.__setattr__(self, name, tuple(ends.tolist()) if ends.ndim else float(ends))
        low, high = np.asarray(self.low), np.asarray(self.high)
        if low.ndim and high.ndim and low.shape != high.shape:
            raise ValueError(f"low and high must have one length, got {low.size} and {high.size}")
        if not (np.all(low <= high) and np.all(low < math.inf) and np.all(high > -math.inf)):
            raise ValueError("low must not exceed high for any coefficient")

    @property
    def is_zero(self) -> bool:
        free = np.all(np.asarray(self.low) == -math.inf) and np.all(np.asarray(self.high) == math.inf)
        return bool(free) and self.l1 == 0 and self.l2 == 0

    def prox(self, w: Vector, step: float | Vector) -> Vector:
        for end in (self.low, self.high):
            if isinstance(end, tuple) and len(end) != w.shape[-1]:
                raise ValueError(f"Bounded has {len(end)} ends, the table has {w.shape[-1]} features")
        return super().prox(w, step)

    def scaled(self, factor: float) -> Self:
        return replace(self, l1=factor * self.l1, l2=factor * self.l2)

    def coordinate_form(self) -> tuple[float, float, Ends, Ends]:
        return self.l1, self.l2, _end(self.low), _end(self.high)


def _end(given: float | tuple[float, ...]) -> Ends:
    return _array(given) if isinstance(given, tuple) else given


def _array(given: tuple[float, ...]) -> Vector:
    return np.array(given, dtype=np.float64)


@dataclass(frozen=True)
class L1Ball(Penalty):
    """Coefficients whose absolute values sum to at most the radius.

    Parameters
    ----------
    radius : float
        The largest sum of absolute values.

    Examples
    --------
    >>> import numpy as np
    >>> L1Ball(radius=1.0).prox(np.array([2.0, 0.0]), step=1.0)
    array([1., 0.])
    """

    radius: float

    def __post_init__(self) -> None:
        strict.positive("radius", self.radius)

    def scaled(self, factor: float) -> Self:
        return self

    def value(self, w: Vector) -> float:
        return 0.0 if np.sum(np.abs(w)) <= self.radius * (1 + TOLERANCE) else math.inf

    def prox(self, w: Vector, step: float | Vector) -> Vector:
        """Return the point of the ball that is nearest to w, whatever the step.

        Sorting finds the threshold exactly in O(p log p); see Duchi, Shalev-Shwartz, Singer and
        Chandra, "Efficient projections onto the l1-ball for learning in high dimensions",
        doi:10.1145/1390156.1390191.
        """
        if not w.any():
            return np.zeros(w.shape)
        size = np.abs(w)
        if size.sum() <= self.radius:
            return w.copy()
        # Measured from the largest entry, the radius is not lost beside huge coefficients.
        size = size - size.max()
        largest = np.sort(size)[::-1]
        thresholds = (np.cumsum(largest) - self.radius) / np.arange(1, size.size + 1)
        threshold = thresholds[np.flatnonzero(largest > thresholds)[-1]]
        shrunk: Vector = np.sign(w) * np.maximum(size - threshold, 0)
        return shrunk


@dataclass(frozen=True, eq=False)
class RescaledPenalty(Separable):
    """A separable penalty of the coefficients scales * u, as a function of u, plus quadratic / 2 norm(u)².

    A column that is multiplied by a scale has a coefficient that is divided by it; the penalty is still that
    of the column as it was.

    Parameters
    ----------
    penalty : Separable
    scales : array
        The factor of each column, above 0.
    quadratic : float
        Strength of a further L2 part, the same for all scaled columns.
    """

    penalty: Separable
    scales: Vector
    quadratic: float = 0.0

    @property
    def strong_convexity(self) -> float:
        return float(np.min(self.coordinate_form()[1]))

    @property
    def is_zero(self) -> bool:
        return self.penalty.is_zero and self.quadratic == 0

    def coordinate_form(self) -> tuple[Vector, Vector, Vector, Vector]:  # type: ignore[override]
        """The numbers of `Separable.coordinate_form`, each of them an array."""
        l1, l2, low, high = self.penalty.coordinate_form()
        strengths = l2 * np.square(self.scales) + self.quadratic
        return l1 * self.scales, strengths, low / self.scales, high / self.scales

    def value(self, w: Vector) -> float:
        return self.penalty.value(self.scales * w) + self.quadratic / 2 * float(np.sum(np.square(w)))

    def prox_rounding(self, n_features: int, given: float = 0.0) -> float:
        # A product and a difference for an L1 part, a product, a sum and a quotient for an L2 part.
        return given + (2.0 + given) + (3.0 + given)

    def support(self, w: Vector, noise: float) -> NDArray[np.bool_]:
        return self.penalty.support(w, noise)
