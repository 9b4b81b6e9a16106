"""How many records fall into each of some public cells, and the sum of an amount in each."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..arrays import Total, Vector
from ..data.record_set import RecordSet
from ..data.scored import CellRows
from ..privacy import Neighbours
from ..scores import CellsOf, PublicModel
from .base import Query, WorstCase


@dataclass(frozen=True, eq=False)
class CellSums(Query):
    """For each cell ``counted`` times its number of records; then the sum of amounts in each, if there are.

    Parameters
    ----------
    of : CellsOf
    model : PublicModel
    n_records : int
        The public size of the table: it decides on the grid that numbers are rounded to.
    counted : float
        What a record adds to the count of its cell.

    Guarantee
    ---------
    A record adds ``counted`` and an amount a of at most 1 in absolute value to one cell, a null record adds
    nothing: zeroing it out moves the sums by at most (counted² + 1)**0.5, or by ``counted`` without amounts.
    Records of two cells are sqrt(2) times that apart; records of the same cell as far as their amounts, at
    most ``spread``. A grid step for each entry of both records covers rounding.
    """

    name: ClassVar[str] = "cell sums"
    of: CellsOf
    model: PublicModel
    n_records: int
    counted: float

    def __call__(self, data: RecordSet, *public: Vector) -> Total:
        return data.cross_products(self._term)

    def sensitivity(self, neighbours: Neighbours) -> float:
        alone = math.hypot(self.counted, 1.0) if self.of.has_amounts else self.counted
        moved = alone
        if neighbours is Neighbours.REPLACE_ONE:
            moved = max(math.sqrt(2.0) * alone, self.of.spread)
        return moved + 2 * self._term.grid

    def worst_case(self, n_features: int, radius: float, constant: float) -> WorstCase:
        row = np.full(n_features, radius / math.sqrt(n_features))
        return WorstCase((row, -1.0), (-row, 1.0), ())

    @property
    def _term(self) -> CellRows:
        return CellRows(None, self.n_records, self.model, self.of, self.counted)
