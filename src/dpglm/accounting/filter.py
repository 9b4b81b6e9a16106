"""Budgets of what is planned after a first release: spent as an account of the ledger spends its own.

A plan that depends on what was released before may not be composed with it by exact curves. Squared mu and
slacks may be added up (docs/proofs/ledger.md, section 2; docs/proofs/add_remove.md).
"""

from __future__ import annotations

import math
from functools import lru_cache

from .calibrate import calibrate
from .compose import LARGEST_EPSILON, compose
from .cover import cover
from .events import Event, Reserved
from .gaussian import check_budget, gaussian_epsilon, gaussian_mu
from .normal_form import normal_form

SLACK_SHARE = 2.0**-12
"""Share of delta that is set aside for slacks. An account of a ledger pays for hundreds of such fits."""

_TOLERANCE = 5e-4
_AIM = 0.5 * _TOLERANCE
# Points of the far tail, in slacks, at which a first guess is made.
_TAILS = (1.0, 30.0)
# How far, as a factor of the first guess, noise is looked for.
_FLOOR, _MOST = 1e-2, 1e4


@lru_cache(maxsize=256)
def reserved(epsilon: float, delta: float) -> Reserved:
    """Return what may be spent of a budget: H_mu(epsilon) + slack <= delta, verified.

    Examples
    --------
    >>> round(reserved(1.0, 1e-6).mu, 4)
    0.2367
    """
    check_budget(epsilon, delta)
    epsilon = min(epsilon, LARGEST_EPSILON)
    slack = SLACK_SHARE * delta
    found = Reserved(gaussian_mu(epsilon, delta - slack), slack)
    while compose(found).delta(epsilon) > delta:
        found = found.scaled(1 + 1e-15)
    return found


@lru_cache(maxsize=256)
def calibrate_covered(event: Event, mu: float, slack: float) -> float:
    """Return the least factor by which all noise must be multiplied to cost at most mu² and a slack.

    Parameters
    ----------
    event : Event
        A template, say ``Repeated(Gaussian(1.0), 100)``.
    mu, slack : float
        What `cover` may return.

    Returns
    -------
    float
        A factor with ``cover(event.scaled(factor), slack).mu <= mu``, verified, within 5e-4 of the least
        (1e-12 for Gaussians alone).

    Examples
    --------
    >>> from dpglm.accounting import Gaussian, Repeated
    >>> round(calibrate_covered(Repeated(Gaussian(1.0), 100), 0.5, 1e-9), 6)
    20.0
    """
    form = normal_form(event)
    if math.isinf(form.mu):
        raise ValueError("event has a part without noise, which no factor can scale")
    if form.size == 0:
        return 0.0
    guess = form.size / mu if form.is_gaussian else _necessary(event, mu, slack)
    tolerance = 1e-12 if form.is_gaussian else _TOLERANCE
    low, high, factor = 0.0, math.inf, guess
    points: list[tuple[float, float]] = []
    for step in range(200):
        found = cover(event.scaled(factor), slack).mu
        if found <= mu:
            high = min(high, factor)
        else:
            low = max(low, factor)
        if high <= low * (1 + tolerance) or high <= _FLOOR * guess:
            return high
        if found <= mu and found >= mu * (1 - tolerance):
            return factor
        if low > _MOST * guess:
            raise ValueError(
                "no reasonable noise is enough for this budget: the slack cannot pay for how records are "
                "sampled or the curvature of a record; a larger delta or a stronger quadratic term is needed"
            )
        if 0 < found < math.inf:
            points.append((math.log(factor), math.log(found / mu)))
        factor = _next(points, low, high, halve=step % 5 == 4)
    raise ArithmeticError("calibration did not converge")


def _necessary(event: Event, mu: float, slack: float) -> float:
    """Return about the least factor at which the curve is below H_mu + slack at points of the far tail."""
    tails = [(gaussian_epsilon(mu, times * slack), (times + 1) * slack) for times in _TAILS]
    found = [calibrate(event, epsilon, delta) for epsilon, delta in tails if epsilon > 0 and delta < 1]
    return max([*found, 1e-9])


def _next(points: list[tuple[float, float]], low: float, high: float, halve: bool) -> float:
    """Return a secant step in logarithms, aimed a little above the root; at first mu falls as 1 / factor."""
    if points and not halve:
        (x, y), slope = points[-1], -1.0
        if len(points) > 1 and points[-1][0] != points[-2][0]:
            slope = min((y - points[-2][1]) / (x - points[-2][0]), -0.2)
        aim = math.exp(x - (y + _AIM) / slope)
        if low < aim < high:
            return aim
    if low == 0 or math.isinf(high):
        return high / 2 if low == 0 else low * 2
    return math.sqrt(low * high)
