"""An objective with a separable penalty, in pairs of doubles: steps near a point, and their certificate."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ..arrays import Vector, exact_product, exact_sum
from .proximal import Map, Steps, norm

Pair = tuple[Vector, Vector]
"""Numbers, each the sum of two doubles, of which the second is at most half a unit of the first."""

_SNAP = 2.0**-51


@dataclass(frozen=True, eq=False)
class Public:
    """The public part of an objective: for each coordinate, what is added to the mean loss.

    That is quadratic / 2 (w - centre)² + linear w + l1 abs(w), with w kept in [low, high].
    """

    quadratic: Vector
    centre: Vector
    linear: Vector
    l1: Vector
    low: Vector
    high: Vector


@dataclass(frozen=True, eq=False)
class Refined:
    """A mean loss plus a public part. A point is a base plus a vector d, both of doubles.

    All errors are relative to d, so that steps near the base are as precise as if it were 0.

    Attributes
    ----------
    base : array
    total : callable
        The sum over the records of their gradients at a point, in pairs.
    n_records : int
    public : Public
    curve : callable
        A linear map that bounds the curvature of the mean loss.
    smoothness, strength : float
        Largest and least curvature of all but the L1 part and the interval, for any table.
    """

    base: Vector
    total: Callable[[Pair], Pair]
    n_records: int
    public: Public
    curve: Map
    smoothness: float
    strength: float

    @property
    def condition(self) -> float:
        """Smoothness over strength."""
        return self.smoothness / self.strength

    def steps(self, length: float, taken: int = 0) -> Steps:
        """Proximal gradient steps of d."""
        return Steps(self._step, length, taken)

    def moved(self, d: Vector, *others: Vector) -> tuple[Refined, list[Vector]]:
        """The same with the point at d as the base, and the vectors as seen from there."""
        base, left = self._point(d)
        shift = _difference((base, left), self.base)
        return replace(self, base=base), [left, *(other - shift + left for other in others)]

    def certify(self, d: Vector, _: float = 0.0) -> tuple[Vector, float, float]:
        """The point, rounded, the norm of the least subgradient at the point, and the norm of the point."""
        w = self._point(d)
        g, public = self._gradient(w), self.public
        more, less = (_value(_plus(g, (sign * public.l1, 0.0 * public.l1))) for sign in (1, -1))
        # The subdifferential of a coordinate is the interval from least to most.
        least = np.where(w[0] > 0, more, less)
        most = np.where(w[0] < 0, less, more)
        least = np.where(_equal(w, public.low), -math.inf, least)
        most = np.where(_equal(w, public.high), math.inf, most)
        return w[0], norm(np.clip(0.0, least, np.maximum(least, most))), norm(w[0])

    def end(self, d: Vector) -> Vector:
        """The point, rounded."""
        return self._point(d)[0]

    def _point(self, d: Vector) -> Pair:
        """Base plus d; where rounding of d may have moved it from 0 or from an end of the interval, that."""
        w = exact_sum(self.base, d)
        public, near = self.public, _SNAP * np.abs(d)
        for place, counts in ((public.low, True), (public.high, True), (0.0 * d, public.l1 > 0)):
            with np.errstate(invalid="ignore"):
                here = counts & (np.abs(_difference(w, place)) <= near)
            w = np.where(here, place, w[0]), np.where(here, 0.0, w[1])
        return self._inside(w)

    def _gradient(self, w: Pair) -> Pair:
        """Gradient of all but the L1 part."""
        public = self.public
        slope = _plus(_over(self.total(w), float(self.n_records)), (public.linear, 0.0 * public.linear))
        return _plus(slope, _times(_plus(w, (-public.centre, 0.0 * public.centre)), public.quadratic))

    def _step(self, d: Vector, length: float) -> Vector:
        w = self._point(d)
        ahead = _plus(w, _times(self._gradient(w), -length))
        cut = exact_product(self.public.l1, length)
        lower, upper = _plus(ahead, (-cut[0], -cut[1])), _plus(ahead, cut)
        above, below = lower[0] > 0, upper[0] < 0
        new = tuple(np.where(above, a, np.where(below, b, 0.0)) for a, b in zip(lower, upper, strict=True))
        return _difference(self._inside((new[0], new[1])), self.base)

    def _inside(self, w: Pair) -> Pair:
        """The nearest point of the intervals."""
        for end, sign in ((self.public.low, 1.0), (self.public.high, -1.0)):
            outside = sign * _difference(w, end) < 0
            w = np.where(outside, end, w[0]), np.where(outside, 0.0, w[1])
        return w


def _value(a: Pair) -> Vector:
    return a[0] + a[1]


def _difference(a: Pair, b: Vector) -> Vector:
    """The difference, rounded once; infinite where b is."""
    high, low = exact_sum(a[0], -b)
    return np.where(np.isfinite(b), high + (low + a[1]), -b)


def _equal(a: Pair, b: Vector) -> NDArray[np.bool_]:
    same: NDArray[np.bool_] = (a[0] == b) & (a[1] == 0)
    return same


def _plus(a: Pair, b: Pair) -> Pair:
    high, low = exact_sum(a[0], b[0])
    more, least = exact_sum(a[1], b[1])
    high, low = exact_sum(high, low + more)
    return exact_sum(high, low + least)


def _times(a: Pair, b: Vector | float) -> Pair:
    high, low = exact_product(a[0], b)
    return exact_sum(high, low + a[1] * b)


def _over(a: Pair, b: float) -> Pair:
    first = a[0] / b
    high, low = exact_product(first, b)
    return exact_sum(first, ((a[0] - high) - low + a[1]) / b)
