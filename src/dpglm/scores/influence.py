"""Influence functions: how much a record moves a score that is no mean, to first order."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..arrays import Vector
from .base import Score
from .cells import ClassesByMargin
from .errors import SquaredError


@dataclass(frozen=True, eq=False)
class DeterminationInfluence(Score):
    """Of R² = 1 - A / B, at public A, B and mean m: A (y - m)² / B² - (y - prediction)² / B.

    Its mean over the records is the first-order correction of 1 - A / B.

    Parameters
    ----------
    error : SquaredError
    mean_error, variance, mean : float
        A, B and m: rough estimates of the mean squared error, and of the variance and mean of targets.
    """

    error: SquaredError
    mean_error: float
    variance: float
    mean: float

    @property
    def range(self) -> tuple[float, float]:
        low, high = self.error.target
        farthest = max(high - self.mean, self.mean - low) ** 2
        return -self.error.range[1] / self.variance, self.mean_error * farthest / self.variance**2

    def value(self, margins: Vector, y: Vector) -> Vector:
        spread = self.mean_error * np.square(y - self.mean) / self.variance**2
        found: Vector = spread - self.error.value(margins, y) / self.variance
        return found


@dataclass(frozen=True, eq=False)
class RankInfluence(Score):
    """Of the area under the ROC curve, with margins in the same bin as ties, at public distributions.

    Parameters
    ----------
    bins : ClassesByMargin
    values : array of shape (2, bins)
        The influence of a record of class 0, and of class 1, in each bin.
    """

    bins: ClassesByMargin
    values: Vector

    @property
    def range(self) -> tuple[float, float]:
        return float(self.values.min()), float(self.values.max())

    def value(self, margins: Vector, y: Vector) -> Vector:
        found: Vector = self.values[(y > 0).astype(np.intp), self.bins.places(margins)]
        return found
