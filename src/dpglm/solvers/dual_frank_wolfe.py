"""Private Frank-Wolfe on the dual of a problem with a structured norm."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

import numpy as np

from ..arrays import Vector
from ..curator import Curator
from ..errors import UnsupportedProblem
from ..mechanisms import Exponential, Gaussian
from ..penalties import L2, AnyFeature, Cardinality, ElasticNet, Submodular
from ..plan import PassCount, Plan, Releasable, Release
from ..problem import Problem
from ..queries import DualVertices, Minimiser
from .base import AuditCase, Result, Solver, Task, equal_releases, opposed, require_smooth
from .noise_free import STEPS_WITHOUT_NOISE, exact_minimiser
from .output_perturbation import default_clip, minimiser, passes_of_search, steps_of_search

_USUAL_STEPS = 10


@dataclass(frozen=True)
class DualFrankWolfePlan(Plan):
    """Plan of `DualFrankWolfe`."""

    solver: ClassVar[str] = "dual Frank-Wolfe"
    may_release: ClassVar[Releasable] = {DualVertices.name: (Exponential,), Minimiser.name: (Gaussian,)}

    clip: float
    strength: float
    sparse: bool
    search_steps: int

    def _passes_of_a_fit(self) -> PassCount:
        """Each release searches for a minimiser."""
        return passes_of_search(self.search_steps).times(sum(release.count for release in self.releases))


@dataclass(frozen=True)
class DualFrankWolfe(Solver[DualFrankWolfePlan]):
    """s <- (1 - step) s + step * v for vertices v of the dual ball; coefficients follow from releases.

    For penalties that are a norm with an L2 part: `Submodular` with ``l2`` and `ElasticNet`. The dual problem
    is over the unit ball of the dual norm, times the strength, and its gradient is the minimiser theta(s) of
    loss + L2 part + s · theta. If the ball has two vertices for each feature, as for `AnyFeature`, a vertex
    is selected privately at each step, and theta(s) is released at the end. Elsewhere theta(s) is released
    with Gaussian noise at each step, the vertex follows from it, and so do the coefficients.

    Parameters
    ----------
    steps : int, optional
        Number of steps.
    clip : float, optional
        Largest L2 norm of one record's gradient. Where the gradient would exceed it, the loss is continued as
        a straight line.
    sparse : bool
        Set coefficients to 0 that noise alone could explain (see ``Penalty.support``).
    share : float
        Share of the budget for the selections, where vertices are selected; the rest is for theta(s).

    Notes
    -----
    The intercept gets the L2 part of the other coefficients, around its start. With an infinite epsilon the
    solver returns the exact minimiser, without that L2 part, steps, clipping and ``sparse``.

    A theta(s) has the sensitivity of the result of `OutputPerturbation`. The mean of all has at most 1.16
    times its noise, some of which the proximal step at the end removes: with 10 steps both solvers are about
    equally good. With selected vertices only half of the budget is left for theta(s), and it is worse.

    References
    ----------
    Kumar and Deisenroth, "Differentially private empirical risk minimization with sparsity-inducing norms",
    2019, arXiv:1905.04873: Algorithm 2, with an L2 part, and with coefficients that follow from what is
    released.

    Bach, "Duality between subgradient and conditional gradient methods", SIAM Journal on Optimization 25,
    2015, doi:10.1137/130941961: the mean of the theta(s).
    """

    plan_type: ClassVar[type[Plan]] = DualFrankWolfePlan

    steps: int | None = None
    clip: float | None = None
    sparse: bool = True
    share: float = 0.5

    def plan_for(self, task: Task) -> DualFrankWolfePlan:
        norm = _norm(task.problem)
        require_smooth(task.problem, type(self).__name__)
        releases: tuple[Release, ...] = ()
        steps, clip, search = STEPS_WITHOUT_NOISE, 0.0, 0
        if task.private:
            steps = int(self.steps or _USUAL_STEPS)
            clip = task.enforced(default_clip(task.problem, task.p, task.noise, self.clip))
            query = _gradient(task.problem, norm, task.n, task.p, clip, task.table_size)
            releases, search = self._releases(task, norm, query, steps), steps_of_search(query)
        plan = DualFrankWolfePlan(*task.facts, releases, steps, clip, norm.l2, self.sparse, search)
        return plan.calibrated()

    @classmethod
    def run(cls, plan: DualFrankWolfePlan, problem: Problem, curator: Curator) -> Result:
        if not plan.budget.private:
            return exact_minimiser(plan, problem, curator)
        p, norm = plan.n_features, _norm(problem)
        query = _gradient(problem, norm, plan.n_records, p, plan.clip, plan.table_size)
        steps = _by_vertices if norm.function.few_vertices else _by_gradients
        w, s, deviations = steps(plan, norm, query, problem.start(p), curator)
        # theta(s) is the minimiser for the slope -(l2 theta + s) of the loss; this is the one with the norm.
        features, _ = problem.split(w)
        free = features + problem.split(s)[0] / norm.l2
        features[:] = norm.function.prox(free, norm.strength / norm.l2)
        if plan.sparse:
            noise = plan[query.name].mechanism.noise * float(query.sensitivity(plan.neighbours))
            features[:] = np.where(norm.support(free, deviations * noise), features, 0.0)
        return Result(w, plan.steps)

    @classmethod
    def audit_cases(cls) -> tuple[AuditCase, ...]:
        two_steps, cardinality = cls(2, clip=0.1, sparse=False), Submodular(0.01, Cardinality(), l2=1.0)
        return (
            opposed(two_steps, 2, cardinality),
            # One feature: what lowers the score of one of its two vertices raises that of the other.
            opposed(two_steps, 1, Submodular(0.01, AnyFeature(), l2=1.0)),
            opposed(replace(two_steps, steps=1), 1, cardinality, fit_intercept=True, crowd=7),
        )

    def _releases(self, task: Task, norm: Submodular, query: Minimiser, steps: int) -> tuple[Release, ...]:
        theta = partial(
            equal_releases, Minimiser.name, Gaussian,
            sensitivity=query.sensitivity(task.neighbours), entries=task.dimension,
        )  # fmt: skip
        if not norm.function.few_vertices:
            return (theta(steps),)
        scores = DualVertices(query, norm.strength).sensitivity(task.neighbours)[0]
        choices = equal_releases(
            DualVertices.name, Exponential, steps, scores, share=self.share, entries=2 * task.p
        )
        return choices, theta(1, share=1 - self.share)


def _norm(problem: Problem) -> Submodular:
    """The penalty as a norm with an L2 part."""
    penalty = problem.penalty
    if isinstance(penalty, ElasticNet):
        penalty = Submodular(penalty.l1, Cardinality(), penalty.l2)
    if not isinstance(penalty, Submodular):
        raise UnsupportedProblem(
            "DualFrankWolfe needs a penalty that is a norm with an L2 part, Submodular(..., l2=...) or "
            f"ElasticNet, not {type(penalty).__name__}: OutputPerturbation takes any with an L2 part"
        )
    return penalty


def _gradient(problem: Problem, norm: Submodular, n: int, p: int, clip: float, table_size: int) -> Minimiser:
    """The query for theta(s): the problem with a linear term in place of the norm."""
    # A vertex has entries of one sign after flipping, which add up to the price of all features.
    longest = norm.strength * norm.function.value(np.arange(p))
    query = minimiser(replace(problem, penalty=L2(norm.l2)), n, p, clip, table_size=table_size)
    return replace(query, push=query.push + longest)


def _by_gradients(
    plan: DualFrankWolfePlan, norm: Submodular, query: Minimiser, start: Vector, curator: Curator
) -> tuple[Vector, Vector, float]:
    """Weighted means of all released theta(s) and their s; noise of the former in units of one release."""
    p, mechanism = plan.n_features, plan[query.name].mechanism
    w, mean, s, square = np.zeros_like(start), np.zeros_like(start), np.zeros_like(start), 0.0
    pushed = s[:p]  # a view: the intercept is not pushed
    for t in range(1, plan.steps + 1):
        size = 2 / (t + 1)
        theta = curator.release(query, mechanism, s, start)
        w += size * (theta - w)
        mean += size * (s - mean)
        pushed += size * (-norm.strength * norm.linear_minimiser(theta[:p]) - pushed)
        square = (1 - size) ** 2 * square + size**2
    return w, mean, math.sqrt(square)


def _by_vertices(
    plan: DualFrankWolfePlan, norm: Submodular, query: Minimiser, start: Vector, curator: Curator
) -> tuple[Vector, Vector, float]:
    """theta(s) after steps to selected vertices, and that s; noise of the former in units of one release."""
    p, vertices = plan.n_features, DualVertices(query, norm.strength)
    scores, s = curator.open(vertices, start, plan[vertices.name].mechanism), np.zeros_like(start)
    for t in range(1, plan.steps + 1):
        chosen = scores.select(s)
        vertex = np.zeros_like(s)
        vertex[chosen % p] = norm.strength if chosen < p else -norm.strength
        s += 2 / (t + 1) * (vertex - s)
    return curator.release(query, plan[query.name].mechanism, s, start), s, 1.0
