"""Compiled parts of the sampler that keeps candidates in bins: build, update, room, draw, propose, accept.

Candidate j has a place t_j = (score_j - reference) / scale + ORIGIN on a line, and weight exp(t_j). Bin 0
holds all with t_j < 1, bin k >= 1 those in [k, k + 1); ``perm[start[k]:start[k + 1]]`` are the members of
bin k and ``position`` is the inverse of ``perm``. ``line`` holds grid, 1 / scale and reference.

Proof: docs/proofs/binned_selection.md, which gives the reasons of the constants below.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit

BINS = 192
ORIGIN = 128
LOWEST = 64
"""The largest score starts in bin ORIGIN - 1; if it leaves LOWEST..BINS - 1, all are sorted anew."""

_DECAY = np.array([math.exp(-k) for k in range(BINS)])
_WORD = 2.0**64
_EXACT = 2.0**53
_COIN = 17  # the most words that a coin can take: a double has its last digit at 2**-1074 or before
_ALL = np.uint64((1 << 64) - 1)


@njit(cache=True, error_model="numpy")
def _rounded(score: float, grid: float) -> float:
    """The score on its grid, as ``on_grid`` has it."""
    # The grid is a power of two: the product with its inverse is the quotient, and faster in a loop.
    return np.rint(score * (1.0 / grid)) * grid if abs(score) < _EXACT * grid else score


@njit(cache=True, error_model="numpy")
def _bin(value: float, inverse: float, reference: float) -> int:
    """The bin of a rounded score, BINS if it is above all."""
    place = (value - reference) * inverse + ORIGIN
    if place >= BINS:
        return BINS
    return int(place) if place >= 1 else 0


@njit(cache=True, error_model="numpy")
def _sort(values: Any, perm: Any, position: Any, start: Any, line: Any) -> None:
    """Put every candidate into its bin, with the largest score in the middle of bin ORIGIN - 1."""
    line[2] = _rounded(values.max() + 0.5 / line[1], line[0])
    inverse, reference = line[1], line[2]
    start[:] = 0
    for j in range(values.size):
        start[_bin(values[j], inverse, reference) + 1] += 1
    for k in range(BINS):
        start[k + 1] += start[k]
    free = start[:BINS].copy()
    for j in range(values.size):
        k = _bin(values[j], inverse, reference)
        perm[free[k]] = j
        position[j] = free[k]
        free[k] += 1


@njit(cache=True, error_model="numpy")
def build(scores: Any, values: Any, perm: Any, position: Any, start: Any, line: Any) -> None:
    """Round all scores to the grid and sort the candidates."""
    for j in range(scores.size):
        values[j] = _rounded(scores[j], line[0])
    _sort(values, perm, position, start, line)


@njit(cache=True, error_model="numpy")
def room(index: Any, values: Any, line: Any) -> Any:
    """How far the scores of candidates may move from where they are until their bins are to be looked at.

    Upwards until the edge of the bin, less two steps of the grid for rounding; one scale at most, beyond
    which a candidate that has fallen would be proposed too often.
    """
    grid, inverse, reference = line[0], line[1], line[2]
    out = np.empty(index.size)
    for i in range(index.size):
        value = values[np.uint64(index[i])]
        above = _bin(value, inverse, reference) + 1 - ORIGIN - (value - reference) * inverse
        out[i] = min(above * (1 - 2.0**-30), 1.0) / inverse - 2 * grid
    return out


@njit(cache=True, error_model="numpy")
def update(index: Any, scores: Any, values: Any, perm: Any, position: Any, start: Any, line: Any) -> Any:
    """Give candidates other scores; whether all must be sorted anew, without which nothing may be drawn."""
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
        old, new = _bin(values[j], inverse, reference), _rounded(scores[i], grid)
        values[j] = new
        k = _bin(new, inverse, reference)
        outside |= k == BINS
        if k == old or outside:
            continue
        # The candidate leaves a hole, which the member at the boundary of each bin on the way fills.
        hole = np.int64(position[j])
        while old < k:
            old += 1
            last = start[old] - 1
            if hole != last:
                perm[hole] = perm[last]
                position[perm[last]] = hole
            hole = start[old] = last
        while old > k:
            first = start[old]
            if hole != first:
                perm[hole] = perm[first]
                position[perm[first]] = hole
            hole, start[old] = first, first + 1
            old -= 1
        perm[hole] = j
        position[j] = hole
    return outside or start[LOWEST] == values.size, loaded


@njit(cache=True, error_model="numpy")
def _heads(words: Any, at: int, chance: float) -> Any:
    """The next word, and True with exactly this probability below 1: digits are read until two differ."""
    while True:
        scaled = chance * _WORD
        whole = np.floor(scaled)  # a float: an integer would overflow
        word, digits = words[at], np.uint64(whole)
        at += 1
        if word != digits or scaled == whole:
            return at, word < digits
        chance = scaled - whole


@njit(cache=True, error_model="numpy")
def _masses(start: Any) -> Any:
    """Upper bounds of the masses of bins 0..k over exp(top + 1), for all k up to the top one."""
    top = BINS - 1
    while start[top] == start[top + 1]:
        top -= 1
    total = np.empty(top + 1)
    mass = 0.0
    for k in range(top + 1):
        mass += (start[k + 1] - start[k]) * _DECAY[top - k]
        total[k] = mass
    return total


@njit(cache=True, error_model="numpy")
def _propose(words: Any, at: int, total: Any, perm: Any, start: Any) -> Any:
    """The next word, a candidate and its bin; the candidate is -1 if there are not enough words."""
    top = total.size - 1
    k = top
    while k > 0 and total[k - 1] > 0:
        count = start[k + 1] - start[k]
        if count > 0:
            if at + _COIN > words.size:
                return at, np.int64(-1), k
            # The rarer of the two ends of a coin is tossed for: so both have small relative errors.
            here, rest = count * _DECAY[top - k], total[k - 1]
            at, heads = _heads(words, at, min(here, rest) / total[k])
            if heads == (here <= rest):
                break
        k -= 1
    members = np.uint64(start[k + 1] - start[k])
    while True:
        if at + 1 + _COIN > words.size:
            return at, np.int64(-1), k
        word = words[at]
        at += 1
        member = word % members
        # The last words, too few for all members, would favour some. They are skipped here: another try
        # would favour bins of which it takes fewer.
        if word - member <= _ALL - members + np.uint64(1):
            return at, np.int64(perm[np.uint64(start[k]) + member]), k


@njit(cache=True, error_model="numpy")
def _kept(words: Any, at: int, value: float, k: int, line: Any) -> Any:
    """The next word, and whether a proposed candidate of that rounded score in bin k is kept."""
    chance = math.exp((value - line[2]) * line[1] - (k + 1 - ORIGIN))
    if chance >= 1:
        return at, True
    return _heads(words, at, chance)


@njit(cache=True, error_model="numpy")
def draw(words: Any, at: int, values: Any, perm: Any, start: Any, line: Any) -> Any:
    """The next word, and a candidate; or the first word and -1 if there are not enough of them."""
    began = at
    total = _masses(start)
    while True:
        at, j, k = _propose(words, at, total, perm, start)
        if j < 0:
            return began, j
        at, kept = _kept(words, at, values[j], k, line)
        if kept:
            return at, j


@njit(cache=True, error_model="numpy")
def propose(words: Any, at: int, perm: Any, start: Any) -> Any:
    """The next word, and a candidate times BINS plus its bin; or the first word and -1."""
    following, j, k = _propose(words, at, _masses(start), perm, start)
    return (at, j) if j < 0 else (following, j * BINS + k)


@njit(cache=True, error_model="numpy")
def accept(words: Any, at: int, score: float, k: int, line: Any) -> Any:
    """The next word, and 1 if a candidate with that score, proposed from bin k, is kept, else 0; or -1."""
    if at + _COIN > words.size:
        return at, -1
    at, kept = _kept(words, at, _rounded(score, line[0]), k, line)
    return at, np.int64(kept)
