"""Gradient descent for counts and amounts, from the best constant prediction (docs/defaults.md).

Declared ranges of targets are much wider than most slopes, and the curvature of a loss with a log link is far
below its bound. Both follow from the mean target, which is released first.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import log_ndtr

from ..arrays import Vector
from ..bounds import Coordinates
from ..curator import Curator
from ..losses import Loss, NegativeBinomial, Poisson, Tweedie
from ..mechanisms import Gaussian
from ..mechanisms import sampling as samplings
from ..penalties import Separable
from ..plan import Release
from ..problem import Problem
from ..queries import ClippedGradient, InterceptSlope, RowScale
from .base import Result, Task, equal_releases
from .iterates import Iterates, StepGuard, descend, sparse_models
from .preludes import RowScalePrelude, norm_of_coordinates

if TYPE_CHECKING:
    from .gradient_descent import GradientDescentPlan

STEPS, MOST_MOMENTUM = 150, 0.8
_GOOD, _LEAST_SHARE, _MOST_SHARE = 0.012, 0.03, 0.4
_BEFORE_WITH_OFFSETS = 2  # steps along the intercept before the others; one comes after them
_CONSTANT, _SHORTEST = 0.4, 0.02
_SPREAD, _AMOUNTS, _AMOUNTS_WITH_ZEROS = 0.5, 3.5, 12.0
_ALLOWED_NOISE, _NOISE_OF_LONGER, _NOISE_FOR_CLIP = 0.2, 0.08, 0.03
_ROOM = 2.0
_DOUBT_OF_OFFSETS, _DOUBT_OF_DESCENT = 1.0, 0.15
_PRECISE, _FARTHEST = 0.03, 8.0
_LEAST_CLIP = 1e-6
_LEAST_DEVIATIONS = -30.0


def serves(problem: Problem) -> bool:
    """Whether targets are counts or amounts of a declared range, and an intercept can be their mean."""
    linked = isinstance(problem.loss, Poisson | Tweedie | NegativeBinomial)
    return linked and problem.fit_intercept and problem.bounds.target is not None


def releases(task: Task, steps: int, sampling: samplings.Sampling) -> tuple[Release, ...]:
    """Row size and mean target, gradients, and slopes along the intercept.

    The shares of the first and the last leave noise of less than a hundredth of half the range in the mean
    target, if that takes no more than 40 %: where it does, records say little but their mean.
    """
    task.problem.slope_bound()  # refuses targets in absurd units
    largest = task.problem.loss.lipschitz(task.problem.bounds.target)
    for length in (_LEAST_CLIP, 1.0):
        task.enforced(largest * length * task.problem.radius(task.p))
    before = _steps_before(task.problem)
    scales = min(max(2 * (task.noise / _GOOD) ** 2, _LEAST_SHARE), _MOST_SHARE)
    along = scales if before else scales / 2
    return (
        RowScalePrelude(task, spread=False).release(scales),
        equal_releases(
            ClippedGradient.name, Gaussian, steps, f"{task.moved} x clip", share=1.0 - scales - along,
            sampling=sampling, entries=task.dimension,
        ),
        equal_releases(InterceptSlope.name, Gaussian, before + 1, f"{task.moved} x clip", share=along),
    )  # fmt: skip


def _steps_before(problem: Problem) -> int:
    """Steps along the intercept that come first: the mean of targets is not that of a record of offset 0."""
    return _BEFORE_WITH_OFFSETS if problem.has_offsets or problem.has_weights else 0


def run(plan: GradientDescentPlan, problem: Problem, curator: Curator, stops: Sequence[int] | None) -> Result:
    """From the best constant along clipped gradients, with steps that noise allows, and shrunk towards it."""
    p, release = plan.n_features, plan[ClippedGradient.name]
    scales, unit = _scales_of_columns(problem, p)
    norm, rate = _learn(plan, problem, curator, unit)
    w = problem.start(p)
    problem.split(w)[1][:] = problem.loss.link(rate.mean) / problem.constant(p)
    rate.fit_intercept(curator, w, _steps_before(problem))
    constant = _CONSTANT * norm
    ratio = constant / problem.constant(p)
    problem.split(w)[1][:] /= ratio

    radius = math.hypot(norm, constant)
    batch = plan.n_records * (
        release.sampling.rate if isinstance(release.sampling, samplings.Poisson) else 1.0
    )
    longest = plan.step_size / (_ROOM * rate.level * radius**2)
    one = ClippedGradient(problem.loss, 1.0, constant, scales).sensitivity(plan.neighbours)
    each = release.mechanism.noise * one / batch
    # Noise of predictions after all steps, if they are as long as can be, for a clip of slopes of 1.
    full = math.sqrt(plan.steps) * longest * norm * radius * each
    largest = problem.loss.lipschitz(problem.bounds.target)
    clip = min(max(plan.clip * rate.usual_slope, _NOISE_FOR_CLIP / full, _LEAST_CLIP * largest), largest)
    step = longest * min(_ALLOWED_NOISE / (full * clip), 1.0)
    momentum = min(max(1.0 - full * clip / _NOISE_OF_LONGER, 0.0), plan.momentum)

    query = ClippedGradient(problem.loss, clip * radius, constant, scales)

    def gradient(w: Vector) -> Vector:
        return curator.release(query, release.mechanism, w, sampling=release.sampling) / batch

    def finished(w: Vector) -> Vector:
        found = problem.scaled(w, scales)
        problem.split(found)[1][:] *= ratio
        return found

    iterates = Iterates(stops)
    w, mean = descend(
        gradient, partial(problem.prox_in_scale, scales=scales), w, plan.steps,
        StepGuard(step, momentum, math.inf), iterates=iterates, finish=finished,
    )  # fmt: skip
    found = finished(mean.copy() if plan.average else w.copy())
    rate.doubt += _DOUBT_OF_DESCENT**2
    rate.fit_intercept(curator, found, 1)
    iterates.add_models(lambda: sparse_models(problem, found))
    return Result(found, plan.steps, iterates=iterates.models)


@dataclass
class _Rate:
    """The best constant prediction, and how well it is known.

    Attributes
    ----------
    mean : float
        The mean target.
    doubt : float
        Variance of the logarithm of what the intercept predicts.
    """

    plan: GradientDescentPlan
    problem: Problem
    mean: float
    doubt: float

    @property
    def level(self) -> float:
        """The curvature of the loss at the mean target."""
        at = np.array(self.problem.loss.link(self.mean))
        return float(self.problem.loss.curvature(at, np.exp(at)))

    @property
    def usual_slope(self) -> float:
        """The largest slope of most records where the mean target is predicted."""
        loss = self.problem.loss
        at = np.array(loss.link(self.mean))
        return abs(float(loss.derivative(at, np.array(_far_target(loss, self.mean)))))

    def fit_intercept(self, curator: Curator, w: Vector, steps: int) -> None:
        """Move the intercept of w so that the slope along it vanishes, as far as noise is below the doubt.

        The slope is A - B, where A is what is predicted and B what targets add, each a power of the mean. So
        the logarithm of their ratio is the step, exact for a Poisson and a gamma law.
        """
        plan, loss, level = self.plan, self.problem.loss, self.level
        constant, mechanism = self.problem.constant(plan.n_features), plan[InterceptSlope.name].mechanism
        each = mechanism.noise * plan.neighbours.records_moved / plan.n_records
        largest = loss.lipschitz(self.problem.bounds.target)
        clip = max(2 * self.usual_slope, _PRECISE * level / each, _LEAST_CLIP * largest)
        query = InterceptSlope(loss, min(clip, largest) * constant)
        noise = each * min(clip, largest)
        at = np.array(loss.link(self.mean))
        predicted = float(loss.curvature(at, np.array(0.0)) / loss.derivative(at, np.array(0.0)))
        _, intercept = self.problem.split(w)
        for _ in range(steps):
            slope = float(curator.release(query, mechanism, w)[0]) / (plan.n_records * constant)
            above = _positive(level + predicted * slope, predicted * noise)
            below = _positive(level - (1.0 - predicted) * slope, (1.0 - predicted) * noise)
            kept = self.doubt / (self.doubt + (noise / level) ** 2)
            intercept -= kept * math.log(min(max(above / below, 1 / _FARTHEST), _FARTHEST)) / constant
            self.doubt *= 1.0 - kept


def _scales_of_columns(problem: Problem, p: int) -> tuple[Vector | None, Vector]:
    """What columns are multiplied by, so that all have the least of the declared bounds; and their bounds.

    Columns of equal bounds, and those of a penalty that is no sum over coordinates, stay as they are.
    """
    limits = problem.bounds.features(p)
    least = float(limits.min())
    if least == float(limits.max()) or not isinstance(problem.penalty, Separable):
        return None, np.full(p, float(limits.max()))
    return least / limits, limits


def _learn(
    plan: GradientDescentPlan, problem: Problem, curator: Curator, unit: Vector
) -> tuple[float, _Rate]:
    """The size of a typical row of scaled columns, and the best constant; one release."""
    assert problem.bounds.target is not None
    bottom, top = problem.bounds.target
    middle, half = (bottom + top) / 2, (top - bottom) / 2
    coordinates = Coordinates(np.zeros_like(unit), unit, False)
    longest = norm_of_coordinates(problem, coordinates)
    query = RowScale(coordinates, longest, middle, 1.0 / half, plan.table_size)
    mechanism = plan[query.name].mechanism
    size, target = (float(value) / plan.n_records for value in curator.release(query, mechanism))
    noise = mechanism.noise * query.sensitivity(plan.neighbours) / plan.n_records
    share = min(max((1.0 + size) / 2, noise, _SHORTEST), 1.0)
    mean = min(bottom + _positive(half * (1.0 + target), half * noise), top)
    mean = math.exp(problem.loss.link(mean))
    doubt = (half * noise / mean) ** 2 + (_DOUBT_OF_OFFSETS if _steps_before(problem) else 0.0)
    return float(unit.min()) * longest * math.sqrt(share), _Rate(plan, problem, mean, doubt)


def _far_target(loss: Loss, mean: float) -> float:
    """A target that few records exceed: beyond it, a clip costs less than noise."""
    if isinstance(loss, Tweedie) and loss.power > 1:
        return mean * (1.0 + (_AMOUNTS if loss.power == 2 else _AMOUNTS_WITH_ZEROS))
    return mean + 1.0 + _SPREAD * math.sqrt(mean)


def _positive(value: float, noise: float) -> float:
    """The mean of a positive number, of which nothing else is known than a value with noise."""
    if not noise > 0:
        return max(value, math.ulp(0.0))
    far = max(value / noise, _LEAST_DEVIATIONS)
    return noise * (far + math.exp(-(far**2) / 2 - float(log_ndtr(far)) - math.log(2 * math.pi) / 2))
