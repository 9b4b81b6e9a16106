"""Passes over all rows of pending moves: make the moves, and set a reference (see ``pending``).

Rows are taken in blocks that fit into the cache. In a block the heads are stored by columns, so that a loop
over the entries of one head has no branch, and moves and sums read memory from front to back.

Proof: docs/proofs/pending_moves.md.
"""

from __future__ import annotations

import numpy as np

from .arguments import Blocks, Compressed, Floats, Integers, Pending, Terms, Unsigned, Whole
from .compiled import compiled, part
from .forms import to_slopes
from .pending import SLOPES, add_line, add_pairs, flush, number_of, refer, replay

_1, _4 = np.uint64(1), np.uint64(4)


@compiled(nogil=True, allocates=True)
def by_blocks(table: Compressed, columns: Unsigned, n: int, size: int) -> Blocks:
    """Some columns of a table by blocks of ``size`` rows: at most 2**16.

    The table is stored by columns, in each of which the rows ascend.
    """
    indptr, indices, entries = table
    rows, count = np.uint64(size), -(-n // size)
    begins = np.zeros((count, columns.size + 1), dtype=np.uint64)
    for number in range(columns.size):
        j, block, end = columns[number], 0, rows
        for e in range(indptr[j], indptr[j + _1]):
            while indices[e] >= end:
                block, end = block + 1, end + rows
            begins[block, number + 1] += _1
    at = np.uint64(0)
    for b in range(count):
        begins[b, 0] = at
        for number in range(columns.size):
            at += begins[b, number + 1]
            begins[b, number + 1] = at
    places, values = np.empty(at, dtype=np.uint16), np.empty(at, dtype=entries.dtype)
    for number in range(columns.size):
        j, block, end = columns[number], 0, rows
        to = begins[0, number]
        for e in range(indptr[j], indptr[j + _1]):
            while indices[e] >= end:
                block, end = block + 1, end + rows
                to = begins[block, number]
            places[to], values[to] = indices[e] - (end - rows), entries[e]
            to += _1
    return Blocks(begins, places, values, size)


@part
def _move_block(b: Whole, start: Whole, stop: Whole, rows: Floats, pending: Pending, kept: Floats) -> None:
    """Make the pending moves of a block of rows, in the order of the steps.

    Rows that a column that is no head has moved know some of the moves: they are replayed.
    """
    blocks, moved_apart = pending.blocks, pending.counts[3] > 0
    if moved_apart:
        for i in range(start, stop):
            if rows[i, 1] > 0:
                kept[i - start] = replay(i, rows, pending)
    for t in range(pending.counts[0]):
        k, push = np.uint64(pending.which[t]), pending.pushes[t]
        for e in range(blocks.begins[b, k], blocks.begins[b, k + _1]):
            at = start + np.uint64(blocks.places[e])
            rows[at, 0] += push * (rows[at, 3] * np.float64(blocks.entries[e]))
    if moved_apart:
        for i in range(start, stop):
            if rows[i, 1] > 0:
                rows[i, 0], rows[i, 1] = kept[i - start], 0.0


@part
def _slopes(
    start: Whole, stop: Whole, factor: float, rows: Floats, terms: Terms, z: Floats, y: Floats
) -> None:
    """Set the slopes of some rows, as many at once as z and y, which are scratch space, have places."""
    for begin in range(start, stop, np.uint64(z.size)):
        count = min(np.uint64(z.size), stop - begin)
        for r in range(count):
            i = begin + r
            z[r], y[r] = factor * rows[i, 0] + (terms.base if rows[i, 3] > 0 else 0.0), rows[i, 2]
        to_slopes(terms.form, y, z)
        for r in range(count):
            rows[begin + r, 5] = z[r]


@part
def _sum_block(b: Whole, pending: Pending, pulls: Floats, sums: Integers) -> None:
    """Add what a block of rows adds to the sums of slopes, ``pulls`` being in units of these.

    Numbers are whole and their sum is below 2**53, so that doubles hold it in any order.
    """
    begins, places, entries = pending.blocks.begins, pending.blocks.places, pending.blocks.entries
    for k in range(np.uint64(sums.shape[0])):
        e, end = begins[b, k], begins[b, k + _1]
        one = two = three = four = 0.0
        while e + _4 <= end:
            one += np.rint(pulls[places[e]] * np.float64(entries[e]))
            two += np.rint(pulls[places[e + _1]] * np.float64(entries[e + _1]))
            three += np.rint(pulls[places[e + np.uint64(2)]] * np.float64(entries[e + np.uint64(2)]))
            four += np.rint(pulls[places[e + np.uint64(3)]] * np.float64(entries[e + np.uint64(3)]))
            e += _4
        while e < end:
            one += np.rint(pulls[places[e]] * np.float64(entries[e]))
            e += _1
        sums[k, 0] += np.int64((one + two) + (three + four))


@compiled(nogil=True)
def refer_slopes(
    first: int, last: int, factor: float, rows: Floats, pending: Pending, terms: Terms, sums: Integers,
    scratch: Floats, z: Floats, y: Floats,
) -> None:  # fmt: skip
    """As ``refer_all``, but for the present factor alone: slopes are all that is added to the sums.

    ``scratch`` has a place for each row of a block; see ``_slopes`` for z and y.
    """
    size = np.uint64(pending.blocks.size)
    for b in range(np.uint64(first), np.uint64(last)):
        start, stop = b * size, min((b + _1) * size, np.uint64(rows.shape[0]))
        _move_block(b, start, stop, rows, pending, scratch)
        _slopes(start, stop, factor, rows, terms, z, y)
        for i in range(start, stop):
            scratch[i - start] = rows[i, 5] * rows[i, 3] * SLOPES
        _sum_block(b, pending, scratch, sums)


@part
def _refer_block(
    start: Whole, stop: Whole, factor: float, level: int, rows: Floats, pending: Pending, terms: Terms,
    sums: Integers, block: Integers, most: Floats,
) -> None:  # fmt: skip
    """Let the present factor be the reference of some rows, whose moves are made."""
    leading, coefs = pending.leading, pending.coefs
    for i in range(start, stop):
        begin, end = leading.begins[i], leading.begins[i + _1]
        if begin == end:
            continue
        size, own, largest, count, scale = 0.0, 0.0, 0.0, 0.0, rows[i, 3]
        for e in range(begin, end):
            k, x = number_of(leading, e), scale * np.float64(leading.entries[e, 1])
            own += x * (coefs[k, 0] + coefs[k, 1])
            size += abs(x) * pending.active[k]
            count += pending.active[k]
            largest = max(largest, abs(x))
        rest = factor * (rows[i, 0] - own)
        refer(i, factor * rows[i, 0], rest, rows, terms)
        most[0], most[1] = max(most[0], size * largest), max(most[1], abs(rest))
        most[2], most[3] = max(most[2], largest), max(most[3], count)
        most[4] = max(most[4], size * size * largest)
        most[5] = max(most[5], size * largest * largest)
        add_line(i, 1, rows, pending, sums)
        add_pairs(i, 1.0, level, rows, pending)
    flush(level, pending, block)


@compiled(nogil=True)
def refer_all(
    first: int, last: int, factor: float, level: int, rows: Floats, pending: Pending, terms: Terms,
    sums: Integers, block: Integers, most: Floats, scratch: Floats,
) -> None:  # fmt: skip
    """Make the pending moves of some blocks, and let the present factor be their reference.

    Adds to the sums and the block (see ``add_line`` and ``add_pairs``). ``most`` becomes the first six
    numbers of ``Pending.most``.
    """
    size = np.uint64(pending.blocks.size)
    for b in range(np.uint64(first), np.uint64(last)):
        start, stop = b * size, min((b + _1) * size, np.uint64(rows.shape[0]))
        _move_block(b, start, stop, rows, pending, scratch)
        _refer_block(start, stop, factor, level, rows, pending, terms, sums, block, most)


@compiled(nogil=True)
def make_moves(first: int, last: int, rows: Floats, pending: Pending, scratch: Floats) -> None:
    """Make the pending moves of some blocks, and no more."""
    size = np.uint64(pending.blocks.size)
    for b in range(np.uint64(first), np.uint64(last)):
        start, stop = b * size, min((b + _1) * size, np.uint64(rows.shape[0]))
        _move_block(b, start, stop, rows, pending, scratch)
