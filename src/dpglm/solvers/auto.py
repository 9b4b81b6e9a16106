"""The solver for those who do not want to choose one."""

from __future__ import annotations

from ..errors import UnsupportedProblem
from .base import Solver
from .coordinate_descent import CoordinateDescent
from .gradient_descent import GradientDescent

SOLVERS: dict[str, type[Solver]] = {
    "gradient-descent": GradientDescent,
    "coordinate-descent": CoordinateDescent,
}


def get(solver: str | Solver) -> Solver:
    """The solver itself, or the one of that name; "auto" is gradient descent."""
    if isinstance(solver, Solver):
        return solver
    if solver == "auto":
        return GradientDescent()
    if solver not in SOLVERS:
        raise UnsupportedProblem(
            f"solver must be a Solver, 'auto' or one of {sorted(SOLVERS)}, got {solver!r}"
        )
    return SOLVERS[solver]()
