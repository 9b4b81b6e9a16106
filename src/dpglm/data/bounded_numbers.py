"""Sums over the records of how a public model does on each: scores with their squares, and cells."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..arrays import ROUNDING, Total, Vector
from ..scores import CellsOf, PublicModel, Score
from .products import CrossProducts, grid_of_factors

if TYPE_CHECKING:
    from .records import Records


@dataclass(frozen=True, eq=False)
class _Judged(CrossProducts):
    """Numbers of each record in [-1, 1], from the margins of a public model; none for a null record."""

    coordinates: None  # type: ignore[assignment]  # rows are not written as coordinates
    model: PublicModel

    @property
    def width(self) -> int:
        return 1

    @property
    def grid(self) -> float:
        """The grid of the numbers."""
        return grid_of_factors(1.0, self.n_records)

    def steps_of(self, values: Vector) -> NDArray[np.int64]:
        """Numbers rounded to the grid, in whole steps."""
        rounding = ROUNDING * self.grid
        rounded: NDArray[np.int64] = (((values + rounding) - rounding) / self.grid).astype(np.int64)
        return rounded

    def judged(self, rows: Records) -> tuple[Vector, Vector, NDArray[np.bool_]]:
        """Margins, targets, and which records count."""
        return self.model.margins(rows), rows.y, rows.scale > 0


@dataclass(frozen=True, eq=False)
class ScoreRows(_Judged):
    """(counted, v, weight (1 - v²)) for the score v of a record in [-1, 1]."""

    score: Score
    counted: float
    weight: float

    def entries(self, n_features: int) -> int:
        return 3

    def total(self, steps: NDArray[np.int64]) -> Total:
        return Total(steps, 1.0, unit=self.grid * np.array([self.counted, 1.0, self.weight]))

    def add(self, rows: Records, out: NDArray[np.int64]) -> None:
        margins, y, counts = self.judged(rows)
        v = np.where(counts, self.score.scaled(margins, y), 0.0)
        left = np.where(counts, 1.0 - np.square(v), 0.0)
        for k, values in enumerate((counts.astype(float), v, left)):
            out[k] += self.steps_of(values).sum()


@dataclass(frozen=True, eq=False)
class CellRows(_Judged):
    """``counted`` for the cell of a record, and, after all cells, the amount of the record in its cell."""

    of: CellsOf
    counted: float

    def entries(self, n_features: int) -> int:
        return self.of.count * (2 if self.of.has_amounts else 1)

    def total(self, steps: NDArray[np.int64]) -> Total:
        kinds = [self.counted, 1.0] if self.of.has_amounts else [self.counted]
        return Total(steps, 1.0, unit=self.grid * np.repeat(kinds, self.of.count))

    def add(self, rows: Records, out: NDArray[np.int64]) -> None:
        margins, y, counts = self.judged(rows)
        with np.errstate(all="ignore"):
            cells, amounts = self.of.cells(margins, y)
            amounts = np.clip(np.nan_to_num(amounts), -1.0, 1.0)
        here, size = cells[counts], self.of.count
        one = round(1.0 / self.grid)
        out[:size] += one * np.bincount(here, minlength=size)
        if self.of.has_amounts:
            np.add.at(out, size + here, self.steps_of(amounts[counts]))


def zero_out_norm(counted: float, weight: float) -> float:
    """The largest norm of (counted, v, weight (1 - v²)): at an end of 0 <= v² <= 1, in which it is convex."""
    return math.hypot(counted, max(1.0, weight))
