"""Worst cases for the auditor: two neighbouring tables between which a kind of release moves most."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from ..arrays import Vector
from ..bounds import Bounds
from ..losses import Logistic, Multinomial, Poisson, Squared
from ..penalties import Penalty, Zero
from ..problem import Problem

if TYPE_CHECKING:
    from .base import AnySolver

_BYSTANDERS, _CROWD, _CROWD_FOR_MOMENTS, _CROWD_FOR_RECALIBRATION = 7, 99, 5_999, 599
_CLASSES = 3
_NO_PENALTY = Zero()


@dataclass(frozen=True, eq=False)
class AuditCase:
    """Settings of a solver, and two neighbouring tables that are as easy to tell apart as any.

    Attributes
    ----------
    solver : Solver
    problem : Problem
    bystanders : tuple of arrays
        Rows and targets of the records that both tables have.
    first, second : tuple of array and float
        Row and target of the record in which the tables differ; under zero-out the first stands against a
        null record. A target may be an array of target, weight and offset, and then all are. It may also be a
        person: a row and an array of target, weight, offset and number of the person for each of its records.
    """

    solver: AnySolver
    problem: Problem
    bystanders: tuple[Vector, Vector]
    first: tuple[Vector, float | Vector]
    second: tuple[Vector, float | Vector]

    @property
    def units(self) -> int:
        """How many records, or persons, each of the tables has."""
        targets = self.bystanders[1]
        return 1 + len(np.unique(targets[:, 3]) if self.problem.has_units else targets)

    def with_units(self, first: int, second: int) -> AuditCase:
        """The case with persons: those that differ have so many records, all others two each."""
        bounds = replace(self.problem.bounds, rows_per_unit=max(first, second, 2))
        rows, targets = self.bystanders
        numbers = 1.0 + np.arange(len(rows))
        crowd = np.column_stack([targets, np.ones(len(rows)), np.zeros(len(rows)), numbers])
        one, other = (
            (np.tile(row, (count, 1)), np.tile([float(target), 1.0, 0.0, 0.0], (count, 1)))
            for (row, target), count in ((self.first, first), (self.second, second))
        )
        bystanders = np.repeat(rows, 2, axis=0), np.repeat(crowd, 2, axis=0)
        return AuditCase(self.solver, replace(self.problem, bounds=bounds), bystanders, one, other)

    def with_weights(self, weight: float, offset: float) -> AuditCase:
        """The case with weights and offsets: all that differs, and the crowd, at the ends of their ranges."""
        bounds = replace(self.problem.bounds, weight=weight, offset=(-offset, offset))
        rows, targets = self.bystanders
        crowd = np.column_stack([targets, np.full(len(rows), weight / 2), np.zeros(len(rows))])
        first, second = (
            (row, np.array([target, 2 * weight, end]))
            for (row, target), end in ((self.first, offset), (self.second, -offset))
        )
        problem = replace(self.problem, bounds=bounds)
        return AuditCase(self.solver, problem, (rows, crowd), first, second)


def opposed(
    solver: AnySolver, n_features: int, penalty: Penalty = _NO_PENALTY, *,
    fit_intercept: bool = False, crowd: int = 0,
) -> AuditCase:  # fmt: skip
    """Two logistic records whose gradients are opposed in every coordinate.

    Their length exceeds 0.1 while margins stay below 1, so a clip of 0.1 makes every release move by its
    whole sensitivity. Signs alternate from feature to feature: noise must differ between them.

    Parameters
    ----------
    solver : Solver
    n_features : int
    penalty : Penalty
        With an L2 part it must be so strong that margins, and with them slopes, stay where they are.
    fit_intercept : bool
        With an intercept the row has half the size of the constant feature. A clip that forgets one of the
        two lets gradients pass that are too long by a factor of 1.1 or 2.2.
    crowd : int
        Number of bystanders equal to the second record: a batch of fixed size then reveals the first by what
        is missing. By default there are seven that add nothing, so that a batch shows only that record.
    """
    problem = Problem(Logistic(), penalty, Bounds(row_norm=1.0), fit_intercept)
    row = np.resize([0.8, -0.6], n_features)
    row *= (problem.constant(n_features) / 2 if fit_intercept else 1.0) / np.linalg.norm(row)
    first, second = ((row, 1.0), (row, -1.0)) if fit_intercept else ((row, 1.0), (-row, 1.0))
    rows = np.tile(second[0], (crowd, 1)) if crowd else np.zeros((_BYSTANDERS, n_features))
    return AuditCase(solver, problem, (rows, np.full(len(rows), second[1])), first, second)


def opposed_in_scaled_columns(solver: AnySolver, penalty: Penalty = _NO_PENALTY) -> AuditCase:
    """Two logistic records of opposed labels whose columns have unequal declared bounds.

    They are long in the first column, which is scaled down: the other ways of seeing them, unscaled or with
    the constant feature of the unscaled table, let gradients pass that are too long.
    """
    problem = Problem(Logistic(), penalty, Bounds(feature=np.array([8.0, 1.0])), fit_intercept=True)
    crowd = np.zeros((_BYSTANDERS, 2)), np.ones(_BYSTANDERS)
    row = np.array([8.0, 1.0])
    return AuditCase(solver, problem, crowd, (row, 1.0), (row, -1.0))


def row_scale_case(solver: AnySolver) -> AuditCase:
    """A long row with one label against an empty row with the other, among enough records for the release."""
    problem = Problem(Logistic(), Zero(), Bounds(row_norm=1.0), fit_intercept=False)
    crowd = np.zeros((_CROWD, 1)), np.resize([1.0, -1.0], _CROWD)
    return AuditCase(solver, problem, crowd, (np.ones(1), 1.0), (np.zeros(1), -1.0))


def target_spread_case(solver: AnySolver) -> AuditCase:
    """A long row with the largest target against an empty row whose target is the farthest from it."""
    problem = Problem(Squared(), Zero(), Bounds(feature=1.0, target=(-1.0, 1.0)), fit_intercept=False)
    crowd = np.zeros((_CROWD, 1)), np.zeros(_CROWD)
    return AuditCase(solver, problem, crowd, (np.ones(1), 1.0), (np.zeros(1), -0.15))


def mean_row_case(solver: AnySolver) -> AuditCase:
    """Two opposite rows of unequal length, among enough records for the release.

    The second is so long that the mean row and its size move by 98 % of their sensitivity. Gradients and the
    first release move by most of theirs, too.
    """
    problem = Problem(Logistic(), Zero(), Bounds(row_norm=1.0), fit_intercept=True)
    crowd = np.zeros((_CROWD, 1)), np.resize([1.0, -1.0], _CROWD)
    return AuditCase(solver, problem, crowd, (np.ones(1), 1.0), (np.full(1, 2.0 - math.sqrt(5.0)), 1.0))


def column_sizes_case(solver: AnySolver) -> AuditCase:
    """The case of `row_scale_case` with two features, of which each of the records has one."""
    case = row_scale_case(solver)
    _, targets = case.bystanders
    crowd, (first, second) = np.zeros((len(targets), 2)), np.eye(2)
    return replace(case, bystanders=(crowd, targets), first=(first, 1.0), second=(second, -1.0))


def _problem() -> Problem:
    return Problem(Multinomial(_CLASSES), Zero(), Bounds(row_norm=1.0), fit_intercept=False)


def opposed_classes(solver: AnySolver, crowd: int = 0) -> AuditCase:
    """Two records of one class whose gradients are opposed in every entry, as in `opposed`."""
    row = np.array([0.8, -0.6])
    rows = np.tile(-row, (crowd, 1)) if crowd else np.zeros((_BYSTANDERS, 2))
    return AuditCase(solver, _problem(), (rows, np.zeros(len(rows))), (row, 0.0), (-row, 0.0))


def class_shares_case(solver: AnySolver) -> AuditCase:
    """A long row of one class against an empty row of another, among enough records for the release."""
    crowd = np.zeros((_CROWD, 1)), np.resize(np.arange(float(_CLASSES)), _CROWD)
    return AuditCase(solver, _problem(), crowd, (np.ones(1), 0.0), (np.zeros(1), 1.0))


CORNERS = (np.array([1.0, 0.0]), 1.0), (np.array([0.0, 1.0]), 1.0)
"""Two records between which second moments differ most, for audits: corners of the ball of rows."""


def second_moments_case(solver: AnySolver) -> AuditCase:
    """Two records at the ends of two features, among so many that moments are released beside the bounds."""
    problem = Problem(Logistic(), Zero(), Bounds(row_norm=1.0, feature=1.0), fit_intercept=False)
    crowd = np.zeros((_CROWD_FOR_MOMENTS, 2)), np.resize([1.0, -1.0], _CROWD_FOR_MOMENTS)
    return AuditCase(solver, problem, crowd, *CORNERS)


def counts_case(solver: AnySolver) -> AuditCase:
    """A record of the largest count against an empty row without a count, in unequal columns."""
    bounds = Bounds(feature=np.array([1.0, 4.0]), target=(0.0, 4.0))
    problem = Problem(Poisson(max_rate=4.0), Zero(), bounds, fit_intercept=True)
    crowd = np.zeros((_CROWD, 2)), np.resize([0.0, 1.0], _CROWD)
    return AuditCase(solver, problem, crowd, (np.array([1.0, 4.0]), 4.0), (np.zeros(2), 0.0))


def recalibration_case(solver: AnySolver, n_features: int = 1) -> AuditCase:
    """Two certain records on the wrong side, among so many that rounds for scale and shift are planned.

    What they add along the shift is opposite, and along the scale it is alike. Features but the first are 0.
    """
    problem = Problem(Logistic(), Zero(), Bounds(row_norm=1.0), fit_intercept=True)
    signs, first = np.resize([1.0, -1.0], _CROWD_FOR_RECALIBRATION), np.eye(1, n_features)
    crowd = signs[:, None] * first, np.where(np.arange(_CROWD_FOR_RECALIBRATION) % 10 < 8, signs, -signs)
    return AuditCase(solver, problem, crowd, (-first[0], 1.0), (first[0], -1.0))
