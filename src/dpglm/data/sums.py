"""Sums over the records of cut terms, one for each feature, while the factors of records change."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from .dense import Dense
    from .sparse import Sparse

Vector = NDArray[np.float64]


class ClippedSums(Protocol):
    """Sum over the records of r_i times entry j, each term cut to [-limit_j, limit_j].

    Tables are given with the factor of each row and with the constant feature, an empty array for none; the
    constant feature has the last limit and the last sum.
    """

    @property
    def sums(self) -> Vector:
        """The sums as they are now."""
        ...

    @property
    def notes(self) -> Vector:
        """Two numbers for each feature, in the cache line of its sum: for those who read both at random."""
        ...

    def shift(self, rows: NDArray[Any] | slice, old: Vector, new: Vector, j: int = 0) -> NDArray[Any] | None:
        """Change the factors r of some rows; the features whose sums leave their watched range.

        None stands for all of them. The list has feature j in any case, and is valid until the next change.
        """
        ...

    def watch(self, features: NDArray[Any], slack: Vector) -> None:
        """Watch a range around the present sums of features; without one, any change leaves it."""
        ...


class FreshSums:
    """Sums over a dense table, where every row changes with every coordinate: one pass over it for each."""

    def __init__(self, table: Dense, scale: Vector, tail: Vector, limit: Vector) -> None:
        self._table, self._scale, self._tail, self._limit = table, scale, tail, limit
        self._r = np.zeros(table.shape[0])
        self.notes = np.empty((len(limit), 2))

    @property
    def sums(self) -> Vector:
        p = self._table.shape[1]
        sums = self._table.clipped_sums(self._scale * self._r, self._limit[:p])
        if self._tail.size:
            top = self._limit[p]
            sums = np.append(sums, np.clip(self._tail * self._r, -top, top).sum())
        return sums

    def shift(self, rows: NDArray[Any] | slice, old: Vector, new: Vector, j: int = 0) -> None:
        self._r[rows] = new

    def watch(self, features: NDArray[Any], slack: Vector) -> None:
        pass


class KeptSums:
    """Sums over a sparse table stored by rows, of which a change of few rows touches few.

    Terms are rounded to a grid on which sums of n of them are exact in double precision. So the sums are the
    same in whatever order, and after however many changes, they were made: nothing drifts, and nothing has to
    be added to their sensitivity. Infinite limits know no grid; such sums carry the usual rounding.
    """

    def __init__(self, table: Sparse, scale: Vector, tail: Vector, limit: Vector) -> None:
        from ..kernels import sums  # compiled code is loaded by those who use it

        self._kernels = sums
        self._table, self._scale, self._tail = table.unsigned, scale, tail
        grid = exact_grid(limit, table.shape[0])
        self._state = cache_lines(len(limit))
        with np.errstate(invalid="ignore", divide="ignore"):
            self._state[:, 1] = np.where(grid > 0, np.floor(limit / grid) * grid, limit)
        self._state[:, 2] = 1.5 * 2.0**52 * grid
        self._state[:, 7] = -1.0
        self._mark = 0.0
        self._touched = np.empty(len(limit), dtype=np.int32 if len(limit) < 2**31 else np.int64)

    @property
    def sums(self) -> Vector:
        return self._state[:, 0]

    @property
    def notes(self) -> Vector:
        return self._state[:, 4:6]

    def shift(self, rows: NDArray[Any] | slice, old: Vector, new: Vector, j: int = 0) -> NDArray[Any]:
        if isinstance(rows, slice):
            rows = np.arange(len(self._scale), dtype=np.int32)[rows]
        self._mark += 1.0
        count, _ = self._kernels.shift(
            *self._table, self._scale, self._tail, rows, old, new, self._state, self._mark, self._touched, j
        )
        return self._touched[:count]

    def watch(self, features: NDArray[Any], slack: Vector) -> None:
        self._kernels.watch(self._state, features, slack)


def cache_lines(count: int) -> Vector:
    """Rows of eight zeros, each in one line of 64 bytes of the processor's cache."""
    room = np.zeros(8 * count + 7)
    begin = -room.ctypes.data // 8 % 8
    return room[begin : begin + 8 * count].reshape(count, 8)


def exact_grid(limit: Vector, n: int) -> Vector:
    """For each limit a power of two, of which n terms up to the limit are at most 2**51 steps in sum.

    0 for an infinite limit, and for a limit of 0.
    """
    bounded = np.isfinite(limit) & (limit > 0)
    _, exponent = np.frexp(np.where(bounded, limit, 1.0) * n)
    return np.where(bounded, np.ldexp(1.0, exponent - 51), 0.0)
