"""Compiled Frank-Wolfe steps over a sparse table: exact selections that read few records.

The margin of row i is ``factor * v_i`` plus the intercept's part, with one factor for all rows that a step
shrinks. Sums of columns are kept for *followed* margins, which may lag behind the true ones by a slack; the
bins of the sampler hold upper bounds of all scores, so a candidate is proposed often enough whatever the lag,
and its true sum is computed only if a coin that decides about it needs to know. Columns that weigh much, the
*heads*, are followed to first order in the factor, which leaves an error of second order.

Proof: docs/proofs/vertex_scores.md, which gives the reasons of the constants below.

Arrays, of n rows and p columns
-------------------------------
rows : (n, 8) a cache line for each row: v_i, the followed part of its margin, target, factor of its entries,
    the part that heads have followed and the slope there.
links : (n, 16) the same memory as integers. Number DUE is the step at which a row must be looked at again, 0
    for none.
calendar : (steps + 1, 3) for each step the first chunk of its list (-1 for none), how many rows that chunk
    has, and how many there are in all. A list may hold rows that have become due at an earlier step since.
pool : (chunks, 1 + CHUNK) the next chunk (-1 for none), and rows.
spare : the first chunk that is free, and how many are.
sums : (p, 2) sum at the followed margins and its slack; a slack of -1 - k marks head k.
heads : (h, 4) constant, part that the factor multiplies, slack, bound that its bin stands for.
perm, position, start : members of the bins, as in the sampler of the exponential mechanism.
line : grid and 1 / scale of the mechanism, reference of the bins, and a place for what is read ahead.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit

# References are not counted: no array is made here, and counting would make steps take ten times as long.
_OPTIONS: dict[str, Any] = {"error_model": "numpy", "nogil": True, "_nrt": False}

BINS = 192
ORIGIN = 128
LOWEST = 64
_DECAY = np.array([math.exp(-k) for k in range(BINS)])
_WORD = 2.0**64
_EXACT = 2.0**53
_COIN = 17
_ALL = np.uint64((1 << 64) - 1)
_1, _AHEAD = np.uint64(1), np.uint64(16)
DUE, CHUNK = 12, 15
_ABOVE = 0.0625
_SURE = 2.0**-40


@njit(forceinline=True, **_OPTIONS)
def slope(form: int, parameter: float, z: float, y: float) -> float:
    """The derivative of the loss with that form."""
    if form == 0:
        return z - y
    if form == 1:
        return -y / (1.0 + math.exp(min(y * z, 700.0)))
    if form == 2:
        return min(max(z - y, -parameter), parameter)
    if form == 3:
        return -y * min(max((1.0 - y * z) / parameter, 0.0), 1.0)
    if form == 5:
        return -y if y * z < 1.0 else 0.0
    if form == 6:
        return math.copysign(1.0, z - y) if abs(z - y) > parameter else 0.0
    return math.exp(min(z, parameter)) - y


@njit(forceinline=True, **_OPTIONS)
def curvature(form: int, parameter: float, z: float, y: float, here: float) -> float:
    """The second derivative of the loss with that form, whose slope at z is ``here``."""
    if form == 1:
        return abs(here) * (1.0 - abs(here))
    if form == 0:
        return 1.0
    if form == 2:
        return 1.0 if abs(z - y) <= parameter else 0.0
    if form == 3:
        return 1.0 / parameter if 0.0 <= 1.0 - y * z <= parameter else 0.0
    if form == 4:
        return math.exp(z) if z <= parameter else 0.0
    return 0.0


@njit(forceinline=True, **_OPTIONS)
def _term(slope: float, x: float, limit: float, rounding: float) -> float:
    """What a record adds to a column's sum: cut to the limit, then rounded to a grid of exact sums."""
    return (min(max(slope * x, -limit), limit) + rounding) - rounding


@njit(forceinline=True, **_OPTIONS)
def _true_sum(
    indptr: Any, indices: Any, entries: Any, rows: Any, j: Any, form: int, parameter: float, factor: float,
    base: float, limit: float, rounding: float,
) -> float:  # fmt: skip
    """The sum of column j at the true margins."""
    total = 0.0
    for e in range(indptr[j], indptr[j + _1]):
        i = indices[e]
        scale = rows[i, 3]
        z = factor * rows[i, 0] + (base if scale > 0 else 0.0)
        total += _term(slope(form, parameter, z, rows[i, 2]) * scale, entries[e], limit, rounding)
    return total


