"""The length of the interval that features span."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...arrays import Vector
from .base import Features, SetFunction


@dataclass(frozen=True)
class Range(SetFunction):
    """F(A) = p - 1 + max(A) - min(A) for a nonempty set A of p ordered features: its support is an interval.

    The length of the interval alone is not submodular: two distant features together cost more than twice
    what one does. p - 1 is the least that must be added. The norm is the sum, over k = 1, ..., p - 1, of the
    largest abs(w_j) among the first k and among the last k features.

    Parameters
    ----------
    p : int
        Number of features, 2 at least.

    Examples
    --------
    >>> import numpy as np
    >>> Range(3).gains(np.array([2, 1, 0]))
    array([2., 1., 1.])
    """

    p: int

    def __post_init__(self) -> None:
        if self.p < 2:
            raise ValueError(f"p must be at least 2, got {self.p!r}")

    @property
    def n_features(self) -> int:
        return self.p

    def gains(self, order: Features) -> Vector:
        spanned = np.maximum.accumulate(order) - np.minimum.accumulate(order)
        return np.diff(self.p - 1.0 + spanned, prepend=0.0)

    def minimiser(self, worth: Vector, step: float, taken: Features, free: Features) -> Features:
        """Return the A within `free` that minimises step * F(taken and A) - worth(A), from running sums."""
        profit = np.zeros(self.p)
        profit[free] = np.maximum(worth[free], 0)
        # A span from i to j, ends included, is worth after[j] - before[i].
        after = np.cumsum(profit) - step * np.arange(self.p)
        before = after - profit
        if taken.size:
            low, high = int(taken.min()), int(taken.max())
            first = int(np.argmin(before[: low + 1]))
            last = high + int(np.argmax(after[high:]))
        else:
            spans = after - np.minimum.accumulate(before)
            last = int(np.argmax(spans))
            first = int(np.argmin(before[: last + 1]))
            if spans[last] <= step * (self.p - 1):
                return free[:0]
        return free[(free >= first) & (free <= last) & (worth[free] > 0)]

    def mean_value(self, rate: Vector, n_features: int) -> Vector | None:
        k = np.arange(1, self.p)
        reached: Vector = np.sum(1 - (1 - np.asarray(rate)[..., None]) ** k, axis=-1)
        return 2 * reached
