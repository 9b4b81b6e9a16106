"""How many records each class has."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..arrays import Total, Vector
from ..data.by_class import ClassTally
from ..data.record_set import RecordSet
from ..privacy import Neighbours
from .base import Query, WorstCase


@dataclass(frozen=True)
class ClassCounts(Query):
    """The number of records of each class, whatever their weights are; targets are codes of classes.

    Parameters
    ----------
    classes : int
        The number of classes.
    n_records : int
        The public size of the table.

    Guarantee
    ---------
    A record adds a unit vector, or 0 if it is null or of no class. Zeroing it out moves the counts by at most
    1 in the L2 norm, replacing it by at most sqrt(2). Counts are multiples of the grid: exact.
    """

    name: ClassVar[str] = "class counts"
    takes_units: ClassVar[bool] = True
    classes: int
    n_records: int

    def __call__(self, data: RecordSet, *public: Vector) -> Total:
        return data.cross_products(ClassTally(None, self.n_records, self.classes))

    def sensitivity(self, neighbours: Neighbours) -> float:
        return math.sqrt(neighbours.records_moved)

    def worst_case(self, n_features: int, radius: float, constant: float) -> WorstCase:
        return WorstCase((np.zeros(n_features), 0.0), (np.zeros(n_features), 1.0), ())
