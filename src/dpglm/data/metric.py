"""Sizes of records, and their gradients in a metric: coordinates times a public matrix."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..arrays import Total, Vector, grid_of_terms
from ..bounds import Coordinates
from ..losses import Loss
from .products import CrossProducts, grid_of_factors, in_lanes, products_of, squares_of
from .resident import LEAST_NORM, Dense
from .terms import Gradient

if TYPE_CHECKING:
    from .records import Records

LARGEST_ENTRY = 1e30
"""No entry of a metric is larger: rows in it are kept as float32, where they must not overflow."""


_SIZES_AT_ONCE = 1 << 14


@dataclass(frozen=True, eq=False)
class RowSizes(CrossProducts):
    """(2 v - 1, t) for v = norm² / radius² of a row, cut to [0, 1], and its target in [-1, 1].

    The norm is that of the coordinates, or of the row itself if there are none. The target is
    target_scale * (y - target_middle), cut to [-1, 1]. A null record adds nothing.
    """

    coordinates: Coordinates | None  # type: ignore[assignment]  # wide rows are not written as coordinates
    radius: float
    target_middle: float
    target_scale: float

    @property
    def needs_norms(self) -> bool:  # type: ignore[override]  # it depends on the coordinates
        return self.coordinates is None

    @property
    def rows_at_once(self) -> int:
        return _SIZES_AT_ONCE  # no product of matrices is to be exact

    @property
    def grid(self) -> float:
        """The grid of the numbers."""
        return grid_of_factors(1.0, self.n_records)

    def entries(self, n_features: int) -> int:
        return 2

    def total(self, steps: NDArray[np.int64]) -> Total:
        return Total(steps, self.grid)

    def add(self, rows: Records, out: NDArray[np.int64]) -> None:
        counts, grid = rows.scale > 0, self.grid
        with np.errstate(all="ignore"):
            shares = np.minimum(_zero_for_nan(self._squares(rows) / self.radius**2), 1.0)
        for k, values in enumerate((2.0 * shares - 1.0, *self.targets(rows))):
            kept = rows.parted(np.where(counts, values, 0.0), less=3.0 * grid)
            out[k] += rows.on_grid(kept, grid).sum()

    def targets(self, rows: Records) -> list[Vector]:
        """Numbers in [-1, 1] for the target of each record."""
        with np.errstate(all="ignore"):  # an absurd range has an infinite scale, and 0 times it is NaN
            targets = self.target_scale * (rows.y - self.target_middle)
        return [np.minimum(np.maximum(_zero_for_nan(targets), -1.0), 1.0)]

    def _squares(self, rows: Records) -> Vector:
        if self.coordinates is None:
            return np.square(rows.norms)
        return squares_of(rows, self.coordinates)


@dataclass(frozen=True, eq=False)
class RowAndTargetSizes(RowSizes):
    """(2 v - 1, t, 2 t² - 1) for the size v of a row and its target t as in `RowSizes`."""

    def entries(self, n_features: int) -> int:
        return 3

    def targets(self, rows: Records) -> list[Vector]:
        (t,) = super().targets(rows)
        return [t, 2.0 * np.square(t) - 1.0]


@dataclass(frozen=True, eq=False)
class MetricRows(CrossProducts):
    """The gradient at w of each record in a metric, times a weight, cut to norm at most ``clip``.

    A record is u = coordinates @ transform, a product that is exact and then rounded to float32. w are
    coefficients of u. The weight of a record is min(1, leverage / norm(u)).
    """

    loss: Loss
    transform: Vector
    w: Vector
    clip: float
    leverage: float

    @property
    def gradient(self) -> Gradient:
        """The gradient of records that are in the metric already."""
        return Gradient(self.loss, self.w, self.clip)

    def entries(self, n_features: int) -> int:
        return int(self.transform.shape[1])

    def total(self, steps: NDArray[np.int64]) -> Total:
        return Total(steps, self._grid)

    @property
    def _grid(self) -> float:
        return grid_of_terms(self.clip, self.n_records)

    def add(self, rows: Records, out: NDArray[np.int64]) -> None:
        table = in_metric(rows, self.coordinates, self.transform, self.leverage)
        out += table.steps(self.gradient, self._grid)[0, : out.size]


def _zero_for_nan(values: Vector) -> Vector:
    """The values, with 0 in place of NaN."""
    values[np.isnan(values)] = 0.0
    return values


def in_metric(rows: Records, coordinates: Coordinates, transform: Vector, leverage: float) -> Records:
    """The records u = coordinates @ transform, without a constant feature; the matrix is on column grids.

    They are rounded to float32: passes over them take as long as memory does to move them. Zeros follow up to
    whole lanes. A row that is longer than ``leverage`` counts with weight leverage / norm(u), and as a row of
    that length: what the record adds is cut to the clip as a product of slope, weight and row.
    """
    from ..kernels.products import narrow  # compiled code is loaded by those who use it

    matrix = np.pad(transform, [(0, in_lanes(size) - size) for size in transform.shape])
    table, norms = np.empty((rows.n_records, matrix.shape[1]), dtype=np.float32), np.empty(rows.n_records)

    def write(part: Records, start: int, stop: int) -> None:
        here = slice(start, stop)
        narrow(products_of(part, coordinates, matrix), LEAST_NORM, table[here], norms[here])

    rows.in_chunks(coordinates.dimension, write)
    metric_rows = rows.in_table(Dense(table), np.where(rows.scale > 0, 1.0, 0.0), norms)
    return metric_rows.weighed_by_length(leverage) if math.isfinite(leverage) else metric_rows