@njit(forceinline=True, **_OPTIONS)
def _bin(bound: float, inverse: float, reference: float) -> int:
    """The bin of an upper bound of a score, BINS if it is above all."""
    place = (bound - reference) * inverse + ORIGIN
    if place >= BINS:
        return BINS
    return int(place) if place >= 1 else 0


@njit(forceinline=True, **_OPTIONS)
def _bound(j: Any, sums: Any, heads: Any) -> float:
    """The upper bound of the absolute sum of column j that its bin stands for."""
    slack = sums[j, 1]
    return abs(sums[j, 0]) + slack if slack >= 0 else heads[np.int64(-1.0 - slack), 3]


@njit(cache=True, **_OPTIONS)
def sort(sums: Any, heads: Any, perm: Any, position: Any, start: Any, line: Any) -> None:
    """Put every column into its bin, with the largest bound just below the end of bin ORIGIN - 1."""
    largest = 0.0
    for j in range(sums.shape[0]):
        largest = max(largest, _bound(j, sums, heads))
    inverse = line[1]
    reference = line[2] = largest + _ABOVE / inverse
    start[:] = 0
    for j in range(sums.shape[0]):
        start[_bin(_bound(j, sums, heads), inverse, reference) + 1] += 1
    for k in range(BINS):
        start[k + 1] += start[k]
    # Each start moves to the end of its bin, and back.
    for j in range(sums.shape[0]):
        k = _bin(_bound(j, sums, heads), inverse, reference)
        perm[start[k]] = j
        position[j] = start[k]
        start[k] += 1
    for k in range(BINS, 0, -1):
        start[k] = start[k - 1]
    start[0] = 0


@njit(forceinline=True, **_OPTIONS)
def _carry(j: Any, old: int, new: int, perm: Any, position: Any, start: Any) -> None:
    """Take column j from one bin to another: at each boundary on the way, a member fills the hole."""
    hole = np.int64(position[j])
    while old < new:
        old += 1
        last = start[old] - 1
        if hole != last:
            perm[hole] = perm[last]
            position[perm[last]] = hole
        hole = start[old] = last
    while old > new:
        first = start[old]
        if hole != first:
            perm[hole] = perm[first]
            position[perm[first]] = hole
        hole, start[old] = first, first + 1
        old -= 1
    perm[hole] = j
    position[j] = hole


@njit(forceinline=True, **_OPTIONS)
def _follow(
    i: Any, indptr: Any, indices: Any, entries: Any, rows: Any, sums: Any, perm: Any, position: Any,
    start: Any, form: int, parameter: float, factor: float, base: float, limit: float, rounding: float,
    inverse: float, reference: float, changed: int,
) -> int:  # fmt: skip
    """Let the sums follow the true margin of row i.

    ``changed`` is, and becomes, 1 if a bin has changed, 2 if all must be sorted anew: then no bin changes.
    """
    scale, y = rows[i, 3], rows[i, 2]
    shift = base if scale > 0 else 0.0
    part = factor * rows[i, 0]
    old = slope(form, parameter, rows[i, 1] + shift, y) * scale
    new = slope(form, parameter, part + shift, y) * scale
    rows[i, 1] = part
    loaded = 0.0
    # So short a loop has many loads under way at once; the next one then finds its sums in the cache.
    for e in range(indptr[i], indptr[i + _1]):
        loaded += sums[indices[e], 0]
    for e in range(indptr[i], indptr[i + _1]):
        j, x = indices[e], np.float64(entries[e])
        slack = sums[j, 1]
        if slack < 0:
            continue
        before = sums[j, 0]
        after = before + (_term(new, x, limit, rounding) - _term(old, x, limit, rounding))
        sums[j, 0] = after
        was = _bin(abs(before) + slack, inverse, reference)
        now = _bin(abs(after) + slack, inverse, reference)
        if was != now and changed < 2:
            if now == BINS:
                changed = 2
            else:
                _carry(j, was, now, perm, position, start)
                changed = 1
    return changed if loaded < math.inf else 2  # always the first: loads that nothing uses would be left out


