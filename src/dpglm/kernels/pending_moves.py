"""Head columns: their moves stay pending, and their sums follow by a block of second moments (see `Pending`).

Of a row's part of the margin, v times the factor, each of the row's heads knows an expansion to second order
around a *reference* at which all moves were made. Everything that a row adds to an expansion is a whole
number, so that sums over rows are exact in any order, and what a single row adds can be found again.

Proof: docs/proofs/pending_moves.md, which gives the reasons of the constants below.
"""

from __future__ import annotations

import math

import numpy as np

from .arguments import Blocks, Compressed, Floats, Integers, Leading, Pending, Terms, Unsigned, Whole, Words
from .compiled import compiled, part
from .formulas import curvature, slope, to_slopes

SLOPES, BENDS, MOVES = 2.0**24, 2.0**20, 2.0**12
UNIT = 1 / (BENDS * MOVES)
"""Steps of whole numbers: of slopes, of their changes, of moves, and of the sums of all of these."""
LIFT = np.int64(BENDS * MOVES / SLOPES)
_OF_MOVES, _OF_REST = 0.625, 2.5
"""Half of 5/4 and of 5: (a + b)² is at most 5/4 a² + 5 b²."""
_TOO_MUCH = 2.0**62  # of a row: selections are not made with it
_1, _4, _63 = np.uint64(1), np.uint64(4), np.uint64(63)
_WINDOW = np.uint64(6)
_DE_BRUIJN, _TOP = np.uint64(0x03F79D71B4CB0A89), np.uint64(58)
_BIT = np.zeros(64, dtype=np.int64)
for _bit in range(64):
    _BIT[(0x03F79D71B4CB0A89 << _bit) % (1 << 64) >> 58] = _bit


@part
def number_of(leading: Leading, e: Whole) -> np.uint64:
    """The number of the head column of an entry."""
    return np.uint64(np.int32(leading.entries[e, 0]))


@part
def replay(i: Whole, rows: Floats, pending: Pending) -> float:
    """V of row i after all moves, each added in its turn: the digits of steps that move rows at once."""
    leading, masks, scratch = pending.leading, pending.masks, pending.scratch
    begin, end = leading.begins[i], leading.begins[i + _1]
    v, scale = float(rows[i, 0]), rows[i, 3]
    since, count = np.uint64(rows[i, 1]), np.uint64(pending.counts[0])
    if since == count or begin == end:
        return v
    known, mask_from = False, ~np.uint64(0) << (since & _63)
    for window in range(since >> _WINDOW, (count + _63) >> _WINDOW):
        mask = np.uint64(0)
        for e in range(begin, end):
            mask |= masks[number_of(leading, e), window]
        mask &= mask_from
        mask_from = ~np.uint64(0)
        if mask and not known:
            known = True
            for e in range(begin, end):
                scratch[number_of(leading, e)] = scale * np.float64(leading.entries[e, 1])
        while mask:
            lowest = mask & (~mask + _1)
            at = (window << _WINDOW) + np.uint64(_BIT[(lowest * _DE_BRUIJN) >> _TOP])
            v += pending.pushes[at] * scratch[np.uint64(pending.which[at])]
            mask ^= lowest
    return v


@part
def slope_part(pull: float, entry: float) -> np.int64:
    """The term of a row in the sum of slopes: ``pull`` is its slope times the factor of its entries."""
    return np.int64(np.rint(pull * entry * SLOPES))


@part
def rest_part(bend: float, rest: float, x: float) -> np.int64:
    """The term of a row in the change of that sum as all but the heads shrink."""
    return np.int64(np.rint(bend * rest * x * BENDS))


@part
def rest_error(gamma: float, rest: float, x: float) -> np.int64:
    """The term of a row in the error of that change."""
    return np.int64(np.ceil(_OF_REST * gamma * (rest * rest) * abs(x) * BENDS))


@part
def move_part(bend: float, product: float) -> float:
    """The term of a row in the change as a head moves, with the product of two entries: a whole number."""
    return float(np.rint(bend * BENDS * product))


@part
def move_error(gamma: float, size: float, product: float) -> float:
    """The term of a row in the error of that change; ``size`` is the sum of its absolute entries of heads."""
    return float(np.ceil(_OF_MOVES * gamma * size * BENDS * abs(product)))


