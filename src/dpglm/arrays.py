"""Arrays that all parts share: their type, the coefficients with an intercept, lines of the cache."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]
"""An array of double precision."""


def split(w: Vector, n_features: int) -> tuple[Vector, Vector]:
    """Coefficients of the features, and the intercept: one number, or none without an intercept.

    The intercept is in units of its constant feature. Both are views: to change them is to change w.
    """
    return w[:n_features], w[n_features:]


def join(features: Vector, intercept: Vector) -> Vector:
    """Coefficients of the features and the intercept, one number or none, in one new array."""
    return np.concatenate([features, intercept])


def cache_lines(count: int) -> Vector:
    """Rows of eight zeros, each in one line of 64 bytes of the processor's cache."""
    room = np.zeros(8 * count + 7)
    begin = -room.ctypes.data // 8 % 8
    return room[begin : begin + 8 * count].reshape(count, 8)
