"""Parts of the sampler that keeps rounded scores in bins: build, update, slack, draw, propose, accept.

They are called at every step, with the parts of `Bins`.
"""

from __future__ import annotations

import numpy as np

from .arguments import Bins, Floats, Integers, Places, Signed, Words
from .bins import BINS, LOWEST, ORIGIN, bin_of, carry, chance_of, fill, propose, weigh
from .coin import WORDS_A_COIN, coin
from .compiled import compiled, part
from .primitives import on_grid


@compiled()
def build(
    scores: Floats, values: Floats, perm: Places, position: Places, start: Integers, line: Floats,
    masses: Floats,
) -> None:  # fmt: skip
    """Round all scores to the grid and sort the candidates, the largest in the middle of bin ORIGIN - 1."""
    grid, largest = line[0], -np.inf
    for j in range(scores.size):
        values[j] = on_grid(scores[j], grid)
    for j in range(values.size):
        largest = max(largest, values[j])
    reference = on_grid(largest + 0.5 / line[1], grid)
    fill(values, reference, Bins(perm, position, start, line, masses))


@compiled(allocates=True)
def slack(index: Signed, values: Floats, line: Floats) -> Floats:
    """How far each score may move up or down before its bin must be looked at again.

    That is the distance to the upper edge of the bin, less two steps of the grid for rounding, and at most
    one scale: a candidate that has fallen farther would be proposed too often.
    """
    grid, inverse, reference = line[0], line[1], line[2]
    out = np.empty(index.size)
    for i in range(index.size):
        value = values[np.uint64(index[i])]
        above = bin_of(value, inverse, reference) + 1 - ORIGIN - (value - reference) * inverse
        out[i] = min(above * (1 - 2.0**-30), 1.0) / inverse - 2 * grid
    return out


@compiled()
def update(
    index: Signed, scores: Floats, values: Floats, perm: Places, position: Places, start: Integers,
    line: Floats, masses: Floats,
) -> tuple[bool, float]:  # fmt: skip
    """Set the scores at ``index``; True if all must be sorted anew before the next draw."""
    bins = Bins(perm, position, start, line, masses)
    grid, inverse, reference = line[0], line[1], line[2]
    # A short loop of loads fills the cache for the next loop.
    loaded = 0.0
    for i in range(index.size):
        j = np.uint64(index[i])
        if j >= np.uint64(values.size):
            raise IndexError("there is no such candidate")
        loaded += values[j]
    outside = False
    for i in range(index.size):
        j = np.uint64(index[i])
        old, new = bin_of(values[j], inverse, reference), on_grid(scores[i], grid)
        values[j] = new
        k = bin_of(new, inverse, reference)
        outside |= k == BINS
        if k != old and not outside:
            carry(j, old, k, bins)
    return outside or start[LOWEST] == values.size, loaded


@part
def _kept(words: Words, at: int, value: float, k: int, line: Floats) -> tuple[int, bool]:
    """The next word, and whether a proposed candidate of that rounded score in bin k is kept."""
    chance = chance_of(value, k, line)
    if chance >= 1:
        return at, True
    return coin(words, at, chance)


@compiled()
def draw(
    words: Words, at: int, values: Floats, perm: Places, position: Places, start: Integers, line: Floats,
    masses: Floats,
) -> tuple[int, np.int64]:  # fmt: skip
    """The next word, and a candidate; or the first word and -1 if there are not enough of them."""
    bins = Bins(perm, position, start, line, masses)
    began, top = at, weigh(bins)
    while True:
        at, k, member = propose(words, at, top, 1, bins)
        if member < 0:
            return began, member
        j = np.int64(perm[start[k] + member])
        at, kept = _kept(words, at, values[j], k, line)
        if kept:
            return at, j


@compiled()
def draw_bin(
    words: Words, at: int, perm: Places, position: Places, start: Integers, line: Floats, masses: Floats
) -> tuple[int, np.int64]:
    """The next word, and a candidate times BINS plus its bin; or the first word and -1."""
    bins = Bins(perm, position, start, line, masses)
    following, k, member = propose(words, at, weigh(bins), 1, bins)
    if member < 0:
        return at, member
    return following, np.int64(perm[start[k] + member]) * BINS + k


@compiled()
def accept(words: Words, at: int, score: float, k: int, line: Floats) -> tuple[int, int | np.int64]:
    """The next word, and 1 if a candidate with that score, proposed from bin k, is kept, else 0; or -1."""
    if at + WORDS_A_COIN > words.size:
        return at, -1
    at, kept = _kept(words, at, on_grid(score, line[0]), k, line)
    return at, np.int64(kept)
