"""Some columns of a table that is stored by rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..kernels.arguments import BothWays, Compressed
from .conversion import index_type

if TYPE_CHECKING:
    from .sparse import Sparse

_MOST_PASSES = 2
_MOST_SHARE = 0.5
_AT_A_TIME = 512


class ColumnsOnDemand:
    """A table by rows, and by columns those columns that were asked for.

    A pass over the rows that looks for few columns takes a fraction of the time of a conversion. After some
    passes, or if many entries are wanted, the whole table is converted; so it is if nothing new is wanted,
    so that whoever lacks a column gets it. Columns are the same either way.
    """

    def __init__(self, source: Sparse) -> None:
        self._source, self._passes, self._all = source, 0, False
        n, p = source.shape
        self.held: NDArray[np.uint8] = np.zeros(p, dtype=np.uint8)
        begins, places = index_type(source.entries), index_type(n)
        self._columns = Compressed(
            np.zeros(p + 1, dtype=begins).view(f"u{begins().itemsize}"),
            np.empty(0, dtype=places).view(f"u{places().itemsize}"),
            source.X.data[:0],
        )

    @property
    def table(self) -> BothWays:
        """The rows, and the columns that are held; the others look empty."""
        if self._source.has_columns:
            if not self._all:
                self.held[:], self._all = 1, True
            return self._source.both_ways()
        return BothWays(self._source.by_rows.unsigned, self._columns)

    def hold(self, wanted: NDArray[np.uint8], counts: NDArray[np.uint32]) -> None:
        """Hold the columns with a 1 in ``wanted`` too, given the number of entries of each column."""
        from ..kernels.compressed import extract, places  # compiled code is loaded by those who use it

        if self._source.has_columns:
            return
        rows, entries = self._source.by_rows.unsigned, self._source.entries
        together = self.held | wanted
        indptr, bits = np.zeros_like(self._columns.indptr), np.zeros(len(together) // 64 + 1, dtype=np.uint64)
        count = places(together, counts, indptr, bits)
        self._passes += 1
        old = self._columns
        self._columns = Compressed(old.indptr, old.indices[:0].copy(), old.entries[:0].copy())
        many = self._passes > _MOST_PASSES or count > _MOST_SHARE * entries
        if many or np.array_equal(together, self.held):
            _ = self._source.by_columns
            return
        target = Compressed(
            indptr, np.empty(count, dtype=old.indices.dtype), np.empty(count, dtype=old.entries.dtype)
        )
        del old
        extract(rows, bits, np.empty(_AT_A_TIME, dtype=np.uint64), target)
        self._columns, self.held = target, together
