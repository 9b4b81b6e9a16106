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

    def shift(self, rows: NDArray[Any] | slice, old: Vector, new: Vector) -> NDArray[Any] | None:
        """Change the factors r of some rows; the features whose sums may change, or None for all of them.

        The list is valid until the next change.
        """
        ...


class FreshSums:
    """Sums over a dense table, where every row changes with every coordinate: one pass over it for each."""

    def __init__(self, table: Dense, scale: Vector, tail: Vector, limit: Vector) -> None:
        self._table, self._scale, self._tail, self._limit = table, scale, tail, limit
        self._r = np.zeros(table.shape[0])

    @property
    def sums(self) -> Vector:
        p = self._table.shape[1]
        sums = self._table.clipped_sums(self._scale * self._r, self._limit[:p])
        if self._tail.size:
            top = self._limit[p]
            sums = np.append(sums, np.clip(self._tail * self._r, -top, top).sum())
        return sums

    def shift(self, rows: NDArray[Any] | slice, old: Vector, new: Vector) -> None:
        self._r[rows] = new


class KeptSums:
    """Sums over a sparse table stored by rows, of which a change of few rows touches few.

    Terms are rounded to a grid on which sums of n of them are exact in double precision. So the sums are the
    same in whatever order, and after however many changes, they were made: nothing drifts, and nothing has to
    be added to their sensitivity. Infinite limits know no grid; such sums carry the usual rounding.
    """

    def __init__(self, table: Sparse, scale: Vector, tail: Vector, limit: Vector) -> None:
        self._table, self._scale, self._tail = table.unsigned, scale, tail
        grid = exact_grid(limit, table.shape[0])
        self._state = np.zeros((len(limit), 4))
        with np.errstate(invalid="ignore", divide="ignore"):
            self._state[:, 1] = np.where(grid > 0, np.floor(limit / grid) * grid, limit)
        self._state[:, 2] = 1.5 * 2.0**52 * grid
        self._mark = 0.0
        self._touched = np.empty(len(limit), dtype=np.int32 if len(limit) < 2**31 else np.int64)

    @property
    def sums(self) -> Vector:
        return self._state[:, 0]

    def shift(self, rows: NDArray[Any] | slice, old: Vector, new: Vector) -> NDArray[Any]:
        from .sum_kernels import shift  # compiled code is loaded by those who use it

        if isinstance(rows, slice):
            rows = np.arange(len(self._scale), dtype=np.int32)[rows]
        self._mark += 1.0
        count, _ = shift(
            *self._table, self._scale, self._tail, rows, old, new, self._state, self._mark, self._touched
        )
        return self._touched[:count]


def exact_grid(limit: Vector, n: int) -> Vector:
    """For each limit a power of two, of which n terms up to the limit are at most 2**51 steps in sum.

    0 for an infinite limit, and for a limit of 0.
    """
    bounded = np.isfinite(limit) & (limit > 0)
    _, exponent = np.frexp(np.where(bounded, limit, 1.0) * n)
    return np.where(bounded, np.ldexp(1.0, exponent - 51), 0.0)
