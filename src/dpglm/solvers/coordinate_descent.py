"""Private coordinate descent (Mangold, Bellet, Salmon and Tommasi, Algorithm 1)."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..arrays import Vector
from ..curator import Curator
from ..mechanisms import Gaussian
from ..plan import Plan, Releasable
from ..problem import Problem
from ..queries import CoordinateRule, CoordinateSums, OpenCoordinates, SecondMoments
from .audit_cases import CORNERS, AuditCase, of_moments_beside_bounds, opposed
from .base import CROSSING_STEP, Result, Solver, Task, clip_of_gradients, equal_releases, require_smooth
from .preludes import (
    SOURCES,
    Moments,
    Source,
    beside_bounds,
    largest_terms,
    least_moment,
    require_separable,
    second_moments,
)

CLIP_RULES = ("smoothness", "uniform")
_SETTLED = 1e-7
_MEMORY = 5
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
        Moments(self.second_moments, self.share)

    def plan_for(self, task: Task) -> CoordinateDescentPlan:
        problem, p = task.problem, task.p
        require_separable(problem, type(self).__name__)
        require_smooth(problem, type(self).__name__)
        moments = Moments(self.second_moments, self.share)
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
            filled = beside_bounds(plan, problem, curator, plan[CoordinateSums.name].mechanism)
            step = step if filled is None else step / filled
        uniform = np.full(len(step), 1 / len(step))
        share = uniform if plan.clip_rule == "uniform" else curvature / curvature.sum()
        clips = plan.clip * np.sqrt(share)
        if plan.budget.private:
            clips = np.minimum(clips, largest_terms(problem, p))
        query = CoordinateSums(problem.loss, clips)
        rule = CoordinateRule(step / n, step, *problem.coordinate_form(p))
        if not plan.budget.private:
            return _settle(plan, query, rule, problem.start(p), curator)
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
        beside = of_moments_beside_bounds(cls(steps=3, clip=0.1, share=0.5))
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


def _settle(
    plan: CoordinateDescentPlan, query: CoordinateSums, rule: CoordinateRule, w: Vector, curator: Curator
) -> Result:
    """Cyclic passes without noise until no coordinate moves, extrapolated (Bertrand and Massias, 2021).

    Every few passes the next point is the combination of the last ones whose moves nearly cancel; it is
    kept if the following pass moves less than the one before.
    """
    everything = np.arange(len(w))
    scale = 1.0 / np.sqrt(rule.step)
    nothing = Gaussian(0.0)
    opened, path, fallback, change, first = curator.open(query, w, nothing), [w], w, math.inf, 0.0
    done, passes = 0, max(1, plan.steps // len(w))
    while done < passes:
        done += 1
        moves, w = opened.descend(everything, rule)
        moved = float(np.linalg.norm(moves * scale))
        first = first or moved
        if moved <= _SETTLED * first:
            break
        if len(path) == 1 and moved > change:
            opened, path, w, moved = curator.open(query, fallback, nothing), [], fallback, math.inf
        path.append(w)
        change = moved
        if len(path) > _MEMORY:
            fallback, w = w, _extrapolated(np.array(path), scale)
            opened, path = curator.open(query, w, nothing), [w]
    return Result(w, done * len(w))


def _extrapolated(path: Vector, scale: Vector) -> Vector:
    """The combination of points, with weights of sum 1, whose successive differences nearly cancel."""
    differences = np.diff(path, axis=0) * scale
    gram = differences @ differences.T
    gram += 1e-12 * np.trace(gram) * np.eye(len(gram))
    weights = np.linalg.solve(gram, np.ones(len(gram)))
    combined: Vector = weights / weights.sum() @ path[1:]
    return combined
