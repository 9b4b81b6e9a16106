"""Private coordinate descent (Mangold, Bellet, Salmon and Tommasi, Algorithm 1)."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from ..arrays import Vector
from ..curator import Curator
from ..mechanisms import Gaussian
from ..plan import Plan, Release
from ..privacy import Budget, Neighbours
from ..problem import Problem
from ..queries import CoordinateRule, CoordinateSums
from . import defaults
from .base import (
    AuditCase,
    Result,
    Solver,
    noise_of_one_pass,
    opposed,
    positive,
    positive_count,
    proper_clip,
    proper_share,
    require_smooth,
    require_usual_clip,
)
from .moments import SOURCES, Moments, require_separable

CLIP_RULES = ("smoothness", "uniform")
_SETTLED = 1e-7
_MEMORY = 5


@dataclass(frozen=True)
class CoordinateDescentPlan(Plan):
    """Plan of `CoordinateDescent`."""

    solver: ClassVar[str] = "coordinate descent"
    choices: ClassVar[dict[str, tuple[str, ...]]] = {"clip_rule": CLIP_RULES, "second_moments": SOURCES}

    steps: int
    clip: float
    clip_rule: str
    step_size: float
    second_moments: str
    periods: int


@dataclass(frozen=True, eq=False)
class CoordinateDescent(Solver):
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
    """

    name: ClassVar[str] = "coordinate descent"

    steps: int | None = None
    clip: float | None = None
    clip_rule: str = "smoothness"
    step_size: float | None = None
    second_moments: str | ArrayLike | None = None
    share: float = 0.05
    periods: int | None = None

    def __post_init__(self) -> None:
        proper_clip(self.clip)
        positive(step_size=self.step_size)
        positive_count(steps=self.steps, periods=self.periods)
        if self.clip_rule not in CLIP_RULES:
            raise ValueError(f"clip_rule must be 'smoothness' or 'uniform', got {self.clip_rule!r}")
        proper_share(share=self.share)
        Moments(self.second_moments, self.share)

    def plan(
        self, problem: Problem, n: int, p: int, budget: Budget, neighbours: Neighbours, fits: int = 1
    ) -> CoordinateDescentPlan:
        require_separable(problem, type(self).__name__)
        require_smooth(problem, type(self).__name__)
        moments = Moments(self.second_moments, self.share)
        source = moments.source(problem, p)
        if budget.private:
            noise = noise_of_one_pass(n, budget, neighbours, fits)
            usual = defaults.coordinate_descent(problem, p, noise, self.clip)
            steps, clip, step_size = self.steps or usual[0], usual[1], self.step_size or usual[2]
            require_usual_clip(clip)
        else:
            clip, steps = self.clip or math.inf, self.steps or 20_000 * problem.dimension(p)
            step_size = self.step_size or 1.0
        steps, clip, step_size = int(steps), float(clip), float(step_size)
        descent = Release(
            query=CoordinateSums.name,
            mechanism=Gaussian(math.sqrt(steps / (1 - self.share * (source == "private")))),
            count=steps,
            sensitivity=f"{neighbours.records_moved} C_j",
        )
        releases = (*moments.releases(source, problem, p, neighbours), descent)
        plan = CoordinateDescentPlan(
            n, p, budget, neighbours, fits, releases, steps, clip, self.clip_rule, step_size, source,
            int(self.periods or 0),
        )  # fmt: skip
        return plan.calibrated()

    def run(self, plan: CoordinateDescentPlan, problem: Problem, curator: Curator) -> Result:
        n, p = plan.n_records, plan.n_features
        moments = Moments(self.second_moments, self.share).values(plan.second_moments, plan, problem, curator)
        curvature = problem.loss.smoothness() * moments
        step = plan.step_size / curvature
        share = (
            curvature / curvature.sum()
            if plan.clip_rule == "smoothness"
            else np.full(len(step), 1 / len(step))
        )
        query = CoordinateSums(problem.loss, plan.clip * np.sqrt(share))
        rule = CoordinateRule(step / n, step, *problem.coordinate_form(p))
        if not plan.budget.private:
            return _settle(plan, query, rule, problem.start(p), curator)
        w = problem.start(p)
        opened = curator.open(query, w)
        periods = max(plan.periods, 1)
        for period in range(periods):
            count = plan.steps // periods + (period < plan.steps % periods)
            picked = curator.pick(len(w), count)
            moves, last = opened.descend(picked, plan.releases[-1].mechanism, rule)
            if plan.periods:
                last = w + np.bincount(picked, moves * (count - np.arange(count)) / count, minlength=len(w))
                opened = curator.open(query, last)
            w = last
        return Result(w, plan.steps)

    @classmethod
    def audit_cases(cls) -> tuple[AuditCase, ...]:
        settings: dict[str, Any] = {"steps": 3, "clip": 0.1, "step_size": 0.1}
        sums = opposed(cls(**settings, second_moments="bounds"), 2)
        # Second moments differ most between two corners of the ball, where partial derivatives differ less.
        moments = opposed(cls(**settings, second_moments="private", share=0.9, periods=2), 2)
        corners = ((np.array([1.0, 0.0]), 1.0), (np.array([0.0, 1.0]), 1.0))
        intercept = opposed(cls(**settings, second_moments="bounds"), 1, fit_intercept=True, crowd=7)
        return sums, replace(moments, first=corners[0], second=corners[1]), intercept


def _settle(
    plan: CoordinateDescentPlan, query: CoordinateSums, rule: CoordinateRule, w: Vector, curator: Curator
) -> Result:
    """Cyclic passes without noise until no coordinate moves, extrapolated (Bertrand and Massias, 2021).

    Every few passes the next point is the combination of the last ones whose moves nearly cancel; it is
    kept if the following pass moves less than the one before.
    """
    everything = np.arange(len(w))
    scale = 1.0 / np.sqrt(rule.step)
    opened, path, fallback, change, first = curator.open(query, w), [w], w, math.inf, 0.0
    done, passes = 0, max(1, plan.steps // len(w))
    while done < passes:
        done += 1
        moves, w = opened.descend(everything, Gaussian(0.0), rule)
        moved = float(np.linalg.norm(moves * scale))
        first = first or moved
        if moved <= _SETTLED * first:
            break
        if len(path) == 1 and moved > change:
            opened, path, w, moved = curator.open(query, fallback), [], fallback, math.inf
        path.append(w)
        change = moved
        if len(path) > _MEMORY:
            fallback, w = w, _extrapolated(np.array(path), scale)
            opened, path = curator.open(query, w), [w]
    return Result(w, done * len(w))


def _extrapolated(path: Vector, scale: Vector) -> Vector:
    """The combination of points, with weights of sum 1, whose successive differences nearly cancel."""
    differences = np.diff(path, axis=0) * scale
    gram = differences @ differences.T
    gram += 1e-12 * np.trace(gram) * np.eye(len(gram))
    weights = np.linalg.solve(gram, np.ones(len(gram)))
    return weights / weights.sum() @ path[1:]
