"""Zero-concentrated differential privacy: a fast bound, within some percent of the exact price.

If the privacy loss of a pair has range r (largest minus smallest value), the pair is r^2/8-zCDP: the
cumulant K(a) = log E_Q e^{a loss} has K(0) = K(1) = 0 and K'' <= r^2/4 (the variance of a variable of range
r), so the Renyi divergence K(a)/(a-1) is at most a r^2/8. An epsilon-DP mechanism has range 2 epsilon.
"""

from __future__ import annotations

import math

from .events import Gaussian
from .normal_form import NormalForm, pure_epsilon

_STEPS, _FARTHEST = 20, 1e150


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

    def log_delta(gap: float) -> float:
        return gap * ((1 + gap) * rho - epsilon) - (1 + gap) * math.log1p(1 / gap) - math.log(gap)

    # Newton steps for gap = a - 1: the derivative, (2 gap + 1) rho - epsilon - log(1 + 1/gap), rises
    gap = least = min(max((epsilon - rho) / (2 * rho), 1e-3), _FARTHEST)
    for _ in range(_STEPS):
        fall = (2 * gap + 1) * rho - epsilon - math.log1p(1 / gap)
        gap = max(gap - fall / (2 * rho + 1 / (gap * (1 + gap))), gap / 4)
    return min(1.0, math.exp(min(log_delta(gap), log_delta(least), 0.0)))
