"""Private coordinate descent (Mangold, Bellet, Salmon and Tommasi, Algorithm 1)."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import strict
from ..arrays import Vector
from ..curator import Curator
from ..errors import UnsupportedProblem
from ..mechanisms import Gaussian, Mechanism
from ..penalties import Separable
from ..plan import Plan, Releasable, Release
from ..problem import Problem
from ..queries import CoordinateRule, CoordinateSums, OpenCoordinates, SecondMoments
from .audit_cases import CORNERS, AuditCase, opposed, second_moments_case
from .base import CROSSING_STEP, Result, Solver, Task, clip_of_gradients, equal_releases, require_smooth
from .exact import coordinate_minimiser

CLIP_RULES = ("smoothness", "uniform")
SOURCES = ("bounds", "private", "even")

Source = str | tuple[float, ...]
"""Where second moments come from, one of `SOURCES`, or the declared values."""

_MOST_NOISE, _DENSITY, _CLEAR, _STEP_NOISE = 0.3, 0.4, 2e-3, 0.15
_LITTLE_NOISE = 2e-4
_MANY_PASSES = 50
_PASSES_OF_NOISE, _MOST_PASSES, _MOST_TERMS = 1.5e-3, 300.0, 1e9


@dataclass(frozen=True)
class CoordinateDescentPlan(Plan):
    """Plan of `CoordinateDescent`."""

    solver: ClassVar[str] = "coordinate descent"
    may_release: ClassVar[Releasable] = {SecondMoments.name: (Gaussian,), CoordinateSums.name: (Gaussian,)}
    choices: ClassVar[dict[str, tuple[str, ...]]] = {"clip_rule": CLIP_RULES, "second_moments": SOURCES}

    clip: float
    clip_rule: str
    step_size: float
    second_moments: Source
    periods: int

    def _passes_of_a_fit(self) -> None:
        """None: it reads single columns of a resident table."""
        return None


@dataclass(frozen=True, eq=False)
class CoordinateDescent(Solver[CoordinateDescentPlan]):
    """One uniformly random coordinate a step: w_j <- prox(w_j - (g_j + noise_j) * step_size / M_j).

    M_j is the curvature of the mean loss along coordinate j: the loss's smoothness times the second
    moment of feature j. It sets the step and, by ``clip_rule="smoothness"``, the clip of the coordinate.

    Parameters
    ----------
    steps : int, optional
        Number of coordinate updates.
    clip : float, optional
        C in C_j = C sqrt(M_j / tr M) ("smoothness") or C_j = C / sqrt(p) ("uniform").
    clip_rule : {"smoothness", "uniform"}
    step_size : float, optional
        Step in units of 1 / M_j; by default 1, or longer if the loss turns linear well inside the range of
        targets.
    second_moments : "bounds", "private", "even" or array of shape (n_features,), optional
        Where M_j comes from: the declared feature bounds, a private release that takes ``share`` of the
        budget, an even share of the largest row norm, or declared values. By default the bounds if features
        have them, else the release.
    share : float
        Share of the budget (of the squared Gaussian parameter) for releasing second moments.
    periods : int, optional
        Restart from the mean of the iterates this many times (periodic averaging); by default the
        last iterate is returned, which does better in practice.

    Notes
    -----
    Algorithm 1 of the paper below, with the clips of its section 3.5. Its experiments are
    ``experiments/cd_balanced.py`` (Figure 1) and ``experiments/cd_dimension.py`` (Figure 2). In place of the
    price of Theorem 1, updates are composed exactly.

    References
    ----------
    Mangold, P., Bellet, A., Salmon, J. and Tommasi, M. (2022): Differentially private coordinate descent for
    composite empirical risk minimization. ICML. arXiv:2110.11688.
    """

    plan_type: ClassVar[type[Plan]] = CoordinateDescentPlan
    takes_offsets: ClassVar[bool] = True
    choices: ClassVar[dict[str, tuple[str, ...]]] = {"clip_rule": CLIP_RULES}

    steps: int | None = None
    clip: float | None = None
    clip_rule: str = "smoothness"
    step_size: float | None = None
    second_moments: str | ArrayLike | None = None
    share: float = 0.05
    periods: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        SecondMomentPrelude(self.second_moments, self.share)

    def plan_for(self, task: Task) -> CoordinateDescentPlan:
        problem, p = task.problem, task.p
        require_separable(problem, type(self).__name__)
        require_smooth(problem, type(self).__name__)
        moments = SecondMomentPrelude(self.second_moments, self.share)
        source = moments.source(problem, p)
        if task.private:
            steps, clip, step_size = default_settings(problem, task.n, p, task.noise, self.clip)
        else:
            steps, clip, step_size = 20_000 * task.dimension, self.clip or math.inf, 1.0
        steps, clip = int(self.steps or steps), task.enforced(clip)
        releases, left = moments.releases(source, task, steps=self.step_size is None)
        descent = equal_releases(CoordinateSums.name, Gaussian, steps, f"{task.moved} C_j", share=left)
        plan = CoordinateDescentPlan(
            *task.facts, (*releases, descent), steps, clip, self.clip_rule,
            float(self.step_size or step_size), source, int(self.periods or 0),
        )  # fmt: skip
        plan = plan.calibrated()
        if task.private:
            curvature = problem.loss.smoothness() * least_moment(source, plan, problem)[0]
            step = plan.step_size * clip / curvature * task.table_size / task.n
            noise = plan[CoordinateSums.name].mechanism.noise * task.moved / task.table_size
            task.require_reach(problem.start(p), steps, step, noise)
        return plan

    @classmethod
    def run(cls, plan: CoordinateDescentPlan, problem: Problem, curator: Curator) -> Result:
        n, p = plan.n_records, plan.n_features
        moments = second_moments(plan.second_moments, plan, problem, curator)
        curvature = problem.loss.smoothness() * moments
        step = plan.step_size / curvature
        if plan.second_moments == "bounds" and plan.budget.private:
            filled = moments_over_bounds(plan, problem, curator, plan[CoordinateSums.name].mechanism)
            step = step if filled is None else step / filled
        uniform = np.full(len(step), 1 / len(step))
        share = uniform if plan.clip_rule == "uniform" else curvature / curvature.sum()
        clips = plan.clip * np.sqrt(share)
        if plan.budget.private:
            clips = np.minimum(clips, largest_terms(problem, p))
        query = CoordinateSums(problem.loss, clips)
        rule = CoordinateRule(step / n, step, *problem.coordinate_form(p))
        if not plan.budget.private:
            return coordinate_minimiser(plan, query, rule, problem.start(p), curator)
        w, mechanism = problem.start(p), plan[query.name].mechanism
        opened = curator.open(query, w, mechanism)
        if not plan.periods:
            # Many passes end in noise that a mean removes; after few, the last point is the best.
            tail = plan.steps // 4 if plan.steps > _MANY_PASSES * len(w) else 0
            _, w = opened.descend(curator.pick(len(w), plan.steps - tail), rule)
            return Result(_mean_of(opened, curator.pick(len(w), tail), rule, w) if tail else w, plan.steps)
        for period in range(plan.periods):
            count = plan.steps // plan.periods + (period < plan.steps % plan.periods)
            w = _mean_of(opened, curator.pick(len(w), count), rule, w)
            opened = curator.open(query, w, mechanism)
        return Result(w, plan.steps)

    @classmethod
    def audit_cases(cls) -> tuple[AuditCase, ...]:
        small = partial(cls, steps=3, clip=0.1, step_size=0.1)
        sums = opposed(small(second_moments="bounds"), 2)
        moments = opposed(small(second_moments="private", share=0.9, periods=2), 2)
        intercept = opposed(small(second_moments="bounds"), 1, fit_intercept=True, crowd=7)
        beside = second_moments_case(cls(steps=3, clip=0.1, share=0.5))
        return sums, replace(moments, first=CORNERS[0], second=CORNERS[1]), intercept, beside


def default_settings(
    problem: Problem, n: int, p: int, noise: float, clip: float | None
) -> tuple[int, float, float]:
    """(steps, clip, step_size) of coordinate descent; a clip that is given is kept (docs/defaults.md)."""
    stretch = problem.stretch()
    passes = min(max(10 * (2e-3 / noise) ** 0.25, 1.0) * stretch, 50.0)
    passes = max(
        passes, min(_PASSES_OF_NOISE / noise, _MOST_PASSES, _MOST_TERMS / (n * problem.dimension(p)))
    )
    steps = math.ceil(passes * problem.dimension(p))
    found = clip_of_gradients(problem, p, noise, clip)[0]
    if clip is None:  # coordinates share the norm of a row, and one entry may be as long as the row
        found *= max(1.0, math.sqrt(_LITTLE_NOISE / noise))
    return steps, found, max(1.0, CROSSING_STEP * stretch)


def _mean_of(opened: OpenCoordinates, picked: NDArray[np.int64], rule: CoordinateRule, w: Vector) -> Vector:
    """The mean of the points that steps from w along these coordinates lead to."""
    moves, _ = opened.descend(picked, rule)
    count = len(picked)
    mean: Vector = w + np.bincount(picked, moves * (count - np.arange(count)) / count, minlength=len(w))
    return mean


@dataclass(frozen=True, eq=False)
class SecondMomentPrelude:
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


def moments_over_bounds(plan: Plan, problem: Problem, curator: Curator, additive: Mechanism) -> Vector | None:
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
