"""The solver for those who do not want to choose one."""

from __future__ import annotations

import math
import warnings

import numpy as np

from ..errors import UnsupportedProblem
from ..penalties import Separable
from ..plan import Plan
from ..problem import Problem
from ..queries import QUERIES
from ..sampling import Everyone
from ..tables import Capability, Passes, Rows, can, refusal
from .base import Solver
from .coordinate_descent import CoordinateDescent
from .dual_coordinate_descent import DualCoordinateDescent
from .dual_frank_wolfe import DualFrankWolfe
from .frank_wolfe import FrankWolfe
from .gradient_descent import GradientDescent
from .greedy_coordinate_descent import GreedyCoordinateDescent
from .objective_perturbation import ObjectivePerturbation
from .output_perturbation import OutputPerturbation

SOLVERS: dict[str, type[Solver]] = {
    "gradient-descent": GradientDescent,
    "coordinate-descent": CoordinateDescent,
    "greedy-coordinate-descent": GreedyCoordinateDescent,
    "frank-wolfe": FrankWolfe,
    "dual-coordinate-descent": DualCoordinateDescent,
    "dual-frank-wolfe": DualFrankWolfe,
    "output-perturbation": OutputPerturbation,
    "objective-perturbation": ObjectivePerturbation,
}

UNEQUAL = 4.0
"""From this ratio of the largest to the smallest declared feature bound on, columns count as unequal."""


def get(solver: str | Solver, problem: Problem, n_features: int) -> Solver:
    """The solver itself, the one of that name, or for "auto" the one that suits the problem.

    Gradient descent gives every feature the same step and the same noise, so small columns drown in
    what large ones need. Where the declared bounds say that columns are unequal, "auto" is coordinate
    descent, which scales both to each column; elsewhere it is gradient descent. A loss whose slope jumps,
    as the hinge, is for dual coordinate descent.
    """
    if isinstance(solver, Solver):
        return solver
    if solver == "auto":
        if not math.isfinite(problem.loss.smoothness()):
            return DualCoordinateDescent()
        return CoordinateDescent() if _unequal(problem, n_features) else GradientDescent()
    if not isinstance(solver, str) or solver not in SOLVERS:
        raise UnsupportedProblem(
            f"solver must be a Solver, 'auto' or one of {sorted(SOLVERS)}, got {solver!r}"
        )
    return SOLVERS[solver]()


def require_able(solver: Solver, plan: Plan, problem: Problem, table: Passes) -> None:
    """Refuse a table that does not offer what the queries of a plan need. No record is read.

    The error names the solvers that can plan the problem, by their defaults, and run on the table.
    """
    if not can(table, _needs(plan)):
        able = [cls.__name__ for cls in SOLVERS.values() if _able(cls, plan, problem, table)]
        raise refusal(table, _needs(plan), type(solver).__name__, able)


def _needs(plan: Plan) -> frozenset[Capability]:
    """What the known queries of a plan need of a table beyond passes; batches take rows at random."""
    asked = {release.query for release in plan.releases}
    needs = {need for query in QUERIES if query.name in asked for need in query.needs}
    if any(not isinstance(release.sampling, Everyone) for release in plan.releases):
        needs.add(Rows)
    return frozenset(needs)


def _able(cls: type[Solver], plan: Plan, problem: Problem, table: Passes) -> bool:
    """Whether a solver with default settings can do what a plan does, on that table."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            usual = cls().plan(
                problem, plan.n_records, plan.n_features, plan.budget, plan.neighbours, plan.fits
            )
        except UnsupportedProblem:
            return False
    return can(table, _needs(usual))


def _unequal(problem: Problem, n_features: int) -> bool:
    if problem.bounds.feature is None or not isinstance(problem.penalty, Separable):
        return False
    limits = problem.bounds.features(n_features)
    return bool(np.max(limits) >= UNEQUAL * np.min(limits))
