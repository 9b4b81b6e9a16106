"""Second moments of the features for coordinate methods: from bounds, even, declared, or released."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from .. import strict
from ..arrays import Vector
from ..bounds import Bounds
from ..curator import Curator
from ..errors import UnsupportedProblem
from ..losses import Logistic
from ..mechanisms import Gaussian, Mechanism
from ..penalties import Separable, Zero
from ..plan import Plan, Release
from ..problem import Problem
from ..queries import SecondMoments
from .base import AnySolver, AuditCase, Task, equal_releases

SOURCES = ("bounds", "private", "even")

Source = str | tuple[float, ...]
"""Where second moments come from, one of `SOURCES`, or the declared values."""

CORNERS = (np.array([1.0, 0.0]), 1.0), (np.array([0.0, 1.0]), 1.0)
"""Two records between which second moments differ most, for audits: corners of the ball of rows."""

_MOST_NOISE = 0.3
_DENSITY = 0.4
_CLEAR = 2e-3
_STEP_NOISE = 0.15
_CROWD = 5_999


@dataclass(frozen=True, eq=False)
class Moments:
    """Second moments of the features: "bounds", "private" (a release of them), "even", values, or None.

    "even" gives every feature the same share of the largest row norm. None means the bounds if features have
    them, else a release with ``share`` of the budget, unless noise would hide it.
    """

    setting: str | ArrayLike | None
    share: float

    def __post_init__(self) -> None:
        if isinstance(self.setting, str) and self.setting not in SOURCES:
            raise ValueError(f"second_moments must be one of {SOURCES} or values, got {self.setting!r}")

    def source(self, problem: Problem, p: int, noise: float = 0.0) -> Source:
        """Which it is: "bounds", "private", "even" or the declared values.

        A release has a deviation of about 3 p times the ``noise`` of one pass, in units of the mean of all
        moments. If that is too much, none is made by default.
        """
        if self.setting is None:
            if problem.bounds.feature is not None:
                return "bounds"
            return "even" if noise * p > _MOST_NOISE else "private"
        if not isinstance(self.setting, str):
            return tuple(_declared(self.setting, p).tolist())
        if self.setting == "bounds" and not np.isfinite(problem.features(p)).all():
            raise UnsupportedProblem(
                "second_moments='bounds' needs Bounds(feature=...) or Bounds(row_norm=...)"
            )
        return self.setting

    def releases(self, source: Source, task: Task, steps: bool = False) -> tuple[tuple[Release, ...], float]:
        """What the source costs, of a budget of 1 that is yet to be scaled, and how much is left of that.

        With ``steps`` a release beside the bounds is for steps, where it shows how rare columns are.
        """
        served = steps and self.setting is None and source == "bounds" and task.problem.stretch() == 1.0
        beside = served and 0 < task.noise * task.p <= _CLEAR
        if source != "private" and not beside:
            return (), 1.0
        problem, p = task.problem, task.p
        query = in_units_of_bounds(problem, p) if beside else SecondMoments(problem.bounds.radius(p))
        sensitivity = query.sensitivity(task.neighbours)
        release = equal_releases(
            SecondMoments.name, Gaussian, 1, sensitivity, share=self.share, entries=task.p
        )
        return (release,), 1 - self.share


def typical_row(source: Source, problem: Problem, p: int) -> tuple[float, float]:
    """Norm of a typical row, and its density: a typical entry over the one that second moments assume.

    Few entries are near a declared bound of their feature: 0.4 of it is taken to be typical.
    """
    if not isinstance(source, str):
        return math.sqrt(_declared(source, p).sum() + problem.constant(p) ** 2), 1.0
    if source == "bounds" and problem.bounds.feature is not None:
        return _DENSITY * float(np.linalg.norm(problem.features(p))), _DENSITY
    return problem.radius(p), 1.0


def second_moments(source: Source, plan: Plan, problem: Problem, curator: Curator) -> Vector:
    """Second moment of each feature, the constant one included; all positive."""
    p = plan.n_features
    moments = _public_moments(source, problem, p)
    features, _ = problem.split(moments)
    query = SecondMoments(problem.bounds.radius(p))
    if not plan.budget.private:
        values = curator.release(query, Gaussian(0.0)) / plan.n_records
        features[:] = np.maximum(values, np.finfo(float).eps * max(values.max(initial=0.0), 1e-200))
    elif source == "private":
        noisy = curator.release(query, plan[query.name].mechanism) / plan.n_records
        features[:] = np.minimum(np.maximum(noisy, 0.0) + 2.0 * _deviation(query, plan), features)
    return moments


def least_moment(source: Source, plan: Plan, problem: Problem) -> tuple[float, float]:
    """The least positive second moment that `second_moments` of a private fit can find, and its usual share.

    The share is of the sum of all; that of a moment yet to be released is taken to be even.
    """
    p = plan.n_features
    moments = _public_moments(source, problem, p)
    positive = moments > 0
    if source == "private":
        features, _ = problem.split(moments)
        np.minimum(features, 2.0 * _deviation(SecondMoments(problem.bounds.radius(p)), plan), out=features)
        return float(moments.min(initial=math.inf, where=positive)), 1.0 / len(moments)
    least = float(moments.min(initial=math.inf, where=positive))
    return least, least / float(moments.sum())


def _public_moments(source: Source, problem: Problem, p: int) -> Vector:
    """Second moments that are declared, and the largest ones of features of which nothing is."""
    moments = np.square(problem.features(p))
    features, _ = problem.split(moments)
    if source == "even":
        features[:] = problem.bounds.radius(p) ** 2 / p
    elif not isinstance(source, str):
        features[:] = _declared(source, p)
    return moments


def _deviation(query: SecondMoments, plan: Plan) -> float:
    """Deviation of the noise in a released second moment."""
    return plan[query.name].mechanism.noise * query.sensitivity(plan.neighbours) / plan.n_records


def in_units_of_bounds(problem: Problem, p: int) -> SecondMoments:
    """The query for second moments of columns that are scaled to the least of their bounds."""
    limits = problem.bounds.features(p)
    least = float(limits.min())
    return SecondMoments(min(least * math.sqrt(p), problem.bounds.radius(p)), scales=least / limits)


def beside_bounds(plan: Plan, problem: Problem, curator: Curator, additive: Mechanism) -> Vector | None:
    """The second moment of each feature over its squared bound, if it is released beside the bounds.

    For the constant feature it is 1. It is not below what noise might hide, nor so small that
    a step of its inverse length would move predictions far by noise alone: that of the ``additive`` mechanism
    of the slope of a coordinate.
    """
    p = plan.n_features
    if all(release.query != SecondMoments.name for release in plan.releases):
        return None
    query, least = in_units_of_bounds(problem, p), float(problem.bounds.features(p).min())
    mechanism = plan[query.name].mechanism
    noisy = curator.release(query, mechanism) / (plan.n_records * least**2)
    deviation = mechanism.noise * query.sensitivity(plan.neighbours) / (plan.n_records * least**2)
    floor = additive.noise * plan.neighbours.records_moved / (plan.n_records * _STEP_NOISE)
    return problem.join(np.clip(noisy + 2.0 * deviation, min(max(floor, 2.0 * deviation), 1.0), 1.0), 1.0)


def of_moments_beside_bounds(solver: AnySolver) -> AuditCase:
    """Two records at the ends of two features, among so many that moments are released beside the bounds."""
    problem = Problem(Logistic(), Zero(), Bounds(row_norm=1.0, feature=1.0), fit_intercept=False)
    crowd = np.zeros((_CROWD, 2)), np.resize([1.0, -1.0], _CROWD)
    return AuditCase(solver, problem, crowd, *CORNERS)


def largest_terms(problem: Problem, p: int) -> Vector:
    """What a record can add to the slope of each coordinate, its prediction being in the range of targets."""
    slope = min(problem.loss.lipschitz(problem.bounds.target), 2.0 * problem.slope_bound())
    return slope * problem.features(p)


def require_separable(problem: Problem, solver: str) -> None:
    """Refuse a penalty that coordinates share."""
    if not isinstance(problem.penalty, Separable):
        raise UnsupportedProblem(
            f"{solver} needs a penalty that is a sum over coordinates, "
            f"{type(problem.penalty).__name__} is none: use GradientDescent"
        )


def _are_positive(moments: Vector) -> bool:
    return bool(((moments > 0) & (moments < math.inf)).all())


def _declared(values: ArrayLike, n_features: int) -> Vector:
    moments = strict.doubles(values)
    if moments is None or moments.shape != (n_features,) or not _are_positive(moments):
        raise ValueError(f"second_moments must be {n_features} positive numbers, one for each feature")
    return moments
