"""Compiled sums of cut contributions: of all columns at once, and kept while some rows change."""

from __future__ import annotations

from typing import Any

from numba import njit

# Entries are finite: records that are not have been emptied.
_MATH = {"nnan", "nsz", "contract", "reassoc"}


@njit(cache=True, error_model="numpy", nogil=True, fastmath=_MATH)
def clipped_by_rows(X: Any, r: Any, limit: Any, start: int, stop: int, out: Any) -> None:
    """Set out[start:stop] to the sums of those columns of a table stored by rows."""
    n = X.shape[0]
    out[start:stop] = 0.0
    whole = n - n % 4
    # Four rows at a time: every sum is read and written once for four entries.
    for i in range(0, whole, 4):
        a, b, c, d = r[i], r[i + 1], r[i + 2], r[i + 3]
        for j in range(start, stop):
            top = limit[j]
            out[j] += (min(max(a * X[i, j], -top), top) + min(max(b * X[i + 1, j], -top), top)) + (
                min(max(c * X[i + 2, j], -top), top) + min(max(d * X[i + 3, j], -top), top)
            )
    for i in range(whole, n):
        for j in range(start, stop):
            out[j] += min(max(r[i] * X[i, j], -limit[j]), limit[j])


@njit(cache=True, error_model="numpy", nogil=True, fastmath=_MATH)
def clipped_by_columns(X: Any, r: Any, limit: Any, start: int, stop: int, out: Any) -> None:
    """The same for a table stored by columns; four of them share each read of r."""
    n = X.shape[0]
    whole = start + (stop - start) - (stop - start) % 4
    for j in range(start, whole, 4):
        a, b, c, d = 0.0, 0.0, 0.0, 0.0
        top_a, top_b, top_c, top_d = limit[j], limit[j + 1], limit[j + 2], limit[j + 3]
        for i in range(n):
            a += min(max(r[i] * X[i, j], -top_a), top_a)
            b += min(max(r[i] * X[i, j + 1], -top_b), top_b)
            c += min(max(r[i] * X[i, j + 2], -top_c), top_c)
            d += min(max(r[i] * X[i, j + 3], -top_d), top_d)
        out[j], out[j + 1], out[j + 2], out[j + 3] = a, b, c, d
    for j in range(whole, stop):
        total, top = 0.0, limit[j]
        for i in range(n):
            total += min(max(r[i] * X[i, j], -top), top)
        out[j] = total


@njit(cache=True, error_model="numpy")
def _cut(value: float, top: float, rounding: float) -> float:
    # Adding and taking away 1.5 * 2**52 grid steps rounds to the grid; 0 leaves the value as it is.
    return (min(max(value, -top), top) + rounding) - rounding


@njit(cache=True, error_model="numpy")
def shift(
    indptr: Any, indices: Any, entries: Any, scale: Any, tail: Any, rows: Any, old: Any, new: Any,
    state: Any, mark: float, touched: Any,
) -> int:  # fmt: skip
    """Change the factors of some rows from old to new; list the features whose sums were touched.

    A row of ``state`` holds what is read together: the sum of a feature, its limit, its rounding constant
    and the mark of the last change. ``tail`` is the constant feature, if there is one.
    """
    count = 0
    last = state.shape[0] - 1
    for t in range(rows.size):
        i = rows[t]
        before, after = old[t] * scale[i], new[t] * scale[i]
        if before == after:
            continue
        for e in range(indptr[i], indptr[i + 1]):
            j, x = indices[e], entries[e]
            top, rounding = state[j, 1], state[j, 2]
            state[j, 0] += _cut(after * x, top, rounding) - _cut(before * x, top, rounding)
            if state[j, 3] != mark:
                state[j, 3] = mark
                touched[count] = j
                count += 1
        if tail.size:
            top, rounding = state[last, 1], state[last, 2]
            state[last, 0] += _cut(new[t] * tail[i], top, rounding) - _cut(old[t] * tail[i], top, rounding)
            if state[last, 3] != mark:
                state[last, 3] = mark
                touched[count] = last
                count += 1
    return count
