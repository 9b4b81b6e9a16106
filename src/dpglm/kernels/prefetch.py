"""Requests for the memory that the next Frank-Wolfe steps will read, made some steps before.

Where a step reads depends on its proposal, and each place on what was read at the one before: alone it would
wait for each of them. Proposals depend on words and bins only, so those of several steps are known at once.
"""

from __future__ import annotations

import numpy as np

from .arguments import Bins, Floats, Followed, Held, Integers, Leading, Unsigned, Whole, Words
from .bins import propose
from .compiled import part
from .simd import request_entry, request_line

PROPOSALS = 16
AT_ONCE = np.uint64(16)
_1 = np.uint64(1)


@part
def request_proposed(
    words: Words, at: int, top: int, bins: Bins, extracted: Held, followed: Followed, leading: Leading,
    coming: Integers,
) -> int:  # fmt: skip
    """Request what the next proposals need, as far as words go; the word behind the last one.

    It changes no result. If a bin changes, steps may turn to other columns than these.
    """
    columns, held = extracted.table.columns, extracted.columns
    count = 0
    while count < coming.size:
        following, k, member = propose(words, at, top, 2, bins)
        if member < 0:
            break
        at = following + 1  # a coin takes one word, but for one time in 2**64
        coming[count] = bins.start[k] + (member >> 1)
        request_entry(bins.perm, np.uint64(coming[count]))
        count += 1
    for h in range(count):
        j = np.uint64(bins.perm[coming[h]])
        coming[h] = np.int64(j)
        request_line(followed.sums, j)
        request_entry(columns.indptr, j)
        request_entry(held, j)
    for h in range(count):
        j = np.uint64(coming[h])
        if held[j]:
            request_entry(columns.indices, np.uint64(columns.indptr[j]))
            request_entry(columns.entries, np.uint64(columns.indptr[j]))
    for h in range(count):
        j = np.uint64(coming[h])
        if held[j]:
            first, last = np.uint64(columns.indptr[j]), np.uint64(columns.indptr[j + _1])
            request_rows(columns.indices, first, min(last, first + AT_ONCE), followed.rows, leading)
    return at


@part
def request_rows(indices: Unsigned, begin: Whole, end: Whole, rows: Floats, leading: Leading) -> None:
    """Request some rows, and where their entries of leading columns begin."""
    for e in range(begin, end):
        request_line(rows, np.uint64(indices[e]))
    if leading.entries.size:
        for e in range(begin, end):
            request_entry(leading.begins, np.uint64(indices[e]))


@part
def request_entries(indices: Unsigned, begin: Whole, end: Whole, leading: Leading) -> None:
    """Request the entries of leading columns of some rows."""
    if leading.entries.size:
        for e in range(begin, end):
            request_line(leading.entries, leading.begins[indices[e]])