@njit(forceinline=True, **_OPTIONS)
def _line_of(form: int, parameter: float, here: float, part: float, shift: float, y: float, v: float) -> Any:
    """(constant, multiple of the factor): a slope to first order in the factor, from where it is ``here``."""
    bend = curvature(form, parameter, part + shift, y, here)
    return here - bend * part, bend * v


@njit(forceinline=True, **_OPTIONS)
def _lead(
    i: Any, v: float, part: float, ends: Any, entries: Any, heads: Any, rows: Any,
    form: int, parameter: float, base: float,
) -> None:  # fmt: skip
    """Let the heads follow row i, whose v becomes ``v`` and whose part of the margin is ``part``."""
    y, scale = rows[i, 2], rows[i, 3]
    shift = base if scale > 0 else 0.0
    old_constant, old_multiple = _line_of(form, parameter, rows[i, 5], rows[i, 4], shift, y, rows[i, 0])
    rows[i, 4], rows[i, 5] = part, slope(form, parameter, part + shift, y)
    constant, multiple = _line_of(form, parameter, rows[i, 5], part, shift, y, v)
    constant -= old_constant
    multiple -= old_multiple
    for e in range(ends[i], ends[i + _1]):
        k, x = np.uint64(np.int32(entries[e, 0])), np.float64(entries[e, 1]) * scale
        heads[k, 0] += constant * x
        heads[k, 1] += multiple * x


@njit(cache=True, **_OPTIONS)
def widen(indptr: Any, bend: float, rounding: float, grid: float, sums: Any) -> None:
    """Turn the weight beside each sum into its slack: so much by weight, for each entry, and for all."""
    for j in range(np.uint64(sums.shape[0])):
        sums[j, 1] = sums[j, 1] * bend + (indptr[j + _1] - indptr[j]) * rounding + grid


@njit(forceinline=True, **_OPTIONS)
def _read_ahead(indices: Any, begin: Any, end: Any, rows: Any, head_ends: Any, head_entries: Any) -> float:
    """Load some rows: a loop so short has many loads under way at once, for the next to find them here."""
    loaded = 0.0
    for e in range(begin, end):
        loaded += rows[indices[e], 0]
    if head_entries.size:
        last = np.uint64(head_entries.shape[0] - 1)
        for e in range(begin, end):
            loaded += head_entries[min(head_ends[indices[e]], last), 0]
    return loaded


@njit(cache=True, error_model="numpy", nogil=True)
def some_columns(indptr: Any, indices: Any, entries: Any, columns: Any, n: int) -> Any:
    """By rows, where each begins and (number, entry) of some columns of a table that is stored by columns."""
    begin = np.zeros(n + 1, dtype=np.uint64)
    for j in columns:
        for e in range(indptr[j], indptr[j + _1]):
            begin[indices[e] + _1] += _1
    for i in range(np.uint64(n)):
        begin[i + _1] += begin[i]
    pairs = np.empty((begin[n], 2), dtype=entries.dtype)
    # Each beginning moves to the end of its row, and back.
    for number in range(columns.size):
        j = columns[number]
        for e in range(indptr[j], indptr[j + _1]):
            at = begin[indices[e]]
            pairs[at, 0], pairs[at, 1] = number, entries[e]
            begin[indices[e]] = at + _1
    for i in range(n, 0, -1):
        begin[i] = begin[i - 1]
    begin[0] = 0
    return begin, pairs


@njit(cache=True, error_model="numpy", nogil=True)
def start_heads(
    ends: Any, entries: Any, rows: Any, heads: Any, form: int, parameter: float, base: float
) -> None:
    """Set the lines of the heads, at a factor of 1, and their bounds."""
    for i in range(np.uint64(rows.shape[0])):
        v, y, scale = rows[i, 0], rows[i, 2], rows[i, 3]
        shift = base if scale > 0 else 0.0
        rows[i, 4], rows[i, 5] = v, slope(form, parameter, v + shift, y)
        constant, multiple = _line_of(form, parameter, rows[i, 5], v, shift, y, v)
        for e in range(ends[i], ends[i + _1]):
            k, x = np.uint64(np.int32(entries[e, 0])), np.float64(entries[e, 1]) * scale
            heads[k, 0] += constant * x
            heads[k, 1] += multiple * x
    for h in range(heads.shape[0]):
        heads[h, 3] = abs(heads[h, 0] + heads[h, 1]) + heads[h, 2]


