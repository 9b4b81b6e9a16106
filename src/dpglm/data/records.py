"""The records of a fit: a table, its targets, and the bounds that hold for every row.

What one record adds to a sum is computed here and nowhere else: its margin, its slope, the clipped slope.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ..arrays import Vector
from ..kernels.arguments import BothWays, DualSteps
from ..losses import Loss
from ..tables import ClippedSums, Column, Columns, Index, Passes, Rows, RowsAndColumns, Weighed, refusal

LARGEST_SLOPE = 1e150
"""No slope counts as larger."""


@dataclass(frozen=True, eq=False)
class Records:
    """Rows inside their bounds, with an optional constant feature, and one target each.

    The table itself is not copied to scale its rows: ``scale`` multiplies them inside the products, and
    ``norms`` are those of the scaled rows. A null record, one that is not finite, has scale 0: it adds
    nothing to any sum, not even through the constant feature. What is asked beyond passes over the table is
    refused if the table does not offer it.
    """

    block: Passes
    scale: Vector
    norms: Vector
    y: Vector
    constant: float

    @cached_property
    def n_records(self) -> int:
        return self.block.shape[0]

    @cached_property
    def n_features(self) -> int:
        """Features of the table, without the constant one."""
        return self.block.shape[1]

    @cached_property
    def intercept_column(self) -> Vector:
        """The constant feature: zero for a null record."""
        return np.where(self._counts, self.constant, 0.0)

    @cached_property
    def row_norms(self) -> Vector:
        """Norm of each row, the constant feature included."""
        return np.hypot(self.norms, self.intercept_column)

    def split(self, w: Vector) -> tuple[Vector, Vector]:
        """Coefficients of the features, and the intercept: one number or none. Both are views."""
        return w[: self.n_features], w[self.n_features :]

    def margins(self, w: Vector) -> Vector:
        """Prediction of each record at w, before the link: an affine map."""
        return self.dot(w)

    def slopes(self, loss: Loss, z: Vector, rows: Index | None = None) -> Vector:
        """Slope at margin z of all records, or of ``rows``: at most 1e150, and 0 for a null record."""
        slopes = finite(loss.derivative(z, self.y if rows is None else self.y[rows]))
        if self._all_count:
            return slopes
        return np.where(self._counts if rows is None else self._counts[rows], slopes, 0.0)

    def gradient(self, loss: Loss, w: Vector, clip: float, limits: Vector | None = None) -> Vector:
        """Sum over the records of slope times row at w, each term scaled down to norm at most ``clip``.

        Where ``limits`` are given, they bound the size of each slope instead, and ``clip`` is not used.
        """
        slopes = self.slopes(loss, self.margins(w))
        if limits is None:
            return self.t_dot(self.clipped(slopes, clip))
        return self.t_dot(np.clip(slopes, -limits, limits))

    def dual_steps(self, loss: Loss, alpha: Vector, z: Vector, weight: Vector) -> Vector:
        """Dual step of each record from its dual variable and margin, of at most 1e150.

        ``weight`` is how much the prediction of a record changes with a step of 1. A null record has a dual
        variable too, but its row is 0.
        """
        return finite(loss.dual_step(alpha, z, self.y, weight))

    def clipped(self, slopes: Vector, clip: float) -> Vector:
        """Slopes scaled down so that slope times row, the constant feature included, has norm <= clip."""
        if not math.isfinite(clip):
            return slopes
        cut = np.abs(slopes)
        cut *= self.row_norms
        np.divide(clip, np.maximum(cut, clip, out=cut), out=cut)
        return np.multiply(slopes, cut, out=cut)

    def dot(self, w: Vector) -> Vector:
        """Each row times w: a linear map. For predictions see ``margins``."""
        features, intercept = self.split(w)
        z = self.scale * self.block.dot(features)
        if self.constant:
            z += self.intercept_column * intercept
        return z

    def t_dot(self, r: Vector) -> Vector:
        """Sum over the records of r_i times row i."""
        sums = self.block.t_dot(self.scale * r)
        if self.constant:
            sums = np.append(sums, (self.intercept_column * r).sum())
        return sums

    def second_moments(self) -> Vector:
        """Sum over the records of the squared entries, for each column of the table."""
        return self.block.second_moments(self.scale)

    def rows(self, index: NDArray[np.intp]) -> Records:
        """Some of the records, read in place."""
        taken = {name: getattr(self, name)[index] for name in ("scale", "norms", "y")}
        return replace(self, block=self._by_rows.rows(index), **taken)

    def ascend(self, *steps: *DualSteps) -> int:
        """Dual steps of some records, one after the other; how many moved (see ``kernels.dual``)."""
        return self._by_rows.ascend(self.scale, self._tail, *steps)

    @cached_property
    def by_columns(self) -> Column:
        """The table by columns, its rows already scaled."""
        return self._by_columns.scaled_columns(self.scale)

    def column(self, j: int) -> tuple[Index, Vector]:
        """The rows that hold feature j, the constant one being the last, and their entries."""
        if j == self.n_features:
            return slice(None), self.intercept_column
        rows, entries = self._by_columns.column(j)
        return rows, entries * self.scale[rows]

    def sums(self, limit: Vector, reach: Vector) -> ClippedSums:
        """Sums over the records of r_i times entry j, each term cut to [-limit_j, limit_j], at r = 0.

        ``reach`` bounds the terms by what is public: where it is below the limit, nothing can be cut.
        """
        return self._by_columns.sums(self.scale, self._tail, limit, reach)

    @property
    def without_zeros(self) -> Records:
        """The same records in a sparse table."""
        return replace(self, block=self._both_ways.without_zeros())

    @property
    def both_ways(self) -> BothWays:
        """The table by rows and by columns, before its rows are scaled."""
        return self._both_ways.both_ways()

    def weighed(self, r: Vector, limit: float) -> Weighed:
        """Sums over the records of r_i times entry j, each term cut to [-limit, limit], and weights."""
        return self._both_ways.weighed(self.scale, r, limit)

    def with_target(self, y: Vector) -> Records:
        """The same table with other targets."""
        return replace(self, y=y)

    @cached_property
    def _counts(self) -> NDArray[np.bool_]:
        """Whether a record counts: null records do not."""
        return self.scale > 0

    @cached_property
    def _all_count(self) -> bool:
        return bool(self._counts.all())

    @property
    def _tail(self) -> Vector:
        """The constant feature; empty without an intercept."""
        return self.intercept_column[: self.n_records if self.constant else 0]

    @cached_property
    def _by_rows(self) -> Rows:
        if isinstance(self.block, Rows):
            return self.block
        raise refusal(self.block, (Rows,), "a query")

    @cached_property
    def _by_columns(self) -> Columns:
        if isinstance(self.block, Columns):
            return self.block
        raise refusal(self.block, (Columns,), "a query")

    @cached_property
    def _both_ways(self) -> RowsAndColumns:
        if isinstance(self.block, RowsAndColumns):
            return self.block
        raise refusal(self.block, (RowsAndColumns,), "a query")


def finite(slopes: Vector) -> Vector:
    """Slopes of at most 1e150: a loss that overflows must not turn a bounded record into NaN."""
    if max(slopes.max(initial=0.0), -slopes.min(initial=0.0)) <= LARGEST_SLOPE:
        return slopes
    return np.clip(np.nan_to_num(slopes), -LARGEST_SLOPE, LARGEST_SLOPE)
