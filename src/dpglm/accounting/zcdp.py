"""Zero-concentrated differential privacy: a fast bound, within some percent of the exact price.

If the privacy loss of a pair has range r (largest minus smallest value), the pair is r^2/8-zCDP: the
cumulant K(a) = log E_Q e^{a loss} has K(0) = K(1) = 0 and K'' <= r^2/4 (the variance of a variable of range
r), so the Renyi divergence K(a)/(a-1) is at most a r^2/8. An epsilon-DP mechanism has range 2 epsilon.
"""

from __future__ import annotations

import math

from scipy.optimize import minimize_scalar

from .events import Gaussian
from .normal_form import NormalForm, pure_epsilon


def zcdp_rho(form: NormalForm) -> float:
    """Return rho of a composition; infinite for Poisson samples and perturbed objectives, which have none."""
    rho = form.mu**2 / 2
    for event, count in form.singles.items():
        rho += count * pure_epsilon(event) ** 2 / 2
    for item, count in form.rounds.items():
        rho += count * item.eta**2 / 8
        if isinstance(item.release, Gaussian):
            rho += count / (2 * item.release.noise**2)
        elif item.release:
            rho += count * pure_epsilon(item.release) ** 2 / 2
    return rho


def zcdp_delta(rho: float, epsilon: float) -> float:
    """Return delta by the optimal conversion of Canonne, Kamath and Steinke (2020).

    delta = inf over a > 1 of e^{(a-1)(a rho - epsilon)} (1 - 1/a)^a / (a - 1); every a gives a bound.
    """
    if not math.isfinite(rho):
        return 1.0
    if rho == 0:
        return 0.0

    def log_delta(log_gap: float) -> float:
        gap = math.exp(log_gap)
        order = 1 + gap
        return gap * (order * rho - epsilon) - order * math.log1p(1 / gap) - log_gap

    guess = math.log(max((epsilon - rho) / (2 * rho), 1e-3))
    best = minimize_scalar(log_delta, bounds=(guess - 4, guess + 4), method="bounded")
    return min(1.0, math.exp(min(best.fun, 0.0)))