@njit(forceinline=True, **_OPTIONS)
def _until(part: float, v: float, slack: float) -> float:
    """The factor below which factor * v differs from ``part`` by more than a slack; 0 if it never does."""
    if v == 0 or (part > 0) != (v > 0) or abs(part) <= slack:
        return 0.0
    return (abs(part) - slack) / abs(v)


@njit(forceinline=True, **_OPTIONS)
def _note(i: Any, step: Any, links: Any, calendar: Any, pool: Any, spare: Any) -> None:
    """Write row i into the list of a step. There must be a free chunk."""
    if calendar[step, 0] < 0 or calendar[step, 1] == CHUNK:
        chunk = spare[0]
        spare[0] = pool[chunk, 0]
        spare[1] -= 1
        pool[chunk, 0] = calendar[step, 0]
        calendar[step, 0], calendar[step, 1] = chunk, 0
    calendar[step, 1] += 1
    calendar[step, 2] += 1
    pool[calendar[step, 0], calendar[step, 1]] = i
    links[i, DUE] = step


@njit(forceinline=True, **_OPTIONS)
def _schedule(
    i: Any, least: float, step: int, factors: Any, links: Any, calendar: Any, pool: Any, spare: Any
) -> None:
    """See that row i is looked at as soon as the factor, ``factors[step]`` now, is below ``least``."""
    last = factors.size - 1
    least *= 1 + _SURE
    if step == last or factors[last] >= least:
        return
    if links[i, DUE] > 0 and factors[links[i, DUE] - 1] >= least:
        return
    low, high = step, last  # factors[low] >= least > factors[high], unless it is due at once
    while high - low > 1:
        middle = (low + high) // 2
        if factors[middle] < least:
            high = middle
        else:
            low = middle
    _note(i, high, links, calendar, pool, spare)


@njit(cache=True, **_OPTIONS)
def empty_calendar(calendar: Any, pool: Any, spare: Any) -> None:
    """Make all lists empty and all chunks free."""
    calendar[:, 0], calendar[:, 1], calendar[:, 2] = -1, 0, 0
    for chunk in range(pool.shape[0]):
        pool[chunk, 0] = chunk + 1
    pool[pool.shape[0] - 1, 0] = -1
    spare[0], spare[1] = 0, pool.shape[0]


@njit(cache=True, **_OPTIONS)
def schedule_all(
    factors: Any, rows: Any, links: Any, calendar: Any, pool: Any, spare: Any, slack: float, head_slack: float
) -> None:
    """Plan when to look at each row: those with a margin move with the factor from the first step on."""
    empty_calendar(calendar, pool, spare)
    for i in range(np.uint64(rows.shape[0])):
        links[i, DUE] = 0
        v = rows[i, 0]
        least = max(_until(rows[i, 1], v, slack), _until(rows[i, 4], v, head_slack))
        if least > 0:
            _schedule(i, least, 0, factors, links, calendar, pool, spare)


@njit(cache=True, **_OPTIONS)
def _write_anew(links: Any, calendar: Any, pool: Any, spare: Any) -> None:
    """Write the calendar without rows that have become due at an earlier step."""
    empty_calendar(calendar, pool, spare)
    for i in range(np.uint64(links.shape[0])):
        if links[i, DUE] > 0:
            _note(i, links[i, DUE], links, calendar, pool, spare)


@njit(forceinline=True, **_OPTIONS)
def _heads_up(words: Any, at: int, chance: float) -> Any:
    """The next word, and True with exactly this probability below 1: digits are read until two differ."""
    while True:
        scaled = chance * _WORD
        whole = np.floor(scaled)  # a float: an integer would overflow
        word, digits = words[at], np.uint64(whole)
        at += 1
        if word != digits or scaled == whole:
            return at, word < digits
        chance = scaled - whole


