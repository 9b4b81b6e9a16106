"""Whether the entries of a dense table lie in the ranges of their columns."""

from __future__ import annotations

import numpy as np

from .arguments import Entries, Floats
from .compiled import compiled


@compiled(nogil=True)
def within_rows(X: Entries, low: Floats, high: Floats) -> bool:
    """Whether low <= X <= high, for a table stored by rows. A NaN is in no range."""
    columns = range(np.uint64(X.shape[1]))
    for i in range(np.uint64(X.shape[0])):
        row, count = X[i], 0
        for j in columns:
            count += (low[j] <= row[j]) & (row[j] <= high[j])
        if count < X.shape[1]:
            return False
    return True


@compiled(nogil=True)
def within_columns(X: Entries, low: Floats, high: Floats) -> bool:
    """The same for a table stored by columns."""
    rows = range(np.uint64(X.shape[0]))
    for j in range(np.uint64(X.shape[1])):
        column, least, most, count = X[:, j], low[j], high[j], 0
        for i in rows:
            count += (least <= column[i]) & (column[i] <= most)
        if count < X.shape[0]:
            return False
    return True
