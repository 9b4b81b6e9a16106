"""Fits without a budget: the exact minimiser, by accelerated proximal steps."""

from __future__ import annotations

import math

import numpy as np

from ..arrays import Vector
from ..curator import Curator
from ..losses import Squared
from ..mechanisms import Gaussian
from ..plan import Plan
from ..problem import Problem
from ..queries import ClippedGradient
from ..queries.proximal import Map, Prox, Steps, accelerated, largest_eigenvalue
from .base import Result

STEPS_WITHOUT_NOISE = 10_000
"""The most that are taken."""

_POWER_STEPS = 40
_SAFETY = 1.05
_SETTLED = 1e-8


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


def largest_curvature(apply: Map, dimension: int) -> float:
    """Largest eigenvalue of a symmetric positive operator, a little above."""
    return _SAFETY * largest_eigenvalue(apply, dimension, _POWER_STEPS, nearly=0.0)


def minimise(gradient: Map, prox: Prox, smoothness: float, w: Vector, max_steps: int) -> Result:
    """Accelerated proximal steps until one is no longer than 1e-8 of the first."""
    steps = Steps.of(gradient, prox, 1.0 / smoothness if smoothness > 0 else 1.0)
    w, _ = accelerated(steps, w, _SETTLED, max_steps, relative=True)
    return Result(w, steps.taken)
