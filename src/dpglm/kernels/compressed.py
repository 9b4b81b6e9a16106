"""Passes over compressed tables: conversion between the two orders, scaling, cutting.

*Major* is the index by which a table is stored, rows for CSR and columns for CSC, *minor* the other one.
Threads share the work by ranges of either, so that each number is made by one thread, in the order of
storage: nothing depends on how many there are.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .arguments import Compressed, Entries, Floats, Unsigned, Words
from .compiled import compiled
from .primitives import within

_0, _1, _3, _7 = (np.uint64(n) for n in (0, 1, 3, 7))


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
