"""Greedy coordinate descent: scores of coordinates, and a draw and a move over a sparse table, a call each.

They compute what ``bins``, `scores` and ``tables`` do one after the other, with the same numbers.
"""

from __future__ import annotations

import math

import numpy as np

from .arguments import Bins, Entries, Fields, Floats, Form, KeptState, Margins, ScoreRule, Signed, Words
from .bins import chance_of, propose, slack, update, weigh
from .compiled import compiled
from .draws import coin
from .formulas import on_grid, slope, within
from .tables import shift


@compiled(fastmath=frozenset({"nnan"}), allocates=True)
def scores(
    rule: int, n: int, sums: Floats, points: Floats, l1: float, l2: float, low: float, high: float, free: int,
    index: Signed,
) -> Floats:  # fmt: skip
    """For each j of an index, n times the score of rule 0 (GS-s), 1 (GS-r) or 2 (GS-q).

    ``sums`` are n times the slopes g of the loss along each coordinate. A row of ``points`` holds coefficient
    u and curvature m of one; the penalty of a coordinate below ``free`` is l1 abs(u) + l2/2 u² on [low, high]
    (of the others none). Every formula is a continuous function of g whose terms are as small as the step
    that it describes, so that rounding does not grow in a difference.
    """
    out = np.empty(index.size)
    for k in range(index.size):
        j = np.uint64(index[k])
        g, u, m = sums[j] / n, points[j, 0], points[j, 1]
        one, two, down, up = 0.0, 0.0, -np.inf, np.inf
        if index[k] < free:
            one, two, down, up = l1, l2, low - u, high - u
        d = g + two * u
        if rule == 0:
            below = d + one if u > 0 else d - one
            above = d - one if u < 0 else d + one
            if down >= 0:
                below = -np.inf
            if up <= 0:
                above = np.inf
            out[k] = n * max(below, -above, 0.0) / math.sqrt(m)
            continue
        a = within(-u, -(d + one) / (m + two), -(d - one) / (m + two))
        a = within(a, down, up)
        if rule == 1:
            out[k] = n * math.sqrt(m) * abs(a)
        else:
            shrunk = -a if u > 0 else a
            longer = -shrunk if shrunk <= abs(u) else shrunk - 2 * abs(u)
            decrease = -a * (d + 0.5 * (m + two) * a) - one * longer
            out[k] = n * math.sqrt(2.0 * max(decrease, 0.0))
    return out


@compiled(allocates=True)
def draw(
    words: Words, at: int, of_rule: Fields, state: Floats, points: Floats, one: Signed, of_bins: Fields
) -> tuple[int, np.int64]:
    """The next word, and a coordinate by its present score; or the first word and -1 if words run out.

    Fields are those of `ScoreRule` and `Bins`, ``state`` and ``points`` those of `KeptState`; ``one`` is an
    array of one index.
    """
    rule, bins = ScoreRule(*of_rule), Bins(*of_bins)
    sums, line = state[:, 0], bins.line
    began, top = at, weigh(bins)
    while True:
        at, k, member = propose(words, at, top, 1, bins)
        if member < 0:
            return began, member
        one[0] = bins.perm[bins.start[k] + member]
        score = scores(
            rule.code, rule.n, sums, points, rule.l1, rule.l2, rule.low, rule.high, rule.free, one
        )[0]
        chance = chance_of(on_grid(score, line[0]), k, line)
        accepted = True
        if chance < 1:
            at, accepted = coin(words, at, chance)
        if accepted:
            return at, np.int64(one[0])


@compiled(allocates=True)
def move(
    j: int, value: float, rows: Signed, entries: Entries, of_margins: Fields, of_sums: Fields, mark: float,
    of_rule: Fields, values: Floats, of_bins: Fields, roots: Floats, margin: float,
) -> bool:  # fmt: skip
    """Set coordinate j, and update margins, slopes, sums, bins and tracked ranges.

    True if all candidates must be sorted anew: then scores and ranges of all have to be set. Fields are those
    of `Margins`, with the form as a plain tuple too, `KeptState`, `ScoreRule` and `Bins`.
    """
    margins = Margins(Form(*of_margins[0]), *of_margins[1:])
    sums, rule, bins = KeptState(*of_sums), ScoreRule(*of_rule), Bins(*of_bins)
    old, new = np.empty(rows.size), np.empty(rows.size)
    scale, state, points, z = sums.scale, sums.state, sums.points, margins.z
    by = value - points[j, 0]
    points[j, 0] = value
    for t in range(rows.size):
        i = rows[t]
        z[i] = z[i] + by * (entries[t] * scale[i])
        old[t] = margins.slopes[i]
        new[t] = slope(margins.form, z[i], margins.y[i]) if scale[i] > 0 else 0.0
        margins.slopes[i] = new[t]
    count = shift(sums, rows, old, new, mark, j)
    index = sums.touched[:count]
    found = scores(
        rule.code, rule.n, state[:, 0], points, rule.l1, rule.l2, rule.low, rule.high, rule.free, index
    )
    sort, _ = update(index, found, values, bins.perm, bins.position, bins.start, bins.line, bins.masses)
    if sort:
        return True
    allowed = slack(index, values, bins.line)
    for t in range(count):
        k = index[t]
        state[k, 1], state[k, 2] = state[k, 0], (allowed[t] - margin) * roots[k]
    return False
