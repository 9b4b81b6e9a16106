"""Numbers of records that depend on their classes: counts of classes, and factors of shares."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..arrays import Total, Vector
from .products import CrossProducts, grid_of_factors

if TYPE_CHECKING:
    from .records import Records


@dataclass(frozen=True, eq=False)
class ByClass:
    """From codes of classes to the targets of a loss and to factors of the shares of records.

    Parameters
    ----------
    target : callable
        Maps codes to targets.
    factors : array of shape (classes,)
        From 0 to 1: what the share of a record of each class is multiplied by.
    """

    target: Callable[[Vector], Vector]
    factors: Vector

    def __call__(self, codes: Vector) -> Vector:
        return self.target(codes)

    def of(self, codes: Vector) -> Vector:
        """The factor of each record."""
        found: Vector = self.factors[codes.astype(np.intp)]
        return found


@dataclass(frozen=True, eq=False)
class ClassTally(CrossProducts):
    """1 for the class of a record, 0 for the others; targets are codes. A null record adds nothing."""

    coordinates: None  # type: ignore[assignment]  # rows are not read
    classes: int

    @property
    def width(self) -> int:
        return 1  # a chunk has as many rows as may be

    @property
    def grid(self) -> float:
        """The grid of the counts: finer than 1, since noise lies on it."""
        return grid_of_factors(1.0, self.n_records)

    def entries(self, n_features: int) -> int:
        return self.classes

    def total(self, steps: NDArray[np.int64]) -> Total:
        return Total(steps, self.grid)

    def add(self, rows: Records, out: NDArray[np.int64]) -> None:
        counts = rows.scale > 0
        for k in range(self.classes):
            here = np.where(counts & (rows.y == k), 1.0, 0.0)
            out[k] += rows.on_grid(rows.parted(here), self.grid).sum()
