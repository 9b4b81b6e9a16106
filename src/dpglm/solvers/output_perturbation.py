"""Output perturbation: the exact minimiser, released once with noise."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from ..curator import Curator
from ..mechanisms import Gaussian
from ..penalties import L2
from ..plan import Plan, Release
from ..privacy import Budget, Neighbours
from ..problem import Problem
from ..queries import Minimiser
from . import defaults
from .base import (
    AuditCase,
    Result,
    Solver,
    noise_of_one_pass,
    opposed,
    proper_clip,
    require_smooth,
    require_usual_clip,
)
from .gradient_descent import MOST_EXACT_STEPS, exact_minimiser


@dataclass(frozen=True)
class OutputPerturbationPlan(Plan):
    """Plan of `OutputPerturbation`."""

    solver: ClassVar[str] = "output perturbation"

    steps: int
    clip: float
    strength: float
    sparse: bool


@dataclass(frozen=True)
class OutputPerturbation(Solver):
    """The minimiser of loss + penalty, found exactly and released once with Gaussian noise.

    For any penalty with an L2 part: one record moves the minimiser by at most twice its largest gradient
    norm over n times the strength of that part. So noise falls as the L2 part grows, and a weak one is of
    little use. See `ObjectivePerturbation` for one that needs less.

    Parameters
    ----------
    clip : float, optional
        Largest L2 norm of one record's gradient. The loss of a record goes on in a straight line from where
        its gradient is as long as that.
    sparse : bool
        Set coefficients to 0 that noise alone could have made, if the penalty is one that induces zeros
        (see ``Penalty.support``).

    Notes
    -----
    The intercept has no L2 part of its own and gets that of the other coefficients, around its start. With
    an infinite epsilon the solver returns the exact minimiser, without that, clipping and ``sparse``.
    """

    name: ClassVar[str] = "output perturbation"

    clip: float | None = None
    sparse: bool = True

    def __post_init__(self) -> None:
        proper_clip(self.clip)

    def plan(
        self, problem: Problem, n: int, p: int, budget: Budget, neighbours: Neighbours, fits: int = 1
    ) -> OutputPerturbationPlan:
        require_smooth(problem, type(self).__name__)
        releases: tuple[Release, ...] = ()
        steps, clip = MOST_EXACT_STEPS, 0.0
        if budget.private:
            noise = noise_of_one_pass(n, budget, neighbours, fits)
            steps, clip = 1, float(defaults.output_perturbation(problem, p, noise, self.clip))
            require_usual_clip(clip)
            query = minimiser(problem, n, p, clip)
            release = Release(
                query=Minimiser.name,
                mechanism=Gaussian(1.0),
                count=1,
                sensitivity=f"{query.sensitivity(neighbours):.4g}",
                entries=problem.dimension(p),
            )
            releases = (release,)
        strength = problem.penalty.strong_convexity
        return OutputPerturbationPlan(
            n, p, budget, neighbours, fits, releases, steps, clip, strength, self.sparse
        ).calibrated()

    def run(self, plan: OutputPerturbationPlan, problem: Problem, curator: Curator) -> Result:
        if not plan.budget.private:
            return exact_minimiser(plan, problem, curator)
        n, p = plan.n_records, plan.n_features
        (release,), query = plan.releases, minimiser(problem, n, p, plan.clip)
        start = problem.start(p)
        w = curator.release(query, release.mechanism, np.zeros_like(start), start)
        if plan.sparse:
            noise = release.mechanism.noise * float(query.sensitivity(plan.neighbours))
            features, _ = problem.split(w)
            features[:] = np.where(problem.penalty.support(features, noise), features, 0.0)
        return Result(problem.prox(w, 0.0), plan.steps)

    @classmethod
    def audit_cases(cls) -> tuple[AuditCase, ...]:
        return (
            with_l2(opposed(cls(clip=0.1), 2)),
            with_l2(opposed(cls(clip=0.1), 1, fit_intercept=True, crowd=7)),
        )


def minimiser(problem: Problem, n: int, p: int, clip: float, quadratic: float = 0.0) -> Minimiser:
    """The query for the minimiser of a problem, its intercept held as strongly as its features."""
    strength = problem.penalty.strong_convexity + quadratic
    return Minimiser(
        problem.loss,
        clip,
        problem.penalty,
        n,
        p,
        problem.radius(p),
        quadratic,
        strength if problem.fit_intercept else None,
        push=strength * float(np.linalg.norm(problem.start(p))),
    )


def with_l2(case: AuditCase) -> AuditCase:
    """The case with an L2 part so strong that margins, and with them slopes, stay where they are."""
    return replace(case, problem=replace(case.problem, penalty=L2(1.0)))
