"""Compiled passes over compressed tables: conversion between the two orders, products, squares, scaling.

*Major* is the index by which a table is stored, rows for CSR and columns for CSC, *minor* the other one.
Threads share the work by ranges of either, so that each number is made by one thread, in the order of
storage: nothing depends on how many there are.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

_1 = np.uint64(1)


@njit(cache=True, error_model="numpy", nogil=True)
def convert(
    indptr: Any,
    indices: Any,
    entries: Any,
    low: int,
    high: int,
    out_indptr: Any,
    out_indices: Any,
    out_entries: Any,
) -> None:
    """Write a range of minor indices into a table stored by them; out_indptr is zero before."""
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


@njit(cache=True, error_model="numpy", nogil=True)
def squares_by_major(
    indptr: Any, indices: Any, entries: Any, scale: Any, start: int, stop: int, out: Any
) -> None:
    """Sum of the squared entries of each major index, times the scale of the minor one; no scale is 1."""
    for m in range(np.uint64(start), np.uint64(stop)):
        total = 0.0
        if scale.size:
            for e in range(indptr[m], indptr[m + _1]):
                total += (entries[e] * scale[indices[e]]) ** 2
        else:
            for e in range(indptr[m], indptr[m + _1]):
                total += np.float64(entries[e]) ** 2
        out[m] = total


@njit(cache=True, error_model="numpy", nogil=True)
def squares_by_minor(
    indptr: Any, indices: Any, entries: Any, scale: Any, low: int, high: int, out: Any
) -> None:
    """The same for each minor index of a range, times the scale of the major one; out is zero before."""
    first, size = np.uint64(low), np.uint64(high - low)
    for m in range(np.uint64(indptr.size - 1)):
        factor = scale[m] if scale.size else 1.0
        for e in range(indptr[m], indptr[m + _1]):
            k = indices[e]
            if np.uint64(k - first) < size:
                out[k] += (entries[e] * factor) ** 2


@njit(cache=True, error_model="numpy", nogil=True)
def multiply(
    indptr: Any, indices: Any, entries: Any, scale: Any, by_major: bool, start: int, stop: int, out: Any
) -> None:
    """Entries times the scale of their major or minor index; scale 0 makes any entry 0, also NaN."""
    for m in range(np.uint64(start), np.uint64(stop)):
        for e in range(indptr[m], indptr[m + _1]):
            factor = scale[m] if by_major else scale[indices[e]]
            out[e] = entries[e] * factor if factor != 0.0 else 0.0


@njit(cache=True, error_model="numpy", nogil=True)
def cut(
    indptr: Any, indices: Any, entries: Any, limit: Any, by_major: bool, start: int, stop: int, out: Any
) -> None:
    """Entries cut to the limit of their major or minor index."""
    for m in range(np.uint64(start), np.uint64(stop)):
        for e in range(indptr[m], indptr[m + _1]):
            top = limit[m] if by_major else limit[indices[e]]
            out[e] = min(max(entries[e], -top), top)


@njit(cache=True, error_model="numpy", nogil=True)
def dots(indptr: Any, indices: Any, entries: Any, vector: Any, start: int, stop: int, out: Any) -> None:
    """Product of each line with a vector, its terms added in their order."""
    for i in range(start, stop):
        total = 0.0
        for t in range(indptr[i], indptr[i + 1]):
            total += entries[t] * vector[indices[t]]
        out[i] = total


@njit(cache=True, error_model="numpy", nogil=True)
def add_lines(indptr: Any, indices: Any, entries: Any, vector: Any, out: Any) -> None:
    """Add the lines, each times its entry of a vector, one after the other."""
    for i in range(indptr.size - 1):
        factor = vector[i]
        for t in range(indptr[i], indptr[i + 1]):
            out[indices[t]] += factor * entries[t]
