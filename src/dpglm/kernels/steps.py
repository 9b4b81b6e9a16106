"""Frank-Wolfe steps over a sparse table: exact selections that read few records.

The margin of row i is ``factor * v_i`` plus the intercept's part, with one factor for all rows that a step
shrinks. Sums of columns are kept for *followed* margins, which may lag behind the true ones by a slack; the
bins of the sampler hold upper bounds of all scores, so a candidate is proposed often enough whatever the lag,
and its true sum is computed only if a coin that decides about it needs to know. Columns that weigh much, the
*heads*, are followed to first order in the factor, which leaves an error of second order. The state is
described in ``arguments``; ``line[3]`` of the bins is a place for what is read ahead.

Proof: docs/proofs/vertex_scores.md, which gives the reasons of the constants below.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .bins import BINS, LOWEST, ORIGIN, bin_of, carry, chance_of, fill, propose, weigh
from .calendar import CHUNK, DUE, schedule, until, write_anew
from .coin import WORD, coin
from .compiled import compiled, part
from .forms import slope
from .heads import lead
from .primitives import on_grid, term

_1, _AHEAD = np.uint64(1), np.uint64(16)
_ABOVE = 0.0625
_SURE = 2.0**-40


@compiled(nogil=True)
def widen(indptr: Any, bend: float, rounding: float, grid: float, sums: Any) -> None:
    """Turn the weight beside each sum into its slack: so much by weight, for each entry, and for all."""
    for j in range(np.uint64(sums.shape[0])):
        sums[j, 1] = sums[j, 1] * bend + (indptr[j + _1] - indptr[j]) * rounding + grid


@compiled(nogil=True)
def sort(followed: Any, heads: Any, bins: Any) -> None:
    """Put every column into the bin of an upper bound of its absolute sum.

    The largest bound is just below the end of bin ORIGIN - 1.
    """
    sums, bounds = followed.sums, followed.bounds
    largest = 0.0
    for j in range(sums.shape[0]):
        slack = sums[j, 1]
        bounds[j] = abs(sums[j, 0]) + slack if slack >= 0 else heads.lines[np.int64(-1.0 - slack), 3]
        largest = max(largest, bounds[j])
    fill(bounds, largest + _ABOVE / bins.line[1], bins)


@part
def _true_sum(j: Any, factor: float, columns: Any, rows: Any, terms: Any) -> float:
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
def _follow(i: Any, factor: float, table: Any, followed: Any, bins: Any, terms: Any, changed: int) -> int:
    """Let the sums follow the true margin of row i.

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
    # So short a loop has many loads under way at once; the next one then finds its sums in the cache.
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
    return changed if loaded < math.inf else 2  # always the first: loads that nothing uses would be left out


@part
def _read_ahead(indices: Any, begin: Any, end: Any, rows: Any, heads: Any) -> float:
    """Load some rows: a loop so short has many loads under way at once, for the next to find them here."""
    loaded = 0.0
    for e in range(begin, end):
        loaded += rows[indices[e], 0]
    if heads.entries.size:
        last = np.uint64(heads.entries.shape[0] - 1)
        for e in range(begin, end):
            loaded += heads.entries[min(heads.begins[indices[e]], last), 0]
    return loaded


@part
def _select(
    words: Any, at: int, top: int, factor: float, columns: Any, followed: Any, heads: Any, bins: Any,
    terms: Any, work: Any,
) -> Any:  # fmt: skip
    """The next word and the vertex selected; the vertex is -1 if there are not enough words."""
    sums, lines, line = followed.sums, heads.lines, bins.line
    grid, inverse, reference = line[0], line[1], line[2]
    while True:
        at, k, member = propose(words, at, top, 2, bins)
        if member < 0:
            return at, member
        j = np.uint64(bins.perm[bins.start[k] + (member >> 1)])
        sign = 1.0 if member & 1 else -1.0
        vertex = 2 * np.int64(j) + (member & 1)
        centre, width = sums[j, 0], sums[j, 1]
        if width < 0:
            h = np.int64(-1.0 - width)
            centre, width = lines[h, 0] + factor * lines[h, 1], lines[h, 2]
        work[0] += 1
        # The coin's first digits decide, if they do so for all scores that are possible.
        likely, width = (-sign * centre - reference) * inverse - (k + 1 - ORIGIN), width * inverse
        if words[at] < np.uint64(min(math.exp(likely - width), 1.0) * (1 - _SURE) * WORD):
            return at + 1, vertex
        most = math.exp(likely + width) * (1 + _SURE)
        if most < 1 and words[at] > np.uint64(most * WORD):
            at += 1
            continue
        work[1] += 1
        work[2] += columns.indptr[j + _1] - columns.indptr[j]
        score = on_grid(-sign * _true_sum(j, factor, columns, followed.rows, terms), grid)
        chance = chance_of(score, k, line)
        if chance >= 1:
            return at + 1, vertex
        at, up = coin(words, at, chance)
        if up:
            return at, vertex


