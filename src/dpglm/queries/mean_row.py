"""The mean of the rows, and how long they are."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..arrays import Total, Vector
from ..bounds import Coordinates
from ..data.mean_row import SIZE_WEIGHT, MeanRows
from ..data.record_set import RecordSet
from ..privacy import Neighbours
from .base import Query, WorstCase, require_enforceable

_ROUNDING = 2.0**-53


@dataclass(frozen=True, eq=False)
class MeanRow(Query):
    """Sums over the records of z and of 0.8 rho (2 v - 1), with z a row in public coordinates.

    z is scaled down to norm rho if it is longer, and v is its squared norm over rho².

    Parameters
    ----------
    coordinates : Coordinates
        Of features, without an intercept.
    norm : float
        The bound rho.
    n_records : int
        The public size of the table: it decides on the grid that the numbers are rounded to.

    Guarantee
    ---------
    Two records of norms a rho and b rho move the sums by at most rho (a + b) sqrt(1 + 2.56 (a - b)²), which
    is at most 2 rho for a and b in [0, 1]: the size costs nothing beside the row. What one record adds has
    norm at most rho sqrt(1 + 0.64), which is what zeroing it out can move the sums by. A person adds a mean
    of what its records may add. Rounding is added.
    """

    name: ClassVar[str] = "mean row and its size"
    takes_units: ClassVar[bool] = True
    coordinates: Coordinates
    norm: float
    n_records: int

    def __post_init__(self) -> None:
        require_enforceable("norm", self.norm)

    def __call__(self, data: RecordSet, *public: Vector) -> Total:
        return data.cross_products(self._term)

    @property
    def _term(self) -> MeanRows:
        return MeanRows(self.coordinates, self.n_records, self.norm)

    def sensitivity(self, neighbours: Neighbours) -> float:
        farthest = 2.0 if neighbours is Neighbours.REPLACE_ONE else math.hypot(1.0, SIZE_WEIGHT)
        exact = farthest * self.norm * (1 + (self.coordinates.dimension + 16) * _ROUNDING)
        return (exact + neighbours.records_moved * self._term.rounding) * (1 + 2.0**-50)

    def means(self, released: Vector, n_records: int) -> tuple[Vector, float]:
        """The means of z and of v."""
        means = released / n_records
        return means[:-1], 0.5 + self.unit_of_size * float(means[-1])

    @property
    def unit_of_size(self) -> float:
        """How much the mean of v changes with the last number."""
        return 1.0 / (2.0 * SIZE_WEIGHT * self.norm)

    def worst_case(self, n_features: int, radius: float, constant: float) -> WorstCase:
        row = np.zeros(n_features)
        row[0] = radius
        return WorstCase((row, 1.0), (-row, 1.0), ())
