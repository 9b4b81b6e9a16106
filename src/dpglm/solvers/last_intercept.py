"""The intercept of labels, fitted once more at the end.

Clipping cuts the slopes of a rare label more than those of a frequent one. So the intercept of a fit with
small clips is too far on the side of the frequent label, and the last releases of the plan correct it.
"""

from __future__ import annotations

import math

from ..arrays import Vector
from ..curator import Curator
from ..losses import Logistic
from ..mechanisms import Gaussian
from ..plan import Plan, Release
from ..problem import Problem
from ..queries import InterceptSlope
from .base import Task, equal_releases
from .typical import Typical

_SHARE, _STEPS = 0.03, 2
_USEFUL = 0.05
_CLIPPED = 0.9
_LARGEST_RATIO = 8.0


def share_of_intercept(task: Task, clip: float) -> float:
    """Share of the budget for the last fit: 3 %, or 0 if it would be noise, or has nothing to correct.

    ``clip`` is in units of the largest slope of a typical record.
    """
    problem = task.problem
    labels = problem.fit_intercept and isinstance(problem.loss, Logistic)
    useful = task.noise * math.sqrt(_STEPS / _SHARE) <= _USEFUL
    return _SHARE if labels and useful and clip < _CLIPPED else 0.0


def release_of_intercept(task: Task, share: float) -> Release:
    """The releases of the slope of the intercept."""
    moved = task.moved * _largest(task.problem, task.p)
    return equal_releases(InterceptSlope.name, Gaussian, _STEPS, moved, share=share)


def fits_intercept_last(plan: Plan) -> bool:
    """Whether the plan has these releases."""
    return any(release.query == InterceptSlope.name for release in plan.releases)


def fit_intercept_last(plan: Plan, problem: Problem, curator: Curator, w: Vector, typical: Typical) -> None:
    """Move the intercept of w so that the mean prediction becomes the share of the label, if the plan has it.

    The constant prediction that was learnt is the logarithm of the odds of that share. The slope of the
    intercept is the mean prediction minus the share; a step is the difference of their log odds, which is too
    short rather than too long if predictions differ.
    """
    if not fits_intercept_last(plan):
        return
    query = InterceptSlope(problem.loss, _largest(problem, plan.n_features))
    constant, mechanism = problem.constant(plan.n_features), plan[InterceptSlope.name].mechanism
    start = float(typical.start)
    share = 1.0 / (1.0 + math.exp(-start))
    least, most = share / _LARGEST_RATIO, 1.0 - (1.0 - share) / _LARGEST_RATIO
    _, intercept = problem.split(w)
    for _ in range(_STEPS):
        slope = float(curator.release(query, mechanism, w)[0]) / (plan.n_records * constant)
        mean = min(max(share + slope, least), most)
        intercept += (start - math.log(mean / (1.0 - mean))) / constant


def _largest(problem: Problem, n_features: int) -> float:
    """The largest slope of a record along the constant feature."""
    return problem.slope_bound() * problem.constant(n_features)
