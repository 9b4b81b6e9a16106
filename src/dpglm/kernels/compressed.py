"""Passes over compressed tables: conversion between the two orders, products, squares, scaling.

*Major* is the index by which a table is stored, rows for CSR and columns for CSC, *minor* the other one.
Threads share the work by ranges of either, so that each number is made by one thread, in the order of
storage: nothing depends on how many there are.
"""

from __future__ import annotations

import numpy as np

from .arguments import Compressed, Entries, Floats
from .compiled import compiled
from .primitives import add_line, cut, sparse_dot

_1 = np.uint64(1)


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
def squares_by_major(table: Compressed, scale: Floats, start: int, stop: int, out: Floats) -> None:
    """Sum of the squared entries of each major index, times the scale of the minor one; no scale is 1."""
    indptr, indices, entries = table
    for m in range(np.uint64(start), np.uint64(stop)):
        total = 0.0
        if scale.size:
            for e in range(indptr[m], indptr[m + _1]):
                total += (entries[e] * scale[indices[e]]) ** 2
        else:
            for e in range(indptr[m], indptr[m + _1]):
                total += np.float64(entries[e]) ** 2
        out[m] = total


@compiled(nogil=True)
def squares_by_minor(table: Compressed, scale: Floats, low: int, high: int, out: Floats) -> None:
    """The same for each minor index of a range, times the scale of the major one; out is zero before."""
    indptr, indices, entries = table
    first, size = np.uint64(low), np.uint64(high - low)
    for m in range(np.uint64(indptr.size - 1)):
        factor = scale[m] if scale.size else 1.0
        for e in range(indptr[m], indptr[m + _1]):
            k = indices[e]
            if np.uint64(k - first) < size:
                out[k] += (entries[e] * factor) ** 2


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
    table: Compressed, limit: Floats, by_major: bool, start: int, stop: int, out: Entries
) -> None:
    """Entries cut to the limit of their major or minor index."""
    indptr, indices, entries = table
    for m in range(np.uint64(start), np.uint64(stop)):
        for e in range(indptr[m], indptr[m + _1]):
            top = limit[m] if by_major else limit[indices[e]]
            out[e] = cut(entries[e], top)


@compiled(nogil=True)
def dots(table: Compressed, vector: Floats, start: int, stop: int, out: Floats) -> None:
    """Product of each line with a vector, its terms added in their order."""
    for i in range(start, stop):
        out[i] = sparse_dot(table, i, vector)


@compiled(nogil=True)
def add_lines(table: Compressed, vector: Floats, out: Floats) -> None:
    """Add the lines, each times its entry of a vector, one after the other."""
    for i in range(table.indptr.size - 1):
        add_line(table, i, vector[i], out)
