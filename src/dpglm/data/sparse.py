"""Sparse tables, stored by rows or by columns: conversions, and a cache of some columns."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from functools import cached_property
from typing import ClassVar, Self, TypeAlias, TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..arrays import Vector
from ..bounds import rounded_inward
from ..kernels.arguments import BothWays, Compressed, CoordinateSteps, DualSteps, Held
from ..threads import ENTRIES_PER_COLUMN, PROCESSORS, WIDE, chunk_count, run_chunks, run_ranges
from .resident import LANES, Index, ResidentTable, never_larger, selection
from .sums import UpdatedSums, WeightedSums, weighed

ScipyTable: TypeAlias = sp.csr_array | sp.csc_array | sp.csr_matrix | sp.csc_matrix
Number = TypeVar("Number", bound=np.floating)

_CACHED_ENTRIES, _NEAR_ENTRIES, _LEAST_ROWS = 1 << 17, 1 << 13, 16

_MOST_PASSES = 2
_MOST_SHARE = 0.5
_AT_A_TIME = 1 << 22
_ENTRIES_PER_THREAD = 1 << 18
_SAMPLE = 4096


class Sparse(ResidentTable):
    """A scipy sparse table. Sums are in double precision."""

    is_by_rows: ClassVar[bool]
    _layout: ClassVar[str] = "sparse"

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

    @property
    def _stored(self) -> Compressed:
        return self.by_rows.unsigned

    def _lanes(self, index: Index) -> tuple[Vector, ...]:
        return (np.empty(LANES),)

    def _gradient_scratch(self, index: Index, count: int) -> Vector:
        n, p = self.shape
        # A chunk stays in the cache from products to sums, in a nearer one if its rows are at places that the
        # processor cannot foresee; or it has so many rows that the coefficients do.
        entries = _CACHED_ENTRIES if index is None else _NEAR_ENTRIES
        entries = entries if p <= WIDE else ENTRIES_PER_COLUMN * p
        rows = min(max(entries * n // max(self.entries, 1), _LEAST_ROWS), max(count, 1))
        return np.empty(rows + LANES)

    def dense(self, index: Index, first: int, count: int) -> Vector:
        rows: Vector = self.by_rows.X[selection(index, first, count)].toarray().astype(np.float64)
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

    def sums(self, scale: Vector, tail: Vector, limit: Vector, reach: Vector, size: int) -> UpdatedSums:
        return UpdatedSums(self.by_rows, scale, tail, limit, size)

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

    def on_demand(self) -> ColumnCache:
        return self._on_demand

    @cached_property
    def _on_demand(self) -> ColumnCache:
        return ColumnCache(self)

    @property
    def has_columns(self) -> bool:
        """Whether the table is, or has been made, by columns."""
        return True

    def weighed(self, scale: Vector, r: Vector, limit: float, size: int) -> WeightedSums:
        return weighed(self.by_columns if self.has_columns else self.by_rows, scale, r, limit, size)

    def column(self, j: int) -> tuple[NDArray[np.signedinteger], NDArray[np.floating]]:
        X = self.by_columns.X
        inside = slice(X.indptr[j], X.indptr[j + 1])
        return X.indices[inside], X.data[inside]

    def scaled_columns(self, scale: Vector) -> CSC:
        return self.by_columns if (scale == 1).all() else self.by_columns._times_rows(scale)

    @property
    @abstractmethod
    def by_columns(self) -> CSC:
        """The table stored by columns."""

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
        parts = chunk_count(entries)
        shares = np.array([entries * k // parts for k in range(1, parts)], dtype=table.indptr.dtype)
        edges = np.searchsorted(table.indptr, shares)
        run_ranges(
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


class ColumnCache:
    """A table by rows, with a cache of the columns that were asked for.

    A pass over the rows that looks for few columns takes a fraction of the time of a conversion. The whole
    table is converted after some passes, if many entries are wanted, or if nothing new is wanted, so that
    a missing column is always found. Columns are the same either way. Arrays that were handed out never
    change: several threads may use columns of one table.
    """

    def __init__(self, source: Sparse) -> None:
        self._source, self._passes = source, 0
        self._held = self._nothing()
        self._everything: Held | None = None

    @property
    def held(self) -> Held:
        """The table, and a 1 for each column that is held; where the others begin has no meaning."""
        if self._source.has_columns:
            if self._everything is None:
                every = np.ones(self._source.shape[1], dtype=np.uint8)
                self._everything = Held(self._source.both_ways(), every)
            return self._everything
        columns, cached = self._held
        return Held(BothWays(self._source.by_rows.unsigned, columns), cached)

    def hold(self, wanted: NDArray[np.uint8], counts: NDArray[np.uint32] | None = None) -> None:
        """Hold the columns with a 1 in ``wanted`` too.

        The number of entries of each column, if it is known, tells before a pass whether it would find many.
        """
        from ..kernels import tables  # compiled code is loaded by those who use it

        if self._source.has_columns:
            return
        self._passes += 1
        rows, cached = self._source.by_rows.unsigned, self._held[1]
        needed = cached | wanted
        most = _MOST_SHARE * self._source.entries
        if (
            self._passes > _MOST_PASSES
            or not np.any(needed > cached)
            or (counts is not None and counts[needed > 0].sum(dtype=np.int64) > most)
        ):
            self.hold_all()
            return
        positions = self._find(rows, np.packbits(needed, bitorder="little"))
        count = sum(map(len, positions))
        if count > most:
            del positions
            self.hold_all()
            return
        columns = self._held[0]
        out = Compressed(
            np.zeros(len(columns.indptr), dtype=columns.indptr.dtype),
            np.empty(count, dtype=columns.indices.dtype),
            np.empty(count, dtype=rows.entries.dtype),
        )
        for places in positions:
            tables.count_found(rows.indices, places, out.indptr)
        tables.begin(np.flatnonzero(needed.view(np.bool_)).astype(np.uint64), out.indptr)
        row = 0
        for places in positions:
            row = int(tables.write_found(rows, places, row, out))
        self._held = out, needed

    def hold_all(self) -> None:
        """Hold every column; those that were extracted are let go before, which makes room."""
        self._held = self._nothing()
        _ = self._source.by_columns

    def _nothing(self) -> tuple[Compressed, NDArray[np.uint8]]:
        """No column, and a 0 for each."""
        n, p = self._source.shape
        begins, places = index_type(self._source.entries), index_type(n)
        columns = Compressed(
            np.zeros(p + 1, dtype=begins).view(f"u{begins().itemsize}"),
            np.empty(0, dtype=places).view(f"u{places().itemsize}"),
            self._source.X.data[:0],
        )
        return columns, np.zeros(p, dtype=np.uint8)

    def _find(self, rows: Compressed, bits: NDArray[np.uint8]) -> list[NDArray[np.unsignedinteger]]:
        """Positions of the entries in columns whose bit is set, in order."""
        from ..kernels.tables import find

        entries = self._source.entries
        kind: type[np.unsignedinteger] = np.uint32 if entries < 2**32 else np.uint64
        parts = chunk_count(entries)
        chunks: list[list[NDArray[np.unsignedinteger]]] = [[] for _ in range(parts)]

        def work(part: int, start: int, stop: int) -> None:
            while start < stop:
                places: NDArray[np.unsignedinteger] = np.empty(min(stop - start, _AT_A_TIME), dtype=kind)
                count, start = map(int, find(rows.indices, bits, start, stop, places))
                chunks[part].append(places[:count])

        run_chunks(work, entries, parts)
        return [places for part in chunks for places in part]


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


def converted(X: ScipyTable) -> ScipyTable:
    """A scipy CSR table as CSC, a CSC table as CSR: indices ascending, entries in their own precision."""
    from ..kernels.tables import convert  # compiled code is loaded by those who use it

    majors, minors = len(X.indptr) - 1, X.shape[X.format == "csr"]
    result = type(X.T)(X.shape, dtype=X.dtype)
    # Set one by one: scipy would give long tables the same long type for both.
    result.indptr = np.zeros(minors + 1, dtype=index_type(X.nnz))
    result.indices = np.empty(X.nnz, dtype=index_type(majors))
    result.data = np.empty(X.nnz, dtype=X.dtype)
    source, target = unsigned(X), unsigned(result)
    threads = max(1, min(PROCESSORS, X.nnz // _ENTRIES_PER_THREAD))
    run_ranges(
        lambda _, low, high: convert(source, low, high, target), even_ranges(source.indices, minors, threads)
    )
    return result


def unsigned(X: ScipyTable) -> Compressed:
    """The table for kernels: unsigned indices spare a test for negative ones."""
    indptr, indices = (part.view(f"u{part.itemsize}") for part in (X.indptr, X.indices))
    return Compressed(indptr, indices, X.data)


def even_ranges(indices: NDArray[np.integer], length: int, ranges: int) -> list[int]:
    """Edges of ranges of an index that hold about as many entries each, from a sample of the indices."""
    sample = np.sort(indices[:: max(1, len(indices) // _SAMPLE)])
    inner = sample[len(sample) * np.arange(1, ranges) // ranges] if len(sample) else np.zeros(ranges - 1)
    return [0, *inner.astype(int).tolist(), length]


def index_type(largest: int) -> type:
    """The type of indices up to a largest one."""
    return np.int32 if largest < 2**31 else np.int64
