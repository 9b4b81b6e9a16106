"""What losses with a log link share: margins count within a declared range of means, and slopes follow.

Outside the range a loss is continued as a straight line. So it stays convex, and its slopes and curvatures
are bounded by the ranges of means and targets.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from .. import strict
from ..arrays import Vector
from .base import Loss, inside

SLOPE_UNIT = 1.25
"""Newton's unit of slopes over their bound: slopes below it leave room for the curvature beside them."""

JOINT = 1 / (4 * (1 - SLOPE_UNIT**-2))
"""The joint constant for a curvature of at most 1 and slopes of at most 1 / SLOPE_UNIT units."""

_LEAST_MARGIN = -740.0
_HALVINGS = 80


def require_ranges(min_mean: float, max_mean: float, max_target: float, needs_least: bool) -> None:
    """Refuse ranges that are empty, and a least mean of 0 where slopes have no bound for small means."""
    strict.positive("max_mean", max_mean)
    strict.positive("max_target", max_target)
    least = strict.level("min_mean", min_mean)
    if not least < max_mean:
        raise ValueError(f"min_mean must be below max_mean, got {min_mean!r} and {max_mean!r}")
    if needs_least and least == 0:
        raise ValueError("min_mean must be positive: slopes have no bound for means near 0")


def margins(min_mean: float, max_mean: float) -> tuple[float, float]:
    """The margins of the ends of a range of means; a mean of 0 counts as the least that doubles have."""
    return math.log(min_mean) if min_mean > 0 else _LEAST_MARGIN, math.log(max_mean)


def continued(function: Callable[[Vector], Vector], slope: Callable[[Vector], Vector], z: Vector,
              ends: tuple[float, float]) -> Vector:  # fmt: skip
    """A function of the margin within its range, continued as a straight line."""
    kept = np.clip(z, *ends)
    continuation: Vector = function(kept) + slope(kept) * (z - kept)
    return continuation


def conjugate(loss: Loss, ends: tuple[float, float], u: Vector, y: Vector) -> Vector:
    """The supremum of u z - loss: at the margin whose slope is u, which halving an interval finds."""
    u, y = np.broadcast_arrays(np.asarray(u, dtype=np.float64), np.asarray(y, dtype=np.float64))
    low, high = np.full(u.shape, ends[0]), np.full(u.shape, ends[1])
    within = inside(u, loss.derivative(low, y), loss.derivative(high, y))
    for _ in range(_HALVINGS):
        z = (low + high) / 2
        below = loss.derivative(z, y) < u
        low, high = np.where(below, z, low), np.where(below, high, z)
    z = (low + high) / 2
    return np.where(within, u * z - loss.value(z, y), math.inf)


def link(mean: float, min_mean: float, max_mean: float) -> float:
    """log(mean), with the mean kept within its range, and at least a millionth of its largest."""
    return math.log(min(max(mean, min_mean, 1e-6 * max_mean), max_mean))
