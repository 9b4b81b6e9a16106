"""Passes over a few rows at a time for several sums at once.

Rows are widened to doubles once, and stay in the nearest cache for all sums. They are padded with zeros to
whole lanes, and a block of rows with rows of zeros to a multiple of four: these change no product and no sum.
"""

from __future__ import annotations

import numpy as np

from .arguments import Entries, Floats, Signed, Whole
from .compiled import part
from .exact import row_of
from .lanes import four_dots, request_row

_0, _1, _2, _3, _4 = (np.uint64(n) for n in range(5))


@part
def in_fours(rows: Whole) -> Whole:
    """So many rows, and rows of zeros up to a multiple of four."""
    return (rows + _3) // _4 * _4


@part
def widen(X: Entries, index: Signed | None, first: Whole, rows: Whole, left: Whole, block: Floats) -> None:
    """Write rows to a block of doubles; ``left`` rows from the first on are in the table."""
    p, size = np.uint64(X.shape[1]), np.uint64(block.shape[0])
    for k in range(rows):
        request_row(X[row_of(min(k + size, left - _1), index, first)])
        row, wide = X[row_of(k, index, first)], block[k]
        for j in range(p):
            wide[j] = row[j]
    for k in range(rows, in_fours(rows)):
        block[k] = 0.0


@part
def products(block: Floats, rows: Whole, w: Floats, out: Floats) -> None:
    """Product of each row of a block with w."""
    for k in range(_0, rows, _4):
        four_dots(block[k], block[k + _1], block[k + _2], block[k + _3], w, out, k)
