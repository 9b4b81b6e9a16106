"""L1 ball constraint."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from .. import strict
from ..arrays import Vector
from .base import TOLERANCE, Ball


@dataclass(frozen=True)
class L1Ball(Ball):
    """Coefficients whose absolute values sum to at most the radius.

    Parameters
    ----------
    radius : float
        The largest sum of absolute values.

    Examples
    --------
    >>> import numpy as np
    >>> ball = L1Ball(radius=1.0)
    >>> ball.project(np.array([2.0, 0.0]))
    array([1., 0.])
    >>> ball.linear_minimiser(np.array([1.0, -3.0]))
    array([0., 1.])
    """

    radius: float

    def __post_init__(self) -> None:
        strict.positive("radius", self.radius)

    def value(self, w: Vector) -> float:
        return 0.0 if np.sum(np.abs(w)) <= self.radius * (1 + TOLERANCE) else math.inf

    def project(self, w: Vector) -> Vector:
        """Return the point of the ball that is nearest to w.

        Sorting finds the threshold exactly in O(p log p); see Duchi, Shalev-Shwartz, Singer and
        Chandra, "Efficient projections onto the l1-ball for learning in high dimensions".
        """
        size = np.abs(w)
        if size.sum() <= self.radius:
            return w.copy()
        # Measured from the largest entry, the radius is not lost beside huge coefficients.
        size = size - size.max()
        largest = np.sort(size)[::-1]
        thresholds = (np.cumsum(largest) - self.radius) / np.arange(1, size.size + 1)
        threshold = thresholds[np.flatnonzero(largest > thresholds)[-1]]
        return np.sign(w) * np.maximum(size - threshold, 0)

    def linear_minimiser(self, g: Vector) -> Vector:
        """Return the vertex -radius * sign(g_j) e_j at the largest abs(g_j)."""
        vertex = np.zeros(g.shape)
        j = int(np.argmax(np.abs(g)))
        vertex[j] = -self.radius if g[j] > 0 else self.radius
        return vertex
