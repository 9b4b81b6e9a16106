"""Some columns of a table that is stored by rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..kernels.arguments import BothWays, Compressed, Held
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
    so that whoever lacks a column gets it. Columns are the same either way. Nothing that was handed out
    changes: several threads may hold columns of one table.
    """

    def __init__(self, source: Sparse) -> None:
        self._source, self._passes = source, 0
        n, p = source.shape
        begins, places = index_type(source.entries), index_type(n)
        columns = Compressed(
            np.zeros(p + 1, dtype=begins).view(f"u{begins().itemsize}"),
            np.empty(0, dtype=places).view(f"u{places().itemsize}"),
            source.X.data[:0],
        )
        self._held: tuple[Compressed, NDArray[np.uint8]] = columns, np.zeros(p, dtype=np.uint8)
        self._everything: Held | None = None

    @property
    def held(self) -> Held:
        """The table, whose columns look empty if they are not held, and a 1 for each that is."""
        if self._source.has_columns:
            if self._everything is None:
                every = np.ones(self._source.shape[1], dtype=np.uint8)
                self._everything = Held(self._source.both_ways(), every)
            return self._everything
        columns, held = self._held
        return Held(BothWays(self._source.by_rows.unsigned, columns), held)

    def hold(self, wanted: NDArray[np.uint8], counts: NDArray[np.uint32]) -> None:
        """Hold the columns with a 1 in ``wanted`` too, given the number of entries of each column."""
        from ..kernels.compressed import extract, places  # compiled code is loaded by those who use it

        if self._source.has_columns:
            return
        rows, (columns, held) = self._source.by_rows.unsigned, self._held
        together = held | wanted
        indptr, bits = np.zeros_like(columns.indptr), np.zeros(len(together) // 64 + 1, dtype=np.uint64)
        count = places(together, counts, indptr, bits)
        self._passes += 1
        many = self._passes > _MOST_PASSES or count > _MOST_SHARE * self._source.entries
        if many or np.array_equal(together, held):
            _ = self._source.by_columns
            return
        found = Compressed(
            indptr, np.empty(count, dtype=columns.indices.dtype), np.empty(count, dtype=rows.entries.dtype)
        )
        extract(rows, bits, np.empty(_AT_A_TIME, dtype=np.uint64), found)
        self._held = found, together
