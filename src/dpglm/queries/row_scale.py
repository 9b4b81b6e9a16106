"""How long a typical row is, mean and spread of targets: numbers that settings are derived from."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from ..arrays import Total, Vector
from ..bounds import Coordinates
from ..data.metric import RowAndTargetSizes, RowSizes
from ..data.products import grid_of_factors
from ..data.record_set import RecordSet
from ..privacy import Neighbours
from .base import Query, WorstCase

_FARTHEST = (71.0 + 8.0 * math.sqrt(2.0)) / 16.0


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
    takes_units: ClassVar[bool] = True
    coordinates: Coordinates | None
    radius: float
    target_middle: float
    target_scale: float
    n_records: int

    term: ClassVar[type[RowSizes]] = RowSizes

    def __call__(self, data: RecordSet, *public: Vector) -> Total:
        return data.cross_products(self._sizes)

    @property
    def _sizes(self) -> RowSizes:
        return self.term(
            self.coordinates, self.n_records, self.radius, self.target_middle, self.target_scale
        )  # fmt: skip

    def sensitivity(self, neighbours: Neighbours) -> float:
        return neighbours.records_moved * math.sqrt(2.0) * (1 + 2.0**-50)

    def worst_case(self, n_features: int, radius: float, constant: float) -> WorstCase:
        long = np.zeros(n_features)
        long[0] = radius
        return WorstCase((long, 1.0), (np.zeros(n_features), -1.0), ())


@dataclass(frozen=True, eq=False)
class ScaledRowScale(RowScale):
    """The sums of `RowScale` for rows whose column j is multiplied by a public scale j, from 0 to 1.

    Rows longer than ``radius`` count as that long.

    Guarantee
    ---------
    That of `RowScale`: a scaled row is a function of one record, and what is added is cut.
    """

    name: ClassVar[str] = "row size in scaled columns"
    takes_units: ClassVar[bool] = False  # nobody asks it of them
    scales: Vector

    def __call__(self, data: RecordSet, *public: Vector) -> Total:
        return data.cross_products(replace(self._sizes, scales=self.scales))


@dataclass(frozen=True, eq=False)
class RowAndTargetScale(RowScale):
    """Sums over the records of 2 v - 1, t and 2 t² - 1, with v and t as in `RowScale`.

    Guarantee
    ---------
    A record adds a point (s, t, 2 t² - 1) with s and t in [-1, 1], and a null record adds 0. The point has
    norm at most sqrt(3), which is what zeroing it out can move the sums by. Between two points, t moves by
    a and its square by a b, with b the sum of both and a + b at most 2: the last two numbers move by at most
    the root of the maximum of a² (1 + 4 (2 - a)²), which is (71 + 8 sqrt(2)) / 16 at a = (6 - sqrt(2)) / 4.
    Rounding to the grid moves these two numbers of both records by at most half a step each.
    """

    name: ClassVar[str] = "row size, mean and spread of targets"
    term: ClassVar[type[RowSizes]] = RowAndTargetSizes

    def sensitivity(self, neighbours: Neighbours) -> float:
        if neighbours is not Neighbours.REPLACE_ONE:
            return math.sqrt(3.0) * (1 + 2.0**-50)
        rounded = math.sqrt(2.0) * grid_of_factors(1.0, self.n_records)
        return (math.sqrt(4.0 + _FARTHEST) + rounded) * (1 + 2.0**-50)

    def worst_case(self, n_features: int, radius: float, constant: float) -> WorstCase:
        rows = super().worst_case(n_features, radius, constant)
        return replace(rows, second=(rows.second[0], 1.0 - (6.0 - math.sqrt(2.0)) / 4.0))
