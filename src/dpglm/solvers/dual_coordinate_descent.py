"""Private dual coordinate descent: stochastic dual coordinate ascent on batches, with secret variables."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from ..curator import Curator
from ..errors import UnsupportedProblem
from ..losses import Loss
from ..mechanisms import Gaussian
from ..penalties import L2, Separable
from ..plan import Plan, Release
from ..privacy import Budget, Neighbours
from ..problem import Problem
from ..queries import DualForm, DualStep
from ..sampling import Everyone, Poisson
from . import defaults
from .base import (
    AuditCase,
    Result,
    Solver,
    noise_of_one_pass,
    opposed,
    positive_count,
    proper_clip,
    require_usual_clip,
)

_MOST_EPOCHS = 10_000
_TOLERANCE = 1e-11
_PASSES_A_ROUND = 5
_PASSES_IN_ONE_ORDER = 20
_FREEDOM = 50.0
_PATIENCE = 200
_MORE_PATIENCE = 4
_MOST_COEFFICIENTS = 500
_LEAST_WORK = 5000  # of a call, however few steps it takes


@dataclass(frozen=True)
class DualCoordinateDescentPlan(Plan):
    """Plan of `DualCoordinateDescent`."""

    solver: ClassVar[str] = "dual coordinate descent"

    steps: int
    batch_size: int
    clip: float
    overlap: float
    average: bool


@dataclass(frozen=True)
class DualCoordinateDescent(Solver):
    """Every record of a batch takes its best dual step; the sum of steps times rows is released.

    For penalties with an L2 part. There is no learning rate: a step is the exact minimiser of the record's
    part of the dual problem for squared, Huber and hinge losses, and a safeguarded Newton step for others.
    Dual variables belong to the records and stay secret, so noise goes to the released sums only.

    Parameters
    ----------
    batch_size : int, optional
        Expected size of a Poisson batch; as large as the table or larger, every step reads all records.
    clip : float, optional
        Largest L2 norm of what one record adds to a step: its dual step is scaled down to it. What is cut is
        not lost, because the record goes on from where it came to.
    steps : int, optional
        Number of steps.
    overlap : float
        How far the rows of a batch point the same way, above 0 and at most 1: predictions answer to a batch
        of L records as to 1 + overlap (L - 1) steps of one, those of others on the longest rows. With 1 no
        step is too long even if all rows are parallel. Down to a half, steps are at most twice as long as
        that and end well on any table; below, only if the largest eigenvalue of the mean outer product is
        less than twice the overlap, for rows of norm 1.
    average : bool
        Return the mean of the last quarter of the iterates instead of the last one.

    Notes
    -----
    With an infinite epsilon the solver returns the exact minimiser, by steps of one record after the other
    until the duality gap vanishes, with Newton steps in between if the slope of the loss jumps and there are
    at most 500 coefficients; with ``steps`` it takes so many steps of batches without noise. The intercept
    has no L2 part of its own and gets a small one around its start, which vanishes without noise.
    """

    name: ClassVar[str] = "dual coordinate descent"

    batch_size: int | None = None
    clip: float | None = None
    steps: int | None = None
    overlap: float = 2 / 3
    average: bool = True

    def __post_init__(self) -> None:
        proper_clip(self.clip)
        positive_count(batch_size=self.batch_size, steps=self.steps)
        if not 0 < self.overlap <= 1:
            raise ValueError(f"overlap must be above 0 and at most 1, got {self.overlap!r}")

    def plan(
        self, problem: Problem, n: int, p: int, budget: Budget, neighbours: Neighbours, fits: int = 1
    ) -> DualCoordinateDescentPlan:
        if not (isinstance(problem.penalty, Separable) and problem.penalty.strong_convexity > 0):
            raise UnsupportedProblem(
                f"{type(self).__name__} needs a penalty with an L2 part, such as L2 or ElasticNet, "
                f"not {problem.penalty!r}"
            )
        if not budget.private:
            if type(problem.loss).conjugate is Loss.conjugate:
                raise UnsupportedProblem(
                    f"{type(self).__name__} without noise needs the conjugate of the loss, which "
                    f"{problem.loss.name} does not tell"
                )
            batch_size = self.batch_size or 1 if self.steps else 1
            clip, steps = self.clip or math.inf, self.steps or n * _MOST_EPOCHS
        else:
            noise = noise_of_one_pass(n, budget, neighbours, fits)
            batch_size, clip, steps = defaults.dual_coordinate_descent(
                problem,
                n,
                p,
                noise,
                self.batch_size,
                self.clip,
                self.steps,
                self.overlap,
                _intercept(problem, p)[1],
            )
            require_usual_clip(clip)
        batch_size, clip, steps = min(int(batch_size), n), float(clip), int(steps)
        release = Release(
            query=DualStep.name,
            mechanism=Gaussian(math.sqrt(steps)),
            count=steps,
            sensitivity=f"{neighbours.records_moved * clip:.4g}",
            sampling=Everyone() if batch_size == n else Poisson(batch_size / n),
            entries=problem.dimension(p),
        )
        return DualCoordinateDescentPlan(
            n,
            p,
            budget,
            neighbours,
            fits,
            (release,),
            steps,
            batch_size,
            clip,
            float(self.overlap),
            self.average,
        ).calibrated()

    def run(self, plan: DualCoordinateDescentPlan, problem: Problem, curator: Curator) -> Result:
        form = _form(problem, plan)
        query = _query(problem, plan)
        v = np.zeros(len(form.l2))
        if not plan.budget.private and self.steps is None:
            return _minimise(plan, form, query, curator)
        w = form.point(v)
        opened = curator.open(query, w)
        (release,) = plan.releases
        kept, first_kept = np.zeros_like(w), plan.steps - math.ceil(plan.steps / 4)
        for step in range(plan.steps):
            v += opened.step(w, release.mechanism, release.sampling)
            w = form.point(v)
            if step >= first_kept:
                kept += w
        if plan.average:
            w = kept / (plan.steps - first_kept)
        gap = None if plan.budget.private else opened.gap(w, form.around(w), release.mechanism)[0]
        return Result(w, plan.steps, gap)

    @classmethod
    def audit_cases(cls) -> tuple[AuditCase, ...]:
        # The dual variable is never as far as a slope: every step is cut, as the first.
        return tuple(
            replace(case, problem=replace(case.problem, penalty=L2(1.0)))
            for case in (
                opposed(cls(steps=2, clip=0.1, batch_size=8), 2),
                opposed(cls(steps=2, clip=0.1, batch_size=2), 1),
                # The intercept, held by little, makes every step short.
                opposed(cls(steps=2, clip=5e-4, batch_size=8), 1, fit_intercept=True, crowd=7),
                opposed(cls(steps=1, clip=0.1, batch_size=1), 1, crowd=3),
            )
        )


def _intercept(problem: Problem, p: int) -> tuple[float, float]:
    """Strength of the L2 part of the intercept, and the squared constant feature over it.

    The strength is that of the other coefficients, or little beside the curvature along the intercept.
    """
    if not problem.fit_intercept:
        return 1.0, 0.0
    square = problem.constant(p) ** 2
    strength = min(problem.penalty.strong_convexity, problem.bend() * square / _FREEDOM)
    return strength, square / strength


def _form(problem: Problem, plan: DualCoordinateDescentPlan) -> DualForm:
    p = plan.n_features
    l1, l2, low, high = problem.coordinate_form(p)
    _, intercept = problem.split(l2)
    intercept[:] = _intercept(problem, p)[0]
    form = DualForm(plan.n_records, l1, l2, low, high, intercept=problem.fit_intercept)
    return form.around(problem.start(p))


def _query(problem: Problem, plan: DualCoordinateDescentPlan) -> DualStep:
    n, p = plan.n_records, plan.n_features
    strength, (intercept, _) = problem.penalty.strong_convexity, _intercept(problem, p)
    largest = problem.bounds.radius(p) ** 2 / strength + problem.constant(p) ** 2 / intercept
    shared = plan.overlap * (plan.batch_size - 1) / n * largest if plan.batch_size > 1 else 0.0
    return DualStep(problem.loss, plan.clip, 1 / (n * strength), 1 / (n * intercept), shared)


def _minimise(plan: DualCoordinateDescentPlan, form: DualForm, query: DualStep, curator: Curator) -> Result:
    """Passes over the records in random order, and Newton steps if these are slow, until the gap vanishes.

    Records that a pass leaves where they are, at an end of their range, rest until the next round. After
    each round the intercept is held around where it came to, or farther on if it keeps going: what holds it
    vanishes. Newton steps are for slopes that jump, where passes are slow, and for few features.
    """
    n, nothing = plan.n_records, plan.releases[0].mechanism
    v = np.zeros(len(form.l2))
    opened = curator.open(query, form.point(v))
    steps, stride, before = 0, 1.0, 0.0
    jumps = not math.isfinite(query.loss.smoothness())
    work, patience = 0, _PATIENCE * n if jumps and len(v) <= _MOST_COEFFICIENTS else math.inf
    while True:
        moving, visits = np.arange(n), 0
        while len(moving) and visits < _PASSES_A_ROUND * n:
            order = moving[np.argsort(curator.pick(1 << 62, len(moving)))]
            passes = min(n // len(moving), _PASSES_IN_ONE_ORDER)
            v, moving, taken = opened.ascend(v, form, order, passes, nothing)
            visits += taken
            work += max(taken, _LEAST_WORK)
        steps += visits
        w = form.point(v)
        gap, objective = opened.gap(w, form.around(w), nothing)
        if gap > _TOLERANCE * abs(objective) and work >= patience:
            w, v, taken = opened.polish(w, form.around(w), _TOLERANCE, nothing)
            gap, objective = opened.gap(w, form.around(w), nothing)
            steps, work, patience = steps + taken, work + taken, _MORE_PATIENCE * (work + taken)
        if gap <= _TOLERANCE * abs(objective) or steps >= plan.steps:
            return Result(w, steps, gap)
        if form.intercept:
            move = form.around(w).centre - form.centre
            stride = 2 * stride if move * before > 0 and abs(move) > abs(before) / 2 else 1.0
            form, before = replace(form, centre=form.centre + stride * move), move
