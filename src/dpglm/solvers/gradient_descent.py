"""Private gradient descent, on all records or on Poisson batches."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from ..arrays import Vector
from ..curator import Curator
from ..mechanisms import Gaussian
from ..mechanisms.sampling import Poisson
from ..plan import Plan, Releasable
from ..problem import Problem
from ..queries import ClippedGradient, RowScale
from .averaging import Tail
from .base import AuditCase, Result, Solver, Task, equal_releases, opposed, require_smooth
from .defaults import CROSSING_STEP, MOST_PRIVATE_STEPS, PREDICTION_NOISE, clip_of_gradients
from .noise_free import STEPS_WITHOUT_NOISE, exact_minimiser
from .path import visit_noisy
from .typical import NoiseForecast, learn, of_scales, release_of_scales, share_of_scales

LONGEST_STEP = 1.5
_LONGEST_STEP_OF_LABELS = 16.0
_LEAST_CLIP, _CLIP, _CLIP_NOISE = 0.12, 0.25, 6e-4
_CONSTANT = 0.25
_LEAST_STEPS, _MOST_STEPS, _FINEST_STEP = 10, 150, 0.25


@dataclass(frozen=True)
class GradientDescentPlan(NoiseForecast, Plan):
    """Plan of `GradientDescent`.

    If the size of a typical row is released, ``clip`` is in units of the gradient norm of such a row with the
    largest slope, and ``step_size`` in units of the inverse of its curvature.
    """

    solver: ClassVar[str] = "gradient descent"
    may_release: ClassVar[Releasable] = {RowScale.name: (Gaussian,), ClippedGradient.name: (Gaussian,)}

    clip: float
    step_size: float
    average: bool

    @property
    def learns_scales(self) -> bool:
        """Whether the size of a typical row is released first."""
        return any(release.query == RowScale.name for release in self.releases)


@dataclass(frozen=True)
class GradientDescent(Solver[GradientDescentPlan]):
    """w <- prox(w - step_size * (clipped mean gradient + noise)), ``steps`` times.

    Parameters
    ----------
    steps : int, optional
        Number of steps. By default it follows from the budget: from 10 to 150.
    clip : float, optional
        Largest L2 norm of one record's gradient; longer ones are scaled down to it.
    step_size : float, optional
        Length of a step.
    batch_size : int, optional
        Expected size of a Poisson batch; by default every step reads all records.
    average : bool
        Return the mean of the last quarter of the iterates instead of the last one.

    Notes
    -----
    If neither ``clip`` nor ``step_size`` is given, both are sized by a typical row: a small share of the
    budget, 2 % for most tables, is spent on the mean squared norm of rows and on the mean target, from which
    the intercept starts. If one of them is given, the other follows from the declared bounds.

    With an infinite epsilon the solver returns the exact minimiser, found by accelerated steps;
    ``steps`` is then a limit, and no gradient is clipped unless ``clip`` is given.
    """

    plan_type: ClassVar[type[Plan]] = GradientDescentPlan
    path: ClassVar[tuple[str, ...]] = ("steps",)

    steps: int | None = None
    clip: float | None = None
    step_size: float | None = None
    batch_size: int | None = None
    average: bool = True

    def plan_for(self, task: Task) -> GradientDescentPlan:
        if self.step_size is None or not task.private:
            require_smooth(task.problem, type(self).__name__)
        scales = 0.0
        if not task.private:
            steps, clip, step_size = STEPS_WITHOUT_NOISE, task.enforced(self.clip or math.inf), 0.0
        elif self.clip is None and self.step_size is None and share_of_scales(task) > 0:
            scales = share_of_scales(task)
            steps, clip, step_size = typical_settings(task, 1.0 - scales, self.steps)
        else:
            # With given steps the step size is the same for every kind of table, and so is the fit.
            most = MOST_PRIVATE_STEPS if self.steps else task.affordable(MOST_PRIVATE_STEPS)
            steps, clip, step_size = default_settings(task.problem, task.p, task.noise, self.clip, most)
            step_size, clip = float(self.step_size or step_size), task.enforced(clip)
        steps = int(self.steps or steps)
        stated: float | str = f"{task.moved} x clip"
        if not scales:
            stated = ClippedGradient(task.problem.loss, clip).sensitivity(task.neighbours)
        gradients = equal_releases(
            ClippedGradient.name, Gaussian, steps, stated, share=1.0 - scales,
            sampling=task.batches(self.batch_size), entries=task.dimension,
        )  # fmt: skip
        releases = (release_of_scales(task, scales), gradients) if scales else (gradients,)
        return GradientDescentPlan(*task.facts, releases, steps, clip, step_size, self.average).calibrated()

    @classmethod
    def run(cls, plan: GradientDescentPlan, problem: Problem, curator: Curator) -> Result:
        if not plan.budget.private:
            return exact_minimiser(plan, problem, curator, plan.clip)
        query, step_size, w = _started(plan, problem, curator)
        release = plan[query.name]
        batch = plan.n_records * (release.sampling.rate if isinstance(release.sampling, Poisson) else 1.0)
        tail = Tail(plan.steps, w)
        scale = 1.0 if query.constant is None else query.constant / problem.constant(plan.n_features)

        def finished(w: Vector) -> Vector:
            features, intercept = problem.split(w)
            return problem.join(features, scale * intercept)

        for step in range(1, plan.steps + 1):
            gradient = curator.release(query, release.mechanism, w, sampling=release.sampling) / batch
            w = problem.prox(w - step_size * gradient, step_size)
            tail.add(w)
            visit_noisy(step, w, finished)
        return Result(finished(tail.mean if plan.average else w), plan.steps)

    @classmethod
    def audit_cases(cls) -> tuple[AuditCase, ...]:
        return (
            opposed(cls(steps=2, clip=0.1, step_size=0.1), 2),
            opposed(cls(steps=2, clip=0.1, step_size=0.1, batch_size=2), 1),
            opposed(cls(steps=2, clip=0.1, step_size=0.1), 1, fit_intercept=True, crowd=7),
            opposed(cls(steps=1, clip=0.1, step_size=0.1, batch_size=1), 1, crowd=3),
            of_scales(cls(steps=1)),
        )


def _started(
    plan: GradientDescentPlan, problem: Problem, curator: Curator
) -> tuple[ClippedGradient, float, Vector]:
    """The query of every step, the step size and the start."""
    w = problem.start(plan.n_features)
    if not plan.learns_scales:
        return ClippedGradient(problem.loss, plan.clip), plan.step_size, w
    typical = learn(plan, problem, curator, None)
    constant = _CONSTANT * typical.norm if problem.fit_intercept else None
    radius = math.hypot(typical.norm, constant or 0.0)
    query = ClippedGradient(problem.loss, plan.clip * problem.slope_bound() * radius, constant)
    if constant is not None:
        problem.split(w)[1][:] = typical.start / constant
    return query, plan.step_size / (problem.loss.smoothness() * radius**2), w


def typical_settings(task: Task, share: float, given: int | None) -> tuple[int, float, float]:
    """(steps, clip, step_size) in units of a typical row, with a share of the budget (docs/defaults.md)."""
    problem, noise = task.problem, task.noise / math.sqrt(share)
    clip = min(max(_CLIP * (_CLIP_NOISE / task.noise) ** (1 / 3), _LEAST_CLIP), 1.0)
    for length in (0.1, 1.0):
        task.enforced(clip * problem.slope_bound() * problem.radius(task.p) * length)
    time = PREDICTION_NOISE * problem.stretch() / (noise * clip)
    if problem.penalty.strong_convexity > 0:
        time = min(time, max(1.0, 5 * problem.smoothness(task.p) / problem.penalty.strong_convexity))
    steps = given or min(max(math.ceil(time / _FINEST_STEP), _LEAST_STEPS), _MOST_STEPS)
    labels = problem.loss.kind == "classification"
    longest = _LONGEST_STEP_OF_LABELS if labels else LONGEST_STEP
    return steps, clip, min(time / steps, max(longest, CROSSING_STEP * problem.stretch()))


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
