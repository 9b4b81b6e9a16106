"""Tables in memory: exact passes over any of their rows, and dense ones in C or F order."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from ..arrays import ROUNDING, Total, Vector, finer_grid, grid_of_terms
from ..bounds import rounded_inward
from ..kernels.arguments import PLAIN, BothWays, Compressed, CoordinateSteps, DualSteps, Form, RowFacts
from ..tables import Index as RowIndex
from ..threads import chunk_count, even_edges, parallel_sum, run_chunks
from .sums import ClippedSums, RecomputedSums, WeightedSums

if TYPE_CHECKING:
    from .sparse import CSC, CSR, ColumnCache, Sparse

LEAST_NORM = 1e-150
"""What shorter rows count as. Their squares underflow; a norm too large only clips them more."""

Index = NDArray[np.intp] | None
"""Some rows, or all."""
Steps = NDArray[np.int64]

LANES, _ROWS_OF_LANES = 8, 512
_CACHED_BYTES = 1 << 14


@cache
def compiled_pass(layout: str, name: str) -> Callable[..., None]:
    """The pass of ``kernels.exact`` over a layout, such as ``dense_dots`` or ``sparse_gradient``."""
    from ..kernels import exact  # compiled code is loaded by those who use it

    compiled: Callable[..., None] = getattr(exact, f"{layout}_{name}")
    return compiled


class ResidentTable(ABC):
    """A table in memory, with compiled passes over any of its rows (see ``kernels.exact``).

    A pass reads rows from ``first`` on, or those that ``index`` names from there on: as many as there are
    factors, facts or results.

    Attributes
    ----------
    rows_of_classes : int
        The most rows of a pass for several classes.
    """

    rows_of_classes: ClassVar[int] = 1 << 12
    _layout: ClassVar[str]

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int]: ...

    @property
    @abstractmethod
    def entries(self) -> int:
        """How many numbers are stored."""

    @property
    @abstractmethod
    def by_rows(self) -> CSR:
        """The table stored by rows, without zeros in between."""

    @property
    @abstractmethod
    def _stored(self) -> NDArray[np.floating] | Compressed:
        """What compiled code reads, row by row."""

    @abstractmethod
    def _lanes(self, index: Index) -> tuple[Vector, ...]:
        """Scratch space of products and squares, if this layout needs it."""

    @abstractmethod
    def _gradient_scratch(self, index: Index, count: int) -> Vector:
        """Scratch space of a gradient over so many rows."""

    def _run(self, name: str, index: Index, first: int, *arguments: object) -> None:
        """Run a compiled pass over this layout."""
        compiled_pass(self._layout, name)(self._stored, index, first, *arguments)

    def write_dots(self, index: Index, first: int, w: Vector, out: Vector) -> None:
        """Product of each row with w."""
        self._run("dots", index, first, w, *self._lanes(index), out)

    def write_squares(self, index: Index, first: int, out: Vector) -> None:
        """Squared norm of each row."""
        self._run("squares", index, first, *self._lanes(index), out)

    def add(self, index: Index, first: int, factors: Vector, kind: int, rounding: float, out: Steps) -> None:
        """Add each row times its factor on a grid, or the squares or absolute values of its entries then."""
        self._run("add", index, first, factors, kind, rounding, out)

    def add_cut(
        self, index: Index, first: int, factors: Vector, limit: Vector, rounding: Vector, out: Steps
    ) -> None:
        """Add each row times its factor, each entry cut to the limit of its column."""
        self._run("add_cut", index, first, factors, limit, rounding, out)

    def add_finely(
        self, index: Index, first: int, factors: Vector, rounding: float, finer: float, out: Steps,
        rest: Steps,
    ) -> None:  # fmt: skip
        """Add each row times its factor, and what rounding leaves of it on a finer grid."""
        self._run("add_finely", index, first, factors, rounding, finer, out, rest)

    def add_gradient(
        self, index: Index, first: int, facts: RowFacts, form: Form, w: Vector, clip: float, rounding: float,
        out: Steps,
    ) -> None:  # fmt: skip
        """Add the clipped gradient of each record; the constant feature is the last entry."""
        scratch = self._gradient_scratch(index, len(facts.y))
        self._run("gradient", index, first, facts, form, w, clip, rounding, scratch, out)

    def add_precise_gradient(
        self, index: Index, first: int, facts: RowFacts, form: Form, w: Vector, clip: float,
        rounding: Vector, out: Steps,
    ) -> None:  # fmt: skip
        """The same from terms of twice the precision, on three grids (see ``kernels.double_double``)."""
        from ..kernels import double_double

        add = getattr(double_double, f"{self._layout}_gradient")
        add(self._stored, index, first, facts, form, w, clip, rounding, out)

    def add_class_gradient(
        self, index: Index, first: int, facts: RowFacts, w: Vector, clip: float, rounding: float, out: Steps
    ) -> None:
        """Add the gradients of each record for all classes, clipped together.

        w and ``out`` have a row for each class, and the constant feature is the last entry.
        """
        from ..kernels.softmax import to_class_factors  # compiled code is loaded by those who use it

        z, scratch = np.empty((len(w), facts.y.size)), np.empty((2, facts.y.size))
        for coefficients, margins in zip(w, z, strict=True):
            self.write_dots(index, first, coefficients[:-1], margins)
        to_class_factors(facts, w, clip, rounding, z, scratch, out)
        for factors, sums in zip(z, out, strict=True):
            self.add(index, first, factors, PLAIN, rounding, sums)

    @abstractmethod
    def dense(self, index: Index, first: int, count: int) -> Vector:
        """Some rows as an array of doubles, row by row in memory."""

    @abstractmethod
    def copied(self, index: NDArray[np.intp]) -> Self:
        """A table of some of the rows, in their order."""

    @abstractmethod
    def clipped(self, low: Vector, high: Vector) -> Self:
        """The table with entry j of each row cut to [low_j, high_j]."""

    @abstractmethod
    def without(self, dropped: NDArray[np.bool_]) -> Self:
        """The table with some rows set to zero."""

    @abstractmethod
    def times_columns(self, factors: Vector) -> Self:
        """The table with column j multiplied by factor j, rounded to the type of its entries.

        No product is larger than it is before it is rounded, but for the rounding of doubles.
        """

    @abstractmethod
    def column(self, j: int) -> tuple[RowIndex, NDArray[np.floating]]:
        """The rows that hold column j, and their entries."""

    @abstractmethod
    def scaled_columns(self, scale: Vector) -> Dense | CSC:
        """The table by columns with row i multiplied by scale_i, copied only where needed."""

    @abstractmethod
    def sums(self, scale: Vector, tail: Vector, limit: Vector, reach: Vector, size: int) -> ClippedSums:
        """Sums of cut terms, on a grid for ``size`` rows; limits that no term can reach may be ignored."""

    @abstractmethod
    def ascend(self, scale: Vector, tail: Vector, *steps: *DualSteps) -> int:
        """Run compiled dual steps, one row after the other; how many moved (see ``kernels.coordinate``)."""

    def without_zeros(self) -> Sparse:
        """The same table, stored without its zeros."""
        return self.by_rows

    def both_ways(self) -> BothWays:
        """The table by rows and by columns."""
        return self.by_rows.both_ways()

    def on_demand(self) -> ColumnCache:
        """The table by rows, with the columns that are asked for."""
        return self.by_rows.on_demand()

    def weighed(self, scale: Vector, r: Vector, limit: float, size: int) -> WeightedSums:
        """Sums of r_i times entry j, rows scaled, each cut to [-limit, limit], on a grid for n = size."""
        return self.by_rows.weighed(scale, r, limit, size)

    @property
    def whole(self) -> RowSlice:
        """All rows. It is not kept: a circle of references would hold the blocks of a stream in memory."""
        return RowSlice(self, None, 0, self.shape[0])

    def rows(self, index: NDArray[np.intp]) -> RowSlice:
        """Some rows, read in place."""
        return RowSlice(self, index, 0, len(index))

    def dot(self, w: Vector) -> Vector:
        """Product of each row with w."""
        return self.whole.dot(w)

    def t_dot(self, r: Vector) -> Vector:
        """Sum over the rows of r_i times row i, as precise as doubles are."""
        n, p = self.shape
        grid = grid_of_terms(float(np.max(np.abs(r) * self.row_norms, initial=0.0)) or 1.0, n)
        finer = finer_grid(grid, n)
        steps = parallel_sum(
            lambda start, stop, out: self.add_finely(
                None, start, r[start:stop], ROUNDING * grid, ROUNDING * finer, *out
            ),
            even_edges(n, chunk_count(self.entries, p)), (2, p),
        )  # fmt: skip
        return np.asarray(Total(steps[0], grid, steps[1:], finer / grid))

    @cached_property
    def row_norms(self) -> Vector:
        """Euclidean norm of each row, or LEAST_NORM if that is more; infinite or NaN where an entry is."""
        return self.whole.row_norms


@dataclass(frozen=True, eq=False)
class RowSlice:
    """Rows of a stored table: a range of them, or some of an index."""

    table: ResidentTable
    index: Index
    first: int
    count: int

    @property
    def shape(self) -> tuple[int, int]:
        return self.count, self.table.shape[1]

    @property
    def entries(self) -> int:
        """About how many numbers are stored."""
        n = self.table.shape[0]
        return self.table.entries * self.count // n if n else 0

    def part(self, start: int, stop: int) -> RowSlice:
        """A range of these rows."""
        return RowSlice(self.table, self.index, self.first + start, stop - start)

    def times_columns(self, factors: Vector) -> RowSlice:
        """These rows of the table with column j multiplied by factor j, from 0 to 1."""
        return RowSlice(self.table.times_columns(factors), self.index, self.first, self.count)

    def dot(self, w: Vector) -> Vector:
        """Product of each row with w."""
        w = np.ascontiguousarray(w)
        return self._filled(lambda piece, out: self.table.write_dots(piece.index, piece.first, w, out))

    @property
    def row_norms(self) -> Vector:
        """Norms as those of the table."""
        with np.errstate(all="ignore"):
            squares = self._filled(lambda piece, out: self.table.write_squares(piece.index, piece.first, out))
            return np.maximum(np.sqrt(squares), LEAST_NORM)

    def _filled(self, write: Callable[[RowSlice, Vector], None]) -> Vector:
        """What is written for each row, in threads."""
        out = np.empty(self.count)
        run_chunks(
            lambda _, start, stop: write(self.part(start, stop), out[start:stop]),
            self.count,
            chunk_count(self.entries),
        )
        return out


def never_larger(factors: Vector, dtype: np.dtype[np.floating]) -> Vector:
    """Factors that are a little smaller, so that products rounded to single precision exceed no bound.

    Sensitivities allow for the rounding of doubles.
    """
    single = np.finfo(np.float32)
    return factors * (1.0 - float(single.eps)) if dtype == single.dtype else factors


def selection(index: Index, first: int, count: int) -> slice | NDArray[np.intp]:
    """What selects the rows of a pass."""
    rows = slice(first, first + count)
    return rows if index is None else index[rows]


class Dense(ResidentTable):
    """A dense table. Sums are in double precision, also of float32."""

    rows_of_classes: ClassVar[int] = 1 << 62  # compiled code takes few at a time
    _layout: ClassVar[str] = "dense"

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

    @property
    def _stored(self) -> NDArray[np.floating]:
        return self.X

    def _run(self, name: str, index: Index, first: int, *arguments: object) -> None:
        if self._by_columns(index) and name != "add_finely":
            compiled_pass("column", name)(self.X, first, *arguments)
        else:
            compiled_pass("dense", name)(self.X, index, first, *arguments)

    def _lanes(self, index: Index) -> tuple[Vector, ...]:
        return (np.empty((LANES, _ROWS_OF_LANES)),) if self._by_columns(index) else ()

    def _gradient_scratch(self, index: Index, count: int) -> Vector:
        lanes = self._lanes(index)
        return lanes[0] if lanes else np.empty(_rows_in_cache(self.X.strides[0]))

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

    def dense(self, index: Index, first: int, count: int) -> Vector:
        return _read_only(np.ascontiguousarray(self.X[selection(index, first, count)], dtype=np.float64))

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

    def sums(self, scale: Vector, tail: Vector, limit: Vector, reach: Vector, size: int) -> RecomputedSums:
        return RecomputedSums(self, scale, tail, limit, size)

    def ascend(self, scale: Vector, tail: Vector, *steps: *DualSteps) -> int:
        from ..kernels.coordinate import ascend_dense

        return ascend_dense(self._contiguous_rows, scale, tail, *steps)

    @cached_property
    def _contiguous_rows(self) -> NDArray[np.floating]:
        return np.ascontiguousarray(self.X)

    @cached_property
    def by_rows(self) -> CSR:
        from .sparse import CSR

        return CSR(sp.csr_array(self.X))


def _rows_in_cache(row_bytes: int) -> int:
    """How many rows the nearest cache holds while they are worked on: a multiple of 16, or 12, 8 or 4."""
    rows = max(4, _CACHED_BYTES // max(row_bytes, 1))
    return rows - rows % (16 if rows >= 16 else 4)


def _read_only(array: Vector) -> Vector:
    """A view that cannot be written, whatever was given: kernels are compiled anew for one that can be."""
    view = array.view()
    view.flags.writeable = False
    return view
