"""The last releases of labels: Newton's method for the scale and the intercept of a fit.

Clipping cuts the slopes of records on the wrong side most, and in much noise steps end early. So the margins
of a fit are too long or too short, and its intercept is on the side of the frequent label. Intercept and
slope of Cox's recalibration mend that for the price of a small release.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ..arrays import Vector, one_blas_thread
from ..curator import Curator
from ..losses import Logistic
from ..mechanisms import Gaussian
from ..plan import Plan, Release
from ..privacy import Neighbours
from ..problem import Problem
from ..queries import Recalibration
from . import newton_steps as algebra
from .base import Task, equal_releases, noise_of_one_pass
from .newton_steps import Deviations, Estimate, Round, State
from .preludes import PrivateSetting

_LEAST_SHARE, _MOST_SHARE, _GOOD, _USEFUL = 0.05, 0.1, 0.05, 0.3
_ROUNDS = 2
_LEAST_LEVERAGE, _LEVERAGE_IN_NOISE = 1.5, 0.0008
_CLIPPED = 0.9
_UNIT = 0.4
_LEAST_SPREAD, _FARTHEST = 1e-3, 30.0
_SHORTEST, _LONGEST = -0.7, 3.0
_OF_STEP = 0.5


@dataclass(frozen=True)
class Expected:
    """What is expected of the margins of a fit.

    Attributes
    ----------
    spread : float
        A guess of their deviation: it makes the first metric, and the curvature that is released makes the
        next.
    l2 : float
        Strength of an L2 penalty of the coefficients.
    doubt : pair of float, optional
        Deviations of the scale that is missing and of the shift of a middling margin. A round then goes as
        far as these and its noise allow; otherwise, as far as noise does not explain (James and Stein).
    """

    spread: float
    l2: float
    doubt: tuple[float, float] | None = None


def share_of_recalibration(task: Task, clip: float) -> float:
    """Share of the budget: 5 %, or what leaves noise of 0.05 in a mean slope, up to 10 %.

    It is 0 if that would leave noise of more than 0.3, or if the clip, in units of the largest slope of a
    typical record, leaves little to correct.
    """
    if not isinstance(task.problem.loss, Logistic) or clip >= _CLIPPED:
        return 0.0
    noise = _leverage(task.noise) * task.noise * math.sqrt(_ROUNDS)
    share = min(max((noise / _GOOD) ** 2, _LEAST_SHARE), _MOST_SHARE)
    return share if noise <= _USEFUL * math.sqrt(share) else 0.0


def release_of_recalibration(task: Task, share: float) -> Release:
    """The releases of gradient and Hessian for scale and intercept."""
    query = _query(task.problem, task.table_size, task.neighbours, _leverage(task.noise))
    stated = query.sensitivity(task.neighbours)
    return equal_releases(Recalibration.name, Gaussian, _ROUNDS, stated, share=share, entries=8)


def recalibrates(plan: Plan) -> bool:
    """Whether the plan has these releases."""
    return any(release.query == Recalibration.name for release in plan.releases)


def recalibrated(
    plan: Plan, problem: Problem, curator: Curator, w: Vector, setting: PrivateSetting, expected: Expected
) -> Vector:
    """Coefficients w, times the scale and with the intercept that fit best, if the plan pays for them.

    Without an intercept the shift is known to be 0, and what is expected must state a doubt.
    """
    if not recalibrates(plan):
        return w
    leverage = _leverage(noise_of_one_pass(plan.n_records, plan.budget, plan.neighbours, plan.fits))
    query = _query(problem, plan.table_size, plan.neighbours, leverage)
    mechanism = plan[query.name].mechanism
    each = mechanism.noise * query.sensitivity(plan.neighbours)
    noise = Deviations(each / (query.weight * query.leverage), each, each / query.weight)
    features, _ = problem.split(w)
    ridge = np.array([plan.n_records * expected.l2 * float(features @ features), 0.0])
    point, middle = np.array([1.0, 0.0]), float(setting.start)
    spread = min(max(expected.spread, _LEAST_SPREAD), _FARTHEST)
    pivot = middle
    doubt = None if expected.doubt is None else _covariance(*expected.doubt, pivot)
    if not problem.fit_intercept:
        assert doubt is not None
        pivot, doubt = 0.0, np.diag([doubt[0, 0], 0.0])
    with one_blas_thread():
        for _ in range(_ROUNDS):
            # Margins of usual size are short beside the constant: the shift gets less noise than the scale.
            moments = np.array([[(spread / _UNIT) ** 2 + middle**2, middle], [middle, 1.0]])
            state = State(point, algebra.root_of(moments), np.zeros((2, 2)))
            released = curator.release(query, mechanism, w, state.transform, point)
            round_ = Round(state, query.parts(released), noise, 1.0, 1.0, ridge)
            estimate, _ = round_.estimate()
            if doubt is None:
                point = point + _damped(_shortened(estimate, point), point[0], middle)
            else:
                gain = doubt @ np.linalg.inv(doubt + estimate.noise)
                step = _damped(gain @ (estimate.w - point), point[0], pivot)
                # A long step is far from a minimum that is known only where it began.
                left = _OF_STEP * step[0], _OF_STEP * (step[0] * pivot + step[1])
                doubt = doubt - gain @ doubt + _covariance(*left, pivot)
                point = point + step
            hessian, _ = algebra.floored(round_.parts.hessian, round_.least)
            square, cross, total = (state.root @ hessian @ state.root.T)[[0, 0, 1], [0, 1, 1]]
            # Noise alone may say anything; the matrix above has to stay far from singular.
            middle = min(max(float(cross / total), -_FARTHEST), _FARTHEST)
            pivot = middle if problem.fit_intercept else 0.0
            spread = math.sqrt(min(max(float(square / total) - middle**2, _LEAST_SPREAD**2), _FARTHEST**2))
    scale, shift = point
    better: Vector = scale * w
    if problem.fit_intercept:
        problem.split(better)[1][:] += shift / problem.constant(plan.n_features)
    return better


def _shortened(estimate: Estimate, start: Vector) -> Vector:
    """The way from the start to the estimate, without what noise makes it longer.

    Each of the two directions in which noise is independent is shortened by itself (James and Stein): the
    scale is often lost in noise where the shift is not.
    """
    variances, directions = np.linalg.eigh(estimate.noise)
    along = directions.T @ (estimate.w - start)
    left = np.maximum(along**2 - variances, 0.0) / np.maximum(along**2, np.finfo(float).tiny)
    way: Vector = directions @ (left * along)
    return way


def _covariance(scale: float, shift: float, middle: float) -> Vector:
    """Of scale and shift, from deviations of the scale and of the shift of a middling margin."""
    across = -middle * scale**2
    return np.array([[scale**2, across], [across, shift**2 + (middle * scale) ** 2]])


def _damped(way: Vector, scale: float, middle: float) -> Vector:
    """A step whose change of the scale is limited, and whose change of a middling margin is a logarithm.

    Where a label is rare, its odds are nearly its probability, so a step of Newton's method is their ratio
    less 1 where its logarithm is right.
    """
    longer = min(max(float(way[0]), _SHORTEST * scale), _LONGEST * scale)
    moved = float(way[0]) * middle + float(way[1])
    return np.array([longer, math.copysign(math.log1p(abs(moved)), moved) - longer * middle])


def _leverage(noise: float) -> float:
    """The length, in the plane, from which on records are weighted down; it grows as noise vanishes."""
    return max(_LEAST_LEVERAGE, _LEVERAGE_IN_NOISE / noise)


def _query(problem: Problem, n_records: int, neighbours: Neighbours, leverage: float) -> Recalibration:
    weight = Recalibration.weight_for(problem.loss, neighbours)
    return Recalibration(problem.loss, None, leverage, weight, n_records)
