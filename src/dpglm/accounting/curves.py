"""Hockey-stick curves of single mechanisms, in closed form.

N(mu, 1) against N(0, 1) has the hockey-stick curve

    delta(epsilon) = Phi(-epsilon/mu + mu/2) - e^epsilon Phi(-epsilon/mu - mu/2).

With Mills' ratio R(t) = Phi(-t)/phi(t), a = epsilon/mu - mu/2 and b = a + mu it equals
phi(a) (R(a) - R(b)), a difference that keeps its relative precision where the two terms above cancel.

A curve of a pair (P, Q) is kept as two functions on x >= 0: ``forward(x) = E_{e^x}(P || Q)`` and
``backward(x) = E_{e^x}(Q || P)``. The rest follows from E_{e^-x}(P || Q) = 1 - e^-x + e^-x backward(x);
keeping the small halves keeps relative precision in both tails.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import brentq
from scipy.special import erfcx, ndtr

from ..arrays import Vector

if TYPE_CHECKING:
    from .events import Relation  # events know laws of tries, which know curves

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
        step *= 2  # with a large delta, steps in proportion to a tiny epsilon would change nothing
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
    """Return ``tail_difference`` at one point, with the same bits but much faster, for root finding."""
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


# Losses above this are charged as certain failure.
LARGEST_LOSS = 1e3
SURVEY = np.geomspace(1e-9, LARGEST_LOSS, 300)


@dataclass(frozen=True)
class Profile:
    """Both halves of a hockey-stick curve, and the loss (if any) that many outcomes share.

    A grid that holds the atom prices it exactly; any other grid prices it too high. ``mu`` is that of the
    Gaussian whose curve this is, infinite if it is none.
    """

    forward: Callable[[Vector], Vector]
    backward: Callable[[Vector], Vector]
    atom: float = 0.0
    mu: float = math.inf

    @property
    def is_symmetric(self) -> bool:
        """True if both directions cost the same."""
        return self.forward is self.backward

    @property
    def reach(self) -> float:
        """A loss that is exceeded with negligible probability in either direction."""
        height = np.maximum(*self._surveyed)
        # interpolated, so that the grid moves smoothly with the noise
        fall = -np.log(np.maximum(height, 1e-25))
        return float(np.exp(np.interp(-math.log(1e-20), fall, np.log(SURVEY))))

    @property
    def divergence(self) -> float:
        """Kullback-Leibler divergence of the pair, roughly: the integral of both halves of the curve."""
        forward, backward = self._surveyed
        return float(np.trapezoid(forward + np.exp(-SURVEY) * backward, SURVEY))

    @cached_property
    def _surveyed(self) -> tuple[Vector, Vector]:
        forward = self.forward(SURVEY)
        return forward, forward if self.is_symmetric else self.backward(SURVEY)

    @cached_property
    def size(self) -> float:
        """The mu of a weak Gaussian with this total variation; it sets the grid, not the price."""
        return math.sqrt(2 * math.pi) * float(self.forward(np.zeros(1))[0])

    def at(self, epsilon: float) -> float:
        """Return the larger of both directions at one epsilon >= 0."""
        x = np.array([epsilon])
        return max(float(self.forward(x)[0]), float(self.backward(x)[0]))

    def swapped(self) -> Profile:
        """Return the curve of (Q, P)."""
        return Profile(self.backward, self.forward, self.atom)


def symmetric(curve: Callable[[Vector], Vector], atom: float = 0.0) -> Profile:
    """Return the profile of a pair whose two directions cost the same."""
    return Profile(curve, curve, atom)


def largest(profiles: Sequence[Profile]) -> Profile:
    """Return the pointwise largest of some profiles, which again is the profile of a pair."""
    if len(profiles) == 1:
        return profiles[0]
    if all(math.isfinite(profile.mu) for profile in profiles):
        return gaussian_profile(max(profile.mu for profile in profiles))
    atom = max(profile.atom for profile in profiles)

    def forward(x: Vector) -> Vector:
        return np.asarray(np.max([profile.forward(x) for profile in profiles], axis=0))

    if all(profile.is_symmetric for profile in profiles):
        return symmetric(forward, atom)
    return Profile(forward, lambda x: np.max([profile.backward(x) for profile in profiles], axis=0), atom)


def gaussian_profile(mu: float) -> Profile:
    """Return the curve of N(mu, 1) against N(0, 1)."""
    curve = partial(hockey_stick, mu)
    return Profile(curve, curve, mu=mu)


def laplace_profile(epsilon: float) -> Profile:
    """Return the curve of Laplace noise with sensitivity over scale ``epsilon``."""
    return symmetric(lambda x: -np.expm1(np.minimum(x - epsilon, 0.0) / 2), epsilon)


def pure_profile(epsilon: float) -> Profile:
    """Return the curve of randomized response, which dominates every epsilon-DP mechanism."""
    return symmetric(lambda x: -np.expm1(np.minimum(x - epsilon, 0.0)) / (1 + math.exp(-epsilon)), epsilon)


def bounded_range_profile(eta: float) -> Profile:
    """Return the curve of one eta-bounded-range selection (Lemma 3)."""
    return symmetric(lambda x: np.expm1(np.minimum(x - eta, 0.0) / 2) ** 2 / -math.expm1(-eta))


def poisson_profile(noise: float, rate: float, neighbours: Relation) -> Profile:
    """Return the curve of the Poisson-sampled Gaussian (docs/proofs/poisson_sampling.md)."""
    if neighbours == "replace-one":
        return symmetric(lambda x: _replace_one(noise, rate, x))
    return Profile(lambda x: _sampled_in(noise, rate, x), lambda x: _sampled_out(noise, rate, x))


def _sampled_in(noise: float, rate: float, x: Vector) -> Vector:
    """(1-q) N(0) + q N(1) against N(0): q E_g at g = 1 + (e^x - 1)/q."""
    # log(1 + (e^x - 1)/q) without overflow: x - log q + log(1 - (1 - q) e^-x)
    inner = np.where(
        x > 1,
        x - math.log(rate) + np.log1p(-(1 - rate) * np.exp(-x)),
        np.log1p(np.expm1(np.minimum(x, 1)) / rate),
    )
    return rate * hockey_stick(1 / noise, inner)


def _sampled_out(noise: float, rate: float, x: Vector) -> Vector:
    """N(0) against (1-q) N(0) + q N(1): zero from x = -log(1-q) on, else e^x q E_g(N(0) || N(1)).

    With m = (1-q) e^x the positive part is (1 - m) N(0) - q e^x N(1), a multiple of the plain Gaussian curve
    at level q e^x / (1 - m), which is at least 1 for x >= 0.
    """
    value = np.zeros_like(x)
    left = -np.expm1(np.minimum(x + math.log1p(-rate), 1.0))
    live = left > 0
    level = math.log(rate) + x[live] - np.log(left[live])
    value[live] = left[live] * hockey_stick(1 / noise, np.maximum(level, 0.0))
    return value


def _replace_one(noise: float, rate: float, x: Vector) -> Vector:
    """(1-q) N(0) + q N(1) against (1-q) N(0) + q N(-1).

    The positive part begins at y with c u^2 q - (1-q)(g-1) u - g c q = 0, u = e^(y/s^2), c = e^(-1/(2 s^2)).
    There the three weighted densities cancel, so the value is a sum of two positive Mills differences.
    """
    half = 1 / (2 * noise**2)
    # v = u e^{-x/2} solves v^2 - 2 k v - 1 = 0, so log v = arcsinh k
    with np.errstate(over="ignore", divide="ignore"):
        log_k = np.log((1 - rate) / rate * np.sinh(x / 2)) + half
    tame = log_k < 300
    log_v = np.where(tame, np.arcsinh(np.exp(np.minimum(log_k, 300))), log_k + math.log(2))
    y = np.minimum(noise * (log_v + x / 2), 1e6)
    plus = tail_difference(y - 1 / noise, 1 / noise)
    minus = np.exp(x - (y + 1 / noise) ** 2 / 2) / math.sqrt(2 * math.pi) * mills_difference(y, 1 / noise)
    return rate * (plus + minus)
