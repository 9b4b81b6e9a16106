"""One round of the recursion that prices adaptive selections (`accounting.selection`).

Curves hold values at multiples of a step h; the range of a selection is eta = m h.

Proof: docs/proofs/composition.md, section 4.
"""

from __future__ import annotations

import math

from .arguments import Floats
from .compiled import compiled, part


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
            known = wide
        else:
            known = after[: size + 2 * m]
            _convolve(wide, mass, infinite, known)
        _select(known, rises, gap, curve[:size])
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
    after[:] = infinite
    # eight losses at a time, then four: each sum is loaded and stored less often, and is the same
    begin = mass.size - mass.size % 8
    for k in range(0, begin, 8):
        p, q, r, s = mass[k], mass[k + 1], mass[k + 2], mass[k + 3]
        t, u, v, w = mass[k + 4], mass[k + 5], mass[k + 6], mass[k + 7]
        end = mass.size - 1 - k
        a, b, c, d = wide[end:], wide[end - 1 :], wide[end - 2 :], wide[end - 3 :]
        e, f, g, h = wide[end - 4 :], wide[end - 5 :], wide[end - 6 :], wide[end - 7 :]
        for i in range(after.size):
            total = after[i] + ((p * a[i] + q * b[i]) + (r * c[i] + s * d[i]))
            after[i] = total + ((t * e[i] + u * f[i]) + (v * g[i] + w * h[i]))
    whole = mass.size - mass.size % 4
    for k in range(begin, whole, 4):
        p, q, r, s = mass[k], mass[k + 1], mass[k + 2], mass[k + 3]
        end = mass.size - 1 - k
        a, b, c, d = wide[end:], wide[end - 1 :], wide[end - 2 :], wide[end - 3 :]
        for i in range(after.size):
            after[i] += (p * a[i] + q * b[i]) + (r * c[i] + s * d[i])
    for k in range(whole, mass.size):
        share, shifted = mass[k], wide[mass.size - 1 - k :]
        for i in range(after.size):
            after[i] += share * shifted[i]


@part
def _select(after: Floats, rises: Floats, gap: float, best: Floats) -> None:
    """Write max over t in [0, eta] of p_t G(x - t) + (1 - p_t) G(x - t + eta) at x = 0, h, 2 h, ...

    ``after[i]`` is G(i h - eta).
    """
    m = rises.size - 1
    best[:] = 0.0
    whole = m + 1 - (m + 1) % 4
    # four at a time: each maximum is loaded and stored less often
    for j in range(0, whole, 4):
        p, q = rises[j] / rises[0], rises[j + 1] / rises[0]
        r, s = rises[j + 2] / rises[0], rises[j + 3] / rises[0]
        a, b = after[m - j :], after[2 * m - j :]
        c, d = after[m - j - 1 :], after[2 * m - j - 1 :]
        e, f = after[m - j - 2 :], after[2 * m - j - 2 :]
        g, h = after[m - j - 3 :], after[2 * m - j - 3 :]
        for i in range(best.size):
            one = max(p * a[i] + (1 - p) * b[i], q * c[i] + (1 - q) * d[i])
            other = max(r * e[i] + (1 - r) * f[i], s * g[i] + (1 - s) * h[i])
            best[i] = max(best[i], max(one, other))
    for j in range(whole, m + 1):
        weight = rises[j] / rises[0]
        # slices, because an index that might be negative would keep the loop from being vectorised
        rest, lower, upper = 1 - weight, after[m - j :], after[2 * m - j :]
        for i in range(best.size):
            value = weight * lower[i] + rest * upper[i]
            best[i] = value if value > best[i] else best[i]
    _inside_cells(after, rises, gap, best)


@part
def _inside_cells(after: Floats, rises: Floats, gap: float, best: Floats) -> None:
    """Raise ``best`` to the maxima with x - t strictly inside a cell.

    With e^{x-t} = e^{x_c} s, 1 < s < e^h, the objective is concave in s with its maximum at
    s^2 = e^{j h - eta} (a - a') / (d - e^-eta d'), where j = (x - x_c)/h, d and d' are the falls of the two
    linear pieces per unit of s and a, a' their values extrapolated to s = 0. So at most two j per cell have
    an inner maximum; everywhere else the best t is a grid point. A rounded s is another t, with a value that
    differs to second order.
    """
    m = rises.size - 1
    low, inverse = rises[0], 1 / gap
    j = 1
    for c in range(best.size + m - 1):
        here, there = after[c], after[c + m]
        fall, fall_up = here - after[c + 1], there - after[c + m + 1]
        numerator = (here - there) + (fall - fall_up) * inverse
        denominator = (fall - (1 + low) * fall_up) * inverse
        if not (numerator > 0 and denominator > 0):
            continue
        ratio = numerator / denominator
        # the least j whose maximum is right of the beginning of the cell
        while j <= m and (1 + rises[j]) * ratio <= 1:
            j += 1
        while j > 1 and (1 + rises[j - 1]) * ratio > 1:
            j -= 1
        for k in range(j, min(j + 1, m) + 1):
            i = c - m + k
            if 0 <= i < best.size:
                beyond = min(max(math.sqrt((1 + rises[k]) * ratio) - 1, 0.0), gap)  # s - 1
                share, weight = beyond * inverse, (rises[k] - beyond) / ((1 + beyond) * low)
                value = weight * (here - share * fall) + (1 - weight) * (there - share * fall_up)
                best[i] = value if value > best[i] else best[i]
