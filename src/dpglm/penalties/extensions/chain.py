"""Total variation along a chain of features."""

from __future__ import annotations

import math

import numpy as np

from ...arrays import Vector
from .base import Extension, Labels

EDGE_WIDTH = 2 / math.sqrt(math.pi)
"""Mean distance of two standard normal numbers."""


def require_last(last: int, n_features: int) -> None:
    """Refuse features among which the last one that is joined is not."""
    if 0 < last >= n_features:
        raise ValueError(
            f"an edge leads to feature {last}, counted from 0, and there are {n_features} features"
        )


class Chain(Extension):
    """The sum of prices[k] abs(w[k + 1] - w[k]); features beyond the last price are in no chain.

    Parameters
    ----------
    prices : array, optional
        One for each pair of neighbours; by default 1 for any number of features.
    """

    def __init__(self, prices: Vector | None = None) -> None:
        self._prices = prices

    def require(self, n_features: int) -> None:
        require_last(0 if self._prices is None else len(self._prices), n_features)

    def prices(self, n_features: int) -> Vector:
        """Return a price for each pair of neighbours among so many features."""
        pairs = max(n_features - 1, 0)
        if self._prices is None:
            return np.ones(pairs)
        return np.concatenate([self._prices, np.zeros(pairs - len(self._prices))])

    def value(self, w: Vector) -> float:
        return float(self.prices(len(w)) @ np.abs(np.diff(w)))

    def flatten(self, w: Vector, step: float) -> Vector:
        from ...kernels import proximal  # compiled code is loaded by those who use it

        p = len(w)
        u = np.array(w, dtype=np.float64)
        if p > 1:
            prices = np.minimum(step * self.prices(p), np.finfo(np.float64).max)
            proximal.flatten_chain(u.copy(), prices, np.empty((2, p)), np.empty((3, 2 * p)), u)
        return u

    def plateaus(self, w: Vector, width: float) -> Labels:
        jumps = (np.abs(np.diff(w)) > width) | (self.prices(len(w)) == 0)
        return np.concatenate([np.zeros(min(len(w), 1), dtype=np.intp), np.cumsum(jumps)])

    def flat(self, w: Vector) -> Vector:
        return self.mean_over(self.plateaus(w, math.inf), w)

    def dual_norm(self, g: Vector) -> float:
        """Return the largest sum of the rest of g up to a pair of neighbours, over the price of the pair."""
        prices = self.prices(len(g))
        sums = np.abs(np.cumsum(g - self.flat(g))[:-1])
        priced = prices > 0
        return float(np.max(sums[priced] / prices[priced], initial=0.0))

    def gaussian_width(self, n_features: int) -> float:
        return EDGE_WIDTH * float(np.sum(self.prices(n_features)))
