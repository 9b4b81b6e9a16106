"""Which other solvers could do what a plan does, on a table that lacks what it needs. No record is read."""

from __future__ import annotations

from ..errors import UnsupportedProblem
from ..plan import Plan
from ..problem import Problem
from ..silence import silent
from ..tables import Passes, can, is_resident
from .base import AnySolver


def can_instead(solver: type[AnySolver], plan: Plan, problem: Problem, table: Passes) -> bool:
    """Whether a solver with default settings can do what a plan does, on that table."""
    with silent():
        try:
            usual = solver().plan(
                problem, plan.n_records, plan.n_features, plan.budget, plan.neighbours, plan.fits,
                is_resident(table),
            )  # fmt: skip
        except UnsupportedProblem:
            return False
    return can(table, solver.needs(usual))
