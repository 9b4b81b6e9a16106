"""Standard private Frank-Wolfe over an L1 ball with scipy and NumPy: every step computes all sums anew.

Algorithm 1 of Raff, Khanna and Lu (2023) with the sign of the vertex selected too, so that its law is that of
dpglm. It is as fast as the two libraries allow: margins from the columns where w is not 0 or from all rows,
whichever reads less; sums from the table stored by columns; both in the precision of the table. The noise
of a score is drawn as an exponential: the least of these over their weights belongs to the same feature as
the largest score with Gumbel noise, at a fraction of the cost.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import expit


class StandardFrankWolfe:
    """Logistic regression, for rows of norm at most 1: then a clip of 1 cuts nothing.

    Parameters
    ----------
    X : CSR table
    y : array
        Labels -1 and 1.
    radius : float
    scale : float
        A vertex is selected with probability proportional to exp(score / scale).
    """

    def __init__(self, X: Any, y: Any, radius: float, scale: float, seed: int = 0) -> None:
        self._rows, self._columns = X, X.tocsc()
        self._transposed = self._columns.T
        self._y, self._radius, self._scale = y.astype(X.dtype), radius, scale
        self._rng = np.random.default_rng(seed)
        self.t = 0
        self.w = np.zeros(X.shape[1], dtype=X.dtype)
        self._support = np.empty(0, dtype=np.int64)
        self._in_support = 0  # entries of these columns
        self._scaled, self._weights, self._noise = np.empty((3, X.shape[1]))

    def step(self) -> int:
        """Select a vertex and move towards it; its feature."""
        sums = np.divide(self._sums_of_features(), self._scale, out=self._scaled)
        j = self._select(np.abs(sums))
        up = self._rng.random() < expit(-2 * sums[j])
        self.move(j, 1 if up else -1)
        return j

    def move(self, j: int, sign: int) -> None:
        """Take the next step towards the vertex along feature j."""
        self.t += 1
        size = 2 / (self.t + 2)
        self.w[self._support] *= 1 - size
        if self.w[j] == 0:
            self._support = np.append(self._support, j)
            self._in_support += int(self._columns.indptr[j + 1] - self._columns.indptr[j])
        self.w[j] += size * sign * self._radius

    def replay(self, choices: Any) -> None:
        """Take steps towards these vertices, numbered as in `VertexScores`."""
        for choice in choices:
            self.move(int(choice) // 2, 1 if choice % 2 else -1)

    def _sums_of_features(self) -> Any:
        slopes = -self._y * expit(-self._y * self._margins())
        return self._transposed @ slopes

    def _margins(self) -> Any:
        if 4 * self._in_support > self._rows.nnz:  # an entry of some columns costs some four of all rows
            return self._rows @ self.w
        return self._columns[:, self._support] @ self.w[self._support]

    def _select(self, sizes: Any) -> int:
        """A feature with probability proportional to cosh(size)."""
        top, weights, noise = sizes.max(), self._weights, self._noise
        np.exp(np.subtract(sizes, top, out=weights), out=weights)
        weights += np.exp(np.subtract(-top, sizes, out=noise), out=noise)
        self._rng.standard_exponential(out=noise)
        with np.errstate(divide="ignore"):
            noise /= weights
        return int(np.argmin(noise))
