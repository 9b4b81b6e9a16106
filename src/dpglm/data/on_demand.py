"""Some columns of a table that is stored by rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..kernels.arguments import BothWays, Compressed, Held
from ..threads import in_parts
from .conversion import index_type
from .parts import parts_of

if TYPE_CHECKING:
    from .sparse import Sparse

_MOST_PASSES = 2
_MOST_SHARE = 0.5
_AT_A_TIME = 1 << 22


class ColumnsOnDemand:
    """A table by rows, and by columns those columns that were asked for.

    A pass over the rows that looks for few columns takes a fraction of the time of a conversion. After some
    passes, or if many entries are wanted, the whole table is converted; so it is if nothing new is wanted,
    so that whoever lacks a column gets it. Columns are the same either way. Nothing that was handed out
    changes: several threads may hold columns of one table.
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
        columns, held = self._held
        return Held(BothWays(self._source.by_rows.unsigned, columns), held)

    def hold(self, wanted: NDArray[np.uint8], counts: NDArray[np.uint32] | None = None) -> None:
        """Hold the columns with a 1 in ``wanted`` too.

        The number of entries of each column, if it is known, tells before a pass whether it would find many.
        """
        from ..kernels import tables  # compiled code is loaded by those who use it

        if self._source.has_columns:
            return
        self._passes += 1
        rows, held = self._source.by_rows.unsigned, self._held[1]
        together = held | wanted
        most = _MOST_SHARE * self._source.entries
        if (
            self._passes > _MOST_PASSES
            or not np.any(together > held)
            or (counts is not None and counts[together > 0].sum(dtype=np.int64) > most)
        ):
            self.hold_all()
            return
        found = self._find(rows, np.packbits(together, bitorder="little"))
        count = sum(map(len, found))
        if count > most:
            del found
            self.hold_all()
            return
        columns = self._held[0]
        out = Compressed(
            np.zeros(len(columns.indptr), dtype=columns.indptr.dtype),
            np.empty(count, dtype=columns.indices.dtype),
            np.empty(count, dtype=rows.entries.dtype),
        )
        for places in found:
            tables.count_found(rows.indices, places, out.indptr)
        tables.begin(np.flatnonzero(together.view(np.bool_)).astype(np.uint64), out.indptr)
        row = 0
        for places in found:
            row = int(tables.write_found(rows, places, row, out))
        self._held = out, together

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
        """Places of the entries in columns whose bit is set, in order."""
        from ..kernels.tables import find

        entries = self._source.entries
        kind: type[np.unsignedinteger] = np.uint32 if entries < 2**32 else np.uint64
        parts = parts_of(entries)
        found: list[list[NDArray[np.unsignedinteger]]] = [[] for _ in range(parts)]

        def work(part: int, start: int, stop: int) -> None:
            while start < stop:
                places: NDArray[np.unsignedinteger] = np.empty(min(stop - start, _AT_A_TIME), dtype=kind)
                count, start = map(int, find(rows.indices, bits, start, stop, places))
                found[part].append(places[:count])

        in_parts(work, entries, parts)
        return [places for part in found for places in part]
