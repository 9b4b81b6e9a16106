"""Wald's test of linear conditions on coefficients."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import chdtrc

from .. import strict
from ..arrays import Vector
from .words import LEAST, probability

_FEW = 6  # conditions of a test that are written out


@dataclass(frozen=True)
class WaldTest:
    """Wald's test of linear conditions on the coefficients.

    Attributes
    ----------
    statistic : float
        (R w - r)' (R V R')⁻¹ (R w - r), which is chi-squared if the conditions R w = r hold.
    degrees_of_freedom : int
        Number of conditions.
    p_value : float
        Probability of a statistic at least as large if the conditions hold. Statistic and p-value are NaN if
        the fit is not determined.
    hypothesis : str
        The conditions.
    outcome : str
        The class, for a fit of more than two.
    """

    statistic: float
    degrees_of_freedom: int
    p_value: float
    hypothesis: str
    outcome: str = ""

    def __str__(self) -> str:
        of = f" for {self.outcome}" if self.outcome else ""
        freedom = f"{self.degrees_of_freedom} degree{'s' if self.degrees_of_freedom > 1 else ''} of freedom"
        if math.isnan(self.statistic):
            return f"Wald test of {self.hypothesis}{of}: no result, the fit is not determined ({freedom})"
        sign = " " if self.p_value < LEAST else " = "
        result = f"chi2 = {self.statistic:.4g}, {freedom}, p{sign}{probability(self.p_value)}"
        return f"Wald test of {self.hypothesis}{of}: {result}"

    __repr__ = __str__


def wald_test(values: Vector, covariance: Vector, R: Vector, r: Vector) -> tuple[float, float]:
    """Statistic and p-value of the conditions R w = r.

    Examples
    --------
    >>> import numpy as np
    >>> statistic, p_value = wald_test(np.array([1.96, 5.0]), np.eye(2), np.array([[1.0, 0.0]]), np.zeros(1))
    >>> round(statistic, 2), round(p_value, 2)
    (3.84, 0.05)
    """
    gap, spread = R @ values - r, R @ covariance @ R.T
    with np.errstate(all="ignore"):
        scale = np.sqrt(np.diagonal(spread))  # conditions may be in very different units
        gap, spread = gap / scale, spread / np.outer(scale, scale)
        try:
            statistic = float(gap @ np.linalg.solve(spread, gap))
        except np.linalg.LinAlgError:
            statistic = math.nan
    return statistic, float(chdtrc(len(R), statistic))


def conditions(hypothesis: object, values: ArrayLike | None, names: Sequence[str]) -> tuple[Vector, Vector]:
    """The conditions R w = r of a hypothesis.

    Parameters
    ----------
    hypothesis : str, int, list of these, or array of shape (k, d)
        Coefficients by name or index; or the matrix R, which must have rank k.
    values : array of shape (k,), optional
        The numbers r; by default 0.
    names : sequence of str
        Names of the d coefficients.
    """
    given = np.asarray(hypothesis).tolist() if hasattr(hypothesis, "__array__") else hypothesis
    listed = list(given) if isinstance(given, list | tuple) else [given]
    if any(isinstance(one, list | tuple) or hasattr(one, "__array__") and np.ndim(one) for one in listed):
        R = _matrix(listed, len(names))
    else:
        chosen = [_index(one, names) for one in listed]
        if not chosen or len(set(chosen)) < len(chosen):
            raise strict.wrong("hypothesis", hypothesis, "at least one coefficient, and each of them once")
        R = np.eye(len(names))[chosen]
    r = np.zeros(len(R)) if values is None else _finite(values)
    if r is None or r.shape not in {(), (len(R),)}:
        raise strict.wrong("values", values, f"one number for each condition, of which there are {len(R)}")
    return R, np.broadcast_to(r, (len(R),))


def in_words(R: Vector, r: Vector, names: Sequence[str]) -> str:
    """The conditions as equations, or their number if there are many."""
    if len(R) > _FEW:
        return f"{len(R)} conditions"
    return ", ".join(f"{_sum(row, names)} = {value:.4g}" for row, value in zip(R, r, strict=True))


def _finite(values: object) -> Vector | None:
    """The values as an array of finite numbers; None if they are something else."""
    try:
        found = np.asarray(values, dtype=float)
    except (TypeError, ValueError):
        return None
    return found if np.isfinite(found).all() else None


def _matrix(rows: list[object], d: int) -> Vector:
    """The matrix of conditions: a column for each coefficient, and no row that follows from the others."""
    R = _finite(rows)
    if R is None or R.ndim != 2 or R.shape[1] != d:
        raise strict.wrong("hypothesis", rows, f"a matrix of finite numbers with {d} columns")
    size = np.abs(R).max(axis=1, keepdims=True)
    if not size.all() or np.linalg.matrix_rank(R / size) < len(R):
        raise strict.wrong("hypothesis", rows, "a matrix none of whose rows follows from the others")
    return R


def _index(one: object, names: Sequence[str]) -> int:
    """Index of a coefficient that is given by its name or index."""
    d = len(names)
    if isinstance(one, str):
        found = [k for k, name in enumerate(names) if name == one]
        if len(found) > 1:
            raise ValueError(f"hypothesis names {one!r}, which {len(found)} coefficients have: give an index")
        if not found:
            raise strict.wrong("hypothesis", one, f"among the names {_shortened(names)}")
        return found[0]
    if isinstance(one, int | np.integer) and not isinstance(one, bool) and -d <= one < d:
        return int(one) % d
    needed = f"a name, an index from 0 to {d - 1}, a list of these, or a matrix with {d} columns"
    raise strict.wrong("hypothesis", one, needed)


def _shortened(names: Sequence[str], most: int = 20) -> str:
    listed = ", ".join(map(repr, names[:most]))
    return listed if len(names) <= most else f"{listed} and {len(names) - most} more"


def _sum(row: Vector, names: Sequence[str]) -> str:
    words = ""
    for weight, name in zip(row.tolist(), names, strict=True):
        if weight:
            sign = "-" if weight < 0 else "+"
            lead = f" {sign} " if words else sign.replace("+", "")
            words += lead + ("" if abs(weight) == 1 else f"{abs(weight):.4g} ") + name
    return words
