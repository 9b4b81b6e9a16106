"""The audit of evaluations: every metric, as if it were a solver whose model is the scores."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from ..bounds import Bounds
from ..curator import Curator
from ..evaluation import METRICS, EvaluationPlan, Evaluator
from ..evaluation.metrics import Setting
from ..losses import Logistic, Squared
from ..penalties import Zero
from ..plan import Plan
from ..privacy import PUBLIC_SIZE, Budget, Neighbours
from ..problem import Problem
from ..scores import PublicModel
from ..solvers import AnySolver, AuditCase, Result
from .holdings import on_a_stream
from .targets import TranscriptTarget

NAME = "evaluation"
"""By this name `audit_registry` audits evaluations."""

_BYSTANDERS, _STEEP, _CUT = 15, 50.0, 4.0


@dataclass(frozen=True)
class Scored:
    """An evaluation in the place of a solver: the released scores are its model."""

    metric: str

    def plan(
        self,
        problem: Problem,
        n: int,
        p: int,
        budget: Budget,
        neighbours: Neighbours,
        *,
        resident: bool = True,
    ) -> EvaluationPlan:
        """The plan of the evaluation."""
        return self._evaluator(problem, n, neighbours).plan(p, budget)

    def run(self, plan: Plan, problem: Problem, curator: Curator) -> Result:
        """The scores, in an array as long as the coefficients of the problem."""
        assert isinstance(plan, EvaluationPlan)
        evaluator = self._evaluator(problem, plan.n_records, plan.neighbours)
        (found,) = evaluator.run(plan, curator)
        numbers = [found.value, found.standard_error, *(one.gap for one in found.bins)]
        return Result(np.resize(np.nan_to_num(numbers, posinf=-1.0), problem.dimension(plan.n_features)), 1)

    def _evaluator(self, problem: Problem, n: int, neighbours: Neighbours) -> Evaluator:
        """A model that is sure of itself: a record is predicted either entirely right or entirely wrong."""
        model = PublicModel(np.array([[_STEEP, 0.0]]), np.zeros(1))
        classes = 2 if problem.loss.kind == "classification" else 0
        setting = Setting(
            model, problem.loss, problem.bounds.target, None, classes, n, neighbours, _CUT, _STEEP
        )  # fmt: skip
        return Evaluator((self.metric,), setting)


def evaluation_targets(budget: Budget) -> Iterator[TranscriptTarget]:
    """Every metric at a record that is predicted right in one table and wrong, or null, in the other."""
    for name in METRICS:
        for neighbours in PUBLIC_SIZE:
            yield TranscriptTarget.of(_case(name), budget, neighbours)
    for neighbours in PUBLIC_SIZE:
        yield TranscriptTarget.of(_case("accuracy"), budget, neighbours, on_a_stream)


def _case(name: str) -> AuditCase:
    numbers = name in ("r2", "mean_squared_error", "mean_absolute_error")
    problem = Problem(
        Squared() if numbers else Logistic(),
        Zero(),
        Bounds(1.0, target=(-1.0, 1.0) if numbers else None),
        False,
    )
    rows = np.zeros((_BYSTANDERS, 2))
    rows[:, 0] = np.resize([0.5, -0.5], _BYSTANDERS)
    targets = np.resize([1.0, -1.0, -1.0, 1.0], _BYSTANDERS) * (math.sqrt(0.5) if numbers else 1.0)
    row = np.array([1.0, 0.0])
    # Cells are told apart by rows, scores by targets.
    other = (-row, 1.0) if name in ("calibration", "auc") else (row, 1.0)
    return AuditCase(cast(AnySolver, Scored(name)), problem, (rows, targets), (row, -1.0), cast(Any, other))
