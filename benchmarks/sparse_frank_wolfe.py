"""Private Frank-Wolfe with sparse updates and a plain noisy maximum: the ablation of a published table.

Algorithm 2 of Raff, Khanna and Lu (2023) without its sampler: margins, slopes and sums are kept, and a step
changes those that the selected feature reaches. The selection is that of the standard algorithm, a look at
every feature, so that the two differ in how sums are computed and in nothing else.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from scipy.special import expit
from standard_frank_wolfe import StandardFrankWolfe


class SparseFrankWolfe(StandardFrankWolfe):
    """The same problem and law as `StandardFrankWolfe`, with sums that are kept.

    Parameters
    ----------
    X, y, radius, scale, seed
        See `StandardFrankWolfe`.
    refresh : float
        All slopes follow once the coefficients have shrunk by this share, as in dpglm. The published
        algorithm leaves this out (infinity): its sums then lag behind by more and more.
    """

    def __init__(
        self, X: Any, y: Any, radius: float, scale: float, seed: int = 0, refresh: float = 0.01
    ) -> None:
        super().__init__(X, y, radius, scale, seed)
        self._refresh = refresh
        self._factor = self._refreshed = 1.0
        self._v = np.zeros(len(y))
        self._slopes: Any = None
        self._sums: Any = None

    @property
    def coefficients(self) -> Any:
        """The present point; ``w`` is kept without the factor that all steps have shrunk it by."""
        return self._factor * self.w

    def move(self, j: int, sign: int) -> None:
        """Take the next step towards the vertex along feature j."""
        self.t += 1
        size = 2 / (self.t + 2)
        self._factor *= 1 - size
        inside = slice(self._columns.indptr[j], self._columns.indptr[j + 1])
        rows, push = self._columns.indices[inside], size * sign * self._radius / self._factor
        self.w[j] += push
        self._v[rows] += push * self._columns.data[inside]
        if self._sums is None:
            return
        if abs(self._factor - self._refreshed) > self._refresh * self._refreshed:
            self._refreshed = self._factor
            rows = np.flatnonzero(self._v)
        table = self._rows
        _follow(
            rows, table.indptr, table.indices, table.data, self._y, self._v, self._factor, self._slopes,
            self._sums,
        )  # fmt: skip

    def _sums_of_features(self) -> Any:
        if self._sums is None:
            slopes = -self._y * expit(-self._y * (self._factor * self._v))
            self._slopes, self._refreshed = slopes.astype(np.float64), self._factor
            self._sums = self._transposed @ self._slopes
        return self._sums


@njit(cache=True)
def _follow(
    rows: Any, indptr: Any, indices: Any, entries: Any, y: Any, v: Any, factor: float, slopes: Any, sums: Any
) -> None:
    for i in rows:
        slope = -y[i] / (1 + np.exp(y[i] * factor * v[i]))
        change = slope - slopes[i]
        slopes[i] = slope
        for t in range(indptr[i], indptr[i + 1]):
            sums[indices[t]] += change * entries[t]
