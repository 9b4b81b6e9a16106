"""L1 ball constraint."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Self

import numpy as np

from .. import strict
from ..arrays import Vector
from .base import TOLERANCE, Penalty


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
