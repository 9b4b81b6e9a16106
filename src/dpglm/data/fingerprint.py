"""Fingerprints of records: whether a table that is read again is still the same."""

from __future__ import annotations

import secrets
from typing import NamedTuple

import numpy as np

from ..arrays import Vector
from ..errors import SourceChanged
from ..threads import chunk_count, even_edges, parallel_sum
from .resident import Dense, ResidentTable, Steps
from .sparse import Sparse
from .stream import CHANGED, MISCOUNTED

_WORD = (1 << 64) - 1
_MIXER = np.uint64(0x9E3779B97F4A7C15)
_ROWS_OF_LANES = 512


class Mark(NamedTuple):
    """The fingerprint of some records: their number, and two sums of hashes modulo 2**64."""

    length: int = 0
    first: int = 0
    second: int = 0

    def joined(self, other: Mark) -> Mark:
        """The fingerprint of these records together with others."""
        return Mark(
            self.length + other.length,
            (self.first + other.first) & _WORD,
            (self.second + other.second) & _WORD,
        )


class Fingerprint:
    """A keyed hash of a multiset of records, rows with their targets, that does not depend on their order.

    It is a sum over the records, so that blocks can be hashed apart, in any cut. It hashes the binary digits
    of the doubles that sums are computed with: 0.0 and -0.0 are different, and so are two NaN with different
    digits. It does not depend on how a table is stored: by rows, by columns, with or without its zeros.

    It guards against accidents: blocks that come back with other rows, rows that are doubled or missing. One
    record that is exchanged for another goes unnoticed with a probability of at most 2**-62 over independent
    keys of the columns (see ``kernels.tables``); these are derived from one key by a mixer. It does not
    guard against someone who knows the key.

    Parameters
    ----------
    key : int, optional
        128 secret bits; by default fresh ones. They never appear in text.
    """

    def __init__(self, key: int | None = None) -> None:
        key = secrets.randbits(128) if key is None else key
        self._seeds = np.array([key >> 64, key & _WORD], dtype=np.uint64)

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    def of(self, table: ResidentTable, y: Vector) -> Mark:
        """The fingerprint of the rows of a table with their targets, or with several numbers each."""
        from ..kernels import tables  # compiled code is loaded by those who use it

        n, p = table.shape
        y = np.ascontiguousarray(_in_one_column(y), dtype=np.float64)
        if isinstance(table, Sparse):
            lines = table.by_rows.unsigned

            def add(start: int, stop: int, out: Steps) -> None:
                tables.sparse_sums(lines, start, y[start:stop], self._seeds, p, out.view(np.uint64))

        elif isinstance(table, Dense):
            X, keys = table.X, np.empty((2, p + 1), dtype=np.uint64)
            tables.write_keys(self._seeds, keys)

            def add(start: int, stop: int, out: Steps) -> None:
                words, targets = out.view(np.uint64), y[start:stop]
                if X.flags.c_contiguous:
                    tables.dense_sums(X, start, targets, self._seeds, keys, words)
                else:
                    lanes = np.empty((2, _ROWS_OF_LANES), dtype=np.uint64)
                    tables.column_sums(X, start, targets, self._seeds, keys, lanes, words)

        else:
            raise TypeError(f"{type(table).__name__} is not a table in memory")
        sums = parallel_sum(add, even_edges(n, chunk_count(table.entries)), (2,)).view(np.uint64)
        return Mark(n, int(sums[0]), int(sums[1]))


def _in_one_column(y: Vector) -> Vector:
    """Targets; further columns are mixed into their binary digits."""
    if y.ndim == 1:
        return y
    mixed = np.zeros(len(y), dtype=np.uint64)
    for column in np.ascontiguousarray(y.T, dtype=np.float64):
        mixed = (mixed ^ column.view(np.uint64)) * _MIXER
        mixed ^= mixed >> np.uint64(29)
    return mixed.view(np.float64)


class Watch:
    """Compares the fingerprint of every pass over a source with that of the first one."""

    def __init__(self) -> None:
        self.fingerprint = Fingerprint()
        self._first: Mark | None = None

    def require_same(self, mark: Mark, as_stated: bool) -> None:
        """Refuse a pass that has read other records than the first one, or not as many as are stated."""
        is_first = self._first is None
        if is_first:
            self._first = mark
        if mark != self._first or not as_stated:
            raise SourceChanged(MISCOUNTED if is_first else CHANGED)
