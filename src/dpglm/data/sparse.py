"""Sparse tables, stored by rows or by columns."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import ClassVar, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..arrays import Vector
from ..bounds import rounded_inward
from ..kernels.arguments import BothWays, Compressed, CoordinateSteps, DualSteps, Form, RowFacts
from ..tables import Weighed
from ..threads import in_ranges
from .conversion import ScipyTable, converted, unsigned
from .on_demand import ColumnsOnDemand
from .parts import ENTRIES_A_COLUMN, WIDE, parts_of
from .piece import Index, Steps, Stored, never_larger, taken
from .sums import KeptSums, weighed

Number = TypeVar("Number", bound=np.floating)

_CACHED_ENTRIES, _NEAR_ENTRIES, _LEAST_ROWS = 1 << 17, 1 << 13, 16


class Sparse(Stored):
    """A scipy sparse table, with the methods of `dpglm.tables`. Sums are in double precision."""

    is_by_rows: ClassVar[bool]

    def __init__(self, X: ScipyTable) -> None:
        self.X = X
        if X.dtype not in (np.float32, np.float64):
            self.X = type(X)((X.data.astype(np.float64), X.indices, X.indptr), shape=X.shape)

    @property
    def shape(self) -> tuple[int, int]:
        n, p = self.X.shape
        return n, p

    @cached_property
    def unsigned(self) -> Compressed:
        """The table for kernels: unsigned indices spare a test for negative ones."""
        return unsigned(self.X)

    @property
    def entries(self) -> int:
        return len(self.X.data)

    def write_dots(self, index: Index, first: int, w: Vector, out: Vector) -> None:
        from ..kernels import exact  # compiled code is loaded by those who use it

        exact.sparse_dots(self.by_rows.unsigned, index, first, w, np.empty(exact.LANES), out)

    def write_squares(self, index: Index, first: int, out: Vector) -> None:
        from ..kernels import exact

        exact.sparse_squares(self.by_rows.unsigned, index, first, np.empty(exact.LANES), out)

    def add(self, index: Index, first: int, factors: Vector, kind: int, rounding: float, out: Steps) -> None:
        from ..kernels import exact

        exact.sparse_add(self.by_rows.unsigned, index, first, factors, kind, rounding, out)

    def add_cut(
        self, index: Index, first: int, factors: Vector, limit: Vector, rounding: Vector, out: Steps
    ) -> None:
        from ..kernels import exact

        exact.sparse_add_cut(self.by_rows.unsigned, index, first, factors, limit, rounding, out)

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

        exact.sparse_add_finely(self.by_rows.unsigned, index, first, factors, rounding, finer, out, rest)

    def add_gradient(
        self, index: Index, first: int, facts: RowFacts, form: Form, w: Vector, clip: float, rounding: float,
        out: Steps,
    ) -> None:  # fmt: skip
        from ..kernels import exact

        n, p = self.shape
        # A chunk stays in the cache from products to sums, in a nearer one if its rows are at places that the
        # processor cannot foresee; or it has so many rows that the coefficients do.
        entries = _CACHED_ENTRIES if index is None else _NEAR_ENTRIES
        entries = entries if p <= WIDE else ENTRIES_A_COLUMN * p
        rows = min(max(entries * n // max(self.entries, 1), _LEAST_ROWS), max(len(facts.y), 1))
        factors = np.empty(rows + exact.LANES)
        exact.sparse_gradient(
            self.by_rows.unsigned, index, first, facts, form, w, clip, rounding, factors, out
        )

    def add_precise_gradient(
        self, index: Index, first: int, facts: RowFacts, form: Form, w: Vector, clip: float,
        rounding: Vector, out: Steps,
    ) -> None:  # fmt: skip
        from ..kernels.double_double import sparse_gradient

        sparse_gradient(self.by_rows.unsigned, index, first, facts, form, w, clip, rounding, out)

    def dense(self, index: Index, first: int, count: int) -> Vector:
        rows: Vector = self.by_rows.X[taken(index, first, count)].toarray().astype(np.float64)
        return rows

    def copied(self, index: NDArray[np.intp]) -> Self:
        return type(self)(canonical(self.X[index]))

    def clipped(self, low: Vector, high: Vector) -> Self:
        from ..kernels.tables import cut_entries

        entries, (bottom, top) = self.X.data, rounded_inward(low, high, self.X.dtype)
        least, most = _extremes(entries)
        if bottom.max(initial=-np.inf) <= least and most <= top.min(initial=np.inf):
            return self
        return self._with(
            self._pass(cut_entries, bottom, top, not self.is_by_rows, out=np.empty_like(entries))
        )

    def without(self, dropped: NDArray[np.bool_]) -> Self:
        return self._times_rows(np.where(dropped, 0.0, 1.0))

    def times_columns(self, factors: Vector) -> Self:
        return self._times(never_larger(factors, self.X.dtype), not self.is_by_rows)

    def sums(self, scale: Vector, tail: Vector, limit: Vector, reach: Vector, size: int) -> KeptSums:
        return KeptSums(self.by_rows, scale, tail, limit, size)

    def ascend(self, scale: Vector, tail: Vector, *steps: *DualSteps) -> int:
        from ..kernels.coordinate import ascend_sparse

        return ascend_sparse(self.by_rows.unsigned, scale, tail, *steps)

    def without_zeros(self) -> Self:
        if self.X.data.all():
            return self
        X = self.X.copy()
        X.eliminate_zeros()
        return type(self)(X)

    def both_ways(self) -> BothWays:
        return BothWays(self.by_rows.unsigned, self.by_columns.unsigned)

    def on_demand(self) -> ColumnsOnDemand:
        return self._on_demand

    @cached_property
    def _on_demand(self) -> ColumnsOnDemand:
        return ColumnsOnDemand(self)

    @property
    def has_columns(self) -> bool:
        """Whether the table is, or has been made, by columns."""
        return True

    def weighed(self, scale: Vector, r: Vector, limit: float, size: int) -> Weighed:
        return weighed(self.by_columns if self.has_columns else self.by_rows, scale, r, limit, size)

    def column(self, j: int) -> tuple[NDArray[np.signedinteger], NDArray[np.floating]]:
        X = self.by_columns.X
        inside = slice(X.indptr[j], X.indptr[j + 1])
        return X.indices[inside], X.data[inside]

    def scaled_columns(self, scale: Vector) -> CSC:
        return self.by_columns if (scale == 1).all() else self.by_columns._times_rows(scale)

    @property
    def by_rows(self) -> CSR:
        """The table stored by rows."""
        raise NotImplementedError

    @property
    def by_columns(self) -> CSC:
        """The table stored by columns."""
        raise NotImplementedError

    def _with(self, entries: NDArray[np.floating]) -> Self:
        return type(self)(type(self.X)((entries, self.X.indices, self.X.indptr), shape=self.shape))

    def _times_rows(self, scale: Vector) -> Self:
        """The table with row i multiplied by scale_i; entries of any value by 0 are 0."""
        return self._times(scale, self.is_by_rows)

    def _times(self, scale: Vector, by_major: bool) -> Self:
        from ..kernels.tables import multiply

        return self._with(self._pass(multiply, scale, by_major, out=np.empty_like(self.X.data)))

    def _pass(self, kernel: Callable[..., None], *arguments: object, out: NDArray[Number]) -> NDArray[Number]:
        """What a kernel writes in a pass over the table, in parts of about as many entries each."""
        table, entries = self.unsigned, len(self.X.data)
        parts = parts_of(entries)
        shares = np.array([entries * k // parts for k in range(1, parts)], dtype=table.indptr.dtype)
        edges = np.searchsorted(table.indptr, shares)
        in_ranges(
            lambda _, start, stop: kernel(table, *arguments, start, stop, out),
            [0, *edges.tolist(), len(table.indptr) - 1],
        )
        return out


class CSC(Sparse):
    """A sparse table stored by columns: the form coordinate methods read."""

    is_by_rows = False

    def descend(self, tail: Vector, *steps: *CoordinateSteps) -> None:
        from ..kernels.coordinate import descend_sparse

        descend_sparse(self.unsigned, tail, *steps)

    @cached_property
    def by_rows(self) -> CSR:
        return CSR(converted(self.X))

    @property
    def by_columns(self) -> CSC:
        return self


class CSR(Sparse):
    """A sparse table stored by rows: the form gradient methods read."""

    is_by_rows = True

    @property
    def has_columns(self) -> bool:
        return "by_columns" in self.__dict__

    @property
    def by_rows(self) -> CSR:
        return self

    @cached_property
    def by_columns(self) -> CSC:
        return CSC(converted(self.X))


def _extremes(entries: NDArray[np.floating]) -> tuple[np.floating, np.floating]:
    """The least and the largest of 0 and all entries, read once; NaN if one is."""
    parts = np.array_split(entries, len(entries) // _CACHED_ENTRIES + 1)
    least, most = zip(*[(part.min(initial=0), part.max(initial=0)) for part in parts], strict=True)
    return np.min(least), np.max(most)


def canonical(X: ScipyTable) -> ScipyTable:
    """The table with each entry stored once: a duplicate would be clipped and squared in parts."""
    X = type(X)((X.data, X.indices, X.indptr), shape=X.shape)  # forgets what X may wrongly remember of itself
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return X
