"""Compiled parts of the sampler that keeps candidates in bins: build, update, draw.

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
"""The largest score starts in bin ORIGIN; if it leaves LOWEST..BINS - 1, all are sorted anew."""

_DECAY = np.array([math.exp(-k) for k in range(BINS)])
_WORD = 2.0**64
_EXACT = 2.0**53
_COIN = 17  # the most words that a coin can take: a double has its last digit at 2**-1074 or before
_ALL = np.uint64((1 << 64) - 1)


@njit(cache=True, error_model="numpy")
def _rounded(score: float, grid: float) -> float:
    """The score on its grid, as ``on_grid`` has it."""
    return np.rint(score / grid) * grid if abs(score) < _EXACT * grid else score


@njit(cache=True, error_model="numpy")
def _bin(value: float, inverse: float, reference: float) -> int:
    """The bin of a rounded score, BINS if it is above all."""
    place = (value - reference) * inverse + ORIGIN
    if place >= BINS:
        return BINS
    return int(place) if place >= 1 else 0


@njit(cache=True, error_model="numpy")
def _sort(values: Any, perm: Any, position: Any, start: Any, line: Any) -> None:
    """Put every candidate into its bin, with the largest score in bin ORIGIN."""
    line[2] = values.max()
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
def update(index: Any, scores: Any, values: Any, perm: Any, position: Any, start: Any, line: Any) -> float:
    """Give candidates other scores; the others stay where they are unless the window must move."""
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
    if outside or start[LOWEST] == values.size:
        _sort(values, perm, position, start, line)
    return loaded


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
def draw(words: Any, at: int, values: Any, perm: Any, start: Any, line: Any) -> Any:
    """The next word, and a candidate; or the first word and -1 if there are not enough of them."""
    began = at
    inverse, reference = line[1], line[2]
    top = BINS - 1
    while start[top] == start[top + 1]:
        top -= 1
    # Upper bounds of the masses of bins 0..k over exp(top + 1), the smallest first.
    total = np.empty(top + 1)
    mass = 0.0
    for k in range(top + 1):
        mass += (start[k + 1] - start[k]) * _DECAY[top - k]
        total[k] = mass
    while True:
        k = top
        while k > 0 and total[k - 1] > 0:
            count = start[k + 1] - start[k]
            if count > 0:
                if at + _COIN > words.size:
                    return began, -1
                # The rarer of the two ends of a coin is tossed for: so both have small relative errors.
                here, rest = count * _DECAY[top - k], total[k - 1]
                at, heads = _heads(words, at, min(here, rest) / total[k])
                if heads == (here <= rest):
                    break
            k -= 1
        count = np.uint64(start[k + 1] - start[k])
        while True:
            if at + 1 + _COIN > words.size:
                return began, -1
            word = words[at]
            at += 1
            member = word % count
            # The last words, too few for all members, would favour some. They are skipped here: another try
            # would favour bins of which it takes fewer.
            if word - member <= _ALL - count + np.uint64(1):
                break
        j = perm[np.uint64(start[k]) + member]
        chance = math.exp((values[j] - reference) * inverse - (k + 1 - ORIGIN))
        if chance >= 1:
            return at, np.int64(j)
        at, heads = _heads(words, at, chance)
        if heads:
            return at, np.int64(j)
