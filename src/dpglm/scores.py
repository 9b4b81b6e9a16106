"""Scores: bounded numbers of a record's target and a public model's prediction."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, softmax

from .arrays import Vector
from .losses import Loss


@dataclass(frozen=True, eq=False)
class Score(ABC):
    """A number for each record, from the margins of a public model and the record's target.

    A value outside of the range, or one that is not a number, is cut to the range, so that every record is
    bounded whatever the score computes.
    """

    @property
    @abstractmethod
    def range(self) -> tuple[float, float]:
        """The least and the largest value: public."""

    @abstractmethod
    def value(self, margins: Vector, y: Vector) -> Vector:
        """The score of each record; margins have shape (n, outputs), classes are numbered from 0."""

    @property
    def middle(self) -> float:
        """The middle of the range."""
        low, high = self.range
        return (low + high) / 2

    @property
    def half(self) -> float:
        """Half of the range."""
        low, high = self.range
        return (high - low) / 2

    @np.errstate(all="ignore")  # a warning about a number would reveal something about a record
    def scaled(self, margins: Vector, y: Vector) -> Vector:
        """The score moved and scaled to [-1, 1]; 0 for one that is not a number."""
        found = (self.value(margins, y) - self.middle) / self.half
        return np.clip(np.nan_to_num(found, nan=0.0), -1.0, 1.0)


class _Rows(Protocol):
    def margins(self, w: Vector) -> Vector: ...


@dataclass(frozen=True, eq=False)
class PublicModel:
    """Coefficients of shape (outputs, features), and intercepts of shape (outputs,)."""

    coef: Vector
    intercept: Vector

    @np.errstate(all="ignore")
    def margins(self, rows: _Rows) -> Vector:
        """Margins of records without a constant feature, shape (n, outputs), as `predict` computes them."""
        products: Vector = np.column_stack([rows.margins(w) for w in self.coef]) + self.intercept
        return products


@dataclass(frozen=True, eq=False)
class Accuracy(Score):
    """1 if the predicted class is that of the record, else 0."""

    @property
    def range(self) -> tuple[float, float]:
        return 0.0, 1.0

    def value(self, margins: Vector, y: Vector) -> Vector:
        right = (margins[:, 0] > 0) == (y > 0) if margins.shape[1] == 1 else margins.argmax(axis=1) == y
        found: Vector = right.astype(float)
        return found


@dataclass(frozen=True, eq=False)
class LogLoss(Score):
    """-log of the predicted probability of the record's class, at most ``cut``.

    Parameters
    ----------
    cut : float
        A probability below exp(-cut) counts as exp(-cut).
    shares : bool
        Whether probabilities of several classes are those of softmax, or one-vs-rest ones normalised.
    """

    cut: float
    shares: bool = False

    @property
    def range(self) -> tuple[float, float]:
        return 0.0, self.cut

    def value(self, margins: Vector, y: Vector) -> Vector:
        if margins.shape[1] == 1:
            found: Vector = np.logaddexp(0.0, np.where(y > 0, -margins[:, 0], margins[:, 0]))
            return found
        positive = softmax(margins, axis=1) if self.shares else expit(margins)
        total = positive.sum(axis=1)
        own = positive[np.arange(len(y)), np.clip(y, 0, margins.shape[1] - 1).astype(np.intp)]
        chance = np.where(total > 0, own / total, 1.0 / margins.shape[1])
        return np.asarray(-np.log(np.maximum(chance, np.exp(-self.cut))))


def predicted(loss: Loss, target: tuple[float, float] | None, margins: Vector) -> Vector:
    """Predictions from margins, cut to the declared range of targets."""
    means = loss.mean(margins)
    return means if target is None else np.clip(means, *target)


@dataclass(frozen=True, eq=False)
class _Error(Score):
    """A function of target - prediction, both within declared ranges; by default the same one."""

    loss: Loss
    target: tuple[float, float]
    limits: tuple[float, float] | None = None

    @property
    def range(self) -> tuple[float, float]:
        (low, high), (least, most) = self.target, self.limits or self.target
        return 0.0, float(self._of(np.array([max(high - least, most - low)]))[0])

    def value(self, margins: Vector, y: Vector) -> Vector:
        return self._of(y - predicted(self.loss, self.limits or self.target, margins[:, 0]))

    @abstractmethod
    def _of(self, errors: Vector) -> Vector: ...


@dataclass(frozen=True, eq=False)
class SquaredError(_Error):
    """(target - prediction)²."""

    def _of(self, errors: Vector) -> Vector:
        return np.square(errors)


@dataclass(frozen=True, eq=False)
class AbsoluteError(_Error):
    """abs(target - prediction)."""

    def _of(self, errors: Vector) -> Vector:
        return np.abs(errors)


@dataclass(frozen=True, eq=False)
class TargetValue(Score):
    """The target of a record, within its declared range: its sums give the mean and the variance."""

    target: tuple[float, float]

    @property
    def range(self) -> tuple[float, float]:
        return self.target

    def value(self, margins: Vector, y: Vector) -> Vector:
        return y


Places = NDArray[np.intp]


def places(values: Vector, low: float, high: float, count: int) -> Places:
    """The index of the bin of each value, for bins of equal width; values outside are in the end bins."""
    with np.errstate(all="ignore"):
        found = np.floor((values - low) * (count / (high - low)))
    return np.asarray(np.clip(np.nan_to_num(found), 0, count - 1).astype(np.intp))


@dataclass(frozen=True, eq=False)
class CellsOf(ABC):
    """A cell for each record, and an amount in [-1, 1].

    Attributes
    ----------
    spread : float
        How far the amounts of two records of the same cell can be apart.
    """

    spread: float

    @property
    @abstractmethod
    def count(self) -> int:
        """Number of cells."""

    @property
    def has_amounts(self) -> bool:
        """Whether amounts are summed, too, or records are only counted."""
        return self.spread > 0

    @abstractmethod
    def cells(self, margins: Vector, y: Vector) -> tuple[Places, Vector]:
        """The cell and the amount of each record."""


@dataclass(frozen=True, eq=False)
class ClassesByMargin(CellsOf):
    """Bins of the margin, apart for two classes: those of class 0 first.

    Parameters
    ----------
    bins : int
    reach : float
        Margins from -reach to reach are divided into bins of equal width; others fall into the end bins.
    """

    bins: int
    reach: float

    @property
    def count(self) -> int:
        return 2 * self.bins

    def places(self, margins: Vector) -> Places:
        """The bin of each record."""
        return places(margins[:, 0], -self.reach, self.reach, self.bins)

    def cells(self, margins: Vector, y: Vector) -> tuple[Places, Vector]:
        return self.places(margins) + self.bins * (y > 0), np.zeros(len(y))


@dataclass(frozen=True, eq=False)
class Reliability(CellsOf):
    """Bins of the predicted probability of class 1; the amount is outcome - probability.

    In a bin of width 1/bins the amounts of two records are at most 1 + 1/bins apart.
    """

    bins: int

    @property
    def count(self) -> int:
        return self.bins

    def cells(self, margins: Vector, y: Vector) -> tuple[Places, Vector]:
        chance = expit(margins[:, 0])
        return places(chance, 0.0, 1.0, self.bins), (y > 0) - chance


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
