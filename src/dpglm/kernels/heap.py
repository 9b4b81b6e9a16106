"""Parts of the heap of upper bounds: build, lift, top.

``order`` holds the candidates as a binary heap, the children of place k being 2 k + 1 and 2 k + 2, and
``place`` is its inverse. A candidate is above another with a larger bound, or the same and a smaller index.
"""

from __future__ import annotations

from .arguments import Floats, Integers, Signed
from .compiled import compiled


@compiled()
def _above(i: int, j: int, bounds: Floats) -> bool:
    return bounds[i] > bounds[j] or (bounds[i] == bounds[j] and i < j)


@compiled()
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


@compiled()
def build(bounds: Floats, order: Integers, place: Integers) -> None:
    """Make a heap of all candidates, which may be in any order."""
    for k in range(order.size // 2 - 1, -1, -1):
        _sink(k, bounds, order, place)


@compiled()
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


@compiled()
def top(scores: Floats, bounds: Floats, order: Integers, place: Integers) -> tuple[int, int]:
    """The candidate with the largest score, and how many stale ones were above it."""
    looks = 0
    while bounds[order[0]] != scores[order[0]]:
        bounds[order[0]] = scores[order[0]]
        _sink(0, bounds, order, place)
        looks += 1
    return order[0], looks
