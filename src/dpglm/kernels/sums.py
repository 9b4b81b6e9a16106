"""Sums of cut terms: of all columns at once, and updated when some rows change."""

from __future__ import annotations

import numpy as np

from .arguments import Compressed, Cut, Entries, Floats, Signed, Unsigned
from .compiled import compiled
from .primitives import cut, term

# Unsigned indices spare a test for negative ones, without which loops over rows are compiled to vectors.
_1, _2, _3, _4 = (np.uint64(n) for n in (1, 2, 3, 4))

# Entries are finite: records that are not have been emptied.
_MATH = frozenset({"nnan", "nsz", "contract", "reassoc"})
_FINITE = frozenset({"nnan"})


@compiled(fastmath=_MATH, nogil=True)
def clipped_by_rows(X: Entries, r: Floats, limit: Floats, out: Floats) -> None:
    """Set out to the sums of the columns of a table stored by rows."""
    n = np.uint64(X.shape[0])
    columns = range(np.uint64(X.shape[1]))
    out[:] = 0.0
    # Four rows at a time: every sum is read and written once for four entries.
    for quarter in range(n // _4):
        i = _4 * quarter
        a, b, c, d = r[i], r[i + _1], r[i + _2], r[i + _3]
        row_a, row_b, row_c, row_d = X[i], X[i + _1], X[i + _2], X[i + _3]
        for j in columns:
            top = limit[j]
            out[j] += (cut(a * row_a[j], top) + cut(b * row_b[j], top)) + (
                cut(c * row_c[j], top) + cut(d * row_d[j], top)
            )
    for rest in range(n - n % _4, n):
        row = X[rest]
        for j in columns:
            out[j] += cut(r[rest] * row[j], limit[j])


@compiled(fastmath=_MATH, nogil=True)
def clipped_by_columns(X: Entries, r: Floats, limit: Floats, start: int, stop: int, out: Floats) -> None:
    """The same for a table stored by columns; four of them share each read of r."""
    n = X.shape[0]
    whole = start + (stop - start) - (stop - start) % 4
    for j in range(start, whole, 4):
        a, b, c, d = 0.0, 0.0, 0.0, 0.0
        top_a, top_b, top_c, top_d = limit[j], limit[j + 1], limit[j + 2], limit[j + 3]
        for i in range(n):
            a += cut(r[i] * X[i, j], top_a)
            b += cut(r[i] * X[i, j + 1], top_b)
            c += cut(r[i] * X[i, j + 2], top_c)
            d += cut(r[i] * X[i, j + 3], top_d)
        out[j], out[j + 1], out[j + 2], out[j + 3] = a, b, c, d
    for j in range(whole, stop):
        total, top = 0.0, limit[j]
        for i in range(n):
            total += cut(r[i] * X[i, j], top)
        out[j] = total


@compiled(fastmath=_FINITE)
def shift(
    indptr: Unsigned, indices: Unsigned, entries: Entries, scale: Floats, tail: Floats,
    rows: Signed | Unsigned, old: Floats, new: Floats, state: Floats, mark: float, touched: Signed,
    always: int,
) -> tuple[int, float]:  # fmt: skip
    """Change the factors of some rows; list and count the features that leave their tracked range.

    A row of ``state``, one cache line, holds of a feature: sum, limit, rounding constant, the mark of the
    last change that listed it, two numbers of scratch space, centre and half width of the tracked range.
    ``tail`` is the constant feature, if there is one. The list begins with feature ``always``.
    """
    touched[0], state[always, 3] = always, mark
    count, found = 1, 0.0
    last = state.shape[0] - 1
    for t in range(rows.size):
        i = rows[t]
        if old[t] == new[t]:
            continue
        before, after = old[t] * scale[i], new[t] * scale[i]
        # A short loop of loads fills the cache for the next loop.
        for e in range(indptr[i], indptr[i + 1]):
            found += state[indices[e], 0]
        for e in range(indptr[i], indptr[i + 1]):
            j, x = indices[e], entries[e]
            top, rounding = state[j, 1], state[j, 2]
            moved = state[j, 0] + (term(after * x, top, rounding) - term(before * x, top, rounding))
            state[j, 0] = moved
            if abs(moved - state[j, 6]) > state[j, 7] and state[j, 3] != mark:
                state[j, 3] = mark
                touched[count] = j
                count += 1
        if tail.size:
            top, rounding = state[last, 1], state[last, 2]
            state[last, 0] += term(new[t] * tail[i], top, rounding) - term(old[t] * tail[i], top, rounding)
            if state[last, 3] != mark:
                state[last, 3] = mark
                touched[count] = last
                count += 1
    return count, found


@compiled()
def track(state: Floats, features: Signed, slack: Floats) -> None:
    """Set the tracked ranges of features around their present sums."""
    for k in range(features.size):
        j = np.uint64(features[k])
        state[j, 6], state[j, 7] = state[j, 0], slack[k]


@compiled(fastmath=_FINITE, nogil=True)
def weighed(table: Compressed, factors: Floats, to: Cut, start: int, stop: int, sums: Floats) -> float:
    """For some columns, the sums of cut terms and of absolute entries; returns the largest of these.

    A row of ``factors`` holds what multiplies an entry in the one sum and in the other; ``to`` is a `Cut`.
    """
    indptr, indices, entries = table
    largest = 0.0
    for j in range(np.uint64(start), np.uint64(stop)):
        total, weight = 0.0, 0.0
        for e in range(indptr[j], indptr[j + _1]):
            i, x = indices[e], np.float64(entries[e])
            total += term(factors[i, 0] * x, to.limit, to.rounding)
            size = factors[i, 1] * abs(x)
            weight += size
            largest = max(largest, size)
        sums[j, 0], sums[j, 1] = total, weight
    return largest
