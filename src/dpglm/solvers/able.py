"""Whether a table offers what a plan will ask of it. No record is read."""

from __future__ import annotations

import warnings

from ..errors import UnsupportedProblem
from ..mechanisms.sampling import Everyone
from ..plan import Plan
from ..problem import Problem
from ..queries import QUERIES
from ..tables import Capability, Passes, Rows, can
from .base import AnySolver


def needs_of(solver: type[AnySolver], plan: Plan) -> frozenset[Capability]:
    """What the known queries of a plan need of a table beyond passes; batches take rows at random."""
    asked = {release.query for release in plan.releases} or {solver.exact_query}
    needs = {need for query in QUERIES if query.name in asked for need in query.needs}
    if any(not isinstance(release.sampling, Everyone) for release in plan.releases):
        needs.add(Rows)
    return frozenset(needs)


def can_instead(solver: type[AnySolver], plan: Plan, problem: Problem, table: Passes) -> bool:
    """Whether a solver with default settings can do what a plan does, on that table."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            usual = solver().plan(
                problem, plan.n_records, plan.n_features, plan.budget, plan.neighbours, plan.fits
            )
        except UnsupportedProblem:
            return False
    return can(table, needs_of(solver, usual))
