"""Private gradient descent, on all records or on Poisson batches."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..curator import Curator
from ..losses import Squared
from ..mechanisms import Gaussian
from ..plan import Plan, Release
from ..privacy import Budget, Neighbours
from ..problem import Problem
from ..queries import ClippedGradient
from ..sampling import Everyone, Poisson
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
    require_smooth,
    require_usual_clip,
)
from .noise_free import largest_curvature, minimise

MOST_EXACT_STEPS = 10_000
"""Limit of the steps without noise."""


@dataclass(frozen=True)
class GradientDescentPlan(Plan):
    """Plan of `GradientDescent`."""

    solver: ClassVar[str] = "gradient descent"

    steps: int
    clip: float
    step_size: float
    average: bool


@dataclass(frozen=True)
class GradientDescent(Solver):
    """w <- prox(w - step_size * (clipped mean gradient + noise)), ``steps`` times.

    Parameters
    ----------
    steps : int, optional
        Number of steps.
    clip : float, optional
        Largest L2 norm of one record's gradient; longer ones are scaled down to it.
    step_size : float, optional
        Length of a step; the default is at most 1.5 over the smoothness that the bounds imply.
    batch_size : int, optional
        Expected size of a Poisson batch; by default every step reads all records.
    average : bool
        Return the mean of the last quarter of the iterates instead of the last one.

    Notes
    -----
    With an infinite epsilon the solver returns the exact minimiser, found by accelerated steps;
    ``steps`` is then a limit, and no gradient is clipped unless ``clip`` is given.
    """

    name: ClassVar[str] = "gradient descent"

    steps: int | None = None
    clip: float | None = None
    step_size: float | None = None
    batch_size: int | None = None
    average: bool = True

    def __post_init__(self) -> None:
        proper_clip(self.clip)
        positive(step_size=self.step_size)
        positive_count(steps=self.steps, batch_size=self.batch_size)

    def plan(
        self, problem: Problem, n: int, p: int, budget: Budget, neighbours: Neighbours, fits: int = 1
    ) -> GradientDescentPlan:
        if self.step_size is None or not budget.private:
            require_smooth(problem, type(self).__name__)
        if budget.private:
            noise = noise_of_one_pass(n, budget, neighbours, fits)
            usual = defaults.gradient_descent(problem, p, noise, self.clip)
            steps, clip, step_size = self.steps or usual[0], usual[1], self.step_size or usual[2]
            require_usual_clip(clip)
        else:
            steps, clip, step_size = self.steps or MOST_EXACT_STEPS, self.clip or math.inf, 0.0
        steps, clip, step_size = int(steps), float(clip), float(step_size)
        rate = 1.0 if self.batch_size is None else min(1.0, self.batch_size / n)
        release = Release(
            query=ClippedGradient.name,
            mechanism=Gaussian(math.sqrt(steps)),
            count=steps,
            sensitivity=f"{ClippedGradient(problem.loss, clip).sensitivity(neighbours):.4g}",
            sampling=Everyone() if rate == 1.0 else Poisson(rate),
            entries=problem.dimension(p),
        )
        plan = GradientDescentPlan(
            n, p, budget, neighbours, fits, (release,), steps, clip, step_size, self.average
        )
        return plan.calibrated()

    def run(self, plan: GradientDescentPlan, problem: Problem, curator: Curator) -> Result:
        if not plan.budget.private:
            return self._minimise(plan, problem, curator)
        (release,) = plan.releases
        query = ClippedGradient(problem.loss, plan.clip)
        batch = plan.n_records * (release.sampling.rate if isinstance(release.sampling, Poisson) else 1.0)
        w = problem.start(plan.n_features)
        kept, first_kept = np.zeros_like(w), plan.steps - math.ceil(plan.steps / 4)
        for step in range(plan.steps):
            gradient = curator.release(query, release.mechanism, w, sampling=release.sampling) / batch
            w = problem.prox(w - plan.step_size * gradient, plan.step_size)
            if step >= first_kept:
                kept += w
        return Result(kept / (plan.steps - first_kept) if plan.average else w, plan.steps)

    @classmethod
    def audit_cases(cls) -> tuple[AuditCase, ...]:
        return (
            opposed(cls(steps=2, clip=0.1, step_size=0.1), 2),
            opposed(cls(steps=2, clip=0.1, step_size=0.1, batch_size=2), 1),
            opposed(cls(steps=2, clip=0.1, step_size=0.1), 1, fit_intercept=True, crowd=7),
            opposed(cls(steps=1, clip=0.1, step_size=0.1, batch_size=1), 1, crowd=3),
        )

    def _minimise(self, plan: GradientDescentPlan, problem: Problem, curator: Curator) -> Result:
        (release,) = plan.releases
        n = plan.n_records
        start = problem.start(plan.n_features)
        query = ClippedGradient(problem.loss, plan.clip)
        quadratic = ClippedGradient(Squared(), math.inf)
        origin = curator.release(quadratic, release.mechanism, np.zeros_like(start))
        curvature = largest_curvature(
            lambda v: (curator.release(quadratic, release.mechanism, v) - origin) / n, len(start)
        )
        return minimise(
            lambda w: curator.release(query, release.mechanism, w) / n,
            problem.prox,
            problem.loss.smoothness() * curvature,
            start,
            plan.steps,
        )


def exact_minimiser(plan: Plan, problem: Problem, curator: Curator) -> Result:
    """What a plan without a budget is to return, for solvers that have no better way to it."""
    solver = GradientDescent()
    exact = solver.plan(problem, plan.n_records, plan.n_features, plan.budget, plan.neighbours, plan.fits)
    return solver.run(exact, problem, curator)