@part
def size_of(i: Whole, rows: Floats, pending: Pending) -> float:
    """The sum of the absolute entries of active heads of row i."""
    leading, size = pending.leading, 0.0
    for e in range(leading.begins[i], leading.begins[i + _1]):
        x = abs(rows[i, 3] * np.float64(leading.entries[e, 1]))
        size += x * pending.active[number_of(leading, e)]
    return size


@part
def add_line(i: Whole, sign: int, rows: Floats, pending: Pending, sums: Integers) -> None:
    """Add what row i adds, at its reference, to the sums of its heads, times a sign."""
    leading, gamma = pending.leading, pending.gamma
    scale, bend, rest = rows[i, 3], rows[i, 6], rows[i, 7]
    for e in range(leading.begins[i], leading.begins[i + _1]):
        j, entry = number_of(leading, e), np.float64(leading.entries[e, 1])
        sums[j, 0] += sign * slope_part(rows[i, 5] * scale, entry)
        sums[j, 1] += sign * rest_part(bend, rest, scale * entry)
        sums[j, 2] += sign * rest_error(gamma, rest, scale * entry)


@part
def add_pairs(i: Whole, sign: float, level: int, rows: Floats, pending: Pending) -> None:
    """Add what row i adds to the block, times a sign; of two active heads only where the first comes first.

    Level 1 adds all but the errors of moves, which do not depend on the reference; level 2 adds all. Whole
    numbers are added in doubles, which ``flush`` takes to the block.
    """
    leading, numbers, xs = pending.leading, pending.numbers, pending.xs
    scale, bend, h = rows[i, 3], rows[i, 6], np.uint64(pending.active.size)
    active, others = np.uint64(0), np.uint64(0)
    # Written before it is known whether it counts: the processor could not foresee it.
    for e in range(leading.begins[i], leading.begins[i + _1]):
        k, x = number_of(leading, e), scale * np.float64(leading.entries[e, 1])
        numbers[0, active], xs[0, active] = k, x
        numbers[1, others], xs[1, others] = k, x
        active += np.uint64(pending.active[k])
        others += _1 - np.uint64(pending.active[k])
    for e in range(active):
        k, x = numbers[0, e], xs[0, e]
        changes = pending.pairs[k]
        for f in range(e, active):
            changes[numbers[0, f]] += sign * move_part(bend, x * xs[0, f])
        for f in range(others):
            changes[numbers[1, f]] += sign * move_part(bend, x * xs[1, f])
    if level == 2:
        size = size_of(i, rows, pending)
        for e in range(active):
            k, x = numbers[0, e], xs[0, e]
            errors = pending.pairs[h + k]
            for f in range(e, active):
                errors[numbers[0, f]] += sign * move_error(pending.gamma, size, x * xs[0, f])
            for f in range(others):
                errors[numbers[1, f]] += sign * move_error(pending.gamma, size, x * xs[1, f])


@part
def flush(level: int, pending: Pending, block: Integers) -> None:
    """Take what rows have added to pairs of heads to a block. It is below 2**53, so that doubles hold it."""
    pairs, h = pending.pairs, np.uint64(block.shape[1])
    for m in range(np.uint64(level)):
        for k in range(h):
            if pending.active[k]:
                for j in range(h):
                    block[m, k, j] += np.int64(pairs[m * h + k, j])
                    pairs[m * h + k, j] = 0.0


@part
def refer(i: Whole, part: float, rest: float, rows: Floats, terms: Terms) -> None:
    """Set the reference of row i: its part of the margin, slope, curvature, and the part of no head."""
    shift = terms.base if rows[i, 3] > 0 else 0.0
    rows[i, 4], rows[i, 7] = part, rest
    rows[i, 5] = slope(terms.form, part + shift, rows[i, 2])
    rows[i, 6] = curvature(terms.form, part + shift, rows[i, 2], rows[i, 5])


