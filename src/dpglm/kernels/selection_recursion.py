"""One round of the recursion that prices adaptive selections (`accounting.pld`).

Curves hold values at multiples of a step h; the range of a selection is eta = m h.

Proof: docs/proofs/composition.md, section 4.
"""

from __future__ import annotations

import math

from .arguments import Floats
from .compiled import compiled, part
from .simd import PLACES, best_places, weigh_places


@compiled()
def advance(
    curve: Floats, count: int, rounds: int, rises: Floats, falls: Floats, gap: float,
    low: int, mass: Floats, infinite: float, cut: float, wide: Floats, after: Floats,
) -> int:  # fmt: skip
    """Replace H_k, the first ``count`` entries of a curve, by H_{k + rounds}; the number of its entries.

    Parameters
    ----------
    rises : array of m + 1 entries
        e^{j h - eta} - 1, so that p_t = rises[j] / rises[0] at t = j h.
    falls : array
        1 - e^{-i h}, up to i = m plus the largest loss of the release.
    gap : float
        e^h - 1.
    low, mass, infinite
        Law of the loss of the release, or ``0, [1.0], 0.0``.
    cut : float
        The first value that is not above this stands for all that follow.
    wide, after : arrays
        Scratch space.
    """
    m, high = rises.size - 1, low + mass.size - 1
    for _ in range(rounds):
        size = count + m + high
        _extend(curve[:count], falls, m + high, wide[: size + 2 * m + high - low])
        if mass.size == 1:
            known, free = wide, after
        else:
            known, free = after[: size + 2 * m], wide
            _convolve(wide, mass, infinite, known)
        _select(known, rises, curve[:size])
        _inside_cells(known, rises, gap, free[: size + m - 1], curve[:size])
        least = max(cut, 1.01 * curve[size - 1])
        count = size
        while count > 0 and not curve[count - 1] > least:
            count -= 1
        count = min(count + 1, size)
        for i in range(count):
            curve[i] = min(curve[i], 1.0)
    return count


@part
def _extend(curve: Floats, falls: Floats, below: int, wide: Floats) -> None:
    """Write H at -below, -below + 1, ...: H(-x) = 1 - e^-x + e^-x H(x), and constant past the end."""
    last = curve.size - 1
    for i in range(1, below + 1):
        wide[below - i] = falls[i] + (1 - falls[i]) * curve[min(i, last)]
    for i in range(curve.size):
        wide[below + i] = curve[i]
    for i in range(below + curve.size, wide.size):
        wide[i] = curve[last]


