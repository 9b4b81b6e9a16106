"""Everything public about a fit, as one value, and the plan that follows from it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from .. import solvers
from ..accounting import (
    Composed,
    Event,
    Repeated,
    calibrate_beside,
    calibrate_covered,
    gaussian_delta,
    gaussian_epsilon,
    gaussian_mu,
)
from ..accounting.compose import LARGEST_EPSILON
from ..bounds import Bounds
from ..errors import UnsupportedProblem
from ..losses import Loss
from ..penalties import Penalty
from ..plan import CountedPlan, Plan, Release
from ..plan.private_size import COUNT_SHARE, count_release, left_for_learning, share_of, spare_of
from ..privacy import Budget, Neighbours
from ..problem import Problem
from ..solvers import AnySolver, Task
from ..solvers.base import positive_count
from .presentations import Presentation, TargetMap, presented

if TYPE_CHECKING:
    from .preludes import Prelude


class PlannedFit(NamedTuple):
    """All that is decided before a record is read."""

    problem: Problem
    solver: AnySolver
    plan: Plan


@dataclass(frozen=True)
class Recipe:
    """A fit, before it meets records: made once, then only replaced.

    Parameters
    ----------
    loss : Loss
    penalty : callable
        The penalty for a number of records: strengths may depend on it.
    bounds : Bounds
        The declared bounds of records, weights and offsets.
    fit_intercept : bool
    epsilon, delta : float
    neighbours : Neighbours
    solver : str or Solver
    n_records : int
        The public number of records, or of units; 1 where it is private and not released yet.
    n_features : int
    resident : bool
        Whether the table stays in memory; if not, it is read anew in every pass.
    targets : tuple of callable
        For each fit the map from codes of targets to those of the loss.
    presentations : tuple of Presentation
        Maps of records, in order.
    preludes : tuple of Prelude
        What is released before the fit, in order.
    facts : tuple of (str, object)
        Further facts that the guarantee states.
    """

    loss: Loss
    penalty: Callable[[int], Penalty]
    bounds: Bounds
    fit_intercept: bool
    epsilon: float
    delta: float | None
    neighbours: Neighbours
    solver: str | AnySolver
    n_records: int
    n_features: int
    resident: bool = True
    targets: tuple[TargetMap, ...] = ()
    presentations: tuple[Presentation, ...] = ()
    preludes: tuple[Prelude, ...] = ()
    facts: tuple[tuple[str, object], ...] = ()

    @cached_property
    def problem(self) -> Problem:
        """The problem for records as the presentations make them."""
        if self.bounds.rows_per_unit is not None and not self.neighbours.size_is_public:
            raise UnsupportedProblem(
                "units are for neighbours whose number is public: replace-one or zero-out, not "
                f"{self.neighbours.value}"
            )
        problem = Problem(self.loss, self.penalty(self.n_records), self.bounds, self.fit_intercept)
        return presented(problem, self.presentations)

    @cached_property
    def budget(self) -> Budget:
        """The whole budget; its delta must be declared if the number of records is private."""
        return budget_of(self.epsilon, self.delta, self.n_records, self.neighbours)

    @property
    def counts_records(self) -> bool:
        """Whether the number of records is private, and counted before the fit is planned."""
        return self.budget.private and not self.neighbours.size_is_public

    def presented_target(self, target: TargetMap) -> TargetMap:
        """A map of targets for records that went through the presentations."""
        for presentation in self.presentations:
            target = presentation.target(target)
        return target

    def for_size(self, n_records: int) -> Recipe:
        """The recipe for another number of records."""
        return replace(self, n_records=n_records)

    def before_the_count(self) -> CountedPlan:
        """What is known of the plan before the private number of records is released: its price."""
        return CountedPlan.of(self.budget, self.n_features)

    @np.errstate(all="ignore")
    def planned(self) -> PlannedFit:
        """The problem, the solver and the whole plan; what cannot be fitted is refused."""
        positive_count(n_samples=self.n_records, n_features=self.n_features)
        budget, neighbours, problem = self.budget, self.neighbours, self.problem
        n, p = self.n_records, self.n_features
        if budget.private and not math.isfinite(problem.radius(p)):
            raise ValueError("bounds must limit the norm of a row unless epsilon is infinite")
        if budget.private and problem.bounds.weight == math.inf:
            raise ValueError("bounds must limit the weight of a record unless epsilon is infinite")
        problem.start(p)  # refuses a penalty that is for another number of features
        preludes = [each for each in self.preludes if each.is_useful(budget, neighbours, n)]
        spare = spare_of(count_release(budget)) if self.counts_records else 0
        rest = budget_after(budget, [each.share for each in preludes], neighbours)
        task = Task(problem, n, p, rest, neighbours, len(self.targets), self.resident, spare)
        solver = solvers.get(self.solver, task)
        solvers.require_suited(solver, problem)
        plan = solver.plan_for(task).protecting(problem.unit)
        plan = with_preludes(plan, budget, preludes)
        solvers.require_drawable(solver, plan)
        return PlannedFit(problem, solver, plan)


def budget_of(epsilon: float, delta: float | None, n_records: int, neighbours: Neighbours) -> Budget:
    """The budget of a fit; its delta must be declared if the number of records is private."""
    if neighbours.size_is_public:
        return Budget.for_records(epsilon, delta, n_records)
    if delta is None and math.isfinite(Budget.for_records(epsilon, delta, 1).epsilon):
        raise ValueError(
            f'delta must be declared with neighbours="{neighbours.value}": the default, 1/n², would reveal '
            "the number of records"
        )
    return Budget.for_records(epsilon, delta, 1)


def budget_after(budget: Budget, shares: Sequence[float], neighbours: Neighbours) -> Budget:
    """The budget of a fit that follows preludes with these shares."""
    rest = math.prod(1 - share for share in shares)
    if budget.private and not neighbours.size_is_public:
        return share_of(budget, rest * (1 - COUNT_SHARE))
    if not budget.private or not shares:
        return budget
    largest = min(budget.epsilon, LARGEST_EPSILON)
    mu = gaussian_mu(largest, budget.delta) * math.sqrt(rest)
    epsilon = gaussian_epsilon(mu, budget.delta)
    if epsilon > 0:
        return Budget(epsilon, budget.delta)
    return Budget(largest, gaussian_delta(mu, largest))  # delta alone pays for this much


def with_preludes(plan: Plan, budget: Budget, preludes: Sequence[Prelude]) -> Plan:
    """The plan of a fit together with what is released before it, within the whole budget.

    The noise of the fit stays as it is; that of the other releases is the least that keeps within the budget.
    """
    if not budget.private or (not preludes and plan.neighbours.size_is_public):
        return plan
    counts = [] if plan.neighbours.size_is_public else [count_release(budget)]
    size = plan.n_records + sum(map(spare_of, counts))
    releases = [release for each in preludes for release in each.releases(budget, plan.neighbours, size)]
    prices = [price for release in releases for price in _prices(release, plan.neighbours)]
    event = Composed(tuple(Repeated(each, count) for each, count in prices))
    if not counts:
        factor = calibrate_beside(plan.event, event, budget.epsilon, budget.delta)
    else:  # what follows from a count is not composed with it, nor with the fit, by exact curves
        factor = calibrate_covered(event, *left_for_learning(budget, counts[0], plan.composed))
    learning = (*counts, *(release.scaled(factor) for release in releases))
    whole = replace(plan, budget=budget, learning=learning)
    if counts:
        whole.require_reserved()
    return whole


def _prices(release: Release, neighbours: Neighbours) -> list[tuple[Event, int]]:
    extra = release.mechanism.imprecision(release.entries)
    return [(release.event(neighbours), release.count)] + [
        (event, count * release.count) for event, count in extra.items()
    ]
