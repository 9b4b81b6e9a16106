"""Parts of the sampler that keeps rounded scores in bins: build, update, room, draw, propose, accept.

They are called at every step, with the parts of `Bins`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .arguments import Bins
from .bins import BINS, LOWEST, ORIGIN, bin_of, carry, chance_of, fill, propose, weigh
from .coin import WORDS_A_COIN, coin
from .compiled import compiled, part
from .primitives import on_grid


@compiled()
def build(scores: Any, values: Any, perm: Any, position: Any, start: Any, line: Any, masses: Any) -> None:
    """Round all scores to the grid and sort the candidates, the largest in the middle of bin ORIGIN - 1."""
    grid, largest = line[0], -np.inf
    for j in range(scores.size):
        values[j] = on_grid(scores[j], grid)
    for j in range(values.size):
        largest = max(largest, values[j])
    reference = on_grid(largest + 0.5 / line[1], grid)
    fill(values, reference, Bins(perm, position, start, line, masses))


@compiled(allocates=True)
def room(index: Any, values: Any, line: Any) -> Any:
    """How far the scores of candidates may move from where they are until their bins are to be looked at.

    Upwards until the edge of the bin, less two steps of the grid for rounding; one scale at most, beyond
    which a candidate that has fallen would be proposed too often.
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
    index: Any, scores: Any, values: Any, perm: Any, position: Any, start: Any, line: Any, masses: Any
) -> Any:
    """Give candidates other scores; whether all must be sorted anew, without which nothing may be drawn."""
    bins = Bins(perm, position, start, line, masses)
    grid, inverse, reference = line[0], line[1], line[2]
    # So short a loop has many loads under way at once; the next one then finds its values in the cache.
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
def _kept(words: Any, at: int, value: float, k: int, line: Any) -> Any:
    """The next word, and whether a proposed candidate of that rounded score in bin k is kept."""
    chance = chance_of(value, k, line)
    if chance >= 1:
        return at, True
    return coin(words, at, chance)


@compiled()
def draw(
    words: Any, at: int, values: Any, perm: Any, position: Any, start: Any, line: Any, masses: Any
) -> Any:
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
def draw_bin(words: Any, at: int, perm: Any, position: Any, start: Any, line: Any, masses: Any) -> Any:
    """The next word, and a candidate times BINS plus its bin; or the first word and -1."""
    bins = Bins(perm, position, start, line, masses)
    following, k, member = propose(words, at, weigh(bins), 1, bins)
    if member < 0:
        return at, member
    return following, np.int64(perm[start[k] + member]) * BINS + k


@compiled()
def accept(words: Any, at: int, score: float, k: int, line: Any) -> Any:
    """The next word, and 1 if a candidate with that score, proposed from bin k, is kept, else 0; or -1."""
    if at + WORDS_A_COIN > words.size:
        return at, -1
    at, kept = _kept(words, at, on_grid(score, line[0]), k, line)
    return at, np.int64(kept)
