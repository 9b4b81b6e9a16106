"""The records of a fit: a table, its targets, and the bounds that hold for every row."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..bounds import Bounds
from ..kernels.arguments import BothWays
from .batch import Batch
from .csc import CSC
from .csr import CSR
from .dense import Dense
from .sparse import Sparse, canonical, is_sparse
from .sums import ClippedSums, Vector, cache_lines
from .weighed import Weighed, weighed

LARGEST_NORM = 1e100
"""Longer rows and larger targets count as not finite: no product with them overflows or loses precision."""


class Columns(Protocol):
    """What a table stored by columns offers to coordinate methods."""

    def column(self, j: int) -> tuple[Any, NDArray[Any]]: ...
    def descend(self, tail: NDArray[np.float64], *steps: Any) -> None: ...


class Block(Protocol):
    """What a stored table offers, whatever its layout."""

    @property
    def shape(self) -> tuple[int, int]: ...
    @property
    def row_norms(self) -> NDArray[np.float64]: ...
    def dot(self, w: NDArray[np.float64]) -> NDArray[np.float64]: ...
    def t_dot(self, r: NDArray[np.float64]) -> NDArray[np.float64]: ...
    def rows(self, index: NDArray[np.intp]) -> Block: ...
    def column(self, j: int) -> tuple[Any, NDArray[Any]]: ...
    def second_moments(self, scale: NDArray[np.float64]) -> NDArray[np.float64]: ...
    def clipped(self, limit: NDArray[np.float64]) -> Block: ...
    def without(self, dropped: NDArray[np.bool_]) -> Block: ...
    def scaled_columns(self, scale: NDArray[np.float64]) -> Columns: ...
    def sums(self, scale: Vector, tail: Vector, limit: Vector, reach: Vector) -> ClippedSums: ...
    def ascend(self, *steps: Any) -> int: ...
    @property
    def by_rows(self) -> Sparse: ...


@dataclass(frozen=True, eq=False)
class Records:
    """Rows inside their bounds, with an optional constant feature, and one target each.

    The table itself is not copied to scale its rows: ``scale`` multiplies them inside the products, and
    ``norms`` are those of the scaled rows.
    A record that is not finite has scale 0: it adds nothing to any sum, not even through the
    constant feature.
    """

    block: Block
    scale: NDArray[np.float64]
    norms: NDArray[np.float64]
    y: NDArray[np.float64]
    constant: float

    @property
    def n_records(self) -> int:
        return self.block.shape[0]

    @property
    def n_features(self) -> int:
        """Features of the table, without the constant one."""
        return self.block.shape[1]

    @cached_property
    def intercept_column(self) -> NDArray[np.float64]:
        """The constant feature: zero for a record that does not count."""
        return np.where(self.scale > 0, self.constant, 0.0)

    @cached_property
    def row_norms(self) -> NDArray[np.float64]:
        """Norm of each row, the constant feature included."""
        return np.hypot(self.norms, self.intercept_column)

    def dot(self, w: NDArray[np.float64]) -> NDArray[np.float64]:
        """Margins: each row times w."""
        z = self.scale * self.block.dot(w[: self.n_features])
        if self.constant:
            z += self.intercept_column * w[self.n_features]
        return z

    def t_dot(self, r: NDArray[np.float64]) -> NDArray[np.float64]:
        """Sum over the records of r_i times row i."""
        sums = self.block.t_dot(self.scale * r)
        if self.constant:
            sums = np.append(sums, (self.intercept_column * r).sum())
        return sums

    def second_moments(self) -> NDArray[np.float64]:
        """Sum over the records of the squared entries, for each column of the table."""
        return self.block.second_moments(self.scale)

    def rows(self, index: NDArray[np.intp]) -> Records:
        """Some of the records."""
        taken = {name: getattr(self, name)[index] for name in ("scale", "norms", "y")}
        return replace(self, block=Batch(self.block, index), **taken)

    @cached_property
    def by_columns(self) -> Columns:
        """The table by columns, its rows already scaled."""
        return self.block.scaled_columns(self.scale)

    def column(self, j: int) -> tuple[Any, NDArray[np.float64]]:
        """The rows that hold feature j, the constant one being the last, and their entries."""
        if j == self.n_features:
            return slice(None), self.intercept_column
        rows, entries = self.block.column(j)
        return rows, entries * self.scale[rows]

    def sums(self, limit: NDArray[np.float64], reach: NDArray[np.float64]) -> ClippedSums:
        """Sums over the records of r_i times entry j, each term cut to [-limit_j, limit_j], at r = 0.

        ``reach`` bounds the terms by what is public: where it is below the limit, nothing can be cut.
        """
        tail = self.intercept_column[: self.n_records if self.constant else 0]
        return self.block.sums(self.scale, tail, limit, reach)

    def ascend(self, *steps: Any) -> int:
        """Dual steps of some records, one after the other; how many moved (see ``kernels.dual``)."""
        tail = self.intercept_column[: self.n_records if self.constant else 0]
        return self.block.ascend(self.scale, tail, *steps)

    @property
    def without_zeros(self) -> Records:
        """The same records in a sparse table."""
        return replace(self, block=self.block.by_rows) if isinstance(self.block, Dense) else self

    @property
    def both_ways(self) -> BothWays:
        """The table by rows and by columns, before its rows are scaled."""
        return BothWays(self.block.by_rows.unsigned, self._by_columns.unsigned)

    def weighed(self, r: NDArray[np.float64], limit: float) -> Weighed:
        """Sums over the records of r_i times entry j, each term cut to [-limit, limit], and weights."""
        return weighed(self._by_columns, self.scale, r, limit)

    @property
    def _by_columns(self) -> Sparse:
        assert isinstance(self.block, Sparse)
        return self.block.by_columns

    def lines(self) -> NDArray[np.float64]:
        """Eight zeros for each record, in one line of the processor's cache."""
        return cache_lines(self.n_records)

    def with_target(self, y: NDArray[np.float64]) -> Records:
        """The same table with other targets."""
        return replace(self, y=y)


def as_block(X: Any) -> Block:
    """Wrap an array, memory map or scipy sparse table; none is copied if it is already float."""
    if is_sparse(X):
        if X.format == "csc":
            return CSC(canonical(X))
        return CSR(canonical(X.tocsr()))
    return Dense(X)


def as_data(X: Any, y: ArrayLike, bounds: Bounds, constant: float = 0.0) -> Records:
    """Records inside ``bounds``; those that are not finite, or absurdly large, contribute nothing.

    Parameters
    ----------
    X : array, memory map or scipy sparse table
    y : array of shape (n_records,)
        Targets; NaN marks a record without one.
    bounds : Bounds
    constant : float
        Value of the constant feature that carries the intercept; 0 for none.
    """
    block = as_block(X)
    with np.errstate(over="ignore"):
        target = np.array(y, dtype=np.float64)
    dropped = ~((block.row_norms < LARGEST_NORM) & (np.abs(target) < LARGEST_NORM))
    if dropped.any():
        block = block.without(dropped)
        target[dropped] = 0.0
    if bounds.target is not None:
        np.clip(target, *bounds.target, out=target)
    if bounds.feature is not None:
        block = block.clipped(bounds.features(block.shape[1]))
    scale = bounds.shrink(block.row_norms)
    scale[dropped] = 0.0
    return Records(block, scale, scale * block.row_norms, target, constant)
