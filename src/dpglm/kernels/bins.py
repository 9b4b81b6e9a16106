"""Structures of scores to draw from: candidates in bins of width 1 in log-weight, and sums of groups.

Candidate j has weight exp(t_j), t_j being its place (see `Bins`). Each bin has an upper bound of its members'
weights. Proofs, which give the reasons of the constants below: docs/proofs/binned_selection.md and
docs/proofs/grouped_selection.md.
"""

from __future__ import annotations

import math

import numpy as np

from .arguments import Bins, Floats, Integers, Places, Signed, Whole, Words
from .compiled import compiled, part
from .draws import WORDS_A_COIN, coin
from .formulas import on_grid

BINS = 192
ORIGIN = 128
LOWEST = 64
"""The largest value starts in bin ORIGIN - 1; if it leaves LOWEST..BINS - 1, all are sorted anew."""

_DECAY = np.array([math.exp(-k) for k in range(BINS)])
_ALL = np.uint64((1 << 64) - 1)
_1 = np.uint64(1)


def empty(count: int, line: Floats) -> Bins:
    """Return bins for ``count`` candidates, none of which is in any."""
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


# Parts that are called at every step, with the parts of `Bins`.
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
    """Return how far each score may move up or down before its bin must be looked at again.

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


# Row g of ``weights`` holds the members of group g, zeros behind the last candidate. Sums are kept in trees
# of a power of two of leaves: the level of ``width`` nodes is ``tree[width : 2 * width]``, and node k of it
# is the sum of nodes k and k + width of the next level. The leaves of ``sums`` are the groups, zeros behind
# the last.
LOWEST_SUM, HIGHEST_SUM = math.exp(-64), math.exp(64)
"""If the sum of all weights leaves this range, there must be another reference."""


@compiled()
def _add_up(tree: Floats) -> float:
    """Fill a tree from its leaves; the sum of all."""
    width = tree.size // 4
    while width > 0:
        for k in range(width):
            tree[width + k] = tree[2 * width + k] + tree[3 * width + k]
        width //= 2
    return float(tree[1])


@compiled(allocates=True)
def weigh_groups(
    index: Signed, values: Floats, weights: Floats, sums: Floats, reference: float, scale: float
) -> float:
    """Weigh some candidates by their scores, add up their groups anew, and all groups; the sum of all."""
    groups, size = weights.shape
    changed = np.zeros(groups, dtype=np.bool_)
    for j in index:
        weights[j // size, j % size] = math.exp((values[j] - reference) / scale)
        changed[j // size] = True
    tree = np.empty(2 * size)
    leaves = sums[sums.size // 2 :]
    for group in range(groups):
        if changed[group]:
            tree[size:] = weights[group]
            leaves[group] = _add_up(tree)
    return _add_up(sums)


@compiled()
def _leaf(words: Words, at: int, tree: Floats) -> tuple[int, int]:
    """The next word, and a leaf with a probability proportional to it; -1 if there are not enough words."""
    width, k = 1, 0
    while 2 * width < tree.size:
        if at + WORDS_A_COIN > words.size:
            return at, -1
        left, right = tree[2 * width + k], tree[3 * width + k]
        # The coin is for the rarer outcome, so that both have small relative errors.
        at, rarer = coin(words, at, min(left, right) / tree[width + k])
        if rarer == (right < left):
            k += width
        width *= 2
    return at, k


@compiled(allocates=True)
def draw_from_groups(words: Words, at: int, weights: Floats, sums: Floats) -> tuple[int, int]:
    """The next word, and a candidate; -1 if there are not enough words."""
    at, group = _leaf(words, at, sums)
    if group < 0:
        return at, -1
    size = weights.shape[1]
    tree = np.empty(2 * size)
    tree[size:] = weights[group]
    _add_up(tree)
    at, member = _leaf(words, at, tree)
    return at, group * size + member if member >= 0 else -1
