"""The proximal step of total variation along a chain, in linear time."""

from __future__ import annotations

from .arguments import Floats
from .compiled import compiled


@compiled(nogil=True)
def flatten(w: Floats, prices: Floats, ends: Floats, knots: Floats, u: Floats) -> None:
    """Write the u that minimises norm(u - w)² / 2 + sum of prices[k] abs(u[k + 1] - u[k]).

    Dynamic programming over the derivative of the least cost of the first k entries, given the last of them:
    it is piecewise linear, and grows by two knots an entry. See Johnson, "A dynamic programming algorithm for
    the fused lasso and L0-segmentation".

    Parameters
    ----------
    w : array of length p, 1 at least
    prices : array of length p - 1
    ends : array of shape (2, p)
        Space for the interval in which an entry equals the next one.
    knots : array of shape (3, 2 p)
        Space for places of knots, and for the slopes and the constants that they add.
    u : array of length p
        The result. Entries of a plateau are equal: the mean of w there, and what the prices at its ends add.
    """
    p = w.size
    places, slopes, constants = knots[0], knots[1], knots[2]
    first, last = p, p - 1  # the knots in use
    least, most = -w[0], w[0]  # constants of the outermost pieces, from both sides
    for k in range(p - 1):
        price = prices[k]
        slope, constant, low = 1.0, least, first
        while low <= last and slope * places[low] + constant <= -price:
            slope += slopes[low]
            constant += constants[low]
            low += 1
        first = low - 1
        places[first] = ends[0, k] = (-price - constant) / slope
        lowest_slope, lowest_constant = slope, constant + price
        slope, constant, high = -1.0, most, last
        while high > first and -slope * places[high] - constant >= price:
            slope += slopes[high]
            constant += constants[high]
            high -= 1
        last = high + 1
        # Rounding may not put the end of an interval before its beginning.
        places[last] = ends[1, k] = max((price + constant) / -slope, places[first])
        slopes[first], constants[first] = lowest_slope, lowest_constant
        slopes[last], constants[last] = slope, constant + price
        least, most = -price - w[k + 1], -price + w[k + 1]
    slope, constant, low = 1.0, least, first
    while low <= last and slope * places[low] + constant <= 0:
        slope += slopes[low]
        constant += constants[low]
        low += 1
    u[p - 1] = -constant / slope
    for k in range(p - 2, -1, -1):
        u[k] = min(max(u[k + 1], ends[0, k]), ends[1, k])
    _level(w, prices, u)


@compiled()
def _level(w: Floats, prices: Floats, u: Floats) -> None:
    """Compute the levels of the plateaus of u anew from w, without the rounding of many sums."""
    begin, before = 0, 0.0
    for end in range(1, w.size + 1):
        if end < w.size and u[end] == u[begin]:
            continue
        after = 0.0
        if end < w.size:
            after = prices[end - 1] if u[end] > u[begin] else -prices[end - 1]
        total = 0.0
        for k in range(begin, end):
            total += w[k]
        level = (total + (before + after)) / (end - begin)
        for k in range(begin, end):
            u[k] = level
        begin, before = end, -after