@njit(forceinline=True, **_OPTIONS)
def _masses(start: Any, total: Any) -> int:
    """Set upper bounds of the masses of bins 0..k over exp(top + 1), for all k up to the top one."""
    top = BINS - 1
    while start[top] == start[top + 1]:
        top -= 1
    mass = 0.0
    for k in range(top + 1):
        mass += (start[k + 1] - start[k]) * _DECAY[top - k]
        total[k] = mass
    return top


@njit(forceinline=True, **_OPTIONS)
def _select(
    words: Any, at: int, ends: Any, indices: Any, entries: Any, rows: Any, sums: Any, heads: Any, perm: Any,
    start: Any, line: Any, total: Any, top: int, form: int, parameter: float, factor: float, base: float,
    limit: float, rounding: float, work: Any,
) -> Any:  # fmt: skip
    """The next word and the vertex selected; the vertex is -1 if there are not enough words."""
    grid, inverse, reference = line[0], line[1], line[2]
    while True:
        k = top
        while k > 0 and total[k - 1] > 0:
            count = start[k + 1] - start[k]
            if count > 0:
                if at + _COIN > words.size:
                    return at, np.int64(-1)
                # The rarer of the two ends of a coin is tossed for: so both have small relative errors.
                here, rest = count * _DECAY[top - k], total[k - 1]
                at, up = _heads_up(words, at, min(here, rest) / total[k])
                if up == (here <= rest):
                    break
            k -= 1
        members = np.uint64(2 * (start[k + 1] - start[k]))
        while True:
            if at + 1 + _COIN > words.size:
                return at, np.int64(-1)
            word = words[at]
            at += 1
            member = word % members
            # The last words, too few for all members, would favour some.
            if word - member <= _ALL - members + _1:
                break
        j = np.uint64(perm[np.uint64(start[k]) + (member >> _1)])
        sign = 1.0 if member & _1 else -1.0
        vertex = np.int64(2 * j + (member & _1))
        centre, width = sums[j, 0], sums[j, 1]
        if width < 0:
            h = np.int64(-1.0 - width)
            centre, width = heads[h, 0] + factor * heads[h, 1], heads[h, 2]
        work[0] += 1
        # The coin's first digits decide, if they do so for all scores that are possible.
        edge = k + 1 - ORIGIN
        likely, width = (-sign * centre - reference) * inverse - edge, width * inverse
        if words[at] < np.uint64(min(math.exp(likely - width), 1.0) * (1 - _SURE) * _WORD):
            return at + 1, vertex
        most = math.exp(likely + width) * (1 + _SURE)
        if most < 1 and words[at] > np.uint64(most * _WORD):
            at += 1
            continue
        work[1] += 1
        work[2] += ends[j + _1] - ends[j]
        score = -sign * _true_sum(
            ends, indices, entries, rows, j, form, parameter, factor, base, limit, rounding
        )
        if abs(score) < _EXACT * grid:
            score = np.rint(score / grid) * grid
        chance = math.exp((score - reference) * inverse - edge)
        if chance >= 1:
            return at + 1, vertex
        at, up = _heads_up(words, at, chance)
        if up:
            return at, vertex


@njit(forceinline=True, **_OPTIONS)
def _visit(
    i: Any, v: float, now: int, factors: Any, row_ends: Any, row_indices: Any, row_entries: Any, rows: Any,
    links: Any, sums: Any, perm: Any, position: Any, start: Any, line: Any, heads: Any, head_ends: Any,
    head_entries: Any, calendar: Any, pool: Any, spare: Any, work: Any, form: int, parameter: float,
    base: float, limit: float, rounding: float, slack: float, head_slack: float, changed: int,
) -> int:  # fmt: skip
    """Set v of row i, let heads and sums follow where they must, and plan when to look at it again.

    ``changed`` as in ``_follow``.
    """
    factor = factors[now]
    part, least = factor * v, 0.0
    if heads.shape[0]:
        if v != rows[i, 0] or abs(part - rows[i, 4]) > head_slack:
            work[3] += head_ends[i + _1] - head_ends[i]
            _lead(i, v, part, head_ends, head_entries, heads, rows, form, parameter, base)
        least = _until(rows[i, 4], v, head_slack)
    rows[i, 0] = v
    if abs(part - rows[i, 1]) > slack:
        work[3] += row_ends[i + _1] - row_ends[i]
        changed = _follow(
            i, row_ends, row_indices, row_entries, rows, sums, perm, position, start,
            form, parameter, factor, base, limit, rounding, line[1], line[2], changed,
        )  # fmt: skip
    least = max(least, _until(rows[i, 1], v, slack))
    if least > 0:
        _schedule(i, least, now, factors, links, calendar, pool, spare)
    return changed


