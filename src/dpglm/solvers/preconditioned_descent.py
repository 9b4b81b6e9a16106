"""Gradient descent in the metric of a private Gram matrix."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from ..arrays import one_blas_thread
from ..curator import Curator
from ..errors import UnsupportedProblem
from ..losses import Loss
from ..mechanisms import Gaussian
from ..penalties import L2, Penalty
from ..plan import Plan, Releasable
from ..problem import Problem
from ..queries import (
    Gram,
    MeanRow,
    MetricGradient,
    MetricMultinomialGradient,
    Recalibration,
    metric_gradient_of,
)
from .averaging import Tail
from .base import AuditCase, Result, Solver, Task, equal_releases, opposed, require_smooth
from .centring import centred, of_mean, release_of_mean, share_of_mean
from .classes import opposed_classes
from .derived import Quadratic, optimism_of
from .metric import learn_metric, release_of_gram
from .metric_settings import allowed_noise, clip_share, longest_step, usual_leverage, usual_steps
from .noise_free import STEPS_WITHOUT_NOISE, exact_minimiser
from .path import offer, visit_noisy
from .recalibration import (
    Expected,
    of_recalibration,
    recalibrated,
    release_of_recalibration,
    share_of_recalibration,
)
from .secant import Secant
from .typical import (
    SCALES,
    NoiseForecast,
    largest_slope,
    learn,
    of_spread,
    release_of_scales,
    share_of_scales,
)

MOST_FEATURES = 1_000
GRAM_SHARE = 0.15
_MOST_MOMENTUM = 0.8
_CROWD = 119


@dataclass(frozen=True)
class PreconditionedDescentPlan(NoiseForecast, Plan):
    """Plan of `PreconditionedDescent`.

    ``leverage`` is the length in the metric from which on rows are weighted down, in units of the root of the
    effective dimension. ``clip`` is in units of the largest usual slope times that length, ``time`` the sum
    of the lengths of all steps if all dimensions are effective.
    """

    solver: ClassVar[str] = "preconditioned descent"
    may_release: ClassVar[Releasable] = {
        **SCALES, MeanRow.name: (Gaussian,), Gram.name: (Gaussian,), MetricGradient.name: (Gaussian,),
        MetricMultinomialGradient.name: (Gaussian,), Recalibration.name: (Gaussian,),
    }  # fmt: skip

    clip: float
    time: float
    leverage: float


@dataclass(frozen=True)
class PreconditionedDescent(Solver[PreconditionedDescentPlan]):
    """Gradient descent in the metric of a private Gram matrix: for tables of at most 1,000 features.

    The first release is the size of a typical row, with the mean target and the spread of real targets. The
    second is the mean row, by which rows are moved if there is an intercept. The third is the Gram matrix of
    the moved rows, scaled down to their typical size. Directions that noise does not hide get
    steps of their own length. Then come gradients in that metric, clipped there; the mean of the last half of
    the iterates is returned. Records whose rows are long in the metric, as those of a rare level, are
    weighted down to a typical length, so that their slopes are not cut more than those of others. A logistic
    regression ends with two rounds of Newton's method for its scale and intercept, if their noise is small.

    Parameters
    ----------
    steps : int, optional
        Number of gradients. By default from 8 to 60, as the budget allows and the clip needs.
    clip : float, optional
        Largest norm of a record's gradient in the metric, in units of the largest usual slope times the
        length from which on rows are weighted down. The usual slopes are those of targets within two standard
        deviations; no clip is above the largest slope. By default it falls as noise hides more directions,
        from 1 to 0.12 for labels and from 25 to 0.02 for real targets.
    gram_share : float
        Share of the budget for the Gram matrix.

    Notes
    -----
    Features are scaled by their declared bounds, so their units do not matter. It serves smooth losses with
    an L2 penalty or none. With an infinite epsilon it returns the exact minimiser.
    """

    plan_type: ClassVar[type[Plan]] = PreconditionedDescentPlan
    path: ClassVar[tuple[str, ...]] = ("steps", "ridge", "sparse", "gram")
    takes_outputs: ClassVar[bool] = True
    takes_weights: ClassVar[bool] = True
    takes_offsets: ClassVar[bool] = True
    takes_units: ClassVar[bool] = True

    steps: int | None = None
    clip: float | None = None
    gram_share: float = GRAM_SHARE

    def plan_for(self, task: Task) -> PreconditionedDescentPlan:
        _require_suited(task)
        if not task.private:
            return PreconditionedDescentPlan(*task.facts, (), STEPS_WITHOUT_NOISE, math.inf, 0.0, math.inf)
        clip = float(self.clip or clip_share(task))
        scales, last = share_of_scales(task), share_of_recalibration(task, clip)
        mean, leverage = share_of_mean(task), usual_leverage(task)
        left = 1.0 - scales - mean - last - self.gram_share
        if left <= 0:
            raise ValueError(
                f"gram_share must leave a part of the budget for gradients: {scales + mean + last:.2g} of it "
                f"is for size and mean of rows and for the recalibration, got {self.gram_share!r}"
            )
        time = allowed_noise(task) * math.sqrt(left) / (task.noise * clip * leverage * task.width)
        steps = self.steps or usual_steps(task, clip, time)
        for length in (1e-3, 1e3):
            task.enforced(clip * leverage * task.problem.slope_bound() * length)
        gradient_name = (MetricGradient if task.problem.outputs == 1 else MetricMultinomialGradient).name
        releases = [
            release_of_gram(task, self.gram_share),
            equal_releases(
                gradient_name, Gaussian, steps, f"{task.moved} x clip", share=left,
                entries=task.dimension,
            ),
        ]  # fmt: skip
        if mean:
            releases.insert(0, release_of_mean(task, mean))
        if scales:
            releases.insert(0, release_of_scales(task, scales, spread=True))
        if last:
            releases.append(release_of_recalibration(task, last))
        return PreconditionedDescentPlan(
            *task.facts, tuple(releases), steps, clip, time, leverage
        ).calibrated()

    @classmethod
    def run(cls, plan: PreconditionedDescentPlan, problem: Problem, curator: Curator) -> Result:
        if not plan.budget.private:
            return exact_minimiser(plan, problem, curator)
        coordinates = problem.bounds.coordinates(plan.n_features, problem.fit_intercept)
        typical = learn(plan, problem, curator, replace(coordinates, intercept=False))
        coordinates, typical, deviations = centred(plan, curator, coordinates, typical)
        with one_blas_thread():
            metric = learn_metric(plan, problem, curator, coordinates, typical, deviations, plan.leverage)
        smoothness, leverage = problem.bend(), plan.leverage * math.sqrt(metric.rank)
        query = metric_gradient_of(
            problem.loss, coordinates, metric.transform,
            largest_slope(plan.clip, problem, typical) * leverage, leverage, plan.table_size,
        )  # fmt: skip
        time = plan.time * metric.dimension / metric.rank
        longest = longest_step(problem, typical)
        step = min(longest, time / plan.steps) / smoothness
        # The curvature of labels is below its bound.
        most = _MOST_MOMENTUM if problem.loss.kind == "classification" else 0.0
        momentum = min(max(0.0, 1.0 - plan.steps * longest / time), most)
        w = ahead = metric.start
        mechanism = plan[query.name].mechanism
        noise = mechanism.noise * query.sensitivity(plan.neighbours) / plan.n_records
        gradients, secant = curator.open(query, w, mechanism), Secant(step, momentum, noise)
        tail = Tail(plan.steps, w, share=0.5)
        for t in range(plan.steps):
            gradient = problem.centred(gradients.release(ahead)) / plan.n_records + metric.pull(ahead)
            secant.see(ahead, gradient)
            before, w = w, ahead - secant.step_size * gradient
            ahead = w + min(secant.momentum, t / (t + 3)) * (w - before)
            tail.add(w)
            visit_noisy(t + 1, w, metric.to_records.__matmul__)
        found = np.ravel(metric.to_records @ tail.mean)
        expected = Expected(metric.spread(tail.mean), problem.penalty.strong_convexity)
        found = recalibrated(plan, problem, curator, found, typical, expected)
        optimism = optimism_of(problem, typical.spread)
        quadratic = Quadratic(metric.to_records, metric.unit_ridge, optimism)
        offer(lambda: quadratic.ridge_models(found))
        offer(lambda: quadratic.sparse_models(problem, found))
        return Result(found, plan.steps, records=typical.records or metric.records)

    @classmethod
    def audit_cases(cls) -> tuple[AuditCase, ...]:
        """Opposed gradients, orthogonal rows for Gram matrices, targets far apart, and opposite rows."""
        gradients = opposed(cls(steps=2, gram_share=0.02), 2, crowd=7)
        gram = replace(gradients, solver=cls(steps=1, gram_share=0.95), second=(np.array([0.6, 0.8]), 1.0))
        empty = np.zeros((_CROWD, 2)), np.resize([1.0, -1.0], _CROWD)
        twice = replace(gram, solver=cls(steps=1, gram_share=0.75), bystanders=empty)
        constant = opposed(cls(steps=1), 1, fit_intercept=True, crowd=7)
        classes = opposed_classes(cls(steps=2, gram_share=0.02), crowd=7)
        spread = of_spread(cls(steps=1, gram_share=0.02))
        mean = of_mean(cls(steps=1, gram_share=0.02))
        persons = gradients.persons(3, 30), gram.persons(30, 3), mean.persons(first=1, second=20)
        last = of_recalibration(cls(steps=1, clip=0.1, gram_share=0.02))
        return gradients, gram, constant, classes, *persons, spread, mean, last, twice


def serves(loss: Loss, penalty: Penalty) -> bool:
    """Whether the solver fits the loss with the penalty."""
    smooth = math.isfinite(loss.smoothness()) and loss.kind != "count"
    return smooth and (penalty.is_zero or type(penalty) is L2)


def _require_suited(task: Task) -> None:
    """Refuse what the solver does not serve, and name what does."""
    problem = task.problem
    require_smooth(problem, PreconditionedDescent.__name__)
    if not serves(problem.loss, problem.penalty):
        raise UnsupportedProblem(
            "PreconditionedDescent takes an L2 penalty or none, and losses for labels and real targets: use "
            "GradientDescent"
        )
    if task.p > MOST_FEATURES:
        raise UnsupportedProblem(
            f"PreconditionedDescent is for at most {MOST_FEATURES} features, the table has {task.p}: use "
            "GradientDescent"
        )
