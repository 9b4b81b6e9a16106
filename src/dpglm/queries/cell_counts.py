"""How many cells of each column are missing, unreadable, out of range or of an unknown level."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..arrays import Total, Vector
from ..data.cell_tally import MISSING, CellTally, Codes
from ..data.record_set import RecordSet
from ..privacy import Neighbours
from .base import Query, WorstCase


@dataclass(frozen=True)
class CellCounts(Query):
    """For each column, and each code that is counted there, the number of records that have it.

    Parameters
    ----------
    codes : tuple of tuples of int
        For each column the codes that are counted.
    n_records : int
        The public size of the table.

    Guarantee
    ---------
    A record has one code in each column, so it adds 0 or a unit vector to the counts of a column. Replacing
    it moves these by at most sqrt(2), or by 1 if only one code is counted; the squares of all columns add up.
    A null record is counted, as one whose cells are all missing: zeroing a record out is replacing it. A
    record that is added or removed moves the counts of each column by at most 1. What a person adds is a mean
    of what its records may add. Counts are multiples of the grid: exact.
    """

    name: ClassVar[str] = "cell counts"
    takes_units: ClassVar[bool] = True
    codes: Codes
    n_records: int

    def __call__(self, data: RecordSet, *public: Vector) -> Total:
        return data.cross_products(CellTally(None, self.n_records, self.codes))

    def sensitivity(self, neighbours: Neighbours) -> float:
        moved = 2 if neighbours.size_is_public else 1
        return math.sqrt(sum(min(moved, len(codes)) for codes in self.codes)) * (1 + 2.0**-50)

    def worst_case(self, n_features: int, radius: float, constant: float) -> WorstCase:
        others = np.array([0 if codes == (MISSING,) else codes[-1] for codes in self.codes], dtype=np.float64)
        return WorstCase((others, 0.0), (np.full(len(self.codes), float(MISSING)), 0.0), ())
