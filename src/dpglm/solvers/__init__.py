"""Solvers: loops of releases and public steps. None of them ever sees a record.

A new solver is one file here and its place in `SOLVERS`; the contract tests then run on it.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace

from ..bounds import MOST_OUTPUTS
from ..curator import Curator
from ..errors import PlanMismatch, UnsupportedProblem, silent
from ..plan import Plan
from ..problem import Problem
from ..tables import Passes, can, is_resident, refusal
from .audit_cases import AuditCase
from .auto import suited
from .base import AnySolver, Result, Solver, Task
from .coordinate_descent import CoordinateDescent
from .dual_coordinate_descent import DualCoordinateDescent
from .frank_wolfe import DualFrankWolfe, FrankWolfe
from .gradient_descent import GradientDescent
from .greedy_coordinate_descent import GreedyCoordinateDescent, steps_if_convex, steps_if_strongly_convex
from .model_selection import Candidate, IterateChoice, RandomSearch
from .newton import Newton
from .perturbation import ObjectivePerturbation, OutputPerturbation
from .preconditioned_descent import PreconditionedDescent

SOLVERS: dict[str, type[AnySolver]] = {
    kind.plan_type.solver.lower().replace(" ", "-"): kind
    for kind in (
        GradientDescent, CoordinateDescent, GreedyCoordinateDescent, FrankWolfe,
        DualCoordinateDescent, DualFrankWolfe, OutputPerturbation, ObjectivePerturbation, Newton,
        PreconditionedDescent,
    )
}  # fmt: skip
"""Every solver by what it is called in ``solver="..."``: the name that its plan prints, with hyphens."""

__all__ = [
    "SOLVERS", "AnySolver", "AuditCase", "Candidate", "CoordinateDescent", "DualCoordinateDescent",
    "DualFrankWolfe", "FrankWolfe", "GradientDescent", "GreedyCoordinateDescent", "IterateChoice", "Newton",
    "ObjectivePerturbation", "OutputPerturbation", "PreconditionedDescent", "RandomSearch", "Result",
    "Solver", "Task", "get", "is_able", "require_able", "require_drawable", "require_suited", "run",
    "solver_of", "steps_if_convex", "steps_if_strongly_convex",
]  # fmt: skip


_FORMER_NAMES = {"Along": "IterateChoice", "Searched": "RandomSearch"}


def __getattr__(name: str) -> object:
    """Forward former names, with a warning."""
    if name not in _FORMER_NAMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    warnings.warn(f"{name} is now {_FORMER_NAMES[name]}", FutureWarning, stacklevel=2)
    return globals()[_FORMER_NAMES[name]]


def get(solver: str | AnySolver, task: Task) -> AnySolver:
    """The solver itself, the one of that name, or for "auto" the one that suits the task."""
    found = _found(solver, task)
    found.require_outputs(task)
    return found


def _found(solver: str | AnySolver, task: Task) -> AnySolver:
    if isinstance(solver, Solver):
        return solver
    if isinstance(solver, str) and solver == "auto":
        return suited(task)
    if not isinstance(solver, str) or solver not in SOLVERS:
        raise UnsupportedProblem(
            f"solver must be a Solver, 'auto' or one of {sorted(SOLVERS)}, got {solver!r}"
        )
    return SOLVERS[solver]()


def require_suited(solver: AnySolver, problem: Problem) -> None:
    """Refuse weights, offsets and persons that a solver does not take; the error names those that do."""
    for name, has, takes in (
        ("weights of records", problem.has_weights, "takes_weights"),
        ("offsets of records", problem.has_offsets, "takes_offsets"),
        ("persons with several records", problem.has_units, "takes_units"),
    ):
        if has and not getattr(solver, takes):
            able = [kind.__name__ for kind in SOLVERS.values() if getattr(kind, takes)]
            raise UnsupportedProblem(f"{type(solver).__name__} takes no {name}: use {', '.join(able)}")
    if problem.has_units and problem.outputs > MOST_OUTPUTS:
        raise UnsupportedProblem(f"a fit with persons takes at most {MOST_OUTPUTS} classes at once")


def require_drawable(solver: AnySolver, plan: Plan) -> None:
    """Refuse a plan whose noise cannot be drawn; the error names the shares of the budget that were given."""
    try:
        plan.require_drawable()
    except UnsupportedProblem as error:
        given = [
            f"{name}={value!r}"
            for name, value in vars(solver).items()
            if name.endswith("share") and value not in (None, getattr(type(solver), name, None))
        ]
        if not given:
            raise
        raise UnsupportedProblem(f"{type(solver).__name__}({', '.join(given)}): {error}") from None


def is_able(solver: AnySolver, plan: Plan, table: Passes) -> bool:
    """Whether a table offers what the queries of a plan need. No record is read."""
    return can(table, solver.needs(plan))


def require_able(solver: AnySolver, plan: Plan, problem: Problem, table: Passes) -> None:
    """Refuse a table that does not offer what the queries of a plan need. No record is read.

    The error names the solvers that can plan the problem, by their defaults, and run on the table.
    """
    if not is_able(solver, plan, table):
        needs = solver.needs(plan)
        others = [
            kind.__name__ + " with its defaults" * isinstance(solver, kind)
            for kind in SOLVERS.values()
            if _can_instead(kind, plan, problem, table)
        ]
        raise refusal(table, needs, type(solver).__name__, others)


def _can_instead(solver: type[AnySolver], plan: Plan, problem: Problem, table: Passes) -> bool:
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


def run(plan: Plan, problem: Problem, curator: Curator, stops: Sequence[int] | None = None) -> Result:
    """Carry out one fit of a plan, also of a plan that was read from a file; refuse if the log differs.

    Parameters
    ----------
    plan : Plan
        The plan of one of `SOLVERS`.
    problem : Problem
        The problem that the plan was made for.
    curator : Curator
        Who holds the records.
    stops : sequence of int, optional
        After how many steps a model is kept for `Result.iterates`; for solvers that have a ``path``.
    """
    solver, before = solver_of(plan), curator.spent
    keywords = {} if stops is None else {"stops": stops}
    result = solver.run(plan, problem, curator, **keywords)
    if plan.budget.private and curator.spent - before != replace(plan, fits=1).price:
        raise PlanMismatch(f"{plan.solver} released something other than its plan: the run is refused")
    return result


def solver_of(plan: Plan) -> type[AnySolver]:
    """The solver that made a plan."""
    known: list[type[AnySolver]] = [*SOLVERS.values(), IterateChoice]
    for solver in known:
        if solver.plan_type is type(plan):
            return solver
    raise UnsupportedProblem(f"plan must be one of a solver in {sorted(SOLVERS)}, got {type(plan).__name__}")
