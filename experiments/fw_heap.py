"""The largest of scores that are kept, without noise: a heap of stale upper bounds (see ``fw_gap.py``).

``order`` holds the candidates as a binary heap, the children of place k being 2 k + 1 and 2 k + 2, and
``place`` is its inverse. A candidate is above another with a larger bound, or the same and a smaller index.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

import numpy as np
from numba import njit

from dpglm.arrays import Vector
from dpglm.kernels.arguments import Floats, Integers, Signed
from dpglm.mechanisms import Randomness
from dpglm.mechanisms.selection import Index, ScoreStructure


@njit(cache=True)
def _above(i: int, j: int, bounds: Floats) -> bool:
    return bounds[i] > bounds[j] or (bounds[i] == bounds[j] and i < j)


@njit(cache=True)
def _sink(k: int, bounds: Floats, order: Integers, place: Integers) -> None:
    """Move the candidate at place k down to where it belongs."""
    j = order[k]
    while 2 * k + 1 < order.size:
        child = 2 * k + 1
        if child + 1 < order.size and _above(order[child + 1], order[child], bounds):
            child += 1
        if _above(j, order[child], bounds):
            break
        order[k] = order[child]
        place[order[k]] = k
        k = child
    order[k] = j
    place[j] = k


@njit(cache=True)
def build(bounds: Floats, order: Integers, place: Integers) -> None:
    """Make a heap of all candidates, which may be in any order."""
    for k in range(order.size // 2 - 1, -1, -1):
        _sink(k, bounds, order, place)


@njit(cache=True)
def lift(index: Signed, scores: Floats, bounds: Floats, order: Integers, place: Integers) -> None:
    """Raise the bounds of candidates whose scores exceed them."""
    for j in index:
        if scores[j] <= bounds[j]:
            continue
        bounds[j] = scores[j]
        k = place[j]
        while k > 0 and _above(j, order[(k - 1) // 2], bounds):
            order[k] = order[(k - 1) // 2]
            place[order[k]] = k
            k = (k - 1) // 2
        order[k] = j
        place[j] = k


@njit(cache=True)
def top(scores: Floats, bounds: Floats, order: Integers, place: Integers) -> tuple[int, int]:
    """The candidate with the largest score, and how many stale ones were above it."""
    looks = 0
    while bounds[order[0]] != scores[order[0]]:
        bounds[order[0]] = scores[order[0]]
        _sink(0, bounds, order, place)
        looks += 1
    return order[0], looks


class Heap(ScoreStructure):
    """A binary heap of upper bounds of the scores; a bound is lowered only at the top.

    An update raises the bound of a candidate whose score exceeds it, and leaves it alone otherwise. A draw
    looks at the top: a bound that is stale becomes the present score and sinks, until the top is current.
    Of equal scores the first is the largest. This is Algorithm 3 of Raff, Khanna and Lu, "Scaling up
    differentially private LASSO regularized logistic regression via faster Frank-Wolfe iterations",
    arXiv:2310.19978, with a binary heap for a Fibonacci heap.

    Guarantee
    ---------
    None: there is no noise.

    Attributes
    ----------
    looks : int
        How many stale tops all draws have looked at.
    """

    noisy: ClassVar[bool] = False

    def draw(self, randomness: Randomness, score: Callable[[int], float] | None = None) -> int:
        largest, looks = top(self._values, self._bounds, self._order, self._place)
        self.looks += looks
        return int(largest)

    def _build(self, scores: Vector) -> None:
        super()._build(scores)
        self._bounds = self._values.copy()
        self._order = np.arange(self._values.size)
        self._place = self._order.copy()
        build(self._bounds, self._order, self._place)
        self.looks = 0

    def _set(self, index: Index, scores: Vector, everything: Callable[[], Vector] | None) -> bool:
        super()._set(index, scores, everything)
        places = index.astype(np.int64, copy=False)
        lift(places, self._values, self._bounds, self._order, self._place)
        return False
