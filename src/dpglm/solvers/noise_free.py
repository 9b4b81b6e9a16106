"""Gradient descent without a budget: the exact minimiser, by accelerated proximal steps."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from ..arrays import Vector
from .base import Result

_POWER_STEPS = 40
_SAFETY = 1.05
_TOLERANCE = 1e-8


def largest_curvature(apply: Callable[[Vector], Vector], dimension: int) -> float:
    """Largest eigenvalue of a symmetric positive operator, by power iteration, a little above."""
    v = np.random.default_rng(0).standard_normal(dimension)
    value = 0.0
    for _ in range(_POWER_STEPS):
        v = apply(v / np.linalg.norm(v))
        value = float(np.linalg.norm(v))
        if value == 0.0:
            return 0.0
    return _SAFETY * value


def minimise(
    gradient: Callable[[Vector], Vector],
    prox: Callable[[Vector, float], Vector],
    smoothness: float,
    w: Vector,
    max_steps: int,
) -> Result:
    """Accelerated proximal gradient descent with restarts (O'Donoghue and Candes, 2015).

    Stops when the proximal gradient has fallen to 1e-8 of its first value.
    """
    step = 1.0 / smoothness if smoothness > 0 else 1.0
    ahead, momentum, first = w, 1.0, 0.0
    for k in range(1, max_steps + 1):
        new = prox(ahead - step * gradient(ahead), step)
        residual = float(np.linalg.norm(new - ahead))
        first = first or residual
        if residual <= _TOLERANCE * first:
            return Result(new, k)
        if np.dot(ahead - new, new - w) > 0:
            momentum = 1.0
        following = (1 + math.sqrt(1 + 4 * momentum**2)) / 2
        ahead = new + (momentum - 1) / following * (new - w)
        w, momentum = new, following
    return Result(w, max_steps)
