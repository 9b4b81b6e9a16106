"""Compiled products with some rows of a table, each row by itself and in a fixed order.

A library's product may round the result of a row differently when there is one row more beside it. Here it
depends on the row alone, and a row of zeros changes no bit of a sum.
"""

from __future__ import annotations

from typing import Any

from numba import njit


@njit(cache=True, error_model="numpy", fastmath={"reassoc", "contract"})
def _dot(row: Any, w: Any) -> float:
    total = 0.0
    for j in range(row.size):
        total += row[j] * w[j]
    return total


@njit(cache=True, error_model="numpy")
def dense_dots(X: Any, index: Any, w: Any, out: Any) -> None:
    """Product of each of the rows with w."""
    for k in range(index.size):
        out[k] = _dot(X[index[k]], w)


@njit(cache=True, error_model="numpy")
def dense_sum(X: Any, index: Any, r: Any, out: Any) -> None:
    """Add the rows, each times its factor, one after the other."""
    for k in range(index.size):
        i, factor = index[k], r[k]
        for j in range(out.size):
            out[j] += factor * X[i, j]


@njit(cache=True, error_model="numpy")
def sparse_dots(indptr: Any, indices: Any, entries: Any, index: Any, w: Any, out: Any) -> None:
    """Product of each of the rows with w, for a table stored by rows without its zeros."""
    for k in range(index.size):
        total = 0.0
        for t in range(indptr[index[k]], indptr[index[k] + 1]):
            total += entries[t] * w[indices[t]]
        out[k] = total


@njit(cache=True, error_model="numpy")
def sparse_sum(indptr: Any, indices: Any, entries: Any, index: Any, r: Any, out: Any) -> None:
    """Add the rows, each times its factor, one after the other."""
    for k in range(index.size):
        factor = r[k]
        for t in range(indptr[index[k]], indptr[index[k] + 1]):
            out[indices[t]] += factor * entries[t]
