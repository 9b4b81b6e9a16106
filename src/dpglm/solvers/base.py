"""What a solver is: a plan made without data, and a run that sees nothing but releases."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from numbers import Integral
from typing import Any, ClassVar

import numpy as np

from ..accounting import gaussian_mu
from ..arrays import Vector
from ..bounds import Bounds
from ..curator import Curator
from ..errors import UnsupportedProblem
from ..losses import Logistic
from ..penalties import Zero
from ..plan import Plan
from ..privacy import Budget, Neighbours
from ..problem import Problem
from ..queries.base import LARGEST_CLIP, LEAST_CLIP, require_enforceable

_BYSTANDERS = 7


@dataclass(frozen=True)
class Result:
    """What a run returns: the coefficients, the number of steps taken, and a bound on what is left to gain.

    The last is for solvers that know one, and only without noise: it is a function of the records.
    """

    w: Vector
    steps: int
    gap: float | None = None


@dataclass(frozen=True, eq=False)
class AuditCase:
    """Settings of a solver, and two neighbouring tables that its releases tell apart as well as they may.

    Attributes
    ----------
    solver : Solver
    problem : Problem
    bystanders : tuple of arrays
        Rows and targets of the records that both tables have.
    first, second : tuple of array and float
        Row and target of the record in which the tables differ; under zero-out the first stands against a
        null record.
    """

    solver: Solver
    problem: Problem
    bystanders: tuple[Vector, Vector]
    first: tuple[Vector, float]
    second: tuple[Vector, float]


@dataclass(frozen=True)
class Solver(ABC):
    """Settings of an algorithm. ``None`` means: derived from public quantities by ``plan``."""

    name: ClassVar[str]

    @abstractmethod
    def plan(
        self, problem: Problem, n: int, p: int, budget: Budget, neighbours: Neighbours, fits: int = 1
    ) -> Plan:
        """Everything that ``run`` will release, with the least noise that keeps within the budget."""

    @abstractmethod
    def run(self, plan: Any, problem: Problem, curator: Curator) -> Result:
        """Carry out the plan."""

    @classmethod
    @abstractmethod
    def audit_cases(cls) -> tuple[AuditCase, ...]:
        """What the auditor runs: every kind of release at its worst case."""


def opposed(solver: Solver, n_features: int, *, fit_intercept: bool = False, crowd: int = 0) -> AuditCase:
    """Two logistic records whose gradients are opposed in every coordinate.

    Their length exceeds 0.1 while margins stay below 1, so a clip of 0.1 makes every release move by its
    whole sensitivity. Signs alternate from feature to feature: noise must differ between them.

    Parameters
    ----------
    solver : Solver
    n_features : int
    fit_intercept : bool
        With an intercept the row has half the size of the constant feature. A clip that forgets one of the
        two lets gradients pass that are too long by a factor of 1.1 or 2.2.
    crowd : int
        Number of bystanders that are like the second record. A batch whose size is fixed then shows the
        first by what is missing. By default there are seven that add nothing, which leaves a secret batch
        no place to hide.
    """
    problem = Problem(Logistic(), Zero(), Bounds(row_norm=1.0), fit_intercept)
    row = np.resize([0.8, -0.6], n_features)
    row *= (problem.constant(n_features) / 2 if fit_intercept else 1.0) / np.linalg.norm(row)
    first, second = ((row, 1.0), (row, -1.0)) if fit_intercept else ((row, 1.0), (-row, 1.0))
    rows = np.tile(second[0], (crowd, 1)) if crowd else np.zeros((_BYSTANDERS, n_features))
    return AuditCase(solver, problem, (rows, np.full(len(rows), second[1])), first, second)


def noise_of_one_pass(n: int, budget: Budget, neighbours: Neighbours, fits: int) -> float:
    """Deviation of a mean over n records when the whole budget buys one release of it.

    The unit is the largest contribution of one record. T releases have sqrt(T) times as much noise
    each, so this number alone says how far the budget reaches.
    """
    return neighbours.records_moved * fits**0.5 / (n * gaussian_mu(budget.epsilon, budget.delta))


def require_smooth(problem: Problem, solver: str) -> None:
    """Refuse a loss whose slope jumps."""
    if not math.isfinite(problem.loss.smoothness()):
        raise UnsupportedProblem(
            f"{solver} needs a loss of bounded curvature, {problem.loss.name} has none: use "
            "DualCoordinateDescent or, in a private fit, GradientDescent with a step_size"
        )


def positive(**settings: float | None) -> None:
    """Refuse settings that are given but not positive and finite."""
    for name, value in settings.items():
        if value is not None and not 0 < value < math.inf:
            raise ValueError(f"{name} must be positive and finite, got {value!r}")


def proper_clip(clip: float | None) -> None:
    """Refuse a clip that is given but cannot be enforced, and one that clips nothing."""
    positive(clip=clip)
    if clip is not None:
        require_enforceable("clip", clip)


def require_usual_clip(clip: float, name: str = "clip") -> None:
    """Refuse a problem whose usual clip, which follows from its loss and bounds, cannot be enforced."""
    if not LEAST_CLIP <= clip <= LARGEST_CLIP:
        raise UnsupportedProblem(
            f"the {name} that follows from the loss and the bounds must be from {LEAST_CLIP:g} to "
            f"{LARGEST_CLIP:g}, got {clip!r}: give data and bounds in other units"
        )


def positive_count(**settings: int | None) -> None:
    """Refuse settings that are given but not positive whole numbers."""
    for name, value in settings.items():
        if value is not None and not (isinstance(value, Integral) and value > 0):
            raise ValueError(f"{name} must be a positive whole number, got {value!r}")


def proper_share(**settings: float) -> None:
    """Refuse shares of a budget that leave nothing for one side."""
    for name, value in settings.items():
        if not 0 < value < 1:
            raise ValueError(f"{name} must lie strictly between 0 and 1, got {value!r}")
