"""Frank-Wolfe steps whose selections go to few heavy columns, whose moves stay pending (``pending_moves``).

All other columns are light: the bound of their scores is their weight, whatever the margins. A candidate that
is a head is kept by a coin whose probability is a product over the rows of the column: rows drawn at random
decide it, and no sum is computed.

Proof: docs/proofs/pending_moves.md.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from .arguments import Bins, Compressed, Floats, Followed, Held, Integers, Pending, Terms, Whole, Words
from .bins import BINS, LOWEST, bin_of, carry, chance_of, propose, weigh
from .compiled import compiled, part
from .draws import WORD, WORDS_A_COIN, coin
from .formulas import on_grid, slope, term, within
from .frank_wolfe_lazy import outlook, sort
from .pending_moves import UNIT, add_line, add_pairs, bounds_of, expand, flush, refer, replay, weight_of

DONE, SHORT, LACKS, STALE, FULL = range(5)
"""Why steps stop: all are taken, words run out, a column is lacking, the reference is too far away, or there
is no space for another pending move."""

_1 = np.uint64(1)
_63, _WINDOW = np.uint64(63), np.uint64(6)
_SURE, _BELOW_1 = 2.0**-40, 1 - 2.0**-53
_MOST_TRIES, _SHARE = 8.0, 0.5
_LARGEST, _WIDEST = 2.0**28, 128.0
_SMALL, _NARROW = 2.0**-4, 2.0**-2
"""Rows decide on a column that is no head if no entry has more scales than this, and its weight has more."""
_ALL = np.uint64((1 << 64) - 1)


@part
def _term(i: Whole, entry: float, factor: float, rows: Floats, pending: Pending, terms: Terms) -> float:
    """The term of row i in the sum of a column, at its true margin."""
    scale = rows[i, 3]
    z = factor * replay(i, rows, pending) + (terms.base if scale > 0 else 0.0)
    return term(slope(terms.form, z, rows[i, 2]) * scale * entry, terms.cut.limit, terms.cut.rounding)


@compiled(nogil=True)
def _true_sum(
    j: Whole, factor: float, columns: Compressed, rows: Floats, pending: Pending, terms: Terms
) -> float:
    """The sum of column j at the true margins."""
    total = 0.0
    for e in range(columns.indptr[j], columns.indptr[j + _1]):
        entry = np.float64(columns.entries[e])
        total += _term(np.uint64(columns.indices[e]), entry, factor, rows, pending, terms)
    return total


@part
def _uniform(words: Words, at: int, count: np.uint64) -> tuple[int, np.uint64]:
    """The next word, and a number below ``count``; ``count`` itself if no words are left for a coin."""
    while at + 1 + WORDS_A_COIN <= words.size:
        word = words[at]
        number = word % count
        at += 1
        if word - number <= _ALL - count + _1:
            return at, number
    return at, count


@compiled(nogil=True)
def _none_strikes(
    words: Words, at: int, j: Whole, sign: float, factor: float, columns: Compressed, rows: Floats,
    pending: Pending, terms: Terms, inverse: float, head: bool, work: Integers,
) -> tuple[int, int]:  # fmt: skip
    """The next word, and 1 with probability exp(-sum of all rows' excesses over the scale), else 0; or -1.

    A row's excess is how far the upper bound of what it adds to the score is above that. The sum of all is
    length * largest * mean of q, with q = excess / largest in [0, 1] of a row drawn uniformly. For a rate of
    at most 1, exp(-rate * mean of q) is the probability that the first k for which a coin of probability
    rate / k * q fails is odd. The coin of q is two: no excess is larger than twice the error of the row,
    which is known without its margin. What a row adds to a column that is no head is 0 up to its weight.
    """
    first, length = np.uint64(columns.indptr[j]), np.uint64(columns.indptr[j + _1] - columns.indptr[j])
    largest = pending.most[6] if head else 2.0 * UNIT * weight_of(pending.largest, pending)
    rate = np.float64(length) * largest * inverse
    pieces = max(math.ceil(rate), 1)
    rate /= pieces
    for _ in range(pieces):
        odd, k = True, 1.0
        while True:
            if at + WORDS_A_COIN > words.size:
                return at, -1
            if rate < k:
                at, up = coin(words, at, rate / k)
                if not up:
                    break
            at, number = _uniform(words, at, length)
            if number == length:
                return at, -1
            i, entry = np.uint64(columns.indices[first + number]), np.float64(columns.entries[first + number])
            work[2] += 1
            value, error = np.int64(0), weight_of(rows[i, 3] * entry, pending)
            if head:
                value, error = bounds_of(i, entry, rows, pending)
                pending.counts[2] += 1
            at, up = coin(words, at, min(2.0 * UNIT * error / largest, _BELOW_1))
            if not up:
                break
            if at + WORDS_A_COIN > words.size:
                return at, -1
            score = -sign * _term(i, entry, factor, rows, pending, terms)
            excess = (error - np.int64(sign) * value) * UNIT - score
            at, up = coin(words, at, within(excess / (2.0 * UNIT * error), 0.0, _BELOW_1))
            if not up:
                break
            odd, k = not odd, k + 1.0
        if not odd:
            return at, 0
    return at, 1


@part
def _upper(j: Whole, sign: float, columns: Compressed, followed: Followed, pending: Pending) -> float:
    """Upper bound of the score of a vertex of column j: the sum of those of what its rows add."""
    slack = followed.sums[j, 1]
    if slack < 0:
        head = np.uint64(-1.0 - slack)
        return float((pending.values[head, 1] - np.int64(sign) * pending.values[head, 0]) * UNIT)
    total = np.int64(0)
    for e in range(columns.indptr[j], columns.indptr[j + _1]):
        scale = followed.rows[np.uint64(columns.indices[e]), 3]
        total += weight_of(scale * np.float64(columns.entries[e]), pending)
    return float(total * UNIT)


@part
def _keep(
    words: Words, at: int, j: Whole, k: int, sign: float, factor: float, columns: Compressed,
    followed: Followed, pending: Pending, bins: Bins, terms: Terms, work: Integers,
) -> tuple[int, int]:  # fmt: skip
    """The next word, and whether a vertex proposed from bin k is kept; or -1. Rows drawn at random decide."""
    line, rows, slack = bins.line, followed.rows, followed.sums[j, 1]
    if at + 2 * WORDS_A_COIN > words.size:
        return at, -1
    upper = _upper(j, sign, columns, followed, pending)
    chance = chance_of(upper, k, line)
    if chance < 1:
        at, up = coin(words, at, chance)
        if not up:
            return at, 0
    head = slack < 0
    if head and pending.most[6] * line[1] >= 1:
        work[1] += 1
        work[2] += columns.indptr[j + _1] - columns.indptr[j]
        score = -sign * _true_sum(j, factor, columns, rows, pending, terms)
        chance = math.exp((score - upper) * line[1])
        if chance >= 1:
            return at, 1
        at, up = coin(words, at, chance)
        return at, 1 if up else 0
    return _none_strikes(words, at, j, sign, factor, columns, rows, pending, terms, line[1], head, work)


@part
def _select(
    words: Words, at: int, top: int, factor: float, columns: Compressed, held: NDArray[np.uint8],
    followed: Followed, pending: Pending, bins: Bins, terms: Terms, work: Integers,
) -> tuple[int, np.int64, int]:  # fmt: skip
    """The next word, the vertex selected, and DONE; or why there is none."""
    line, rows = bins.line, followed.rows
    small = weight_of(pending.largest, pending) * UNIT * line[1] < _SMALL
    while True:
        at, k, member = propose(words, at, top, 2, bins)
        if member < 0:
            return at, np.int64(0), SHORT
        j = np.uint64(bins.perm[bins.start[k] + (member >> 1)])
        sign = 1.0 if member & 1 else -1.0
        vertex = 2 * np.int64(j) + (member & 1)
        work[0] += 1
        slack = followed.sums[j, 1]
        if slack < 0 or (small and slack * line[1] > _NARROW):
            if not held[j]:
                return at, vertex, LACKS
            at, kept = _keep(words, at, j, k, sign, factor, columns, followed, pending, bins, terms, work)
            if kept < 0:
                return at, vertex, SHORT
            if kept:
                return at, vertex, DONE
            continue
        likely, width = outlook(j, k, sign, factor, followed, pending.leading, line)
        # The coin's first digits decide if they decide for every possible score.
        if words[at] < np.uint64(min(math.exp(likely - width), 1.0) * (1 - _SURE) * WORD):
            return at + 1, vertex, DONE
        most = math.exp(likely + width) * (1 + _SURE)
        if most < 1 and words[at] > np.uint64(most * WORD):
            at += 1
            continue
        if not held[j]:
            return at, vertex, LACKS
        work[1] += 1
        work[2] += columns.indptr[j + _1] - columns.indptr[j]
        score = on_grid(-sign * _true_sum(j, factor, columns, rows, pending, terms), line[0])
        chance = chance_of(score, k, line)
        if chance >= 1:
            return at + 1, vertex, DONE
        at, up = coin(words, at, chance)
        if up:
            return at, vertex, DONE


@part
def _move_head(head: Whole, push: float, pending: Pending) -> None:
    """Write down a move of a head."""
    count = np.uint64(pending.counts[0])
    pending.which[count], pending.pushes[count] = head, push
    pending.masks[head, count >> _WINDOW] |= _1 << (count & _63)
    pending.coefs[head, 1] += push
    pending.counts[0] += 1


@part
def _mirror(pending: Pending) -> None:
    """Set what rows do not fill: of two active heads the half of the block where the first comes last."""
    active, block = pending.active, pending.block
    for k in range(active.size):
        if active[k]:
            for j in range(k):
                if active[j]:
                    block[0, k, j], block[1, k, j] = block[0, j, k], block[1, j, k]


@part
def _add_row(i: Whole, sign: int, rows: Floats, pending: Pending) -> None:
    add_line(i, sign, rows, pending, pending.sums)
    add_pairs(i, np.float64(sign), 1, rows, pending)


@compiled(nogil=True)
def _move_rows(
    j: Whole, push: float, columns: Compressed, rows: Floats, pending: Pending, terms: Terms, work: Integers
) -> None:
    """Move the rows of a light column, and what they add to the heads."""
    level, begins = pending.counts[1], pending.leading.begins
    pending.counts[3] += np.int64(columns.indptr[j + _1] - columns.indptr[j])
    for e in range(columns.indptr[j], columns.indptr[j + _1]):
        i = np.uint64(columns.indices[e])
        move = push * (rows[i, 3] * np.float64(columns.entries[e]))
        rows[i, 0] = replay(i, rows, pending) + move
        rows[i, 1] = np.float64(pending.counts[0])
        if level > 0 and begins[i] < begins[i + _1]:
            work[3] += begins[i + _1] - begins[i]
            _add_row(i, -1, rows, pending)
            shifted = pending.most[7] * move
            refer(i, rows[i, 4] + shifted, rows[i, 7] + shifted, rows, terms)
            _add_row(i, 1, rows, pending)
            pending.most[1] = max(pending.most[1], abs(rows[i, 7]))
    if level > 0:
        flush(1, pending, pending.block)
        _mirror(pending)


@part
def _too_far(p: int, pending: Pending, line: Floats) -> bool:
    """Return whether bounds let a selection take too many tries, or a head moved that is not active."""
    inverse, reference = line[1], line[2]
    upper, lower = 0.0, p * math.exp(-reference * inverse)
    longest = np.int64(0)
    for h in range(pending.values.shape[0]):
        longest = max(longest, pending.lengths[h])
    if not longest * pending.most[6] < _LARGEST:
        return True  # sums may have overflowed
    for h in range(pending.values.shape[0]):
        centre, error = abs(pending.values[h, 0] * UNIT), pending.values[h, 1] * UNIT
        if error * inverse > _WIDEST:
            return True
        upper += math.exp((centre + error - reference) * inverse)
        lower += math.exp((centre - reference) * inverse)
        if pending.moved[h, 1] != 0 and not pending.active[h]:
            return True
    return not upper <= _MOST_TRIES * lower


@part
def _lift(pending: Pending, bins: Bins, changed: int) -> int:
    """Move the heads to the bins of their bounds; ``changed`` as in ``frank_wolfe_lazy``."""
    lines, grid, inverse, reference = pending.leading.lines, bins.line[0], bins.line[1], bins.line[2]
    for h in range(lines.shape[0]):
        centre, width = pending.values[h, 0] * UNIT, pending.values[h, 1] * UNIT + grid
        bound = abs(centre) + width
        was, new = bin_of(lines[h, 3], inverse, reference), bin_of(bound, inverse, reference)
        lines[h, 0], lines[h, 2], lines[h, 3] = centre, width, bound
        if was != new and changed < 2:
            changed = 2 if new == BINS else 1
            if new < BINS:
                carry(pending.leading.columns[h], was, new, bins)
    return changed


@compiled(nogil=True)
def run(
    words: Words, at: int, done: int, choices: Integers, pushes: Floats, factors: Floats, extracted: Held,
    terms: Terms, followed: Followed, pending: Pending, bins: Bins, work: Integers,
) -> tuple[int, int, int]:  # fmt: skip
    """Select and move until all choices are made; the next word, the next choice, and why it stops.

    As ``steps.run``, but it also stops where the rows need a new reference, or must be moved.
    """
    table, held = extracted.table, extracted.columns
    columns, rows = table.columns, followed.rows
    p = followed.sums.shape[0]
    _mirror(pending)
    expand(factors[done], pending)
    changed, top = _lift(pending, bins, 1), 0
    for t in range(done, choices.size):
        if changed == 2 or bins.start[LOWEST] == p:
            sort(followed, pending.leading, bins)
            changed = 1
        if changed > 0:
            top, changed = weigh(bins), 0
        looked = pending.counts[2]
        following, vertex, why = _select(
            words, at, top, factors[t], columns, held, followed, pending, bins, terms, work
        )
        j = np.uint64(vertex >> 1)
        slack = followed.sums[j, 1]
        if why == DONE and slack >= 0 and not held[j]:
            why = LACKS
        if why != DONE:
            pending.counts[2] = looked
            return at, t, why
        at, choices[t] = following, vertex
        push = pushes[t] if vertex & 1 else -pushes[t]
        work[4] += columns.indptr[j + _1] - columns.indptr[j]
        if slack < 0:
            _move_head(np.uint64(-1.0 - slack), push, pending)
        else:
            _move_rows(j, push, columns, rows, pending, terms, work)
        if t + 1 == choices.size:
            break
        if pending.counts[1] == 0 or pending.counts[2] > _SHARE * rows.shape[0]:
            return at, t + 1, STALE
        expand(factors[t + 1], pending)
        if _too_far(p, pending, bins.line):
            return at, t + 1, STALE
        if pending.counts[0] == pending.which.size:
            return at, t + 1, FULL
        changed = _lift(pending, bins, changed)
    return at, choices.size, DONE
