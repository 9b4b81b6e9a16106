"""Compiled scores of coordinates: how much a step along each of them promises."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit


@njit(cache=True, error_model="numpy")
def set_scores(
    rule: int, n: int, sums: Any, w: Any, curvature: Any, l1: float, l2: float, low: float, high: float,
    free: int, index: Any, scores: Any,
) -> None:  # fmt: skip
    """Set scores[j] for the j of an index: n times the score of rule 0 (GS-s), 1 (GS-r) or 2 (GS-q).

    ``sums`` are n times the slopes g of the loss along each coordinate, and the penalty of a coordinate below
    ``free`` is l1 abs(u) + l2/2 u² on [low, high], of the others none. Every formula is a continuous function
    of g whose terms are as small as the step it describes, so that rounding does not grow in a difference.
    """
    for k in range(index.size):
        j = index[k]
        g, m, u = sums[j] / n, curvature[j], w[j]
        one, two, down, up = 0.0, 0.0, -np.inf, np.inf
        if j < free:
            one, two, down, up = l1, l2, low - u, high - u
        d = g + two * u
        if rule == 0:
            below = d + one if u > 0 else d - one
            above = d - one if u < 0 else d + one
            if down >= 0:
                below = -np.inf
            if up <= 0:
                above = np.inf
            value = max(below, -above, 0.0)
        else:
            a = min(max(-u, -(d + one) / (m + two)), -(d - one) / (m + two))
            a = min(max(a, down), up)
            if rule == 1:
                value = m * abs(a)
            else:
                shrunk = -a if u > 0 else a
                longer = -shrunk if shrunk <= abs(u) else shrunk - 2 * abs(u)
                decrease = -a * (d + 0.5 * (m + two) * a) - one * longer
                value = math.sqrt(2.0 * m * max(decrease, 0.0))
        scores[j] = n * value / math.sqrt(m)
