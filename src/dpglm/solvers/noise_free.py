"""Gradient descent without a budget: the exact minimiser, by accelerated proximal steps."""

from __future__ import annotations

from ..arrays import Vector
from ..proximal import Map, Prox, Steps, accelerated, largest_eigenvalue
from .base import Result

_POWER_STEPS = 40
_SAFETY = 1.05
_SETTLED = 1e-8


def largest_curvature(apply: Map, dimension: int) -> float:
    """Largest eigenvalue of a symmetric positive operator, a little above."""
    return _SAFETY * largest_eigenvalue(apply, dimension, _POWER_STEPS, nearly=0.0)


def minimise(gradient: Map, prox: Prox, smoothness: float, w: Vector, max_steps: int) -> Result:
    """Accelerated proximal steps until one is no longer than 1e-8 of the first."""
    steps = Steps(gradient, prox, 1.0 / smoothness if smoothness > 0 else 1.0)
    w, _ = accelerated(steps, w, _SETTLED, max_steps, relative=True)
    return Result(w, steps.taken)
