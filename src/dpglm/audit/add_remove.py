"""Whole fits whose number of records is private: the two tables differ in size."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..bounds import Bounds
from ..estimators import LogisticRegression
from ..estimators.base import PrivateGLM
from ..penalties import L2, Penalty
from ..privacy import Budget, Neighbours
from ..solvers import (
    AnySolver,
    CoordinateDescent,
    DualCoordinateDescent,
    GradientDescent,
    GreedyCoordinateDescent,
    ObjectivePerturbation,
    OutputPerturbation,
)
from .claim import Claim
from .tables import Tables
from .targets import FitTarget

NAME = "add-remove"
"""By this name `audit_registry` audits fits with a private number of records."""

_BYSTANDERS = 7
_CASES: tuple[tuple[AnySolver, Penalty | None], ...] = (
    (GradientDescent(steps=2, clip=0.1, step_size=0.1), None),
    (
        GradientDescent(steps=2, clip=0.1, step_size=0.1, batch_size=20),
        None,
    ),  # a plan of its own for each count
    (CoordinateDescent(steps=3, clip=0.1, step_size=0.1, second_moments="bounds"), None),
    (
        GreedyCoordinateDescent(
            steps=2, clip=0.1, step_size=0.1, second_moments="bounds", release="gaussian"
        ),
        None,
    ),
    (DualCoordinateDescent(steps=2, clip=0.1, batch_size=10**6), L2(1.0)),
    (ObjectivePerturbation(clip=0.1, quadratic=0.0), L2(1.0)),
    (OutputPerturbation(clip=0.1), L2(1.0)),
)


def add_remove_targets(budget: Budget) -> Iterator[FitTarget]:
    """Fits to null records, with one record more or without it: the count and all that follows are seen."""
    for solver, penalty in _CASES:
        yield add_remove_target(_estimator(solver, penalty, budget))


def add_remove_target(estimator: PrivateGLM) -> FitTarget:
    """An estimator at tables that differ in one record, whose gradients are as long as they may be."""
    row = np.array([0.8, -0.6])
    crowd = np.full((_BYSTANDERS, 2), np.nan), np.ones(_BYSTANDERS)
    tables = Tables.with_record(*crowd, (row, 1.0), None, Neighbours.ADD_REMOVE.value)
    plan = estimator.plan(_BYSTANDERS + 1, 2)
    claim = Claim(plan.budget.epsilon, plan.budget.delta, plan.event)
    return FitTarget(estimator, tables, claim)


def _estimator(solver: AnySolver, penalty: Penalty | None, budget: Budget) -> PrivateGLM:
    """A fit whose releases all move by their whole sensitivity."""
    return LogisticRegression(
        budget.epsilon, delta=budget.delta, solver=solver, neighbours=Neighbours.ADD_REMOVE.value,
        bounds=Bounds(row_norm=1.0), classes=[-1, 1], fit_intercept=False, penalty=penalty,
    )  # fmt: skip
