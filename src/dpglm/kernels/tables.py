"""Passes over whole tables: conversion of compressed ones, ranges, fingerprints, sums of cut terms.

*Major* is the index by which a table is stored, rows for CSR and columns for CSC, *minor* the other one.
Threads share the work by ranges of either, so that each number is made by one thread, in the order of
storage: nothing depends on how many there are.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .arguments import Compressed, Cut, Entries, Floats, KeptState, Places, Signed, Unsigned, Whole, Words
from .compiled import compiled, part
from .formulas import term, within
from .simd import request_line

# Unsigned indices spare a test for negative ones, without which loops over rows are compiled to vectors.
_0, _1, _2, _3, _7 = (np.uint64(n) for n in (0, 1, 2, 3, 7))


@compiled(nogil=True)
def convert(table: Compressed, low: int, high: int, out: Compressed) -> None:
    """Write a range of minor indices into a table stored by them, whose indptr is zero before."""
    indptr, indices, entries = table
    out_indptr, out_indices, out_entries = out
    first, last = np.uint64(low), np.uint64(high)
    filled = np.uint64(0)
    for e in range(indptr[indptr.size - 1]):
        k = indices[e]
        if k < first:
            filled += _1
        elif k < last:
            out_indptr[k + _1] += _1
    # Until all is written, out_indptr[k + 1] is where the next entry of k goes.
    for k in range(first, last):
        count = out_indptr[k + _1]
        out_indptr[k + _1] = filled
        filled += count
    for m in range(np.uint64(indptr.size - 1)):
        for e in range(indptr[m], indptr[m + _1]):
            k = indices[e]
            if first <= k and k < last:
                target = out_indptr[k + _1]
                out_indices[target], out_entries[target] = m, entries[e]
                out_indptr[k + _1] = target + _1


@compiled(nogil=True)
def find(
    indices: Unsigned, bits: NDArray[np.uint8], begin: int, end: int, found: Unsigned
) -> tuple[np.uint64, np.uint64]:
    """List the places, from begin to end, of those indices whose bit is set, until the list is full.

    Returns how many there are, and from where to go on: nothing is looked at twice. They are found without a
    branch.
    """
    e, stop, size = np.uint64(begin), np.uint64(end), np.uint64(found.size)
    count = np.uint64(0)
    while e < stop and count < size:
        until = min(stop, e + (size - count))
        for place in range(e, until):
            k = np.uint64(indices[place])
            found[count] = place
            count += np.uint64((bits[k >> _3] >> np.uint8(k & _7)) & np.uint8(1))
        e = until
    return count, e


@compiled(nogil=True)
def count_found(indices: Unsigned, found: Unsigned, out: Unsigned) -> None:
    """Count the entries of each minor index k that were found in ``out[k + 1]``."""
    for h in range(np.uint64(found.size)):
        out[np.uint64(indices[found[h]]) + _1] += _1


@compiled(nogil=True)
def begin(wanted: Words, out: Unsigned) -> None:
    """Turn the counts of ascending minor indices into the places where their entries begin.

    Until all is written, ``out[k + 1]`` is where the next entry of k goes. No other place changes, so that
    nothing is said about an index that is not wanted.
    """
    filled = np.uint64(0)
    for h in range(np.uint64(wanted.size)):
        k = wanted[h]
        count = np.uint64(out[k + _1])
        if h == _0 or wanted[h - _1] + _1 != k:
            out[k] = filled
        out[k + _1] = filled
        filled += count


@compiled(nogil=True)
def write_found(table: Compressed, found: Unsigned, row: int, out: Compressed) -> np.uint64:
    """Write the entries that were found (see ``begin``), none before a row; the row of the last one."""
    indptr, indices, entries = table
    out_indptr, out_indices, out_entries = out
    m = np.uint64(row)
    for h in range(np.uint64(found.size)):
        e = found[h]
        while indptr[m + _1] <= e:
            m += _1
        k = np.uint64(indices[e])
        target = out_indptr[k + _1]
        out_indices[target], out_entries[target] = m, entries[e]
        out_indptr[k + _1] = target + _1
    return m


@compiled(nogil=True)
def multiply(table: Compressed, scale: Floats, by_major: bool, start: int, stop: int, out: Entries) -> None:
    """Entries times the scale of their major or minor index; scale 0 makes any entry 0, also NaN."""
    indptr, indices, entries = table
    for m in range(np.uint64(start), np.uint64(stop)):
        for e in range(indptr[m], indptr[m + _1]):
            factor = scale[m] if by_major else scale[indices[e]]
            out[e] = entries[e] * factor if factor != 0.0 else 0.0


@compiled(nogil=True)
def cut_entries(
    table: Compressed, low: Floats, high: Floats, by_major: bool, start: int, stop: int, out: Entries
) -> None:
    """Entries cut to the range of their major or minor index."""
    indptr, indices, entries = table
    for m in range(np.uint64(start), np.uint64(stop)):
        for e in range(indptr[m], indptr[m + _1]):
            k = m if by_major else np.uint64(indices[e])
            out[e] = within(entries[e], low[k], high[k])


@compiled(nogil=True)
def within_rows(X: Entries, low: Floats, high: Floats) -> bool:
    """Return whether low <= X <= high, for a table stored by rows. A NaN is in no range."""
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


# A keyed hash of each row of a table and its target, added up over the rows in two lanes of 64 bits.
# A lane hashes a row, its target being one more column, in the manner of NH (Black et al., UMAC, CRYPTO
# 1999). To the 64 digits of each double a key of its column is added modulo 2**64. Of the result t, and of
# the key k itself, the halves are multiplied: the hash is the sum over the columns of low(t) high(t) - low(k)
# high(k), modulo 2**64. An entry of +0.0 adds nothing, so a table hashes the same with and without its zeros,
# by rows and by columns. If two rows differ in some column, at most 2**33 of the 2**64 keys of that column
# give both rows the same hash: with the low half of the key given (the high half, if the low halves of the
# entries are equal), the difference of the two products takes each value at most twice. The hash of a row is
# mixed (the last steps of MurmurHash3) before rows are added up. The keys of columns are a sequence of
# SplitMix64.
_HALF, _MASK = np.uint64(32), np.uint64(0xFFFFFFFF)
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_S30, _S27, _S31, _S33 = (np.uint64(n) for n in (30, 27, 31, 33))
_A, _B = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_C, _D = np.uint64(0xFF51AFD7ED558CCD), np.uint64(0xC4CEB9FE1A85EC53)


@part
def column_key(seed: np.uint64, j: Whole) -> np.uint64:
    """The key of column j: number j + 1 of SplitMix64."""
    z = seed + (j + _1) * _GOLDEN
    z = (z ^ (z >> _S30)) * _A
    z = (z ^ (z >> _S27)) * _B
    return z ^ (z >> _S31)


@part
def mixed(h: np.uint64) -> np.uint64:
    """The last steps of MurmurHash3."""
    h = (h ^ (h >> _S33)) * _C
    h = (h ^ (h >> _S33)) * _D
    return h ^ (h >> _S33)


@part
def bits(value: float) -> np.uint64:
    """The binary digits of a double."""
    return np.float64(value).view(np.uint64)


@part
def product(digits: np.uint64, key: np.uint64) -> np.uint64:
    """Product of the halves of a word plus its key."""
    t = digits + key
    return (t & _MASK) * (t >> _HALF)


@part
def key_term(value: float, key: np.uint64) -> np.uint64:
    """The term of an entry in the hash of its row."""
    return product(bits(value), key) - product(_0, key)


@compiled(nogil=True)
def write_keys(seeds: Words, keys: Words) -> None:
    """The keys of all columns, one row of ``keys`` for each lane; the last is that of the target."""
    for lane in range(keys.shape[0]):
        for j in range(np.uint64(keys.shape[1])):
            keys[lane, j] = column_key(seeds[lane], j)


@part
def _nothing(keys: Words, p: np.uint64) -> np.uint64:
    """The sum of the products of a row of zeros."""
    total = _0
    for j in range(p):
        total += product(_0, keys[j])
    return total


@compiled(nogil=True)
def dense_sums(X: Entries, first: int, y: Floats, seeds: Words, keys: Words, out: Words) -> None:
    """Add the hashes of as many rows as there are targets, from ``first`` on."""
    p = np.uint64(X.shape[1])
    keys0, keys1 = keys[0], keys[1]
    none0, none1 = _nothing(keys0, p), _nothing(keys1, p)
    for k in range(np.uint64(y.size)):
        row = X[np.uint64(first) + k]
        a, b = _0 - none0, _0 - none1
        for j in range(p):
            digits = bits(row[j])
            a += product(digits, keys0[j])
            b += product(digits, keys1[j])
        out[0] += mixed((a + key_term(y[k], keys0[p])) ^ seeds[0])
        out[1] += mixed((b + key_term(y[k], keys1[p])) ^ seeds[1])


@compiled(nogil=True)
def column_sums(
    X: Entries, first: int, y: Floats, seeds: Words, keys: Words, lanes: Words, out: Words
) -> None:
    """The same for a table stored by columns; ``lanes`` is scratch space of shape (2, rows).

    Two columns at a time: every hash is read and written once for two entries.
    """
    p, chunk, n = np.uint64(X.shape[1]), np.uint64(lanes.shape[1]), np.uint64(y.size)
    keys0, keys1, lane0, lane1 = keys[0], keys[1], lanes[0], lanes[1]
    none0, none1 = _nothing(keys0, p), _nothing(keys1, p)
    for start in range(_0, n, chunk):
        rows, place = min(chunk, n - start), np.uint64(first) + start
        for k in range(rows):
            lane0[k] = key_term(y[start + k], keys0[p]) - none0
            lane1[k] = key_term(y[start + k], keys1[p]) - none1
        for j in range(_0, p - p % _2, _2):
            here, after = X[:, j], X[:, j + _1]
            a0, a1, b0, b1 = keys0[j], keys1[j], keys0[j + _1], keys1[j + _1]
            for k in range(rows):
                v, w = bits(here[place + k]), bits(after[place + k])
                lane0[k] += product(v, a0) + product(w, b0)
                lane1[k] += product(v, a1) + product(w, b1)
        for j in range(p - p % _2, p):
            here, a0, a1 = X[:, j], keys0[j], keys1[j]
            for k in range(rows):
                v = bits(here[place + k])
                lane0[k] += product(v, a0)
                lane1[k] += product(v, a1)
        for k in range(rows):
            out[0] += mixed(lane0[k] ^ seeds[0])
            out[1] += mixed(lane1[k] ^ seeds[1])


@compiled(nogil=True)
def sparse_sums(table: Compressed, first: int, y: Floats, seeds: Words, p: int, out: Words) -> None:
    """The same for a table stored by rows without its zeros; keys are computed where they are needed."""
    seed0, seed1, last = seeds[0], seeds[1], np.uint64(p)
    for k in range(np.uint64(y.size)):
        i = np.uint64(first) + k
        a, b = key_term(y[k], column_key(seed0, last)), key_term(y[k], column_key(seed1, last))
        for t in range(table.indptr[i], table.indptr[i + _1]):
            j, value = np.uint64(table.indices[t]), table.entries[t]
            a += key_term(value, column_key(seed0, j))
            b += key_term(value, column_key(seed1, j))
        out[0] += mixed(a ^ seed0)
        out[1] += mixed(b ^ seed1)


_AHEAD = np.uint64(64)  # entries from a request of a sum to its use: as many as memory has under way

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