@part
def _convolve(wide: Floats, mass: Floats, infinite: float, after: Floats) -> None:
    """Write E[H(x - W)], where x - W is at the end of ``wide`` for the least loss W."""
    whole, end = mass.size - mass.size % 4, mass.size - 1
    begin = after.size - after.size % PLACES
    for i in range(0, begin, PLACES):
        weigh_places(wide, mass, whole // 4, i, infinite, after)
    rest = after[begin:]
    rest[:] = infinite
    # four losses at a time: each sum is loaded and stored less often, and is the same
    for k in range(0, whole, 4):
        p, q, r, s = mass[k], mass[k + 1], mass[k + 2], mass[k + 3]
        a, b = wide[begin + end - k :], wide[begin + end - k - 1 :]
        c, d = wide[begin + end - k - 2 :], wide[begin + end - k - 3 :]
        for i in range(rest.size):
            rest[i] += (p * a[i] + q * b[i]) + (r * c[i] + s * d[i])
    for k in range(whole, mass.size):
        share, shifted = mass[k], wide[end - k :]
        for i in range(after.size):
            after[i] += share * shifted[i]


@part
def _select(after: Floats, rises: Floats, best: Floats) -> None:
    """Write max over t = 0, h, ..., eta of p_t G(x - t) + (1 - p_t) G(x - t + eta) at x = 0, h, 2 h, ...

    ``after[i]`` is G(i h - eta).
    """
    m, begin = rises.size - 1, best.size - best.size % PLACES
    for i in range(0, begin, PLACES):
        best_places(after, rises, i, best)
    last = best[begin:]
    last[:] = 0.0
    for j in range(m + 1):
        weight = rises[j] / rises[0]
        # slices, because an index that might be negative would keep the loop from being vectorised
        rest, lower, upper = 1 - weight, after[begin + m - j :], after[begin + 2 * m - j :]
        for i in range(last.size):
            value = weight * lower[i] + rest * upper[i]
            last[i] = value if value > last[i] else last[i]


@part
def _inside_cells(after: Floats, rises: Floats, gap: float, ratios: Floats, best: Floats) -> None:
    """Raise ``best`` to the maxima with x - t strictly inside a cell.

    With e^{x-t} = e^{x_c} s, 1 < s < e^h, the objective is concave in s with its maximum at
    s^2 = e^{j h - eta} (a - a') / (d - e^-eta d'), where j = (x - x_c)/h, d and d' are the falls of the two
    linear pieces per unit of s and a, a' their values extrapolated to s = 0. So at most two j per cell have
    an inner maximum; everywhere else the best t is a grid point. Cells next to each other have the same two
    in long runs, whose maxima the compiler finds in vectors.
    """
    m, begin, j = rises.size - 1, 0, 0
    _set_ratios(after, rises, gap, ratios)
    for c in range(ratios.size + 1):
        here = j
        if c < ratios.size and ratios[c] > 0:
            here = max(j, 1)
            # the least one whose maximum is right of the beginning of the cell
            while here <= m and (1 + rises[here]) * ratios[c] <= 1:
                here += 1
            while here > 1 and (1 + rises[here - 1]) * ratios[c] > 1:
                here -= 1
        if here != j or c == ratios.size:
            # no cell before the first one with a ratio has an inner maximum
            for k in range(j, min(j + 1, m) + 1 if j > 0 else 0):
                _raise_run(after, rises, gap, ratios, max(begin, m - k), min(c, best.size + m - k), k, best)
            begin, j = c, here


@part
def _set_ratios(after: Floats, rises: Floats, gap: float, ratios: Floats) -> None:
    """Write (a - a') / (d - e^-eta d') of each cell, 0 if it has no inner maximum."""
    m, inverse, decay = rises.size - 1, 1 / gap, 1 + rises[0]
    lower, next_lower, upper, next_upper = after, after[1:], after[m:], after[m + 1 :]
    for c in range(ratios.size):
        fall, fall_up = lower[c] - next_lower[c], upper[c] - next_upper[c]
        numerator = (lower[c] - upper[c]) + (fall - fall_up) * inverse
        denominator = (fall - decay * fall_up) * inverse
        ratio = numerator / denominator
        ratios[c] = ratio if numerator > 0 and denominator > 0 else 0.0


@part
def _raise_run(
    after: Floats, rises: Floats, gap: float, ratios: Floats, begin: int, end: int, k: int, best: Floats
) -> None:
    """Raise ``best`` to the inner maxima of j = k of cells from ``begin`` to ``end``.

    A rounded s is another t, with a value that differs to second order.
    """
    if begin >= end:
        return
    m, inverse, low, rise = rises.size - 1, 1 / gap, rises[0], rises[k]
    lower, next_lower = after[begin:], after[begin + 1 :]
    upper, next_upper = after[begin + m :], after[begin + m + 1 :]
    these, out = ratios[begin:end], best[begin - m + k : end - m + k]
    for c in range(out.size):
        beyond = min(max(math.sqrt((1 + rise) * these[c]) - 1, 0.0), gap)  # s - 1
        share, weight = beyond * inverse, (rise - beyond) / ((1 + beyond) * low)
        value = weight * (lower[c] - share * (lower[c] - next_lower[c]))
        value += (1 - weight) * (upper[c] - share * (upper[c] - next_upper[c]))
        out[c] = value if these[c] > 0 and value > out[c] else out[c]
