"""Candidates in bins of width 1 in log-weight: sort, move, propose, accept.

Candidate j has weight exp(t_j), t_j being its place (see `Bins`). Each bin has an upper bound of its members'
weights.

Proof: docs/proofs/binned_selection.md, which gives the reasons of the constants below.
"""

from __future__ import annotations

import math

import numpy as np

from .arguments import Bins, Floats, Integers, Whole, Words
from .coin import WORDS_A_COIN, coin
from .compiled import part

BINS = 192
ORIGIN = 128
LOWEST = 64
"""The largest value starts in bin ORIGIN - 1; if it leaves LOWEST..BINS - 1, all are sorted anew."""

_DECAY = np.array([math.exp(-k) for k in range(BINS)])
_ALL = np.uint64((1 << 64) - 1)
_1 = np.uint64(1)


def empty(count: int, line: Floats) -> Bins:
    """Bins for so many candidates, none of which is in any."""
    perm, position = np.empty(count, dtype=np.uint32), np.empty(count, dtype=np.uint32)
    return Bins(perm, position, np.empty(BINS + 1, dtype=np.int64), line, np.empty(BINS))


@part
def bin_of(value: float, inverse: float, reference: float) -> int:
    """The bin of a value, BINS if it is above all."""
    place = (value - reference) * inverse + ORIGIN
    if place >= BINS:
        return BINS
    return int(place) if place >= 1 else 0


@part
def fill(values: Floats, reference: float, bins: Bins) -> None:
    """Put every candidate into its bin around a new reference."""
    perm, position, start = bins.perm, bins.position, bins.start
    inverse = bins.line[1]
    bins.line[2] = reference
    start[:] = 0
    for j in range(values.size):
        start[bin_of(values[j], inverse, reference) + 1] += 1
    add_up(start)
    for j in range(values.size):
        k = bin_of(values[j], inverse, reference)
        perm[start[k]] = j
        position[j] = start[k]
        start[k] += 1
    move_back(start)


@part
def add_up(start: Integers) -> None:
    """Turn the number of members of bin k at k + 1 into starts, which move to the ends as bins are filled."""
    for k in range(BINS):
        start[k + 1] += start[k]


@part
def move_back(start: Integers) -> None:
    """Turn the ends of bins into their starts."""
    for k in range(BINS, 0, -1):
        start[k] = start[k - 1]
    start[0] = 0


@part
def carry(j: Whole, old: int, new: int, bins: Bins) -> None:
    """Move candidate j from one bin to another; at each boundary crossed, a member fills the hole."""
    perm, position, start = bins.perm, bins.position, bins.start
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


@part
def weigh(bins: Bins) -> int:
    """Set ``masses[k]`` to an upper bound of the mass of bins 0..k over exp(top + 1); return the top bin."""
    start = bins.start
    top = BINS - 1
    while start[top] == start[top + 1]:
        top -= 1
    mass = 0.0
    for k in range(top + 1):
        mass += (start[k + 1] - start[k]) * _DECAY[top - k]
        bins.masses[k] = mass
    return top


@part
def propose(words: Words, at: int, top: int, each: int, bins: Bins) -> tuple[int, int, np.int64]:
    """The next word, a bin drawn by its mass, and the number of a member drawn uniformly.

    Each candidate counts as ``each`` members. The number is -1 if there are not enough words.
    """
    start, masses = bins.start, bins.masses
    k, member = top, np.int64(-1)
    while k > 0 and masses[k - 1] > 0:
        count = start[k + 1] - start[k]
        if count > 0:
            if at + WORDS_A_COIN > words.size:
                return at, k, member
            # The coin is for the rarer outcome, so that both have small relative errors.
            here, rest = count * _DECAY[top - k], masses[k - 1]
            at, rarer = coin(words, at, min(here, rest) / masses[k])
            if rarer == (here <= rest):
                break
        k -= 1
    members = np.uint64(each * (start[k + 1] - start[k]))
    while at + 1 + WORDS_A_COIN <= words.size:
        word = words[at]
        at += 1
        number = word % members
        # The last words, too few for all members, would favour some. They are skipped inside the bin:
        # drawing the bin again would favour bins that skip fewer.
        if word - number <= _ALL - members + _1:
            member = np.int64(number)
            break
    return at, k, member


@part
def chance_of(value: float, k: int, line: Floats) -> float:
    """The probability, if at most 1, with which a candidate of that value proposed from bin k is accepted."""
    return math.exp((value - line[2]) * line[1] - (k + 1 - ORIGIN))
