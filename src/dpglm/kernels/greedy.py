"""A draw and a move of greedy coordinate descent over a sparse table, each in one call.

They compute what ``binned``, ``scores`` and ``sums`` do one after the other, with the same numbers.
"""

from __future__ import annotations

import numpy as np

from . import sums as kept
from .arguments import Bins, Entries, Floats, Form, Integers, Places, Signed, Unsigned, Words
from .binned import slack, update
from .bins import chance_of, propose, weigh
from .coin import coin
from .compiled import compiled
from .forms import slope
from .primitives import on_grid
from .scores import scores


@compiled(allocates=True)
def draw(
    words: Words, at: int, rule: int, n: int, state: Floats, l1: float, l2: float, low: float, high: float,
    free: int, one: Signed, perm: Places, position: Places, start: Integers, line: Floats, masses: Floats,
) -> tuple[int, np.int64]:  # fmt: skip
    """The next word, and a coordinate by its present score; or the first word and -1 if words run out.

    ``state`` is that of ``sums.shift``, with (coefficient, curvature) in its scratch space; ``one`` is an
    array of one index.
    """
    bins = Bins(perm, position, start, line, masses)
    sums, points = state[:, 0], state[:, 4:6]
    began, top = at, weigh(bins)
    while True:
        at, k, member = propose(words, at, top, 1, bins)
        if member < 0:
            return began, member
        one[0] = perm[start[k] + member]
        score = scores(rule, n, sums, points, l1, l2, low, high, free, one)[0]
        chance = chance_of(on_grid(score, line[0]), k, line)
        accepted = True
        if chance < 1:
            at, accepted = coin(words, at, chance)
        if accepted:
            return at, np.int64(one[0])


@compiled(allocates=True)
def move(
    j: int, value: float, rows: Signed, entries: Entries, form: Form, y: Floats, z: Floats, slopes: Floats,
    indptr: Unsigned, indices: Unsigned, table: Entries, scale: Floats, tail: Floats, state: Floats,
    mark: float, touched: Signed, rule: int, n: int, l1: float, l2: float, low: float, high: float, free: int,
    values: Floats, perm: Places, position: Places, start: Integers, line: Floats, masses: Floats,
    roots: Floats, margin: float,
) -> bool:  # fmt: skip
    """Set coordinate j, and update margins, slopes, sums, bins and tracked ranges.

    True if all candidates must be sorted anew: then scores and ranges of all have to be set.
    """
    old, new = np.empty(rows.size), np.empty(rows.size)
    by = value - state[j, 4]
    state[j, 4] = value
    for t in range(rows.size):
        i = rows[t]
        z[i] = z[i] + by * (entries[t] * scale[i])
        old[t], new[t] = slopes[i], slope(form, z[i], y[i]) if scale[i] > 0 else 0.0
        slopes[i] = new[t]
    count, _ = kept.shift(indptr, indices, table, scale, tail, rows, old, new, state, mark, touched, j)
    index = touched[:count]
    found = scores(rule, n, state[:, 0], state[:, 4:6], l1, l2, low, high, free, index)
    sort, _ = update(index, found, values, perm, position, start, line, masses)
    if sort:
        return True
    allowed = slack(index, values, line)
    for t in range(count):
        k = index[t]
        state[k, 6], state[k, 7] = state[k, 0], (allowed[t] - margin) * roots[k]
    return False
