"""Parts of the sampler that keeps sums of groups: weigh, draw.

Row g of ``weights`` holds the members of group g, zeros behind the last candidate. Sums are kept in trees of
a power of two of leaves: the level of ``width`` nodes is ``tree[width : 2 * width]``, and node k of it is the
sum of nodes k and k + width of the next level. The leaves of ``sums`` are the groups, zeros behind the last.

Proof: docs/proofs/grouped_selection.md, which gives the reasons of the constants below.
"""

from __future__ import annotations

import math

import numpy as np

from .arguments import Floats, Signed, Words
from .coin import WORDS_A_COIN, coin
from .compiled import compiled

LOWEST, HIGHEST = math.exp(-64), math.exp(64)
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
def weigh(
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
def draw(words: Words, at: int, weights: Floats, sums: Floats) -> tuple[int, int]:
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
