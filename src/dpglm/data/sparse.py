"""What sparse tables share: everything but the order in which they are stored."""

from __future__ import annotations

from functools import cached_property
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from .dense import rounded_down
from .sums import KeptSums, Vector


class Sparse:
    """A sparse table, CSR or CSC, matrix or array. Sums are taken in double precision."""

    def __init__(self, X: Any) -> None:
        self.X = X if X.dtype in (np.float32, np.float64) else X.astype(np.float64)

    @property
    def shape(self) -> tuple[int, int]:
        return self.X.shape

    @property
    def unsigned(self) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        """(indptr, indices, entries) for kernels: unsigned indices spare a test for negative ones."""
        indptr, indices = (part.view(f"u{part.itemsize}") for part in (self.X.indptr, self.X.indices))
        return indptr, indices, self.X.data

    def dot(self, w: NDArray[np.float64]) -> NDArray[np.float64]:
        """X @ w."""
        return self.X @ w

    def t_dot(self, r: NDArray[np.float64]) -> NDArray[np.float64]:
        """X.T @ r."""
        return self.X.T @ r

    @cached_property
    def row_norms(self) -> NDArray[np.float64]:
        """Euclidean norm of each row; infinite or NaN where an entry is."""
        with np.errstate(over="ignore", invalid="ignore"):
            squares = np.square(self.X.data, dtype=np.float64)
            return np.sqrt(_sums(squares, self._row_of_entry(), self.shape[0]))

    def second_moments(self, scale: NDArray[np.float64]) -> NDArray[np.float64]:
        """Sum over the rows of the squared scaled entry, for each column."""
        squares = np.square(self.X.data * scale[self._row_of_entry()])
        return _sums(squares, self._column_of_entry(), self.shape[1])

    def clipped(self, limit: NDArray[np.float64]) -> Self:
        """The table with entry j of each row cut to [-limit_j, limit_j]."""
        edge = rounded_down(limit, self.X.dtype)[self._column_of_entry()]
        return self._with(np.clip(self.X.data, -edge, edge))

    def without(self, dropped: NDArray[np.bool_]) -> Self:
        """The table with some rows set to zero."""
        return self._with(np.where(dropped[self._row_of_entry()], 0, self.X.data))

    def sums(self, scale: Vector, tail: Vector, limit: Vector, reach: Vector) -> KeptSums:
        """Sums of cut terms (see ``sums.ClippedSums``)."""
        return KeptSums(self.by_rows, scale, tail, limit)

    @property
    def by_rows(self) -> Sparse:
        """The table stored by rows."""
        raise NotImplementedError

    @property
    def by_columns(self) -> Sparse:
        """The table stored by columns."""
        raise NotImplementedError

    def _with(self, entries: NDArray[Any]) -> Self:
        parts = (entries.astype(self.X.dtype, copy=False), self.X.indices, self.X.indptr)
        return type(self)(type(self.X)(parts, shape=self.shape))

    def _row_of_entry(self) -> NDArray[Any]:
        raise NotImplementedError

    def _column_of_entry(self) -> NDArray[Any]:
        raise NotImplementedError

    def _major(self) -> NDArray[Any]:
        return np.repeat(np.arange(len(self.X.indptr) - 1), np.diff(self.X.indptr))


def _sums(values: NDArray[np.float64], group: NDArray[Any], count: int) -> NDArray[np.float64]:
    """Sum of the values of each group; also for none, where bincount would count in integers."""
    return np.bincount(group, values, minlength=count).astype(np.float64, copy=False)


def column_entries(X: Any, j: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Rows and entries of column j of a scipy CSC table."""
    inside = slice(X.indptr[j], X.indptr[j + 1])
    return X.indices[inside], X.data[inside]


def canonical(X: Any) -> Any:
    """The table with each entry stored once: a duplicate would be clipped and squared in parts."""
    X = type(X)((X.data, X.indices, X.indptr), shape=X.shape)  # forgets what X may wrongly remember of itself
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return X


def is_sparse(X: Any) -> bool:
    """Whether X is a scipy sparse matrix or array."""
    return sp.issparse(X)
