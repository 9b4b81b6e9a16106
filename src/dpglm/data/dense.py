"""Dense tables: C or F order, float32 or float64, in memory or memory-mapped."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from ..arrays import Vector
from ..bounds import rounded_inward
from ..kernels.arguments import BothWays, CoordinateSteps, DualSteps, Form, RowFacts
from ..tables import ColumnsOnDemand, Weighed
from .piece import Index, Steps, Stored, never_larger, taken
from .sums import FreshSums

if TYPE_CHECKING:
    from .sparse import CSR

LANES, _ROWS_OF_LANES = 8, 512
_CACHED_BYTES = 1 << 14


class Dense(Stored):
    """A dense table, with the methods of `dpglm.tables`. Sums are in double precision, also of float32."""

    rows_of_classes: ClassVar[int] = 1 << 62  # compiled code takes few at a time

    def __init__(self, X: ArrayLike) -> None:
        array = np.asarray(X)
        array = array if array.dtype in (np.float32, np.float64) else array.astype(np.float64)
        if not (array.flags.c_contiguous or array.flags.f_contiguous):
            array = np.ascontiguousarray(array)
        self.X = _read_only(array)

    @property
    def shape(self) -> tuple[int, int]:
        n, p = self.X.shape
        return n, p

    @property
    def entries(self) -> int:
        return self.X.size

    def write_dots(self, index: Index, first: int, w: Vector, out: Vector) -> None:
        from ..kernels import exact  # compiled code is loaded by those who use it

        if self._by_columns(index):
            exact.column_dots(self.X, first, w, _lanes(), out)
        else:
            exact.dense_dots(self.X, index, first, w, out)

    def write_squares(self, index: Index, first: int, out: Vector) -> None:
        from ..kernels import exact

        if self._by_columns(index):
            exact.column_squares(self.X, first, _lanes(), out)
        else:
            exact.dense_squares(self.X, index, first, out)

    def add(self, index: Index, first: int, factors: Vector, kind: int, rounding: float, out: Steps) -> None:
        from ..kernels import exact

        if self._by_columns(index):
            exact.column_add(self.X, first, factors, kind, rounding, out)
        else:
            exact.dense_add(self.X, index, first, factors, kind, rounding, out)

    def add_cut(
        self, index: Index, first: int, factors: Vector, limit: Vector, rounding: Vector, out: Steps
    ) -> None:
        from ..kernels import exact

        if self._by_columns(index):
            exact.column_add_cut(self.X, first, factors, limit, rounding, out)
        else:
            exact.dense_add_cut(self.X, index, first, factors, limit, rounding, out)

    def add_finely(
        self,
        index: Index,
        first: int,
        factors: Vector,
        rounding: float,
        finer: float,
        out: Steps,
        rest: Steps,
    ) -> None:
        from ..kernels import exact

        exact.dense_add_finely(self.X, index, first, factors, rounding, finer, out, rest)

    def add_gradient(
        self, index: Index, first: int, facts: RowFacts, form: Form, w: Vector, clip: float, rounding: float,
        out: Steps,
    ) -> None:  # fmt: skip
        from ..kernels import exact

        if self._by_columns(index):
            exact.column_gradient(self.X, first, facts, form, w, clip, rounding, _lanes(), out)
        else:
            factors = np.empty(_rows_in_cache(self.X.strides[0]))
            exact.dense_gradient(self.X, index, first, facts, form, w, clip, rounding, factors, out)

    def add_class_gradient(
        self, index: Index, first: int, facts: RowFacts, w: Vector, clip: float, rounding: float, out: Steps
    ) -> None:
        from ..kernels.softmax import dense_class_gradient

        classes, p = w.shape[0], w.shape[1] - 1
        width = p + -p % LANES
        rows = _rows_in_cache(8 * width)
        padded = np.zeros((classes, width + 1))
        padded[:, :p], padded[:, width] = w[:, :p], w[:, p]
        block, z, scratch = np.zeros((rows, width)), np.empty((classes, rows)), np.empty((2, rows))
        dense_class_gradient(self.X, index, first, facts, padded, clip, rounding, block, z, scratch, out)

    def add_precise_gradient(
        self, index: Index, first: int, facts: RowFacts, form: Form, w: Vector, clip: float,
        rounding: Vector, out: Steps,
    ) -> None:  # fmt: skip
        from ..kernels.double_double import dense_gradient

        dense_gradient(self.X, index, first, facts, form, w, clip, rounding, out)

    def dense(self, index: Index, first: int, count: int) -> Vector:
        return _read_only(np.ascontiguousarray(self.X[taken(index, first, count)], dtype=np.float64))

    def _by_columns(self, index: Index) -> bool:
        """Whether a pass is faster column by column."""
        return index is None and not self.X.flags.c_contiguous

    def column(self, j: int) -> tuple[slice, NDArray[np.floating]]:
        return slice(None), self.X[:, j]

    def copied(self, index: NDArray[np.intp]) -> Dense:
        return Dense(self.X[index])

    def is_within(self, low: Vector, high: Vector) -> bool:
        """Whether entry j of each row is in [low_j, high_j]; a NaN is in no range."""
        from ..kernels import tables

        within = tables.within_columns if self._by_columns(None) else tables.within_rows
        return within(self.X, low, high)

    def clipped(self, low: Vector, high: Vector) -> Dense:
        if self.is_within(low, high):
            return self
        return Dense(np.clip(self.X, *rounded_inward(low, high, self.X.dtype)))

    def without(self, dropped: NDArray[np.bool_]) -> Dense:
        X = np.array(self.X, order="K")
        X[dropped] = 0
        return Dense(X)

    def times_columns(self, factors: Vector) -> Dense:
        factors = never_larger(factors, self.X.dtype)
        return Dense(np.multiply(self.X, factors, out=np.empty_like(self.X), casting="same_kind"))

    def scaled_columns(self, scale: Vector) -> Dense:
        if (scale == 1).all():
            return Dense(np.asfortranarray(self.X))
        X = np.empty(self.shape, dtype=self.X.dtype, order="F")
        np.multiply(self.X, scale[:, None], out=X, casting="same_kind")
        return Dense(X)

    def descend(self, tail: Vector, *steps: *CoordinateSteps) -> None:
        from ..kernels.coordinate import descend_dense

        descend_dense(self.X, tail, *steps)

    def sums(self, scale: Vector, tail: Vector, limit: Vector, reach: Vector, size: int) -> FreshSums:
        """As in `dpglm.tables`; limits that no term can reach are ignored."""
        return FreshSums(self, scale, tail, limit, size)

    def ascend(self, scale: Vector, tail: Vector, *steps: *DualSteps) -> int:
        from ..kernels.coordinate import ascend_dense

        return ascend_dense(self._contiguous_rows, scale, tail, *steps)

    @cached_property
    def _contiguous_rows(self) -> NDArray[np.floating]:
        return np.ascontiguousarray(self.X)

    def without_zeros(self) -> CSR:
        return self.by_rows

    def both_ways(self) -> BothWays:
        return self.by_rows.both_ways()

    def on_demand(self) -> ColumnsOnDemand:
        return self.by_rows.on_demand()

    def weighed(self, scale: Vector, r: Vector, limit: float, size: int) -> Weighed:
        return self.by_rows.weighed(scale, r, limit, size)

    @cached_property
    def by_rows(self) -> CSR:
        """The table stored by rows, without its zeros."""
        from .sparse import CSR

        return CSR(sp.csr_array(self.X))


def _rows_in_cache(row_bytes: int) -> int:
    """How many rows the nearest cache holds while they are worked on: a multiple of 16, or 12, 8 or 4."""
    rows = max(4, _CACHED_BYTES // max(row_bytes, 1))
    return rows - rows % (16 if rows >= 16 else 4)


def _lanes() -> Vector:
    """Scratch space of a pass over columns."""
    return np.empty((LANES, _ROWS_OF_LANES))


def _read_only(array: Vector) -> Vector:
    """A view that cannot be written, whatever was given: kernels are compiled anew for one that can be."""
    view = array.view()
    view.flags.writeable = False
    return view