@compiled(nogil=True)
def expand(factor: float, pending: Pending) -> None:
    """Sums of all heads at a factor, and what they may be off by: in ``values``.

    ``moved`` becomes the change of each coefficient and its square, ``scalars`` the same of the factor and
    what rounding adds for a row; ``most[6]`` twice the largest error of a row.
    """
    coefs, moved, values, scalars = pending.coefs, pending.moved, pending.values, pending.scalars
    most, sums, block = pending.most, pending.sums, pending.block
    reference = most[7]
    change = factor / reference - 1.0
    scalars[0] = np.int64(np.rint(change * MOVES))
    scalars[1] = np.int64(np.ceil((abs(change) + pending.tiny) ** 2 * MOVES)) if change != 0 else 0
    farthest, squared, together = 0.0, np.int64(0), np.int64(0)
    for k in range(moved.shape[0]):
        delta = factor * (coefs[k, 0] + coefs[k, 1]) - reference * coefs[k, 0]
        moved[k, 0] = np.int64(np.rint(delta * MOVES))
        moved[k, 1] = np.int64(np.ceil((abs(delta) + pending.tiny) ** 2 * MOVES)) if delta != 0 else 0
        farthest, squared = max(farthest, abs(delta)), max(squared, moved[k, 1])
        together += moved[k, 1]
    rounding = 1.0 / SLOPES + pending.entry
    if change != 0 or squared > 0:
        rounding += pending.beta * (most[0] + most[2] * most[1]) / MOVES
        rounding += (most[3] * (farthest + 1.0) + 1.0) / BENDS
    scalars[2] = np.int64(min(np.ceil(rounding / UNIT), _TOO_MUCH))
    largest = _OF_MOVES * min(most[4] * squared, most[5] * together)
    largest += _OF_REST * most[2] * most[1] * most[1] * scalars[1]
    largest *= pending.gamma / MOVES
    largest += (min(most[3] * squared, np.float64(together)) + scalars[1] + scalars[2]) * UNIT
    most[6] = 2.0 * largest * (1.0 + 2.0**-20)
    for j in range(values.shape[0]):
        values[j, 0] = sums[j, 0] * LIFT + sums[j, 1] * scalars[0]
        values[j, 1] = sums[j, 2] * scalars[1] + pending.lengths[j] * scalars[2]
    for k in range(moved.shape[0]):
        if moved[k, 1] != 0:
            move, square = moved[k, 0], moved[k, 1]
            for j in range(values.shape[0]):
                values[j, 0] += block[0, k, j] * move
                values[j, 1] += block[1, k, j] * square


@part
def bounds_of(i: Whole, entry: float, rows: Floats, pending: Pending) -> tuple[np.int64, np.int64]:
    """The term of row i in the sum of a head with that entry, and a bound on its error (see ``expand``)."""
    leading, gamma, moved, scalars = pending.leading, pending.gamma, pending.moved, pending.scalars
    begin, end = leading.begins[i], leading.begins[i + _1]
    scale, bend, rest = rows[i, 3], rows[i, 6], rows[i, 7]
    x, size = scale * entry, size_of(i, rows, pending)
    value = slope_part(rows[i, 5] * scale, entry) * LIFT + rest_part(bend, rest, x) * scalars[0]
    error = rest_error(gamma, rest, x) * scalars[1] + scalars[2]
    for e in range(begin, end):
        k = number_of(leading, e)
        if moved[k, 1] == 0:
            continue
        product = x * (scale * np.float64(leading.entries[e, 1]))
        value += np.int64(move_part(bend, product)) * moved[k, 0]
        error += np.int64(move_error(gamma, size, product)) * moved[k, 1]
    return value, error


@part
def weight_of(x: float, pending: Pending) -> np.int64:
    """Bound of what a row adds to the sum of a column in which it has the entry x, whatever its margin."""
    return np.int64(np.ceil((pending.steep * abs(x) + pending.entry) / UNIT))


def masks_for(heads: int, moves: int) -> Words:
    """A bit for each move and head: whether the head was moved."""
    return np.zeros((heads, math.ceil(moves / 64) + 1), dtype=np.uint64)


# Passes over all rows: make the moves, and set a reference. Rows are taken in blocks that fit into the cache.
# In a block the heads are stored by columns, so that a loop over the entries of one head has no branch, and
# moves and sums read memory from front to back.
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