@part
def _visit(
    i: Any, v: float, now: int, table: Any, terms: Any, followed: Any, heads: Any, bins: Any, calendar: Any,
    work: Any, changed: int,
) -> int:  # fmt: skip
    """Set v of row i, let heads and sums follow where they must, and plan when to look at it again.

    ``changed`` as in ``_follow``.
    """
    rows, factor = followed.rows, calendar.factors[now]
    part, least = factor * v, 0.0
    if heads.lines.shape[0]:
        if v != rows[i, 0] or abs(part - rows[i, 4]) > heads.slack:
            work[3] += heads.begins[i + _1] - heads.begins[i]
            lead(i, v, part, rows, heads, terms)
        least = until(rows[i, 4], v, heads.slack)
    rows[i, 0] = v
    if abs(part - rows[i, 1]) > followed.slack:
        work[3] += table.indptr[i + _1] - table.indptr[i]
        changed = _follow(i, factor, table, followed, bins, terms, changed)
    least = max(least, until(rows[i, 1], v, followed.slack))
    if least > 0:
        schedule(i, least, now, calendar)
    return changed


@part
def _lift(factor: float, heads: Any, bins: Any, changed: int) -> int:
    """Take the heads to the bins of their bounds at a factor; ``changed`` as in ``_follow``."""
    lines, inverse, reference = heads.lines, bins.line[1], bins.line[2]
    for h in range(lines.shape[0]):
        bound = abs(lines[h, 0] + factor * lines[h, 1]) + lines[h, 2]
        was, new = bin_of(lines[h, 3], inverse, reference), bin_of(bound, inverse, reference)
        lines[h, 3] = bound
        if was != new and changed < 2:
            changed = 2 if new == BINS else 1
            if new < BINS:
                carry(heads.columns[h], was, new, bins)
    return changed


@compiled(nogil=True)
def run(
    words: Any, at: int, done: int, choices: Any, pushes: Any, table: Any, terms: Any, followed: Any,
    heads: Any, bins: Any, calendar: Any, work: Any,
) -> Any:  # fmt: skip
    """Select and move until all choices are made or words run out; the next word and the next choice.

    Choice 2 j + 1 is the vertex along +e_j, choice 2 j its opposite. Step t multiplies all coefficients by
    factors[t + 1] / factors[t] and adds pushes[t] * factors[t + 1] to coefficient j, with the sign of its
    vertex. ``work`` counts proposals, true sums, entries read for these, entries read to follow rows, and
    entries of the features selected.
    """
    columns, rows, line = table.columns, followed.rows, bins.line
    links, lists, pool, spare = calendar.links, calendar.lists, calendar.pool, calendar.spare
    changed, top = 1, 0
    for t in range(done, choices.size):
        if changed == 2:
            sort(followed, heads, bins)
        if changed > 0:
            top, changed = weigh(bins), 0
        following, vertex = _select(
            words, at, top, calendar.factors[t], columns, followed, heads, bins, terms, work
        )
        if vertex < 0:
            return at, t
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
                if (e - first) % _AHEAD == 0:
                    line[3] += _read_ahead(columns.indices, e, min(e + _AHEAD, last), rows, heads)
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
                    line[3] += _read_ahead(pool[chunk], _1, np.uint64(filled) + _1, rows, heads)
                place += 1
                i = np.uint64(pool[chunk, place])
                if links[i, DUE] != now:
                    continue
                links[i, DUE] = 0
                v = rows[i, 0]
            changed = _visit(i, v, now, table.rows, terms, followed, heads, bins, calendar, work, changed)
        changed = _lift(calendar.factors[now], heads, bins, changed)
        if bins.start[LOWEST] == followed.sums.shape[0]:
            changed = 2
    if changed == 2:
        sort(followed, heads, bins)
    return at, choices.size
