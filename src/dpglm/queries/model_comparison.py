"""Scores of models on rows that they were not fitted to."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..arrays import Total, Vector
from ..data.bounded_numbers import CutGains, CutValues, Valued
from ..data.record_set import RecordSet
from ..losses import Loss
from ..mechanisms.selection import Selection
from ..privacy import Neighbours
from .base import Opening, Query, WorstCase, require_moderate

_FAR = 0.5
"""Where the loss of a residual is cut, as a share of half the declared range of targets."""

_CUT_OF_LABELS, _CUT_OF_TARGETS = 0.25, 0.5
"""What differences of losses are cut to, as a share of what losses are cut to."""


@dataclass(frozen=True)
class Errors:
    """1 for a label whose sign the margin misses, else 0: scores of models of different losses."""

    def value(self, z: Vector, y: Vector) -> Vector:
        """Return the error of each record."""
        return np.where(z * y > 0, 0.0, 1.0)


@dataclass(frozen=True)
class SquaredErrors:
    """Squared difference of a target and its prediction, which is kept within a range."""

    loss: Loss
    low: float
    high: float

    def value(self, z: Vector, y: Vector) -> Vector:
        """Return the squared error of each record."""
        return np.square(np.clip(self.loss.mean(z), self.low, self.high) - y)


@dataclass(frozen=True, eq=False)
class HeldOutScores(Query):
    """Minus the sum of the losses of the records at each of some models, each loss cut to [0, most].

    The models are the columns of a matrix.

    Parameters
    ----------
    loss : Loss, Errors or SquaredErrors
    most : float
        What the loss of a record is cut to.
    count : int
        Number of models.
    n_records : int
        The public number of records: it decides on the grid that values are rounded to.

    Guarantee
    ---------
    A record adds a number in [-most, 0] to each score, rounded to a grid on which ``most`` lies: neighbours
    move each score by at most ``most``, up to a step of the grid.
    """

    name: ClassVar[str] = "held-out loss"
    takes_units: ClassVar[bool] = True
    loss: Valued
    most: float
    count: int
    n_records: int

    def __call__(self, data: RecordSet, *public: Vector) -> Total:
        (points,) = public
        if points.shape[1] != self._columns:
            raise ValueError(f"there must be {self._columns} models, one in each column")
        return data.cross_products(self._term(points))

    def sensitivity(self, neighbours: Neighbours) -> float:
        return math.sqrt(self.count) * self.of_one(neighbours)

    def of_one(self, neighbours: Neighbours) -> float:
        """How far neighbours move any one score."""
        return self.most + self.grid

    @property
    def grid(self) -> float:
        """The grid of the scores: a power of two."""
        return self._term(np.zeros((1, self._columns))).grid

    def worst_case(self, n_features: int, radius: float, constant: float) -> WorstCase:
        low, high = np.zeros(n_features), np.zeros(n_features)
        low[0], high[0] = -radius, radius
        points = np.zeros((n_features + bool(constant), self._columns))
        points[0, -self.count :] = 1e6 * (1 + self.most) / radius
        return WorstCase((low, 1.0), (high, 1.0), (points,))

    @property
    def _columns(self) -> int:
        return self.count

    def _term(self, points: Vector) -> CutValues:
        return CutValues(self.loss, self.most, self.n_records, points)


def score_for(losses: Sequence[Loss], target: tuple[float, float] | None) -> tuple[Valued, float]:
    """How held-out records are scored under models of these losses, and what a record's loss is cut to.

    For labels it is the loss itself, cut to twice its value at a margin of 0, or errors if losses differ; for
    numbers the squared error of the prediction by the first loss, cut to that of a quarter of the declared
    range.
    """
    if losses[0].kind == "classification":
        if any(loss != losses[0] for loss in losses):
            return Errors(), 1.0
        return losses[0], 2.0 * float(losses[0].value(np.zeros(1), np.ones(1))[0])
    low, high = target or (-1.0, 1.0)
    return SquaredErrors(losses[0], low, high), (_FAR * (high - low) / 2) ** 2


@dataclass(frozen=True, eq=False)
class Gains(HeldOutScores):
    """The sum over records of the loss at a first model minus that at each of some others, cut at ``most``.

    The models are the columns of a matrix. Losses of models along one fit differ by little, so their
    differences can be cut to a much smaller range than the losses themselves.

    Parameters
    ----------
    loss : Loss, Errors or SquaredErrors
    most : float
        What the difference of two losses of a record is cut to.
    count : int
        Number of models beside the first.
    n_records : int
        The public number of records: it decides on the grid that values are rounded to.

    Guarantee
    ---------
    A record adds a number in [-most, most] to each gain, rounded to a grid: neighbours move each gain by at
    most 2 * most if a record is replaced, by ``most`` if it is zeroed out, up to a step of the grid.
    """

    name: ClassVar[str] = "gain"

    def of_one(self, neighbours: Neighbours) -> float:
        return neighbours.records_moved * self.most + self.grid

    def open(self, opening: Opening) -> OpenGains:
        """Gains of the models in the columns of the public point, to choose one of them."""
        return OpenGains(self, opening)

    @property
    def _columns(self) -> int:
        return self.count + 1

    def _term(self, points: Vector) -> CutGains:
        return CutGains(self.loss, self.most, self.n_records, points)


class OpenGains:
    """Gains that a selection chooses by."""

    def __init__(self, query: Gains, opening: Opening) -> None:
        if not isinstance(opening.mechanism, Selection):
            raise opening.wrong_kind(query, "chooses one of some scores")
        require_moderate(opening.w)
        self._query, self._opening = query, opening

    def choose(self, handicaps: Vector) -> int:
        """The index of one of the models; each but the first loses a handicap of its gain.

        Handicaps follow from public numbers and from releases. They are rounded up to the grid of the gains,
        so that to take them off is exact.
        """
        opening, query = self._opening, self._query
        gains = np.asarray(query(opening.data, opening.w)) - np.ceil(handicaps / query.grid) * query.grid
        moved = query.of_one(opening.neighbours)
        return int(opening.releases.give(np.append(0.0, gains), moved, opening.mechanism))


def gain_for(loss: Loss, target: tuple[float, float] | None) -> tuple[Valued, float]:
    """How held-out records are scored under models of a loss, and what a record's gain is cut to.

    For labels it is half the loss at a margin of 0. For numbers it is half the squared error of a quarter of
    the declared range: a smaller cut would choose by the median record, where targets are skewed.
    """
    score, most = score_for([loss], target)
    return score, most * (_CUT_OF_LABELS if loss.kind == "classification" else _CUT_OF_TARGETS)
