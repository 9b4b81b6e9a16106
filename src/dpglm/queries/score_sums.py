"""How a public model does on the records: the number of records, the sum of a score and of its square."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..arrays import Total, Vector
from ..data.record_set import RecordSet
from ..data.scored import ScoreRows, zero_out_norm
from ..privacy import Neighbours
from ..scores import PublicModel, Score
from .base import Query, WorstCase

LARGEST_WEIGHT = math.sqrt(((1 + math.sqrt(5)) / 2) ** 5) / 2
"""Up to this weight, 1.665, a square adds nothing to the distance of two records."""

_WEIGHTS = {Neighbours.REPLACE_ONE: (1.2, 1.6), Neighbours.ZERO_OUT: (0.5, 1.0)}


@dataclass(frozen=True, eq=False)
class ScoreSums(Query):
    """Sums over the records of (counted, v, weight (1 - v²)), with v the score of a record in [-1, 1].

    Parameters
    ----------
    score : Score
    model : PublicModel
    n_records : int
        The public size of the table: it decides on the grid that numbers are rounded to.
    counted, weight : float
        What a record adds to the first sum, and the factor of the last one.

    Guarantee
    ---------
    A null record adds 0. For a weight of at most 1.665 two records with scores u and v are at most 2 apart:
    (u - v)² (1 + weight² (u + v)²) <= 4. A record and a null record are at most
    (counted² + max(1, weight²))**0.5 apart, which is what zeroing a record out moves the sums by; replacing
    it moves them by at most the larger of both. A grid step for each entry covers rounding.
    """

    name: ClassVar[str] = "score sums"
    score: Score
    model: PublicModel
    n_records: int
    counted: float
    weight: float

    def __post_init__(self) -> None:
        if not 0 <= self.weight <= LARGEST_WEIGHT:
            raise ValueError(f"weight must be from 0 to {LARGEST_WEIGHT:.4g}, got {self.weight!r}")

    @classmethod
    def weighed(cls, score: Score, model: PublicModel, n: int, neighbours: Neighbours) -> ScoreSums:
        """The query with weights that suit a relation: all three sums at about the price of the second."""
        return cls(score, model, n, *_WEIGHTS[neighbours])

    def __call__(self, data: RecordSet, *public: Vector) -> Total:
        return data.cross_products(self._term)

    def sensitivity(self, neighbours: Neighbours) -> float:
        alone = zero_out_norm(self.counted, self.weight)
        moved = max(2.0, alone) if neighbours is Neighbours.REPLACE_ONE else alone
        return moved + 3 * self._term.grid

    def worst_case(self, n_features: int, radius: float, constant: float) -> WorstCase:
        row = np.full(n_features, radius / math.sqrt(n_features))
        return WorstCase((row, 1.0), (row, -1.0), ())

    @property
    def _term(self) -> ScoreRows:
        return ScoreRows(None, self.n_records, self.model, self.score, self.counted, self.weight)
