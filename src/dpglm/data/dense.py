"""Dense tables: C or F order, float32 or float64, in memory or memory-mapped."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from ..arrays import Vector
from ..bounds import rounded_down
from ..kernels.arguments import BothWays, CoordinateSteps, DualSteps
from ..tables import Weighed
from .parts import in_parts, parts_of
from .sums import FreshSums

if TYPE_CHECKING:
    from .batch import Batch
    from .sparse import CSR

_CHUNK_BYTES = 1 << 21

LEAST_NORM = 1e-150
"""What shorter rows count as. Their squares underflow; a norm too large only clips them more."""


class Dense:
    """A dense table, with the methods of `dpglm.tables`. Sums are in double precision, also of float32."""

    def __init__(self, X: ArrayLike) -> None:
        array = np.asarray(X)
        self.X = array if array.dtype in (np.float32, np.float64) else array.astype(np.float64)
        if not (self.X.flags.c_contiguous or self.X.flags.f_contiguous):
            # A later copy, made for the sake of one record, must not change how products of others round.
            self.X = np.ascontiguousarray(self.X)

    @property
    def shape(self) -> tuple[int, int]:
        return self.X.shape

    def dot(self, w: Vector) -> Vector:
        if self.X.dtype == np.float64:
            return self.X @ w
        product = np.empty(self.shape[0])
        for rows in self._chunks():
            product[rows] = self.X[rows].astype(np.float64) @ w
        return product

    def t_dot(self, r: Vector) -> Vector:
        if self.X.dtype == np.float64:
            return self.X.T @ r
        product = np.zeros(self.shape[1])
        for rows in self._chunks():
            product += self.X[rows].astype(np.float64).T @ r[rows]
        return product

    def column(self, j: int) -> tuple[slice, NDArray[np.floating]]:
        return slice(None), self.X[:, j]

    def rows(self, index: NDArray[np.intp]) -> Batch:
        from .batch import Batch

        return Batch(self, index)

    def taken(self, index: NDArray[np.intp]) -> Dense:
        """A copy of some rows."""
        return Dense(self.X[index])

    @cached_property
    def row_norms(self) -> Vector:
        """Euclidean norm of each row, or LEAST_NORM if that is more; infinite or NaN where an entry is."""
        norms = np.empty(self.shape[0])
        with np.errstate(over="ignore", invalid="ignore"):
            for rows in self._chunks():
                norms[rows] = np.linalg.norm(self.X[rows].astype(np.float64, copy=False), axis=1)
        return np.maximum(norms, LEAST_NORM)

    def second_moments(self, scale: Vector) -> Vector:
        moments = np.zeros(self.shape[1])
        for rows in self._chunks():
            moments += np.square(self.X[rows] * scale[rows, None]).sum(axis=0)
        return moments

    def clipped(self, limit: Vector) -> Dense:
        if not any((np.abs(self.X[rows]) > limit).any() for rows in self._chunks()):
            return self
        edge = rounded_down(limit, self.X.dtype)
        return Dense(np.clip(self.X, -edge, edge))

    def without(self, dropped: NDArray[np.bool_]) -> Dense:
        X = np.array(self.X, order="K")
        X[dropped] = 0
        return Dense(X)

    def scaled_columns(self, scale: Vector) -> Dense:
        if (scale == 1).all():
            return Dense(np.asfortranarray(self.X))
        X = np.empty(self.shape, dtype=self.X.dtype, order="F")
        np.multiply(self.X, scale[:, None], out=X, casting="same_kind")
        return Dense(X)

    def descend(self, tail: Vector, *steps: *CoordinateSteps) -> None:
        from ..kernels.coordinate import descend_dense  # compiled code is loaded by those who use it

        descend_dense(self.X, tail, *steps)

    def clipped_sums(self, r: Vector, limit: Vector) -> Vector:
        """Sum over the rows of r_i times entry j, each term cut to [-limit_j, limit_j], for all columns."""
        if self.X.dtype == np.float64 and np.isinf(limit).all():
            return self.t_dot(r)
        from ..kernels.sums import clipped_by_columns, clipped_by_rows

        n, p = self.shape
        parts = parts_of(n * p)
        if self.X.flags.f_contiguous:
            sums = np.empty(p)
            in_parts(
                lambda _, start, stop: clipped_by_columns(self.X, r, limit, start, stop, sums),
                p,
                min(parts, p),
            )
            return sums
        partial = np.empty((min(parts, n), p))
        in_parts(
            lambda k, start, stop: clipped_by_rows(self.X[start:stop], r[start:stop], limit, partial[k]),
            n,
            len(partial),
        )
        total: Vector = partial.sum(axis=0)
        return total

    def sums(self, scale: Vector, tail: Vector, limit: Vector, reach: Vector) -> FreshSums:
        """As in `dpglm.tables`; limits that no term can reach are ignored."""
        return FreshSums(self, scale, tail, np.where(reach <= limit, np.inf, limit))

    def ascend(self, scale: Vector, tail: Vector, *steps: *DualSteps) -> int:
        from ..kernels.dual import ascend_dense

        return ascend_dense(self._contiguous_rows, scale, tail, *steps)

    @cached_property
    def _contiguous_rows(self) -> NDArray[np.floating]:
        return np.ascontiguousarray(self.X)

    def without_zeros(self) -> CSR:
        return self.by_rows

    def both_ways(self) -> BothWays:
        return self.by_rows.both_ways()

    def weighed(self, scale: Vector, r: Vector, limit: float) -> Weighed:
        return self.by_rows.weighed(scale, r, limit)

    @cached_property
    def by_rows(self) -> CSR:
        """The table stored by rows, without its zeros."""
        from .sparse import CSR

        return CSR(sp.csr_array(self.X))

    def _chunks(self) -> Iterator[slice]:
        n, p = self.shape
        step = max(1, _CHUNK_BYTES // (8 * max(p, 1)))
        return (slice(start, start + step) for start in range(0, n, step))
