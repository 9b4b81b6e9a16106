"""Objective perturbation: the minimiser of an objective with a random linear term."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..curator import Curator
from ..errors import UnsupportedProblem
from ..mechanisms import LinearTerm
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
from .output_perturbation import minimiser, with_l2

_HIDDEN = 4.0  # deviations that hide a zero


@dataclass(frozen=True)
class ObjectivePerturbationPlan(Plan):
    """Plan of `ObjectivePerturbation`."""

    solver: ClassVar[str] = "objective perturbation"

    steps: int
    clip: float
    quadratic: float

    @property
    def deviation(self) -> float:
        """Deviation of each entry of the linear term beside the mean loss; 0 without noise.

        A norm in the penalty makes coefficients 0 where its strength exceeds what that term and the records
        pull with, so the strength to try first is this times the dual norm of normal deviates.
        """
        moved = self.neighbours.records_moved
        return sum(release.mechanism.noise for release in self.releases) * moved * self.clip / self.n_records


@dataclass(frozen=True)
class ObjectivePerturbation(Solver):
    """The minimiser of loss + penalty + a quadratic term + a random linear term.

    For any convex penalty, of which the zeros show in the result: the noise is inside the problem. It is
    hardly more than that of one release of a sum of gradients.

    Parameters
    ----------
    clip : float, optional
        Largest L2 norm of one record's gradient. The loss of a record goes on in a straight line from where
        its gradient is as long as that.
    quadratic : float, optional
        Strength of the quadratic term, quadratic / 2 norm(w)², beside the mean loss. The price needs some:
        with an L2 part of the penalty that is strong enough it may be 0.

    Notes
    -----
    The intercept has no L2 part of its own and gets that of the other coefficients, around its start. With
    an infinite epsilon the solver returns the exact minimiser, without that, clipping and ``quadratic``.
    """

    name: ClassVar[str] = "objective perturbation"

    clip: float | None = None
    quadratic: float | None = None

    def __post_init__(self) -> None:
        proper_clip(self.clip)
        if self.quadratic is not None and not 0 <= self.quadratic < math.inf:
            raise ValueError(f"quadratic must be at least 0 and finite, got {self.quadratic!r}")

    def plan(
        self, problem: Problem, n: int, p: int, budget: Budget, neighbours: Neighbours, fits: int = 1
    ) -> ObjectivePerturbationPlan:
        require_smooth(problem, type(self).__name__)
        releases: tuple[Release, ...] = ()
        steps, clip, quadratic = MOST_EXACT_STEPS, 0.0, 0.0
        if budget.private:
            noise = noise_of_one_pass(n, budget, neighbours, fits)
            clip, quadratic = defaults.objective_perturbation(
                problem, n, p, noise, budget.epsilon / fits, self.clip, self.quadratic
            )
            steps, clip, quadratic = 1, float(clip), float(quadratic)
            require_usual_clip(clip)
            if self.quadratic is None:
                _tell_of_short_reach(problem, p, quadratic)
            query = minimiser(problem, n, p, clip, quadratic)
            release = Release(
                query=Minimiser.name,
                mechanism=LinearTerm(1.0, **query.perturbation(neighbours)),
                count=1,
                sensitivity=f"{neighbours.records_moved * clip:.4g}",
                entries=2 * problem.dimension(p),
            )
            releases = (release,)
        plan = ObjectivePerturbationPlan(n, p, budget, neighbours, fits, releases, steps, clip, quadratic)
        try:
            plan = plan.calibrated()
        except ValueError as error:
            raise UnsupportedProblem(
                f"{type(self).__name__} cannot keep to this budget with a quadratic term of {quadratic:g}: "
                f"{error}"
            ) from None
        if budget.private:
            _finishing(plan, query)  # refuses what cannot be found closely enough
        return plan

    def run(self, plan: ObjectivePerturbationPlan, problem: Problem, curator: Curator) -> Result:
        if not plan.budget.private:
            return exact_minimiser(plan, problem, curator)
        p = plan.n_features
        query = minimiser(problem, plan.n_records, p, plan.clip, plan.quadratic)
        w = curator.open(query, problem.start(p)).release(plan.releases[0].mechanism)
        # What noise after the minimisation made of zeros becomes 0 again, and what it put outside goes back.
        noise = _finishing(plan, query)
        features, _ = problem.split(w)
        features[:] = np.where(np.abs(features) > _HIDDEN * noise, features, 0.0)
        return Result(problem.prox(w, 0.0), plan.steps)

    @classmethod
    def audit_cases(cls) -> tuple[AuditCase, ...]:
        return (
            with_l2(opposed(cls(clip=0.1, quadratic=0.0), 2)),
            with_l2(opposed(cls(clip=0.1, quadratic=0.0), 1, fit_intercept=True, crowd=7)),
        )


def _tell_of_short_reach(problem: Problem, p: int, quadratic: float) -> None:
    """Warn if the quadratic term that the price asks for keeps predictions from crossing the range."""
    if problem.bounds.target is None or problem.stretch() == 1.0:
        return
    width = problem.bounds.target[1] - problem.bounds.target[0]
    reach = problem.slope_bound() * problem.radius(p) ** 2 / quadratic if quadratic > 0 else math.inf
    if reach < width:
        warnings.warn(
            f"the quadratic term that the budget asks for keeps predictions within {reach:.2g} of where "
            f"they start, and targets have a range of {width:.2g}: a loss that turns linear at a larger "
            "residual, or another solver, reaches farther",
            UserWarning,
            stacklevel=3,
        )


def _finishing(plan: ObjectivePerturbationPlan, query: Minimiser) -> float:
    """Deviation of the noise that hides that the minimiser is not exact."""
    mechanism = plan.releases[0].mechanism
    assert isinstance(mechanism, LinearTerm)
    return mechanism.deviation(query, plan.neighbours.records_moved * plan.clip)