@njit(cache=True, **_OPTIONS)
def run(
    words: Any, at: int, done: int, choices: Any, factors: Any, pushes: Any,
    row_ends: Any, row_indices: Any, row_entries: Any, ends: Any, indices: Any, entries: Any,
    rows: Any, links: Any, sums: Any, perm: Any, position: Any, start: Any, line: Any,
    heads: Any, head_columns: Any, head_ends: Any, head_entries: Any,
    calendar: Any, pool: Any, spare: Any, work: Any, total: Any,
    form: int, parameter: float, base: float, limit: float, rounding: float, slack: float, head_slack: float,
) -> Any:  # fmt: skip
    """Select and move until all choices are made or words run out; the next word and the next choice.

    Choice 2 j + 1 is the vertex along +e_j, choice 2 j its opposite. Step t multiplies all coefficients by
    factors[t + 1] / factors[t] and adds pushes[t] * factors[t + 1] to coefficient j, with the sign of its
    vertex. ``work`` counts proposals, true sums, entries read for these, entries read to follow rows, and
    entries of the features selected; ``total`` is scratch of BINS numbers.
    """
    inverse = line[1]
    changed, top = 1, 0
    for t in range(done, choices.size):
        if changed == 2:
            sort(sums, heads, perm, position, start, line)
        if changed > 0:
            top, changed = _masses(start, total), 0
        following, vertex = _select(
            words, at, ends, indices, entries, rows, sums, heads, perm, start, line, total, top,
            form, parameter, factors[t], base, limit, rounding, work,
        )  # fmt: skip
        if vertex < 0:
            return at, t
        at, choices[t] = following, vertex
        j, now = np.uint64(vertex >> 1), t + 1
        push = pushes[t] if vertex & 1 else -pushes[t]
        work[4] += ends[j + _1] - ends[j]
        e, last = np.uint64(ends[j]), np.uint64(ends[j + _1])
        # Each row looked at takes a place in a chunk at most, and each list begins a chunk at most.
        if spare[1] <= (np.int64(last - e) + calendar[now, 2]) // CHUNK + factors.size:
            _write_anew(links, calendar, pool, spare)
        chunk, place, filled = calendar[now, 0], np.int64(0), np.int64(calendar[now, 1])
        # First the rows that hold the feature, then those that are due.
        while True:
            if e < last:
                if (e - ends[j]) % _AHEAD == 0:
                    line[3] += _read_ahead(indices, e, min(e + _AHEAD, last), rows, head_ends, head_entries)
                i = np.uint64(indices[e])
                v = rows[i, 0] + push * (rows[i, 3] * np.float64(entries[e]))
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
                    line[3] += _read_ahead(
                        pool[chunk], _1, np.uint64(filled) + _1, rows, head_ends, head_entries
                    )
                place += 1
                i = np.uint64(pool[chunk, place])
                if links[i, DUE] != now:
                    continue
                links[i, DUE] = 0
                v = rows[i, 0]
            changed = _visit(
                i, v, now, factors, row_ends, row_indices, row_entries, rows, links, sums, perm, position,
                start, line, heads, head_ends, head_entries, calendar, pool, spare, work, form, parameter,
                base, limit, rounding, slack, head_slack, changed,
            )  # fmt: skip
        for h in range(heads.shape[0]):
            bound = abs(heads[h, 0] + factors[now] * heads[h, 1]) + heads[h, 2]
            was, new = _bin(heads[h, 3], inverse, line[2]), _bin(bound, inverse, line[2])
            heads[h, 3] = bound
            if was != new and changed < 2:
                changed = 2 if new == BINS else 1
                if new < BINS:
                    _carry(head_columns[h], was, new, perm, position, start)
        if start[LOWEST] == sums.shape[0]:
            changed = 2
    if changed == 2:
        sort(sums, heads, perm, position, start, line)
    return at, choices.size
