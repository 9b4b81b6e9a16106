"""How many records have each of a few codes in each column, where a code says what a cell is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..arrays import Total
from .products import CrossProducts, grid_of_factors

if TYPE_CHECKING:
    from .records import Records

FINE, MISSING, UNREADABLE, OUTSIDE, UNKNOWN = 0, 1, 2, 3, 4
"""What a cell is: nothing is wrong with it, or it is missing, cannot be read, is out of the declared range,
or has a level that is not declared."""

Codes = tuple[tuple[int, ...], ...]
"""For each column the codes that are counted."""


@dataclass(frozen=True, eq=False)
class CellTally(CrossProducts):
    """For each column, and each code that is counted there, 1 for a record that has it and 0 for others.

    A null record is counted as one whose cells are all missing: here it adds something.
    """

    coordinates: None  # type: ignore[assignment]  # rows hold codes, not features
    codes: Codes

    @property
    def width(self) -> int:
        return len(self.codes)

    @property
    def grid(self) -> float:
        """The grid of the counts: finer than 1, since noise lies on it."""
        return grid_of_factors(1.0, self.n_records)

    def entries(self, n_features: int) -> int:
        return sum(map(len, self.codes))

    def total(self, steps: NDArray[np.int64]) -> Total:
        return Total(steps, self.grid)

    def add(self, rows: Records, out: NDArray[np.int64]) -> None:
        table = np.where(rows.scale[:, None] > 0, rows.dense, float(MISSING))
        places = ((column, code) for column, codes in enumerate(self.codes) for code in codes)
        for k, (column, code) in enumerate(places):
            here = np.where(table[:, column] == code, 1.0, 0.0)
            out[k] += rows.on_grid(rows.parted(here), self.grid).sum()
