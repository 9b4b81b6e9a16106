"""Scores of coordinates: the estimated progress of a step along each of them."""

from __future__ import annotations

import math

import numpy as np

from .arguments import Floats, Signed
from .compiled import compiled
from .primitives import within


@compiled(fastmath=frozenset({"nnan"}), allocates=True)
def scores(
    rule: int, n: int, sums: Floats, points: Floats, l1: float, l2: float, low: float, high: float, free: int,
    index: Signed,
) -> Floats:  # fmt: skip
    """For each j of an index, n times the score of rule 0 (GS-s), 1 (GS-r) or 2 (GS-q).

    ``sums`` are n times the slopes g of the loss along each coordinate. A row of ``points`` holds coefficient
    u and curvature m of one; the penalty of a coordinate below ``free`` is l1 abs(u) + l2/2 u² on [low, high]
    (of the others none). Every formula is a continuous function of g whose terms are as small as the step
    that it describes, so that rounding does not grow in a difference.
    """
    out = np.empty(index.size)
    for k in range(index.size):
        j = np.uint64(index[k])
        g, u, m = sums[j] / n, points[j, 0], points[j, 1]
        one, two, down, up = 0.0, 0.0, -np.inf, np.inf
        if index[k] < free:
            one, two, down, up = l1, l2, low - u, high - u
        d = g + two * u
        if rule == 0:
            below = d + one if u > 0 else d - one
            above = d - one if u < 0 else d + one
            if down >= 0:
                below = -np.inf
            if up <= 0:
                above = np.inf
            out[k] = n * max(below, -above, 0.0) / math.sqrt(m)
            continue
        a = within(-u, -(d + one) / (m + two), -(d - one) / (m + two))
        a = within(a, down, up)
        if rule == 1:
            out[k] = n * math.sqrt(m) * abs(a)
        else:
            shrunk = -a if u > 0 else a
            longer = -shrunk if shrunk <= abs(u) else shrunk - 2 * abs(u)
            decrease = -a * (d + 0.5 * (m + two) * a) - one * longer
            out[k] = n * math.sqrt(2.0 * max(decrease, 0.0))
    return out
