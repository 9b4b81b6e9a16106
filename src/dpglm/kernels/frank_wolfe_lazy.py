"""Frank-Wolfe steps over a sparse table: exact selections that read few records.

The margin of row i is ``factor * v_i`` plus the intercept's part, with one factor for all rows that a step
shrinks. Sums of columns are kept for *followed* margins, which may lag behind the true ones by a slack; the
bins of the sampler hold upper bounds of all scores, so a candidate is proposed often enough for any lag,
and its true sum is computed only if the coin that accepts or rejects it depends on it. The sums of the
*leading columns*, those of large weight, are linear models in the factor, with an error of second order. A
*calendar* says which rows to look at after which step. The state is described in ``arguments``.

Proof: docs/proofs/vertex_scores.md, which gives the reasons of the constants below.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from .arguments import (
    Bins,
    Calendar,
    Compressed,
    Entries,
    Floats,
    Followed,
    Form,
    Held,
    Integers,
    Leading,
    Terms,
    Whole,
    Words,
)
from .bins import BINS, LOWEST, ORIGIN, add_up, bin_of, carry, chance_of, move_back, propose, weigh
from .compiled import compiled, part
from .draws import WORD, coin
from .formulas import curvature, on_grid, slope, term
from .prefetch import AT_ONCE, PROPOSALS, request_entries, request_proposed, request_rows
from .simd import request_line

_1, _2 = np.uint64(1), np.uint64(2)


def some_columns(table: Compressed, columns: Words, n: int) -> tuple[Words, Entries]:
    """By rows, where each begins and (number, entry) of some columns of a table that is stored by columns.

    NumPy has large arrays in large pages of memory, which compiled code would not: steps read them at random.
    """
    begins = np.zeros(n + 1, dtype=np.uint64)
    _count(table, columns, begins)
    pairs = np.empty((int(begins[n]), 2), dtype=table.entries.dtype)
    _fill(table, columns, begins, pairs)
    return begins, pairs


@compiled(nogil=True)
def _count(table: Compressed, columns: Words, begins: Words) -> None:
    """Turn zeros into where the entries of each row begin."""
    indptr, indices = table.indptr, table.indices
    for j in columns:
        for e in range(indptr[j], indptr[j + _1]):
            begins[indices[e] + _1] += _1
    for i in range(np.uint64(begins.size - 1)):
        begins[i + _1] += begins[i]


@compiled(nogil=True)
def _fill(table: Compressed, columns: Words, begins: Words, pairs: Entries) -> None:
    indptr, indices, entries = table
    # Each beginning moves to the end of its row, and back.
    for number in range(columns.size):
        j = columns[number]
        for e in range(indptr[j], indptr[j + _1]):
            at = begins[indices[e]]
            pairs[at, 0], pairs[at, 1] = number, entries[e]
            begins[indices[e]] = at + _1
    for i in range(begins.size - 1, 0, -1):
        begins[i] = begins[i - 1]
    begins[0] = 0


@part
def _line_of(form: Form, here: float, part: float, shift: float, y: float, v: float) -> tuple[float, float]:
    """(constant, multiple of the factor): linear model of a slope, ``here`` at the present factor."""
    bend = curvature(form, part + shift, y, here)
    return here - bend * part, bend * v


@part
def _add(i: Whole, constant: float, multiple: float, scale: float, leading: Leading) -> None:
    """Add a linear model times the entries of row i."""
    lines, begins, entries = leading.lines, leading.begins, leading.entries
    for e in range(begins[i], begins[i + _1]):
        k, x = np.uint64(np.int32(entries[e, 0])), np.float64(entries[e, 1]) * scale
        lines[k, 0] += constant * x
        lines[k, 1] += multiple * x


@compiled(nogil=True)
def start_leading(rows: Floats, leading: Leading, terms: Terms) -> None:
    """Set the models of the leading columns, at a factor of 1."""
    form, lines = terms.form, leading.lines
    lines[:, 0], lines[:, 1], leading.drift[0] = 0.0, 0.0, 0.0
    for i in range(np.uint64(rows.shape[0])):
        v, y, scale = rows[i, 0], rows[i, 2], rows[i, 3]
        shift = terms.base if scale > 0 else 0.0
        rows[i, 4], rows[i, 5], rows[i, 7] = v, slope(form, v + shift, y), v
        constant, multiple = _line_of(form, rows[i, 5], v, shift, y, v)
        _add(i, constant, multiple, scale, leading)


@part
def lead(i: Whole, v: float, part: float, rows: Floats, leading: Leading, terms: Terms) -> None:
    """Update the models to row i, whose v becomes ``v`` and whose part of the margin is ``part``."""
    form, y, scale = terms.form, rows[i, 2], rows[i, 3]
    shift = terms.base if scale > 0 else 0.0
    old_constant, old_multiple = _line_of(form, rows[i, 5], rows[i, 4], shift, y, rows[i, 7])
    rows[i, 4], rows[i, 5], rows[i, 7] = part, slope(form, part + shift, y), v
    constant, multiple = _line_of(form, rows[i, 5], part, shift, y, v)
    _add(i, constant - old_constant, multiple - old_multiple, scale, leading)


DUE, CHUNK = 12, 15
_SURE = 2.0**-40


def empty_calendar(factors: Floats, links: NDArray[np.int32]) -> Calendar:
    """An uninitialised schedule for steps with these factors, with space for three lists of all rows."""
    lists, spare = np.empty((len(factors), 3), dtype=np.int32), np.empty(2, dtype=np.int64)
    chunks = 3 * len(links) // CHUNK + 2 * len(factors) + 16
    pool, coming = np.empty((chunks, 1 + CHUNK), dtype=np.int32), np.empty(PROPOSALS, dtype=np.int64)
    return Calendar(factors, links, lists, pool, spare, coming)


@part
def until(part: float, v: float, slack: float) -> float:
    """The factor below which factor * v differs from ``part`` by more than a slack; 0 if it never does."""
    if v == 0 or (part > 0) != (v > 0) or abs(part) <= slack:
        return 0.0
    return (abs(part) - slack) / abs(v)


@part
def note(i: Whole, step: Whole, calendar: Calendar) -> None:
    """Write row i into the list of a step. There must be a free chunk."""
    lists, pool, spare = calendar.lists, calendar.pool, calendar.spare
    if lists[step, 0] < 0 or lists[step, 1] == CHUNK:
        chunk = spare[0]
        spare[0] = pool[chunk, 0]
        spare[1] -= 1
        pool[chunk, 0] = lists[step, 0]
        lists[step, 0], lists[step, 1] = chunk, 0
    lists[step, 1] += 1
    lists[step, 2] += 1
    pool[lists[step, 0], lists[step, 1]] = i
    calendar.links[i, DUE] = step


@part
def schedule(i: Whole, least: float, step: int, calendar: Calendar) -> None:
    """Schedule row i for the first step with a factor below ``least``; now it is ``factors[step]``."""
    factors, due = calendar.factors, calendar.links[i, DUE]
    last = factors.size - 1
    least *= 1 + _SURE
    if step == last or factors[last] >= least:
        return
    if due > 0 and factors[due - 1] >= least:
        return
    low, high = step, last  # factors[low] >= least > factors[high], unless it is due at once
    while high - low > 1:
        middle = (low + high) // 2
        if factors[middle] < least:
            high = middle
        else:
            low = middle
    note(i, high, calendar)


@part
def clear(calendar: Calendar) -> None:
    """Make all lists empty and all chunks free."""
    lists, pool, spare = calendar.lists, calendar.pool, calendar.spare
    lists[:, 0], lists[:, 1], lists[:, 2] = -1, 0, 0
    for chunk in range(pool.shape[0]):
        pool[chunk, 0] = chunk + 1
    pool[pool.shape[0] - 1, 0] = -1
    spare[0], spare[1] = 0, pool.shape[0]


@compiled(nogil=True)
def schedule_all(rows: Floats, slack: float, leading_slack: float, calendar: Calendar) -> None:
    """Schedule all rows: those with a margin move with the factor from the first step on."""
    clear(calendar)
    for i in range(np.uint64(rows.shape[0])):
        calendar.links[i, DUE] = 0
        v = rows[i, 0]
        least = max(until(rows[i, 1], v, slack), until(rows[i, 4], v, leading_slack))
        if least > 0:
            schedule(i, least, 0, calendar)


@compiled(nogil=True)
def write_anew(calendar: Calendar) -> None:
    """Write the schedule again, without rows that have become due at an earlier step."""
    clear(calendar)
    for i in range(np.uint64(calendar.links.shape[0])):
        if calendar.links[i, DUE] > 0:
            note(i, calendar.links[i, DUE], calendar)


_ABOVE = 0.0625

LACKS = np.int64(-2)


@compiled(nogil=True)
def widen(bend: float, least: float, rounding: float, most: float, grid: float, sums: Floats) -> None:
    """Replace the weight beside each sum by its slack: weight * bend + entries * rounding + grid.

    A column has at most weight / least entries, and at most ``most``.
    """
    each = rounding / least
    for j in range(np.uint64(sums.shape[0])):
        weight = sums[j, 1]
        added = min(weight * each, most * rounding) if weight > 0 else 0.0
        sums[j, 1] = weight * bend + added + grid


@part
def _bound(j: Whole, followed: Followed, leading: Leading) -> float:
    """An upper bound of the absolute sum of column j."""
    slack = followed.sums[j, 1]
    if slack >= 0:
        return float(abs(followed.sums[j, 0]) + slack)
    return float(leading.lines[np.int64(-1.0 - slack), 3])


@compiled(nogil=True)
def sort(followed: Followed, leading: Leading, bins: Bins) -> None:
    """Put every column into the bin of an upper bound of its absolute sum.

    The largest bound is just below the end of bin ORIGIN - 1; or, where there are leading columns, less than
    a bin farther down. Then a bin ends just above 0, where the scores of most columns are, so that few of
    these are proposed in vain. Bounds are computed twice: to write them down would take longer.
    """
    columns, inverse, start = range(np.uint64(followed.sums.shape[0])), bins.line[1], bins.start
    largest = 0.0
    for j in columns:
        largest = max(largest, _bound(j, followed, leading))
    reference = largest + _ABOVE / inverse
    if leading.slack < math.inf:  # heads of pending moves have no slack
        reference = (math.ceil(largest * inverse) + _ABOVE) / inverse
    bins.line[2] = reference
    start[:] = 0
    for j in columns:
        k = np.int64(bin_of(_bound(j, followed, leading), inverse, reference))
        bins.position[j] = k
        start[k + 1] += 1
    add_up(start)
    for j in columns:
        k = np.int64(bins.position[j])
        bins.perm[start[k]] = j
        bins.position[j] = start[k]
        start[k] += 1
    move_back(start)


@part
def _true_sum(j: Whole, factor: float, columns: Compressed, rows: Floats, terms: Terms) -> float:
    """The sum of column j at the true margins."""
    limit, rounding = terms.cut
    total = 0.0
    for e in range(columns.indptr[j], columns.indptr[j + _1]):
        i = columns.indices[e]
        scale = rows[i, 3]
        z = factor * rows[i, 0] + (terms.base if scale > 0 else 0.0)
        total += term(slope(terms.form, z, rows[i, 2]) * scale * columns.entries[e], limit, rounding)
    return total


@part
def _follow(
    i: Whole, factor: float, table: Compressed, followed: Followed, bins: Bins, terms: Terms, changed: int
) -> int:
    """Update the sums to the true margin of row i.

    ``changed`` is, and becomes, 1 if a bin has changed, 2 if all must be sorted anew: then no bin changes.
    """
    indptr, indices, entries = table
    rows, sums = followed.rows, followed.sums
    limit, rounding = terms.cut
    inverse, reference = bins.line[1], bins.line[2]
    scale, y = rows[i, 3], rows[i, 2]
    shift = terms.base if scale > 0 else 0.0
    part = factor * rows[i, 0]
    old = slope(terms.form, rows[i, 1] + shift, y) * scale
    new = slope(terms.form, part + shift, y) * scale
    rows[i, 1] = part
    loaded = 0.0
    # A short loop of loads fills the cache for the next loop.
    for e in range(indptr[i], indptr[i + _1]):
        loaded += sums[indices[e], 0]
    for e in range(indptr[i], indptr[i + _1]):
        j, x = indices[e], np.float64(entries[e])
        slack = sums[j, 1]
        if slack < 0:
            continue
        before = sums[j, 0]
        after = before + (term(new * x, limit, rounding) - term(old * x, limit, rounding))
        sums[j, 0] = after
        was = bin_of(abs(before) + slack, inverse, reference)
        now = bin_of(abs(after) + slack, inverse, reference)
        if was != now and changed < 2:
            if now == BINS:
                changed = 2
            else:
                carry(j, was, now, bins)
                changed = 1
    # Always the first: the compiler would drop loads that nothing uses.
    return changed if loaded < math.inf else 2


@part
def outlook(
    j: Whole, k: int, sign: float, factor: float, followed: Followed, leading: Leading, line: Floats
) -> tuple[float, float]:
    """About the logarithm of the chance of a vertex proposed from bin k, and how far it may be off."""
    centre, width = followed.sums[j, 0], followed.sums[j, 1]
    if width < 0:
        h = np.int64(-1.0 - width)
        centre, width = leading.lines[h, 0] + factor * leading.lines[h, 1], leading.lines[h, 2]
    return (-sign * centre - line[2]) * line[1] - (k + 1 - ORIGIN), width * line[1]


@part
def _select(
    words: Words, at: int, top: int, factor: float, columns: Compressed, held: NDArray[np.uint8],
    followed: Followed, leading: Leading, bins: Bins, terms: Terms, work: Integers,
) -> tuple[int, np.int64]:  # fmt: skip
    """The next word and the vertex selected: -1 if words, LACKS if a column is not there."""
    line = bins.line
    while True:
        at, k, member = propose(words, at, top, 2, bins)
        if member < 0:
            return at, member
        j = np.uint64(bins.perm[bins.start[k] + (member >> 1)])
        sign = 1.0 if member & 1 else -1.0
        vertex = 2 * np.int64(j) + (member & 1)
        likely, width = outlook(j, k, sign, factor, followed, leading, line)
        work[0] += 1
        # The coin's first digits decide if they decide for every possible score.
        if words[at] < np.uint64(min(math.exp(likely - width), 1.0) * (1 - _SURE) * WORD):
            return at + 1, vertex
        most = math.exp(likely + width) * (1 + _SURE)
        if most < 1 and words[at] > np.uint64(most * WORD):
            at += 1
            continue
        if not held[j]:
            return at, LACKS
        work[1] += 1
        work[2] += columns.indptr[j + _1] - columns.indptr[j]
        score = on_grid(-sign * _true_sum(j, factor, columns, followed.rows, terms), line[0])
        chance = chance_of(score, k, line)
        if chance >= 1:
            return at + 1, vertex
        at, up = coin(words, at, chance)
        if up:
            return at, vertex


@part
def _visit(
    i: Whole, v: float, now: int, table: Compressed, terms: Terms, followed: Followed, leading: Leading,
    bins: Bins, calendar: Calendar, work: Integers, changed: int,
) -> int:  # fmt: skip
    """Set v of row i, update models and sums where they lag too far, and schedule the next look at it.

    ``changed`` as in ``_follow``.
    """
    rows, factor = followed.rows, calendar.factors[now]
    part, least = factor * v, 0.0
    if leading.lines.shape[0]:
        if v != rows[i, 7] or abs(part - rows[i, 4]) > leading.slack:
            work[3] += leading.begins[i + _1] - leading.begins[i]
            lead(i, v, part, rows, leading, terms)
        least = until(rows[i, 4], v, leading.slack)
    rows[i, 0] = v
    if abs(part - rows[i, 1]) > followed.slack:
        work[3] += table.indptr[i + _1] - table.indptr[i]
        changed = _follow(i, factor, table, followed, bins, terms, changed)
    least = max(least, until(rows[i, 1], v, followed.slack))
    if least > 0:
        schedule(i, least, now, calendar)
    return changed


@part
def _move_quietly(
    e: np.uint64, last: np.uint64, push: float, factor: float, columns: Compressed, followed: Followed,
    leading: Leading,
) -> np.uint64:  # fmt: skip
    """Set v of rows that hold the feature, from entry e on, up to one that may need more than that.

    That one is where sums or models lag too far or might as the factor falls (see ``_visit``), or where the
    models would have left out too much.
    """
    rows, slack, drift, rate = followed.rows, followed.slack, leading.drift[0], leading.drift[1] * abs(push)
    for place in range(e, last):
        request_line(rows, np.uint64(columns.indices[min(place + AT_ONCE, last - _1)]))
        i = np.uint64(columns.indices[place])
        x = rows[i, 3] * np.float64(columns.entries[place])
        v, total = rows[i, 0] + push * x, drift + rate * abs(x)
        lags = abs(rows[i, 1]) > slack or abs(factor * v - rows[i, 1]) > slack
        lags |= abs(rows[i, 4]) > leading.slack or abs(factor * v - rows[i, 4]) > leading.slack
        if lags or not total * factor <= 1.0:
            last = np.uint64(place)
            break
        rows[i, 0], drift = v, total
    leading.drift[0] = drift
    return last


@part
def _lift(factor: float, leading: Leading, bins: Bins, changed: int) -> int:
    """Move the leading columns to the bins of their bounds at a factor; ``changed`` as in ``_follow``."""
    lines, inverse, reference = leading.lines, bins.line[1], bins.line[2]
    for h in range(lines.shape[0]):
        bound = abs(lines[h, 0] + factor * lines[h, 1]) + lines[h, 2]
        was, new = bin_of(lines[h, 3], inverse, reference), bin_of(bound, inverse, reference)
        lines[h, 3] = bound
        if was != new and changed < 2:
            changed = 2 if new == BINS else 1
            if new < BINS:
                carry(leading.columns[h], was, new, bins)
    return changed


@compiled(nogil=True)
def run(
    words: Words, at: int, done: int, choices: Integers, pushes: Floats, extracted: Held, terms: Terms,
    followed: Followed, leading: Leading, bins: Bins, calendar: Calendar, work: Integers,
) -> tuple[int, int, bool]:  # fmt: skip
    """Select and move until all choices are made; the next word, the next choice, and if a column is lacking.

    It stops before the first choice for which words run out, or for which a column is lacking that is not
    ``extracted``: with more words or columns it goes on from there.

    Choice 2 j + 1 is the vertex along +e_j, choice 2 j its opposite. Step t multiplies all coefficients by
    factors[t + 1] / factors[t] and adds pushes[t] * factors[t + 1] to coefficient j, with the sign of its
    vertex. ``work`` counts proposals, true sums, entries read for these, entries read to follow rows, and
    entries of the features selected.
    """
    table, held = extracted.table, extracted.columns
    columns, rows = table.columns, followed.rows
    links, lists, pool, spare = calendar.links, calendar.lists, calendar.pool, calendar.spare
    changed, top, seen = 1, 0, at
    for t in range(done, choices.size):
        if changed == 2:
            sort(followed, leading, bins)
        if changed > 0:
            top, changed = weigh(bins), 0
        if at >= seen:
            seen = request_proposed(words, at, top, bins, extracted, followed, leading, calendar.coming)
        following, vertex = _select(
            words, at, top, calendar.factors[t], columns, held, followed, leading, bins, terms, work
        )
        if vertex < 0 or not held[vertex >> 1]:
            return at, t, vertex != -1
        at, choices[t] = following, vertex
        j, now = np.uint64(vertex >> 1), t + 1
        push = pushes[t] if vertex & 1 else -pushes[t]
        first, last = np.uint64(columns.indptr[j]), np.uint64(columns.indptr[j + _1])
        work[4] += np.int64(last - first)
        # Each row looked at takes a place in a chunk at most, and each list begins a chunk at most.
        if spare[1] <= (np.int64(last - first) + lists[now, 2]) // CHUNK + calendar.factors.size:
            write_anew(calendar)
        e = first
        chunk, place, filled = lists[now, 0], np.int64(0), np.int64(lists[now, 1])
        # First the rows that hold the feature, then those that are due.
        while True:
            if e < last:
                e = _move_quietly(e, last, push, calendar.factors[now], columns, followed, leading)
            if e < last:
                if (e - first) % AT_ONCE == 0:
                    near, far = min(e + AT_ONCE, last), min(e + _2 * AT_ONCE, last)
                    request_rows(columns.indices, e if e == first else near, far, rows, leading)
                    request_entries(columns.indices, e, near, leading)
                i = np.uint64(columns.indices[e])
                v = rows[i, 0] + push * (rows[i, 3] * np.float64(columns.entries[e]))
                e += _1
            else:
                if place == filled and chunk >= 0 and place > 0:
                    following = pool[chunk, 0]
                    pool[chunk, 0] = spare[0]
                    spare[0], spare[1] = chunk, spare[1] + 1
                    chunk, place, filled = following, np.int64(0), np.int64(CHUNK)
                if chunk < 0:
                    break
                if place == 0:
                    request_rows(pool[chunk], _1, np.uint64(filled) + _1, rows, leading)
                    request_entries(pool[chunk], _1, np.uint64(filled) + _1, leading)
                place += 1
                i = np.uint64(pool[chunk, place])
                if links[i, DUE] != now:
                    continue
                links[i, DUE] = 0
                v = rows[i, 0]
            changed = _visit(i, v, now, table.rows, terms, followed, leading, bins, calendar, work, changed)
        changed = _lift(calendar.factors[now], leading, bins, changed)
        if bins.start[LOWEST] == followed.sums.shape[0]:
            changed = 2
    if changed == 2:
        sort(followed, leading, bins)
    return at, choices.size, False


_BELOW_1 = 1 - 2.0**-53


@compiled(nogil=True)
def foresee(
    words: Words, at: int, steps: int, factor: float, followed: Followed, leading: Leading, bins: Bins,
    wanted: NDArray[np.uint8],
) -> int:  # fmt: skip
    """Mark the columns that are proposed until about ``steps`` steps have accepted one, or words run out.

    A proposal depends on words and bins only, and a coin takes one word but for one time in 2**64: so the
    proposals are those of the steps until a bin changes. How many they accept is a guess, for it depends on
    sums that are not computed here. Returns this number.
    """
    accepted, top = 0, weigh(bins)
    while accepted < steps:
        at, k, member = propose(words, at, top, 2, bins)
        if member < 0:
            break
        j = np.uint64(bins.perm[bins.start[k] + (member >> 1)])
        wanted[j] = 1
        likely, _ = outlook(j, k, 1.0 if member & 1 else -1.0, factor, followed, leading, bins.line)
        accepted += words[at] < np.uint64(min(math.exp(likely), _BELOW_1) * WORD)
        at += 1
    return accepted
