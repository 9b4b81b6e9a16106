"""What the default settings of all solvers share; ``docs/defaults.md`` derives them.

``noise`` is the deviation of a mean when the whole budget buys one release of it, in units of the largest
contribution of one record (`noise_of_one_pass`).
"""

from __future__ import annotations

import math

from ..errors import UnsupportedProblem
from ..problem import Problem

PREDICTION_NOISE = 0.3
"""Noise in predictions that a fit may end with, in units of the largest slope over the smoothness."""

MOST_PRIVATE_STEPS = 500
"""More steps cost time and gain little."""

MOST_PASSES = 200
"""More steps that read a table anew are not taken by default (docs/defaults.md)."""

CROSSING_STEP = 0.08
"""Share of half the range of targets that a step may cross if the loss turns linear inside the range."""


def require_bounded_slopes(problem: Problem) -> None:
    """Refuse to choose a clip for slopes of any size."""
    if not math.isfinite(problem.slope_bound()):
        raise UnsupportedProblem(
            f"the slopes of {problem.loss.name} have no bound: give the solver a clip, or Bounds a target"
        )


def clip_fraction(problem: Problem, noise: float) -> float:
    """Clip over the largest gradient norm.

    It rises as noise vanishes, so that the bias of clipping vanishes too: from 1/2 to 1, or from 1/4 to 2 if
    only the declared range of targets bounds slopes.
    """
    require_bounded_slopes(problem)
    if problem.loss.lipschitz(problem.bounds.target) <= problem.slope_bound():
        return float(min(max(0.5 * (2e-3 / noise) ** 0.25, 0.5), 1.0))
    return float(min(max(0.5 * (8e-3 / noise) ** 0.25, 0.25), 2.0))


def clip_of_gradients(problem: Problem, p: int, noise: float, given: float | None) -> tuple[float, float]:
    """The clip of a gradient, which is kept if it is given, and its share of the largest gradient norm."""
    if given is not None:
        return given, clip_fraction(problem, noise) if math.isfinite(problem.slope_bound()) else 1.0
    fraction = clip_fraction(problem, noise)
    return fraction * problem.slope_bound() * problem.radius(p), fraction
