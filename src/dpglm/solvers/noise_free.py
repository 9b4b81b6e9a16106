"""Fits without a budget: the exact minimiser, by accelerated proximal steps."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from ..curator import Curator
from ..losses import Squared
from ..mechanisms import Gaussian
from ..plan import Plan
from ..problem import Problem
from ..queries import ClippedGradient
from .base import Result, Vector

STEPS_WITHOUT_NOISE = 10_000
"""The most that are taken."""

_POWER_STEPS = 40
_SAFETY = 1.05
_TOLERANCE = 1e-8


def exact_minimiser(plan: Plan, problem: Problem, curator: Curator, clip: float = math.inf) -> Result:
    """The minimiser of the problem with clipped gradients, in at most as many steps as the plan has."""
    nothing, n = Gaussian(0.0), plan.n_records
    start = problem.start(plan.n_features)
    query, quadratic = ClippedGradient(problem.loss, clip), ClippedGradient(Squared(), math.inf)
    origin = curator.release(quadratic, nothing, np.zeros_like(start))
    curvature = largest_curvature(lambda v: (curator.release(quadratic, nothing, v) - origin) / n, len(start))
    return minimise(
        lambda w: curator.release(query, nothing, w) / n,
        problem.prox,
        problem.loss.smoothness() * curvature,
        start,
        plan.steps,
    )


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
