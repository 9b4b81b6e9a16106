"""Sums over the records of cut terms, one for each feature, while the factors of records change."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..arrays import ROUNDING, Vector, cache_lines
from ..kernels.arguments import Cut, KeptState
from ..tables import Index
from ..threads import chunk_count, even_edges, parallel_sum, run_chunks

if TYPE_CHECKING:
    from .resident import Dense
    from .sparse import CSC, CSR

_COLUMNS_A_PART, _MOST_PARTS = 1 << 12, 16


class ClippedSums(ABC):
    """Sum over the records of r_i times entry j, each term cut to [-limit_j, limit_j].

    Tables are given with the factor of each row and with the constant feature, an empty array for none; the
    constant feature has the last limit and the last sum.
    """

    scratch: Vector
    """Scratch space: two numbers for each feature, in the cache line of its sum."""

    @property
    @abstractmethod
    def sums(self) -> Vector:
        """The sums as they are now."""

    @abstractmethod
    def shift(self, rows: Index, old: Vector, new: Vector, j: int = 0) -> NDArray[np.signedinteger] | None:
        """Change the factors r of some rows; return the features whose sums leave their tracked range.

        None stands for all features. The list always has feature j, and is valid until the next change.
        """

    @abstractmethod
    def track(self, features: NDArray[np.signedinteger], slack: Vector) -> None:
        """Track a range around the present sums of features; a sum without one leaves it at any change."""


@dataclass(frozen=True, eq=False)
class WeightedSums:
    """Sums of cut terms of all columns, and what a kernel needs to keep them.

    Attributes
    ----------
    sums : array of shape (columns, 2)
        For each column the sum of its cut terms, and its weight: the sum of its absolute entries.
    largest, least : float
        The largest absolute entry, and the least one above 0: infinity if there is none.
    cut : Cut
        The limit as a multiple of the grid on which sums are exact, and what rounds a term to that grid.
    grid : float
        That grid.
    count : function
        What finds the counts, in a pass over the table.
    """

    sums: Vector
    largest: float
    least: float
    cut: Cut
    grid: float
    count: Callable[[], NDArray[np.uint32]]

    @cached_property
    def heaviest(self) -> float:
        """The largest weight of a column."""
        return float(self.sums[:, 1].max(initial=0.0))

    @cached_property
    def counts(self) -> NDArray[np.uint32]:
        """The number of entries of each column."""
        return self.count()


class RecomputedSums(ClippedSums):
    """Sums over a dense table, where a step changes every row: a pass over the table for each."""

    def __init__(self, table: Dense, scale: Vector, tail: Vector, limit: Vector, size: int) -> None:
        self._table, self._scale, self._tail, self._limit = table, scale, tail, limit
        self._size = size
        self._r = np.zeros(table.shape[0])
        self.scratch = np.empty((len(limit), 2))

    @property
    def sums(self) -> Vector:
        r, (n, p) = self._scale * self._r, self._table.shape
        limit, rounding = cut_to_grid(self._limit, self._size)

        def add(start: int, stop: int, out: NDArray[np.int64]) -> None:
            self._table.add_cut(None, start, r[start:stop], limit[:p], rounding[:p], out)

        if np.isfinite(limit[:p]).all():
            sums = parallel_sum(add, even_edges(n, chunk_count(n * p)), (p,)) * (rounding[:p] / ROUNDING)
        else:  # in a fit without noise
            sums = self._table.t_dot(r)
        if self._tail.size:
            tail = np.clip(self._tail * self._r, -limit[-1], limit[-1])
            sums = np.append(sums, ((tail + rounding[-1]) - rounding[-1]).sum())
        return sums

    def shift(self, rows: Index, old: Vector, new: Vector, j: int = 0) -> None:
        self._r[rows] = new

    def track(self, features: NDArray[np.signedinteger], slack: Vector) -> None:
        pass


class UpdatedSums(ClippedSums):
    """Sums over a sparse table stored by rows: a change of few rows touches few sums.

    Terms are rounded to a grid on which sums of n of them are exact in double precision. So the sums do not
    depend on the order and number of changes: nothing drifts, and nothing has to be added to their
    sensitivity. Infinite limits have no grid; such sums carry the usual rounding.
    """

    def __init__(self, table: CSR, scale: Vector, tail: Vector, limit: Vector, size: int) -> None:
        from ..kernels import tables  # compiled code is loaded by those who use it

        self._kernels = tables
        p, cuts = len(limit), np.column_stack(cut_to_grid(limit, size))
        features = limit[:-1] if tail.size else limit
        if np.all(features == features[:1]):
            # Limits that all features share are kept once: so the cache holds the sums of more of them.
            state, limits, marks, points = np.zeros((p, 3)), cuts[[0, -1]], np.zeros(p), np.zeros((p, 2))
        else:
            lines = cache_lines(p)
            state, limits, marks, points = lines[:, :3], lines[:, 3:5], lines[:, 5], lines[:, 6:]
            limits[:] = cuts
        state[:, 2] = -1.0
        touched: NDArray[np.signedinteger] = np.empty(p, dtype=np.int32 if p < 2**31 else np.int64)
        self.kept = KeptState(*table.unsigned, scale, tail, state, limits, marks, touched, points)
        self.scratch, self._mark = points, 0.0

    @property
    def sums(self) -> Vector:
        return self.kept.state[:, 0]

    def shift(self, rows: Index, old: Vector, new: Vector, j: int = 0) -> NDArray[np.signedinteger]:
        if isinstance(rows, slice):
            rows = np.arange(len(self.kept.scale), dtype=np.int32)[rows]
        count = self._kernels.shift(self.kept, rows, old, new, self.next_mark(), j)
        return self.kept.touched[:count]

    def next_mark(self) -> float:
        """The mark of the next change (see ``kernels.tables``)."""
        self._mark += 1.0
        return self._mark

    def track(self, features: NDArray[np.signedinteger], slack: Vector) -> None:
        self._kernels.track(self.kept.state, features, slack)


def exact_grid(limit: Vector, n: int) -> Vector:
    """For each limit a power of two such that n terms up to the limit sum to at most 2**51 steps of it.

    0 for an infinite limit, and for a limit of 0.
    """
    bounded = np.isfinite(limit) & (limit > 0)
    _, exponent = np.frexp(np.where(bounded, limit, 1.0) * n)
    return np.where(bounded, np.ldexp(1.0, exponent - 51), 0.0)


def cut_to_grid(limit: Vector, n: int) -> tuple[Vector, Vector]:
    """Limits rounded to the grids on which n terms up to them sum exactly, and what rounds to the grids.

    A term that is cut to such a limit and rounded stays within it. An infinite limit has no grid: 0 rounds
    nothing.
    """
    grid = exact_grid(limit, n)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(grid > 0, np.floor(limit / grid) * grid, limit), ROUNDING * grid


def weighed(table: CSR | CSC, scale: Vector, r: Vector, limit: float, size: int) -> WeightedSums:
    """Sums over the rows of r_i times entry j, rows scaled, each term cut to [-limit, limit].

    The grid is one for ``size`` rows, of which the table may have fewer. Sums are the same, to the last
    digit, from a table by rows, from one by columns, and in any threads. A table by rows takes one thread,
    which waits for no sum: two would have to share its columns.
    """
    from ..kernels import tables as kernels

    p, stored = table.shape[1], table.unsigned
    grid = float(exact_grid(np.array(limit), size))
    cut = Cut(float(np.floor(limit / grid) * grid), ROUNDING * grid)
    sums, ends = np.zeros((p, 2)), []

    if table.is_by_rows:
        ends.append(kernels.weighed_by_rows(stored, r, scale, cut, sums))
    else:
        factors = np.column_stack([r * scale, scale])

        def work(_: int, start: int, stop: int) -> None:
            ends.append(kernels.weighed(stored, factors, cut, start, stop, sums))

        run_chunks(work, p, max(1, min(_MOST_PARTS, p // _COLUMNS_A_PART)))
    largest, least = max(end[0] for end in ends), min(end[1] for end in ends)
    return WeightedSums(sums, largest, least, cut, grid, partial(_counts, table))


def _counts(table: CSR | CSC) -> NDArray[np.uint32]:
    """The number of entries of each column."""
    from ..kernels import tables as kernels

    stored = table.unsigned
    if not table.is_by_rows:
        return np.diff(stored.indptr).astype(np.uint32)
    counts = np.zeros(table.shape[1], dtype=np.uint32)
    kernels.count(stored.indices, counts)
    return counts
