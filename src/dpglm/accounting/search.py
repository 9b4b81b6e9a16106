"""Privacy curves of searches with a random number of tries, from those of one try (docs/proofs/search.md).

With G_P and G_Q the probabilities of a better output than a given one and h the largest G_Q that the curve of
a try allows, the search weighs that output by f'(1 - G_P) against f'(1 - h(G_P)). Lines e^x g + E_{e^x} bound
h; between the points where two of them meet, one line is the least, and the logarithm of the ratio of
weights is largest at an end. So the curve of a search is at most a sum of shifted curves of a try.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from ..arrays import Vector
from .curves import SURVEY, Profile, hockey_stick, symmetric
from .tries import LONGEST, Tries

_LINES = 400
_MOST_TERMS = 64
_POINTS_AT_ONCE = 1 << 12
_ROUNDING = 1 + 1e-9
_NEGLIGIBLE = 1e-13
_GROUPS = 80
_BEYOND = 1e-18
"""More than the probability of numbers of tries that are left out."""

Curve = Callable[[Vector], Vector]


def search_profile(base: Profile, tries: Tries) -> Profile:
    """Return a curve above that of a search whose tries have the curve ``base``."""
    forward = _bound(base, tries)
    if math.isfinite(base.mu):
        chances = tries.probabilities()
        if len(chances) < LONGEST:  # else some that are not negligible are left out
            forward = _smaller(forward, _mixed(base.mu, chances))
    if base.is_symmetric:
        return symmetric(forward)
    return Profile(forward, _bound(base.swapped(), tries))


def _bound(base: Profile, tries: Tries) -> Curve:
    shifts, weights = _terms(base, tries)

    def curve(x: Vector) -> Vector:
        total = np.empty_like(x)
        for start in range(0, len(x), _POINTS_AT_ONCE):
            here = slice(start, start + _POINTS_AT_ONCE)
            moved = x[here, None] - shifts
            total[here] = (_everywhere(base, moved.ravel()).reshape(moved.shape) * weights).sum(axis=1)
        return np.minimum(total * _ROUNDING, 1.0)

    return curve


def _smaller(one: Curve, other: Curve) -> Curve:
    return lambda x: np.minimum(one(x), other(x))


def _mixed(mu: float, chances: Vector) -> Curve:
    """Return the mean over K of the curve of K Gaussian tries that are all put out: small losses cost less.

    ``chances`` are P(K = 0), P(K = 1), ... Numbers of tries are taken together in groups, each as if it were
    the largest of its group.
    """
    edges = np.unique(np.geomspace(1, len(chances), _GROUPS).astype(int))
    counts = np.append(edges[1:] - 1, len(chances) - 1)
    weights = np.add.reduceat(chances, edges - (edges == len(chances)))

    def curve(x: Vector) -> Vector:
        parts = [w * hockey_stick(mu * math.sqrt(k), x) for w, k in zip(weights, counts, strict=True) if w]
        total: Vector = np.minimum(np.sum(parts, axis=0) * _ROUNDING + _BEYOND, 1.0)
        return total

    return curve


def _terms(base: Profile, tries: Tries) -> tuple[Vector, Vector]:
    """Return (shifts, weights): the curve of the search is at most the sum of weight E_{e^(x - shift)}."""
    slope, height = _lines(base)
    edges = np.clip((height[1:] - height[:-1]) / (slope[:-1] - slope[1:]), 0.0, 1.0)
    low = np.append(0.0, np.maximum.accumulate(edges))
    high = np.append(low[1:], 1.0)
    shift = np.maximum(_log_ratio(tries, slope, height, low), _log_ratio(tries, slope, height, high))
    weight = np.exp(tries.log_slope(low))
    order = np.argsort(-shift, kind="stable")
    shift, most = shift[order], np.maximum.accumulate(weight[order])
    added = np.diff(most, prepend=0.0)
    shift, added = shift[added > 0], added[added > 0]
    # fewer terms: each takes the largest shift of its group
    starts = np.unique(np.linspace(0, len(shift), _MOST_TERMS + 1).astype(int)[:-1])
    return shift[starts], np.add.reduceat(added, starts)


def _lines(base: Profile) -> tuple[Vector, Vector]:
    """Return slopes, falling, and heights of lines above h: Q(S) <= e^x P(S) + E_{e^x}(Q || P), real x."""
    reach = _far(base)
    x = np.append(np.geomspace(1e-4 * reach, 0.02 * reach, 20), np.linspace(0.02 * reach, reach, _LINES)[1:])
    up, down = base.backward(x), base.forward(x)
    middle = base.backward(np.zeros(1))
    slope = np.concatenate([np.exp(x[::-1]), [1.0], np.exp(-x)])
    height = np.concatenate([up[::-1], middle, -np.expm1(-x) + np.exp(-x) * down])
    return slope, height


def _far(base: Profile) -> float:
    """Return a loss beyond which lines are of no use: their heights fall no more."""
    height = np.maximum(base.forward(SURVEY), base.backward(SURVEY))
    flat = height <= max(_NEGLIGIBLE, (1 + 1e-3) * float(height[-1]))
    return float(SURVEY[int(np.argmax(flat))])


def _log_ratio(tries: Tries, slope: Vector, height: Vector, g: Vector) -> Vector:
    return tries.log_slope(g) - tries.log_slope(slope * g + height)


def _everywhere(base: Profile, x: Vector) -> Vector:
    """Return E_{e^x}(P || Q) for any real x: E_{e^-t} = 1 - e^-t + e^-t E_{e^t}(Q || P)."""
    far = np.abs(x)
    with np.errstate(under="ignore"):
        left = -np.expm1(-far) + np.exp(-far) * base.backward(far)
        return np.where(x >= 0, base.forward(far), left)
