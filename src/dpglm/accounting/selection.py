"""Exact price of adaptive rounds [bounded-range selection; release], Lemma 4 of docs/proofs/composition.md.

With eta the range of the selection and W the loss of the release,

    H_0(x) = (1 - e^x)_+,    G(x) = E_W[H_{k-1}(x - W)],
    H_k(x) = max over t in [0, eta] of  p_t G(x - t) + (1 - p_t) G(x - t + eta),

p_t = (1 - e^{t-eta}) / (1 - e^{-eta}). On a grid of step eta/m the curve is taken linear in e^x between
points, which is an upper bound because the true one is convex in e^x. Where x - t runs through one cell
the objective is A z + B + C/z in z = e^{-t}, so its maximum has a closed form.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from ..arrays import Vector
from .curves import Profile, symmetric
from .pld import TAIL, GridLaw, discretise

_CUT = TAIL / 100


@dataclass(frozen=True)
class SampledCurve:
    """A symmetric curve known at 0, step, 2 step, ...: linear in e^x between, constant after the end."""

    step: float
    values: Vector

    def __call__(self, x: Vector) -> Vector:
        last = len(self.values) - 1
        cell = np.minimum(x / self.step, max(last - 1, 0)).astype(int)  # a quotient may exceed any int
        share = np.expm1(np.minimum(x - cell * self.step, self.step)) / math.expm1(self.step)
        value: Vector = self.values[cell] * (1 - share) + self.values[np.minimum(cell + 1, last)] * share
        return value


def selection_rounds(
    eta: float, release: Profile | None, counts: Iterable[int], cells: int
) -> dict[int, Profile]:
    """Return the dominating curve of k rounds for every k in ``counts``.

    Parameters
    ----------
    eta : float
        Range of the privacy loss of one selection.
    release : Profile or None
        Curve of the release that follows each selection.
    counts : iterable of int
        Numbers of rounds wanted.
    cells : int
        Grid cells per standard deviation of the loss of a round (at most that many per eta).
    """
    counts = set(counts)
    loss = math.hypot(eta / 2, release.size if release else 0.0)
    # a range below one grid step is rounded up to it: an eta-bounded range is eta'-bounded for eta' > eta
    eta = max(eta, 2 * loss / cells)
    per_range = min(cells, max(1, math.ceil(eta * cells / (2 * loss))))
    step = eta / per_range
    law = discretise(release, step, tail=_CUT * 1e-4) if release else None
    curve = np.zeros(1)
    found = {}
    for k in range(1, max(counts) + 1):
        curve = _one_round(curve, step, per_range, law)
        if k in counts:
            found[k] = symmetric(SampledCurve(step, curve))
    return found


def _one_round(curve: Vector, step: float, m: int, law: GridLaw | None) -> Vector:
    """Map H_{k-1} to H_k, both on the indices 0, 1, 2, ..."""
    last = len(curve) - 1 + m + (law.high if law else 0)
    if law is None:
        after = _extend(curve, step, m, last + m)
    else:
        wide = _extend(curve, step, m + law.high, last + m - law.low)
        after = np.convolve(wide, law.mass, mode="valid") + law.infinite
    best = _at_grid_points(after, step, m, last)
    _inside_cells(after, step, m, best)
    keep = np.nonzero(best > max(_CUT, 1.01 * best[-1]))[0]
    # the first entry that is small enough bounds everything after it
    return np.minimum(best[: (keep[-1] + 2 if keep.size else 1)], 1.0)


def _extend(curve: Vector, step: float, below: int, above: int) -> Vector:
    """Return H at -below..above: H(-x) = 1 - e^-x + e^-x H(x), and constant past the end."""
    index = np.arange(max(below, above) + 1)
    right = curve[np.minimum(index, len(curve) - 1)]
    x = step * index[1 : below + 1]
    left = -np.expm1(-x) + np.exp(-x) * right[1 : below + 1]
    return np.concatenate([left[::-1], right[: above + 1]])


def _at_grid_points(after: Vector, step: float, m: int, last: int) -> Vector:
    """Return the maximum over t = 0, step, ..., eta at the indices 0..last; ``after`` starts at -m."""
    weight = _first_weight(step * np.arange(m + 1, dtype=np.float64), step * m)[:, None]
    rows = sliding_window_view(after, last + 1)
    best: Vector = (weight * rows[m::-1] + (1 - weight) * rows[2 * m : m - 1 : -1]).max(axis=0)
    return best


def _inside_cells(after: Vector, step: float, m: int, best: Vector) -> None:
    """Raise ``best`` to the maxima with x - t strictly inside a cell.

    With y = e^{x-t} = e^{x_c} s, 1 < s < e^step, the objective is concave in s with its maximum at
    s^2 = e^{j step - eta} (a - a') / (d - e^-eta d'), where j = (x - x_c)/step, d and d' are the falls of the
    two linear pieces per unit of s and a, a' their values extrapolated to s = 0. So at most two j per cell
    have an inner maximum; everywhere else the best t is a grid point.
    """
    eta, gap = step * m, math.expm1(step)
    last = len(best) - 1
    lower, upper = after[: last + m + 1], after[m : last + 2 * m + 1]
    fall, fall_up = -np.diff(lower), -np.diff(upper)
    numerator = (lower[:-1] - upper[:-1]) + (fall - fall_up) / gap
    denominator = (fall - math.exp(-eta) * fall_up) / gap
    cell = np.nonzero((numerator > 0) & (denominator > 0))[0]
    log_ratio = np.log(numerator[cell] / denominator[cell])
    first = np.floor(np.clip((eta - log_ratio) / step, -2.0, m + 2.0)).astype(int) + 1
    for j in (first, first + 1):
        target = cell - m + j
        usable = (j >= 1) & (j <= m) & (target >= 0) & (target <= last)
        c, log_s = cell[usable], np.clip((j * step - eta + log_ratio) / 2, 0.0, step)[usable]
        share = np.expm1(log_s) / gap
        weight = _first_weight(j[usable] * step - log_s, eta)
        value = weight * (lower[c] - share * fall[c]) + (1 - weight) * (upper[c] - share * fall_up[c])
        np.maximum.at(best, target[usable], value)


def _first_weight(t: Vector, eta: float) -> Vector:
    """Return p_t, the probability of the outcome with loss t."""
    return np.expm1(t - eta) / math.expm1(-eta)
