"""The second moment of every feature, summed over the records."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..arrays import Total, Vector
from ..data.record_set import RecordSet
from ..data.terms import SquaredRow
from ..privacy import Neighbours
from .base import Query, WorstCase


@dataclass(frozen=True)
class SecondMoments(Query):
    """Sum over the records of x_j², for every feature j at once.

    If there are ``scales``, column j is multiplied by scale j first, which is from 0 to 1.

    Guarantee
    ---------
    Rows have norm at most R, after their columns are scaled, so the squares of one row are non-negative
    numbers with sum at most R² and L2 norm at most R². Zeroing a record out moves the vector by at most R²;
    replacing it moves it by the distance of two such vectors, at most sqrt(2) R² since their inner product
    is >= 0.
    """

    name: ClassVar[str] = "column second moments"
    takes_units: ClassVar[bool] = True
    radius: float
    scales: Vector | None = None

    def __call__(self, data: RecordSet, *public: Vector) -> Total:
        return data.total(SquaredRow(self.radius, scales=self.scales))

    def sensitivity(self, neighbours: Neighbours) -> float:
        return math.sqrt(neighbours.records_moved) * self.radius**2

    def worst_case(self, n_features: int, radius: float, constant: float) -> WorstCase:
        corner = radius * np.eye(n_features)
        return WorstCase((corner[0], 1.0), (corner[1], 1.0), ())
