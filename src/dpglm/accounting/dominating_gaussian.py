"""The least Gaussian above a curve: the price of an event in a currency that adds up over adaptive choices.

If E_{e^x} <= H_mu(x) + d for all x and both orders, the event costs mu^2 and d; sums of both are valid
however later events are chosen (docs/proofs/ledger.md). Both orders at x >= 0 are enough: at -x a Gaussian
exceeds a curve by no less than e^-x of what it does at x, in the other order.

A plan that depends on an earlier release may not be composed with it by exact curves, but squared mu and
slacks may be added up (docs/proofs/ledger.md, section 2; docs/proofs/add_remove.md): ``reserved`` and
``calibrate_covered`` are for such budgets.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from scipy.special import ndtr, ndtri

from ..arrays import Vector
from .calibrate import calibrate
from .compose import LARGEST_EPSILON, NormalForm, compose, composed_curve_of, normal_form
from .curves import Profile, check_budget, gaussian_epsilon, gaussian_mu, hockey_stick
from .events import Event, ObjectivePerturbation, Reserved
from .objective import objective_profile, transport_bounds

# Points per unit of x / mu at which a curve is compared, and how far.
_FINENESS = 40
_TOLERANCE = 1e-6
_LARGEST_MU = 1e3
_LARGEST_EXPONENT = 600.0
# Granted to the Gaussian that covers, whose error is far below.
_GAUSSIAN_ERROR = 1e-10
_PATHS = np.concatenate([np.arange(0.2, 1.5, 0.1), np.sqrt(np.arange(1.5**2, 4.0**2, 0.4))])


@dataclass(frozen=True)
class Cover:
    """A Gaussian with a slack above the curve of an event: E_{e^x} <= H_mu(x) + slack, for all real x.

    ``mu`` is infinite if there is none.
    """

    mu: float
    slack: float


def cover(event: Event, slack: float) -> Cover:
    """Return the least Gaussian that covers an event with at most this slack, rounded up.

    Parameters
    ----------
    event : Event
        A tree of events.
    slack : float
        The most that the slack may be. Gaussians need hardly any, and what is not needed is not used.

    Returns
    -------
    Cover
        With mu of Gaussians alone, else within 1e-6 of the least that the bounds on the curve allow.

    Examples
    --------
    >>> from dpglm.accounting import Gaussian, Repeated, cover
    >>> round(cover(Repeated(Gaussian(20.0), 100), 1e-9).mu, 9)
    0.5
    """
    if not slack > 0:
        raise ValueError(f"slack must be positive, got {slack!r}")
    return _cover(event, float(slack))


def cover_pure(epsilon: float) -> float:
    """Return the mu of the least Gaussian above randomized response, which dominates every epsilon-DP event.

    The corner of the trade-off, where both errors are 1/(1 + e^epsilon), touches that of the Gaussian, whose
    errors there are Phi(-mu/2); the Gaussian's is convex, and so below the lines from the corner to the ends.

    Examples
    --------
    >>> round(cover_pure(1.0), 4)
    1.232
    """
    if not epsilon >= 0:
        raise ValueError(f"epsilon must be >= 0, got {epsilon!r}")
    if epsilon > 700:
        return math.inf
    corner = math.exp(-epsilon) / (1 + math.exp(-epsilon))
    mu = max(0.0, -2 * float(ndtri(corner))) * (1 + 1e-12)
    while ndtr(-mu / 2) > corner * (1 - 1e-14):
        mu = mu * (1 + 1e-12) + 1e-15
    return mu


@lru_cache(maxsize=256)
def _cover(event: Event, slack: float) -> Cover:
    form = normal_form(event)
    if math.isinf(form.mu):
        return Cover(math.inf, slack)
    if form.sole_parallel is not None:
        parts = [_cover(part, slack) for part in form.sole_parallel.events]
        return Cover(max(part.mu for part in parts), max(part.slack for part in parts))
    perturbed = {e: n for e, n in form.singles.items() if isinstance(e, ObjectivePerturbation)}
    rest = replace(form, singles=form.singles - type(form.singles)(perturbed))
    groups = sum(perturbed.values()) + (not rest.is_gaussian)
    # half of the slack for curves, of which the samplers' distance is free to take the other
    each = slack / (2 * groups) if groups else 0.0
    squares = [rest.mu**2 * (1 + 1e-14)]
    if not rest.is_gaussian:
        squares = [_of_composition(rest, each) ** 2]
    squares += [count * _of_objective(part, each) ** 2 for part, count in perturbed.items()]
    mu = math.sqrt(math.fsum(squares)) * (1 + 1e-15)
    used = each * groups * (1 + 1e-15) + _of_distance(form.distance, mu) + form.slack
    return Cover(mu if used <= slack else math.inf, used)


def _of_distance(distance: float, mu: float) -> float:
    """Return the slack that pays for a distance: the least of H_mu(y) + (1 + e^y) distance.

    Up to y the distance adds (1 + e^x) distance, as in `ImpreciseCurve`; after y a curve is at most that at
    y, which is no more than this.
    """
    if not distance or math.isinf(mu):
        return 0.0
    if mu == 0:
        return 2 * distance * (1 + 1e-12)
    y = np.linspace(0.0, min(600.0, 60 * mu + mu * mu), 4000)
    costs = hockey_stick(mu, y) + (1 + np.exp(y)) * distance
    return float(costs.min()) * (1 + 1e-9)


def _of_composition(form: NormalForm, slack: float) -> float:
    curve = composed_curve_of(form)
    if len(curve.parts) == 1 and curve.parts[0][1] == 1:
        return _of_profile(curve.parts[0][0], curve.pure, slack)
    guess = max(form.size, 1e-12)
    for _ in range(8):
        step = curve.step
        last = max(8, math.ceil(guess * _reach(slack) / step))
        if last > 1 << 21:
            return math.inf
        values = curve.at_grid_points(last)
        points = np.append(np.arange(0.0, last, max(1.0, guess / _FINENESS / step)), last)
        index = np.unique(np.round(points).astype(np.int64))
        if values[last] <= slack:
            return _least(np.asarray(step * index, dtype=np.float64), values[index], slack, curve.pure)
        guess *= 1.6
    return math.inf


def _of_profile(profile: Profile, pure: float, slack: float) -> float:
    def bound(x: Vector) -> Vector:
        return np.maximum(profile.forward(x), profile.backward(x))

    return _of_bound(bound, profile.size, pure, slack)


def _of_objective(event: ObjectivePerturbation, slack: float) -> float:
    """Price by the convex hull of two bounds on the curve."""
    profile = objective_profile(event)

    def bound(x: Vector) -> Vector:
        return np.maximum(profile.forward(x), profile.backward(x))

    at, below = transport_bounds(event, _PATHS)
    far = _far(bound, profile.size, slack)
    if far is None:
        return math.inf
    x = np.unique(np.concatenate([at, np.arange(0.0, far, profile.size / _FINENESS), [far]]))
    value = bound(x)
    value[np.searchsorted(x, at)] = np.minimum(value[np.searchsorted(x, at)], below)
    return _least(x, _lower_hull(np.exp(x), value) * (1 + 1e-6), slack)


def _lower_hull(y: Vector, value: Vector) -> Vector:
    """Return the values of the lower convex hull: a convex curve below all points is below their chords."""
    hull: list[int] = []
    for k in range(len(y)):
        while len(hull) > 1:
            i, j = hull[-2:]
            if (value[j] - value[i]) * (y[k] - y[i]) < (value[k] - value[i]) * (y[j] - y[i]):
                break
            hull.pop()
        hull.append(k)
    return np.interp(y, y[hull], value[hull])


def _of_bound(bound: Callable[[Vector], Vector], size: float, pure: float, slack: float) -> float:
    far = _far(bound, size, slack)
    if far is None:
        return math.inf
    x = np.append(np.arange(0.0, far, min(size / _FINENESS, far / 100)), far)
    value = bound(x)
    if far < _LARGEST_EXPONENT:
        value = _lower_hull(np.exp(x), value)
    return _least(x, value * (1 + 1e-6), slack, pure)


def _far(bound: Callable[[Vector], Vector], size: float, slack: float) -> float | None:
    """Return a point from which on a curve is below the slack."""
    x = max(size, 1e-12) * np.geomspace(1.0, 200.0, 400)
    small = bound(x) * (1 + 1e-6) <= slack
    return float(x[int(np.argmax(small))]) if small.any() else None


def _reach(slack: float) -> float:
    """Return a multiple of mu from which on weak Gaussians are below the slack."""
    return math.sqrt(-2 * math.log(slack)) + 0.5


def _least(x: Vector, value: Vector, slack: float, pure: float = math.inf) -> float:
    """Return the least mu with value <= H_mu + slack, between the points too; the last value is within it.

    In y = e^x the true curve is convex, so at most its chord, and H_mu is at least its tangents at both ends.
    """
    value = np.where(x >= pure, 0.0, value)
    if value[-1] > slack:
        return math.inf
    if value[0] <= slack:
        return 0.0

    def covers(mu: float) -> bool:
        height = hockey_stick(mu, x) * (1 - _GAUSSIAN_ERROR)
        if np.any(value > height + slack):
            return False
        # slope of H_mu in y is -Phi(-x/mu - mu/2)
        slope = -ndtr(-x / mu - mu / 2) * (1 + _GAUSSIAN_ERROR)
        width = np.exp(x[:-1]) * np.expm1(np.diff(x))
        # where the tangents meet, as a share of the cell; any share in [0, 1] between is also a bound
        rise = (slope[1:] - slope[:-1]) * width
        meet = height[:-1] - height[1:] + slope[1:] * width
        share = np.clip(np.divide(meet, rise, out=np.zeros_like(rise), where=rise > 0), 0.0, 1.0)
        tangents = np.maximum(
            height[:-1] + slope[:-1] * share * width, height[1:] - slope[1:] * (1 - share) * width
        )
        chord = value[:-1] + share * (value[1:] - value[:-1])
        return bool(np.all(chord <= tangents + slack))

    high = max(math.sqrt(2 * math.pi) * float(value[0]), 1e-15)
    low = 0.0
    while not covers(high):
        low, high = high, 1.5 * high
        if high > _LARGEST_MU:
            return math.inf
    while high - low > _TOLERANCE * high:
        middle = (low + high) / 2 if low else high / 2
        low, high = (low, middle) if covers(middle) else (middle, high)
        if high < 1e-14:
            break
    return high


SLACK_SHARE = 2.0**-12
"""Share of delta that is set aside for slacks. An account of a ledger pays for hundreds of such fits."""

_BUDGET_TOLERANCE = 5e-4
_AIM = 0.5 * _BUDGET_TOLERANCE
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
    budget = Reserved(gaussian_mu(epsilon, delta - slack), slack)
    while compose(budget).delta(epsilon) > delta:
        budget = budget.scaled(1 + 1e-15)
    return budget


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
    tolerance = 1e-12 if form.is_gaussian else _BUDGET_TOLERANCE
    low, high, factor = 0.0, math.inf, guess
    points: list[tuple[float, float]] = []
    for step in range(200):
        reached = cover(event.scaled(factor), slack).mu
        if reached <= mu:
            high = min(high, factor)
        else:
            low = max(low, factor)
        if high <= low * (1 + tolerance) or high <= _FLOOR * guess:
            return high
        if reached <= mu and reached >= mu * (1 - tolerance):
            return factor
        if low > _MOST * guess:
            raise ValueError(
                "no reasonable noise is enough for this budget: the slack cannot pay for how records are "
                "sampled or the curvature of a record; a larger delta or a stronger quadratic term is needed"
            )
        if 0 < reached < math.inf:
            points.append((math.log(factor), math.log(reached / mu)))
        factor = _next(points, low, high, halve=step % 5 == 4)
    raise ArithmeticError("calibration did not converge")


def _necessary(event: Event, mu: float, slack: float) -> float:
    """Return about the least factor at which the curve is below H_mu + slack at points of the far tail."""
    tails = [(gaussian_epsilon(mu, times * slack), (times + 1) * slack) for times in _TAILS]
    factors = [calibrate(event, epsilon, delta) for epsilon, delta in tails if epsilon > 0 and delta < 1]
    return max([*factors, 1e-9])


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
