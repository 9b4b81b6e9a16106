"""How long a typical row is, and the mean target: two numbers that settings are derived from."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..arrays import Total, Vector
from ..bounds import Coordinates
from ..data.metric import RowSizes
from ..data.summed import Summed
from ..privacy import Neighbours
from .base import Query, WorstCase


@dataclass(frozen=True, eq=False)
class RowScale(Query):
    """Sums over the records of 2 v - 1 and of t: v is norm² / radius² of a row, t its target in [-1, 1].

    Parameters
    ----------
    coordinates : Coordinates or None
        Norms are those of the features in these coordinates, or of the rows themselves.
    radius : float
        The largest norm of a row.
    target_middle, target_scale : float
        t is target_scale * (target - target_middle), cut to [-1, 1].
    n_records : int
        The public size of the table: it decides on the grid that the numbers are rounded to.

    Guarantee
    ---------
    v is cut to [0, 1] and t to [-1, 1], so that a record adds a point of the square [-1, 1]², and a null
    record adds 0. Zeroing a record out moves the sums by at most sqrt(2), replacing it by at most 2 sqrt(2),
    the diagonal. Numbers are rounded to a grid on which the corners lie.
    """

    name: ClassVar[str] = "row size and mean target"
    takes_persons: ClassVar[bool] = True
    coordinates: Coordinates | None
    radius: float
    target_middle: float
    target_scale: float
    n_records: int

    def __call__(self, data: Summed, *public: Vector) -> Total:
        return data.cross_products(
            RowSizes(
                self.coordinates, self.n_records, self.radius, self.target_middle, self.target_scale
            )
        )  # fmt: skip

    def sensitivity(self, neighbours: Neighbours) -> float:
        return neighbours.records_moved * math.sqrt(2.0) * (1 + 2.0**-50)

    def worst_case(self, n_features: int, radius: float, constant: float) -> WorstCase:
        long = np.zeros(n_features)
        long[0] = radius
        return WorstCase((long, 1.0), (np.zeros(n_features), -1.0), ())
