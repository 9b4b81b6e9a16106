"""Passes over compressed tables: conversion between the two orders, scaling, cutting.

*Major* is the index by which a table is stored, rows for CSR and columns for CSC, *minor* the other one.
Threads share the work by ranges of either, so that each number is made by one thread, in the order of
storage: nothing depends on how many there are.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .arguments import Compressed, Entries, Floats, Places, Unsigned, Words
from .compiled import compiled
from .primitives import within

_1, _6, _63 = (np.uint64(n) for n in (1, 6, 63))


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
def places(wanted: NDArray[np.uint8], counts: Places, indptr: Unsigned, bits: Words) -> np.int64:
    """Set a bit for each index k that is wanted, and ``indptr[k + 1]`` to where its entries begin.

    Returns the number of entries; ``bits`` are 0 before.
    """
    filled = np.int64(0)
    for k in range(np.uint64(wanted.size)):
        indptr[k + _1] = filled
        if wanted[k]:
            bits[k >> _6] |= _1 << (k & _63)
            filled += np.int64(counts[k])
    return filled


@compiled(nogil=True)
def extract(table: Compressed, bits: Words, found: Words, out: Compressed) -> None:
    """Write the entries of those minor indices whose bit is set (see ``places``).

    ``found`` is scratch space: entries are found without a branch, some hundreds at a time.
    """
    indptr, indices, entries = table
    out_indptr, out_indices, out_entries = out
    for m in range(np.uint64(indptr.size - 1)):
        begin, end = np.uint64(indptr[m]), np.uint64(indptr[m + _1])
        while begin < end:
            stop = min(end, begin + np.uint64(found.size))
            count = np.uint64(0)
            for e in range(begin, stop):
                k = np.uint64(indices[e])
                found[count] = e
                count += (bits[k >> _6] >> (k & _63)) & _1
            for h in range(count):
                e = found[h]
                k = np.uint64(indices[e])
                target = out_indptr[k + _1]
                out_indices[target], out_entries[target] = m, entries[e]
                out_indptr[k + _1] = target + _1
            begin = stop


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
