"""Products with some rows of a table, each row by itself and in a fixed order.

A library's product may round the result of a row differently when there is one row more beside it. Here it
depends on the row alone, and a row of zeros changes no bit of a sum.
"""

from __future__ import annotations

from .arguments import Compressed, Entries, Floats, Signed
from .compiled import compiled
from .primitives import add_line, dense_dot, sparse_dot

REORDERED = frozenset({"reassoc", "contract"})


@compiled(fastmath=REORDERED)
def fast_dot(row: Entries, w: Floats) -> float:
    """Product of a row with w, its terms in an order that is fast."""
    return dense_dot(row, w)


@compiled()
def dense_dots(X: Entries, index: Signed, w: Floats, out: Floats) -> None:
    """Product of each of the rows with w."""
    for k in range(index.size):
        out[k] = fast_dot(X[index[k]], w)


@compiled()
def dense_sum(X: Entries, index: Signed, r: Floats, out: Floats) -> None:
    """Add the rows, each times its factor, one after the other."""
    for k in range(index.size):
        i, factor = index[k], r[k]
        for j in range(out.size):
            out[j] += factor * X[i, j]


@compiled()
def sparse_dots(table: Compressed, index: Signed, w: Floats, out: Floats) -> None:
    """Product of each of the rows with w, for a table stored by rows without its zeros."""
    for k in range(index.size):
        out[k] = sparse_dot(table, index[k], w)


@compiled()
def sparse_sum(table: Compressed, index: Signed, r: Floats, out: Floats) -> None:
    """Add the rows, each times its factor, one after the other."""
    for k in range(index.size):
        add_line(table, index[k], r[k], out)
