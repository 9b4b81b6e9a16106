"""Coefficients with their standard errors."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr, ndtri

from .. import strict
from ..arrays import Vector
from .wald import WaldTest, conditions, in_words, wald_test

INTERCEPT = "intercept"
"""Name of the last coefficient, if the model has an intercept."""

LEVEL = strict.within("strictly between 0 and 1", lambda level: 0 < level < 1)


def intervals(values: Vector, standard_errors: Vector, level: float = 0.95) -> Vector:
    """Normal intervals, shape (d, 2): value ± z standard errors; (-inf, inf) for an infinite error.

    Examples
    --------
    >>> import numpy as np
    >>> intervals(np.array([1.0]), np.array([0.5]), level=0.95).round(2)
    array([[0.02, 1.98]])
    """
    half = quantile(level) * standard_errors
    return np.column_stack([values - half, values + half])


def quantile(level: float) -> float:
    """So many standard errors on both sides make a normal interval of that level."""
    return float(ndtri((1 + LEVEL("level", level)) / 2))


def two_sided(z: Vector) -> Vector:
    """Probability that a standard normal number is at least as far from 0 as z; NaN for NaN."""
    found: Vector = 2 * ndtr(-np.abs(z))
    return found


@dataclass(frozen=True, eq=False)
class Coefficients:
    """Coefficients with their error, on the scale of the user's columns.

    Attributes
    ----------
    names : tuple of str
        Features, then the intercept if there is one.
    values : array of shape (d,)
    covariance : array of shape (d, d)
        From sampling and from noise. If the fit is not determined, its diagonal is infinite, the rest NaN.
    privacy : array of shape (d, d)
        The part of the covariance that noise causes.
    determined : bool
        Whether noise left enough of the records to state an interval.
    reason : str
        Why the fit is not determined; empty if it is.
    estimand : str
        What the coefficients estimate, in a sentence.
    deviance : (float, float), optional
        The released deviance and the deviation of its noise.
    outcome : str
        What the coefficients are for, such as a class against the others; empty for a regression.
    """

    names: tuple[str, ...]
    values: Vector
    covariance: Vector
    privacy: Vector
    determined: bool
    reason: str
    estimand: str
    deviance: tuple[float, float] | None = None
    outcome: str = ""

    def __post_init__(self) -> None:
        if not self.determined:
            unknown = np.full(self.covariance.shape, np.nan)
            np.fill_diagonal(unknown, np.inf)
            object.__setattr__(self, "covariance", unknown)
            object.__setattr__(self, "privacy", unknown.copy())

    @property
    def standard_errors(self) -> Vector:
        """Square roots of the variances; infinite if the fit is not determined."""
        return np.sqrt(np.diagonal(self.covariance))

    @property
    def privacy_shares(self) -> Vector:
        """Share of each variance that noise causes; NaN if the fit is not determined."""
        with np.errstate(all="ignore"):
            shares: Vector = np.diagonal(self.privacy) / np.diagonal(self.covariance)
        return shares

    @property
    def z(self) -> Vector:
        """Values over standard errors; NaN if the fit is not determined."""
        if not self.determined:
            return np.full(len(self.values), np.nan)
        with np.errstate(all="ignore"):
            return self.values / self.standard_errors

    @property
    def p_values(self) -> Vector:
        """Two-sided p-values of the hypothesis that a coefficient is 0; NaN if the fit is not determined."""
        return two_sided(self.z)

    def intervals(self, level: float = 0.95) -> Vector:
        """Confidence intervals, shape (d, 2)."""
        return intervals(self.values, self.standard_errors, level)

    def wald_test(self, hypothesis: object, values: ArrayLike | None = None) -> WaldTest:
        """Test of linear conditions; see `conditions` for what a hypothesis may be."""
        R, r = conditions(hypothesis, values, self.names)
        found = wald_test(self.values, self.covariance, R, r) if self.determined else (math.nan, math.nan)
        return WaldTest(found[0], len(R), found[1], in_words(R, r, self.names), self.outcome)
