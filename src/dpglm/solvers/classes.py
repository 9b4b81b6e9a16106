"""What solvers need for several predictions a record: where to start, and worst cases for the auditor."""

from __future__ import annotations

import numpy as np

from ..arrays import Vector
from ..bounds import Bounds
from ..losses import Multinomial
from ..penalties import Zero
from ..problem import Problem
from .base import AnySolver, AuditCase

_CLASSES, _BYSTANDERS, _CROWD = 3, 7, 99
_LEAST_SHARE = 1e-6


def start_from_shares(shares: Vector, noise: float) -> Vector:
    """Predictions of each class, with sum 0, from noisy shares of the records.

    Shares are drawn towards equal ones by what noise sets them apart (James and Stein), and none counts as
    less than the deviation of the noise.
    """
    equal = 1.0 / len(shares)
    apart = shares - equal
    square = float(apart @ apart)
    kept = max(0.0, 1.0 - (len(shares) - 1) * noise**2 / square) if square else 0.0
    logs = np.log(np.maximum(equal + kept * apart, min(max(noise, _LEAST_SHARE), equal)))
    start: Vector = logs - logs.mean()
    return start


def _problem() -> Problem:
    return Problem(Multinomial(_CLASSES), Zero(), Bounds(row_norm=1.0), fit_intercept=False)


def opposed_classes(solver: AnySolver, crowd: int = 0) -> AuditCase:
    """Two records of one class whose gradients are opposed in every entry, as in `opposed`."""
    row = np.array([0.8, -0.6])
    rows = np.tile(-row, (crowd, 1)) if crowd else np.zeros((_BYSTANDERS, 2))
    return AuditCase(solver, _problem(), (rows, np.zeros(len(rows))), (row, 0.0), (-row, 0.0))


def of_class_shares(solver: AnySolver) -> AuditCase:
    """A long row of one class against an empty row of another, among enough records for the release."""
    crowd = np.zeros((_CROWD, 1)), np.resize(np.arange(float(_CLASSES)), _CROWD)
    return AuditCase(solver, _problem(), crowd, (np.ones(1), 0.0), (np.zeros(1), 1.0))
