"""The Gaussian mechanism in closed form.

N(mu, 1) against N(0, 1) has the hockey-stick curve

    delta(epsilon) = Phi(-epsilon/mu + mu/2) - e^epsilon Phi(-epsilon/mu - mu/2).

With Mills' ratio R(t) = Phi(-t)/phi(t), a = epsilon/mu - mu/2 and b = a + mu it equals
phi(a) (R(a) - R(b)), a difference that keeps its relative precision where the two terms above cancel.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from scipy.optimize import brentq
from scipy.special import erfcx, ndtr

from ..arrays import Vector

# Relative error granted to the special functions; their measured error is below 1e-12.
DELTA_ERROR = 1e-11
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(4)
_QUADRATURE = tuple(zip(_NODES.tolist(), _WEIGHTS.tolist(), strict=True))
_FAR_LEFT = -5.0
_FAR_RIGHT = 1e6


def gaussian_delta(mu: float, epsilon: float) -> float:
    """Return delta(epsilon) of the Gaussian mechanism, rounded up.

    Parameters
    ----------
    mu : float
        Sensitivity over standard deviation.
    epsilon : float
        Any real number.

    Examples
    --------
    >>> round(gaussian_delta(1.0, 1.0), 6)
    0.126937
    """
    if not mu >= 0:
        raise ValueError(f"mu must be >= 0, got {mu!r}")
    if epsilon == math.inf:
        return 0.0
    if math.isinf(mu):
        return 1.0
    if mu == 0:
        return max(0.0, -math.expm1(epsilon))
    if epsilon < 0:
        value = -math.expm1(epsilon) + math.exp(epsilon) * gaussian_delta(mu, -epsilon)
    else:
        value = _tail_difference_at(epsilon / mu - mu / 2, mu)
    return min(1.0, math.nextafter(value * (1 + DELTA_ERROR), math.inf))


@lru_cache(maxsize=1024)
def gaussian_mu(epsilon: float, delta: float) -> float:
    """Return the largest mu whose Gaussian mechanism is (epsilon, delta)-DP, rounded down.

    Examples
    --------
    >>> round(1 / gaussian_mu(1.0, 1e-6), 3)
    4.225
    """
    check_budget(epsilon, delta)
    if epsilon == math.inf or delta >= 1:
        return math.inf
    if delta == 0:
        return 0.0

    def excess(log_mu: float) -> float:
        return math.log(gaussian_delta(math.exp(log_mu), epsilon)) - math.log(delta)

    low, high = -1.0, 1.0
    while excess(low) > 0:
        low, high = 2 * low, low
    while excess(high) < 0:
        low, high = high, 2 * high
    mu = math.exp(brentq(excess, low, high, xtol=1e-14, rtol=1e-14))
    while gaussian_delta(mu, epsilon) > delta:
        mu *= 1 - 1e-14
    return mu


def gaussian_epsilon(mu: float, delta: float) -> float:
    """Return the least epsilon for which the Gaussian mechanism is (epsilon, delta)-DP, rounded up."""
    check_budget(0.0, delta)
    if gaussian_delta(mu, 0.0) <= delta:
        return 0.0
    if delta == 0 or math.isinf(mu):
        return math.inf

    def excess(epsilon: float) -> float:
        return math.log(gaussian_delta(mu, epsilon)) - math.log(delta)

    high = mu * (mu + 1)
    while excess(high) > 0:
        high *= 2
    epsilon = float(brentq(excess, 0.0, high, xtol=1e-15 * high, rtol=1e-14))
    step = 1e-14 * epsilon
    while gaussian_delta(mu, epsilon) > delta:
        epsilon += step
        step *= 2  # beside a large delta, steps in proportion to a tiny epsilon would change nothing
    return epsilon


def hockey_stick(mu: float, x: Vector) -> Vector:
    """Return E_{e^x}(N(mu, 1) || N(0, 1)) for an array of x >= 0."""
    return tail_difference(x / mu - mu / 2, mu)


def tail_difference(a: Vector, width: float | Vector) -> Vector:
    """Return Phi(-a) - e^{a w + w^2/2} Phi(-a - w) = phi(a) (R(a) - R(a + w)) for a width w > 0."""
    near = np.clip(a, _FAR_LEFT, _FAR_RIGHT)
    value = density(near) * mills_difference(near, width)
    far = a < _FAR_LEFT
    if far.any():
        left, w = a[far], np.broadcast_to(width, a.shape)[far]
        right = left + w
        lower = np.where(
            right > _FAR_LEFT,
            density(left) * mills(np.maximum(right, _FAR_LEFT)),
            np.exp(np.minimum(w * (left + w / 2), 0.0)) * ndtr(-right),
        )
        value[far] = ndtr(-left) - lower
    return value


def _tail_difference_at(a: float, width: float) -> float:
    """The same at one point, to the last digit: many times as fast, as roots are looked for."""
    if a < _FAR_LEFT:
        return float(tail_difference(np.array([a]), width)[0])
    a = min(a, _FAR_RIGHT)
    if width > 0.1:
        difference = _mills_at(a) - _mills_at(a + width)
    else:
        total = 0.0
        for node, weight in _QUADRATURE:
            t = a + width * (1 + node) / 2
            total += weight * (1 - t * _mills_at(t))
        difference = total * width / 2
    return float(np.exp(-a * a / 2)) / math.sqrt(2 * math.pi) * difference


def _mills_at(t: float) -> float:
    return math.sqrt(math.pi / 2) * float(erfcx(t / math.sqrt(2)))


def mills_difference(a: Vector, width: float | Vector) -> Vector:
    """Return R(a) - R(a + width) > 0; by quadrature of -R'(t) = 1 - t R(t) where it would cancel."""
    narrow = np.broadcast_to(np.asarray(width) <= 0.1, a.shape)
    if narrow.all():
        return _narrow_difference(a, width)
    value = mills(a) - mills(a + width)
    if narrow.any():
        value[narrow] = _narrow_difference(a[narrow], np.broadcast_to(width, a.shape)[narrow])
    return value


def _narrow_difference(a: Vector, width: float | Vector) -> Vector:
    total = np.zeros_like(a)
    for node, weight in zip(_NODES, _WEIGHTS, strict=True):
        t = a + width * (1 + node) / 2
        total += weight * (1 - t * mills(t))
    return total * width / 2


def mills(t: Vector) -> Vector:
    """Return Mills' ratio Phi(-t)/phi(t)."""
    return np.asarray(math.sqrt(math.pi / 2) * erfcx(t / math.sqrt(2)), dtype=np.float64)


def density(t: Vector) -> Vector:
    """Return the standard normal density."""
    return np.exp(-t * t / 2) / math.sqrt(2 * math.pi)


def check_budget(epsilon: float, delta: float) -> None:
    """Refuse what is not a privacy budget."""
    if not epsilon >= 0:
        raise ValueError(f"epsilon must be >= 0, got {epsilon!r}")
    if not 0 <= delta <= 1:
        raise ValueError(f"delta must be in [0, 1], got {delta!r}")
