"""Output perturbation: the exact minimiser, released once with noise."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..arrays import Vector
from ..curator import Curator
from ..mechanisms import Gaussian
from ..penalties import L2
from ..plan import PassCount, Plan, Releasable, Release
from ..problem import Problem
from ..queries import Minimiser
from ..queries.proximal_gradient import fallback_steps
from .base import AuditCase, Result, Solver, Task, equal_releases, opposed, require_smooth
from .defaults import clip_of_gradients
from .noise_free import STEPS_WITHOUT_NOISE, exact_minimiser

_USUAL_SHARE, _USUAL_BESIDES = 1 / 12, 20
_LEAST_LIMIT, _MOST_TIMES, _MOST_BESIDES = 1_000, 8, 5_000


@dataclass(frozen=True)
class OutputPerturbationPlan(Plan):
    """Plan of `OutputPerturbation`."""

    solver: ClassVar[str] = "output perturbation"
    may_release: ClassVar[Releasable] = {Minimiser.name: (Gaussian,)}

    clip: float
    strength: float
    sparse: bool
    search_steps: int

    def _passes_of_a_fit(self) -> PassCount:
        return passes_of_search(self.search_steps)


@dataclass(frozen=True)
class OutputPerturbation(Solver[OutputPerturbationPlan]):
    """The minimiser of loss + penalty, found exactly and released once with Gaussian noise.

    For any penalty with an L2 part: one record moves the minimiser by at most twice its largest gradient
    norm over n times the strength of that part. So noise falls as the L2 part grows, and is large for a weak
    one. `ObjectivePerturbation` needs less noise.

    Parameters
    ----------
    clip : float, optional
        Largest L2 norm of one record's gradient. Where the gradient would exceed it, the loss is continued as
        a straight line.
    sparse : bool
        Set coefficients to 0 that noise alone could explain, if the penalty induces zeros, and level jumps
        that it could explain, if the penalty draws coefficients to equal values (see ``Penalty.denoised``).

    Notes
    -----
    The intercept gets the L2 part of the other coefficients, around its start. With an infinite epsilon the
    solver returns the exact minimiser, without that L2 part, clipping and ``sparse``.

    References
    ----------
    Chaudhuri, Monteleoni and Sarwate, "Differentially private empirical risk minimization", Journal of
    Machine Learning Research 12, 2011, arXiv:0912.0071: output perturbation, here with Gaussian noise.

    Kumar and Deisenroth, "Differentially private empirical risk minimization with sparsity-inducing norms",
    2019, arXiv:1905.04873: section 4.1, with the L2 part that its Theorem 1 lacks.
    """

    plan_type: ClassVar[type[Plan]] = OutputPerturbationPlan
    takes_weights: ClassVar[bool] = True
    takes_offsets: ClassVar[bool] = True
    takes_units: ClassVar[bool] = True

    clip: float | None = None
    sparse: bool = True

    def plan_for(self, task: Task) -> OutputPerturbationPlan:
        problem = task.problem
        require_smooth(problem, type(self).__name__)
        releases: tuple[Release, ...] = ()
        steps, clip, strength, search = STEPS_WITHOUT_NOISE, 0.0, problem.penalty.strong_convexity, 0
        if task.private:
            steps, clip = 1, task.enforced(default_clip(problem, task.p, task.noise, self.clip))
            query = minimiser(problem, task.n, task.p, clip, table_size=task.table_size)
            sensitivity, search = query.sensitivity(task.neighbours), steps_of_search(query)
            releases = (equal_releases(query.name, Gaussian, 1, sensitivity, entries=task.dimension),)
        plan = OutputPerturbationPlan(*task.facts, releases, steps, clip, strength, self.sparse, search)
        return plan.calibrated()

    @classmethod
    def run(cls, plan: OutputPerturbationPlan, problem: Problem, curator: Curator) -> Result:
        if not plan.budget.private:
            return exact_minimiser(plan, problem, curator)
        p = plan.n_features
        query = minimiser(problem, plan.n_records, p, plan.clip, table_size=plan.table_size)
        mechanism = plan[query.name].mechanism
        start = problem.start(p)
        w = curator.release(query, mechanism, np.zeros_like(start), start)
        if plan.sparse:
            noise = mechanism.noise * float(query.sensitivity(plan.neighbours))
            features, _ = problem.split(w)
            features[:] = problem.penalty.denoised(features, noise)
        return Result(problem.prox(w, 0.0), plan.steps)

    @classmethod
    def audit_cases(cls) -> tuple[AuditCase, ...]:
        return (
            opposed(cls(clip=0.1), 2, L2(1.0)),
            opposed(cls(clip=0.1), 1, L2(1.0), fit_intercept=True, crowd=7),
            opposed(cls(clip=0.1), 1, L2(1.0), fit_intercept=True, crowd=7).beside(weight=3.0, offset=0.5),
            opposed(cls(clip=0.1), 2, L2(1.0)).persons(first=12, second=3),
        )


def steps_of_search(query: Minimiser) -> int:
    """How many steps are enough to find the minimiser over any table; each reads the table once."""
    tolerance = query.tolerance(query.push, closely=True)
    return fallback_steps(query.condition, query.farthest(query.push) * query.strength / tolerance)


def passes_of_search(steps: int) -> PassCount:
    """The passes of a search for a minimiser, for which so many steps are enough.

    A power iteration and fast steps come first, which usually end long before (docs/defaults.md). In doubles
    and in pairs of doubles they are given up after as many steps, which blocks of growing length exceed up to
    three times; then follow the steps that are enough for any table. Extrapolation and certificates are
    beside these.
    """
    usual = _USUAL_BESIDES + math.ceil(steps * _USUAL_SHARE)
    return PassCount(usual, _MOST_TIMES * max(steps, _LEAST_LIMIT) + _MOST_BESIDES)


def default_clip(problem: Problem, p: int, noise: float, clip: float | None) -> float:
    """The clip of output perturbation: the given one, or the default, at most the largest gradient."""
    largest = problem.loss.lipschitz(problem.bounds.target) * problem.radius(p)
    return min(clip_of_gradients(problem, p, noise, clip)[0], largest)


def minimiser(
    problem: Problem, n: int, p: int, clip: float, quadratic: float = 0.0, table_size: int = 0,
    scales: Vector | None = None, table_radius: float | None = None,
) -> Minimiser:  # fmt: skip
    """The query for the minimiser of a problem, with an L2 part on the intercept as on its features.

    With scales it is the problem for the scaled columns of a table whose rows have this radius.
    """
    strength = problem.penalty.strong_convexity + quadratic
    return Minimiser(
        problem.loss, clip, problem.penalty, n, p, problem.radius(p), quadratic,
        strength if problem.fit_intercept else None, strength * float(np.linalg.norm(problem.start(p))),
        problem.fall(), table_size, problem.bounds.rows_per_unit or 1, scales,
        problem.constant(p) if scales is not None and problem.fit_intercept else None, table_radius,
    )  # fmt: skip
