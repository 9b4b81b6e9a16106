"""Hockey-stick curves of single mechanisms, in closed form.

A curve of a pair (P, Q) is kept as two functions on x >= 0: ``forward(x) = E_{e^x}(P || Q)`` and
``backward(x) = E_{e^x}(Q || P)``. The rest follows from E_{e^-x}(P || Q) = 1 - e^-x + e^-x backward(x);
keeping the small halves keeps relative precision in both tails.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..arrays import Vector
from .events import Relation
from .gaussian import hockey_stick, mills_difference, tail_difference

# Losses above this are charged as certain failure.
LARGEST_LOSS = 1e3
_SURVEY = np.geomspace(1e-9, LARGEST_LOSS, 300)


@dataclass(frozen=True)
class Profile:
    """Both halves of a hockey-stick curve, and the loss (if any) that many outcomes share.

    A grid that holds the atom prices it exactly; any other grid prices it too high.
    """

    forward: Callable[[Vector], Vector]
    backward: Callable[[Vector], Vector]
    atom: float = 0.0

    @property
    def is_symmetric(self) -> bool:
        """Whether both directions cost the same."""
        return self.forward is self.backward

    @property
    def reach(self) -> float:
        """A loss that is exceeded with negligible probability in either direction."""
        height = np.maximum(*self._surveyed)
        # interpolated, so that the grid moves smoothly with the noise
        fall = -np.log(np.maximum(height, 1e-25))
        return float(np.exp(np.interp(-math.log(1e-20), fall, np.log(_SURVEY))))

    @property
    def divergence(self) -> float:
        """Kullback-Leibler divergence of the pair, roughly: the integral of both halves of the curve."""
        forward, backward = self._surveyed
        return float(np.trapezoid(forward + np.exp(-_SURVEY) * backward, _SURVEY))

    @cached_property
    def _surveyed(self) -> tuple[Vector, Vector]:
        forward = self.forward(_SURVEY)
        return forward, forward if self.is_symmetric else self.backward(_SURVEY)

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


def gaussian_profile(mu: float) -> Profile:
    """Return the curve of N(mu, 1) against N(0, 1)."""
    return symmetric(lambda x: hockey_stick(mu, x))


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
