"""Sums of cut terms of sparse tables: of all columns at once, and updated when some rows change."""

from __future__ import annotations

import numpy as np

from .arguments import Compressed, Cut, Floats, KeptState, Places, Signed, Unsigned
from .compiled import compiled
from .lanes import request_line
from .primitives import term

# Unsigned indices spare a test for negative ones, without which loops over rows are compiled to vectors.
_0, _1 = np.uint64(0), np.uint64(1)
_AHEAD = np.uint64(64)  # so many entries ahead is a sum requested: memory has that many requests under way

# Entries are finite: records that are not have been emptied.
_FINITE = frozenset({"nnan"})


@compiled(fastmath=_FINITE)
def shift(
    kept: KeptState, rows: Signed | Unsigned, old: Floats, new: Floats, mark: float, always: int
) -> int:
    """Change the factors of some rows; list and count the features that leave their tracked range.

    The list begins with feature ``always``.
    """
    indptr, indices, entries = kept.indptr, kept.indices, kept.table
    scale, tail, state, marks, touched = kept.scale, kept.tail, kept.state, kept.marks, kept.touched
    touched[0], marks[always] = always, mark
    count, last = 1, state.shape[0] - 1
    limits, each = kept.limits, kept.limits.shape[0] == state.shape[0]
    for t in range(rows.size):
        i = rows[t]
        if old[t] == new[t]:
            continue
        before, after = old[t] * scale[i], new[t] * scale[i]
        begin, end = np.uint64(indptr[i]), np.uint64(indptr[i + 1])
        for e in range(begin, min(begin + _AHEAD, end)):
            request_line(state, np.uint64(indices[e]))
        for e in range(begin, end):
            request_line(state, np.uint64(indices[min(e + _AHEAD, end - _1)]))
            j, x = np.uint64(indices[e]), entries[e]
            k = j if each else _0
            top, rounding = limits[k, 0], limits[k, 1]
            moved = state[j, 0] + (term(after * x, top, rounding) - term(before * x, top, rounding))
            state[j, 0] = moved
            if abs(moved - state[j, 1]) > state[j, 2] and marks[j] != mark:
                marks[j] = mark
                touched[count] = j
                count += 1
        if tail.size:
            top, rounding = limits[limits.shape[0] - 1, 0], limits[limits.shape[0] - 1, 1]
            state[last, 0] += term(new[t] * tail[i], top, rounding) - term(old[t] * tail[i], top, rounding)
            if marks[last] != mark:
                marks[last] = mark
                touched[count] = last
                count += 1
    return count


@compiled()
def track(state: Floats, features: Signed, slack: Floats) -> None:
    """Set the tracked ranges of features around their present sums."""
    for k in range(features.size):
        j = np.uint64(features[k])
        state[j, 1], state[j, 2] = state[j, 0], slack[k]


@compiled(fastmath=_FINITE, nogil=True)
def weighed(
    table: Compressed, factors: Floats, to: Cut, start: int, stop: int, sums: Floats
) -> tuple[float, float]:
    """For some columns, the sums of cut terms and of absolute entries; the largest and the least of these.

    A row of ``factors`` holds what multiplies an entry in the one sum and in the other; ``to`` is a `Cut`.
    Entries that are 0 do not count as the least.
    """
    indptr, indices, entries = table
    largest, least = 0.0, np.inf
    for j in range(np.uint64(start), np.uint64(stop)):
        total, weight = 0.0, 0.0
        for e in range(indptr[j], indptr[j + _1]):
            i, x = indices[e], np.float64(entries[e])
            total += term(factors[i, 0] * x, to.limit, to.rounding)
            size = factors[i, 1] * abs(x)
            weight += size
            largest = max(largest, size)
            least = min(least, size if size > 0.0 else np.inf)
        sums[j, 0], sums[j, 1] = total, weight
    return largest, least


@compiled(fastmath=_FINITE, nogil=True)
def weighed_by_rows(
    table: Compressed, r: Floats, scale: Floats, to: Cut, sums: Floats
) -> tuple[float, float]:
    """The same for all columns of a table that is stored by rows; sums are 0 before.

    What multiplies the entries of a row is ``r * scale`` in the one sum and ``scale`` in the other. A column
    has its terms in the order of its rows, as above: the results are the same to the last digit.
    """
    indptr, indices, entries = table
    stored = np.uint64(indices.size)
    largest, least = 0.0, np.inf
    for i in range(np.uint64(indptr.size - 1)):
        own, factor = scale[i], r[i] * scale[i]
        for e in range(np.uint64(indptr[i]), np.uint64(indptr[i + _1])):
            request_line(sums, np.uint64(indices[min(e + _AHEAD, stored - _1)]))
            j, x = np.uint64(indices[e]), np.float64(entries[e])
            sums[j, 0] += term(factor * x, to.limit, to.rounding)
            size = own * abs(x)
            sums[j, 1] += size
            largest = max(largest, size)
            least = min(least, size if size > 0.0 else np.inf)
    return largest, least


@compiled(nogil=True)
def count(indices: Unsigned, counts: Places) -> None:
    """Count how often each index occurs; counts are 0 before."""
    for e in range(np.uint64(indices.size)):
        counts[indices[e]] += np.uint32(1)
