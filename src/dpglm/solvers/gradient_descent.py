"""Private gradient descent, on all records or on Poisson batches."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from ..curator import Curator
from ..mechanisms import Gaussian
from ..mechanisms.sampling import Poisson
from ..plan import Plan, Releasable
from ..problem import Problem
from ..queries import ClippedGradient
from .averaging import LastQuarter
from .base import AuditCase, Result, Solver, Task, equal_releases, opposed, require_smooth
from .defaults import CROSSING_STEP, MOST_PRIVATE_STEPS, PREDICTION_NOISE, clip_of_gradients
from .noise_free import STEPS_WITHOUT_NOISE, exact_minimiser

LONGEST_STEP = 1.5


@dataclass(frozen=True)
class GradientDescentPlan(Plan):
    """Plan of `GradientDescent`."""

    solver: ClassVar[str] = "gradient descent"
    may_release: ClassVar[Releasable] = {ClippedGradient.name: (Gaussian,)}

    clip: float
    step_size: float
    average: bool


@dataclass(frozen=True)
class GradientDescent(Solver[GradientDescentPlan]):
    """w <- prox(w - step_size * (clipped mean gradient + noise)), ``steps`` times.

    Parameters
    ----------
    steps : int, optional
        Number of steps. By default it follows from the budget: at most 500, or 200 if the table is read anew
        in every pass.
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

    plan_type: ClassVar[type[Plan]] = GradientDescentPlan

    steps: int | None = None
    clip: float | None = None
    step_size: float | None = None
    batch_size: int | None = None
    average: bool = True

    def plan_for(self, task: Task) -> GradientDescentPlan:
        if self.step_size is None or not task.private:
            require_smooth(task.problem, type(self).__name__)
        if task.private:
            # With given steps the step size is the same for every kind of table, and so is the fit.
            most = MOST_PRIVATE_STEPS if self.steps else task.affordable(MOST_PRIVATE_STEPS)
            steps, clip, step_size = default_settings(task.problem, task.p, task.noise, self.clip, most)
            step_size = float(self.step_size or step_size)
        else:
            steps, clip, step_size = STEPS_WITHOUT_NOISE, self.clip or math.inf, 0.0
        steps, clip = int(self.steps or steps), task.enforced(clip)
        sensitivity = ClippedGradient(task.problem.loss, clip).sensitivity(task.neighbours)
        release = equal_releases(
            ClippedGradient.name, Gaussian, steps, sensitivity,
            sampling=task.batches(self.batch_size), entries=task.dimension,
        )  # fmt: skip
        plan = GradientDescentPlan(*task.facts, (release,), steps, clip, step_size, self.average)
        return plan.calibrated()

    @classmethod
    def run(cls, plan: GradientDescentPlan, problem: Problem, curator: Curator) -> Result:
        if not plan.budget.private:
            return exact_minimiser(plan, problem, curator, plan.clip)
        query = ClippedGradient(problem.loss, plan.clip)
        release = plan[query.name]
        batch = plan.n_records * (release.sampling.rate if isinstance(release.sampling, Poisson) else 1.0)
        w = problem.start(plan.n_features)
        tail = LastQuarter(plan.steps, w)
        for _ in range(plan.steps):
            gradient = curator.release(query, release.mechanism, w, sampling=release.sampling) / batch
            w = problem.prox(w - plan.step_size * gradient, plan.step_size)
            tail.add(w)
        return Result(tail.mean if plan.average else w, plan.steps)

    @classmethod
    def audit_cases(cls) -> tuple[AuditCase, ...]:
        return (
            opposed(cls(steps=2, clip=0.1, step_size=0.1), 2),
            opposed(cls(steps=2, clip=0.1, step_size=0.1, batch_size=2), 1),
            opposed(cls(steps=2, clip=0.1, step_size=0.1), 1, fit_intercept=True, crowd=7),
            opposed(cls(steps=1, clip=0.1, step_size=0.1, batch_size=1), 1, crowd=3),
        )


def default_settings(
    problem: Problem, p: int, noise: float, clip: float | None, most: int = MOST_PRIVATE_STEPS
) -> tuple[int, float, float]:
    """(steps, clip, step_size) of gradient descent; a clip that is given is kept (docs/defaults.md).

    There are at most ``most`` steps.
    """
    clip, fraction = clip_of_gradients(problem, p, noise, clip)
    smoothness, stretch = problem.smoothness(p), problem.stretch()
    time = PREDICTION_NOISE * stretch / (noise * fraction)
    if problem.penalty.strong_convexity > 0:
        time = min(time, max(1.0, 5 * smoothness / problem.penalty.strong_convexity))
    steps = min(max(math.ceil(time), 1), most)
    return steps, clip, min(time / steps, max(LONGEST_STEP, CROSSING_STEP * stretch)) / smoothness
