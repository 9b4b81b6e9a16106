"""What a solver is: a plan made without data, and a run that sees nothing but releases."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ..accounting import gaussian_mu
from ..curator import Curator
from ..plan import Plan
from ..privacy import Budget, Neighbours
from ..problem import Problem

Vector = NDArray[np.float64]


@dataclass(frozen=True)
class Result:
    """What a run returns: the coefficients and the number of steps taken."""

    w: Vector
    steps: int


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


def noise_of_one_pass(n: int, budget: Budget, neighbours: Neighbours, fits: int) -> float:
    """Deviation of a mean over n records when the whole budget buys one release of it.

    The unit is the largest contribution of one record. T releases have sqrt(T) times as much noise
    each, so this number alone says how far the budget reaches.
    """
    return neighbours.records_moved * fits**0.5 / (n * gaussian_mu(budget.epsilon, budget.delta))


def positive(**settings: float | None) -> None:
    """Refuse settings that are given but not positive and finite."""
    for name, value in settings.items():
        if value is not None and not 0 < value < math.inf:
            raise ValueError(f"{name} must be positive and finite, got {value!r}")


def positive_count(**settings: int | None) -> None:
    """Refuse settings that are given but not positive whole numbers."""
    for name, value in settings.items():
        if value is not None and not (isinstance(value, Integral) and value > 0):
            raise ValueError(f"{name} must be a positive whole number, got {value!r}")
