"""The least noise for a budget."""

from __future__ import annotations

import math
from functools import lru_cache

from .compose import LARGEST_EPSILON, SMALLEST_DELTA, NormalForm, compose, imprecise_delta, normal_form
from .curves import check_budget, gaussian_mu
from .events import Composed, Event, ObjectivePerturbation
from .objective import largest_curvature

_TOLERANCE = 1e-4
_AIM = 0.3 * _TOLERANCE
# A first guess is as near as the size of a composition tells, and what selections cost beyond it.
_NEAR = 1e-3
_LONG, _MORE = 128, 0.0055
# Sampling alone may meet a large delta without noise; the search then ends at this share of its first guess.
_FLOOR = 1e-2
# Objectives whose curvature would take more than this multiple of the noise of a Gaussian are refused.
_MOST_NOISE = 100.0
# Tolerance of a factor for one of two composed events, and how far it is looked for.
_BESIDE = 1e-3
_FARTHEST = 1e6


def calibrate(event: Event, epsilon: float, delta: float) -> float:
    """Return the least factor by which all noise must be multiplied to meet a budget.

    Parameters
    ----------
    event : Event
        A template, say ``Repeated(Gaussian(1.0), 100)``.
    epsilon, delta : float
        The budget. ``delta = 0`` is possible for pure-DP events only.

    Returns
    -------
    float
        A factor with ``compose(event.scaled(factor)).delta(epsilon) <= delta``, verified, while some factor
        smaller by 1e-4 of itself (1e-12 for Gaussians alone) is priced above, verified or by the secant
        through two prices. Where sampling alone meets the budget, without any noise, a small positive factor.

    Raises
    ------
    ValueError
        If there is no such factor, or if the curvature of an `ObjectivePerturbation` is so large that only
        absurd noise, of the order of 1/delta, would be enough.

    Examples
    --------
    >>> from dpglm.accounting import Gaussian, Repeated
    >>> round(calibrate(Repeated(Gaussian(1.0), 100), 1.0, 1e-6), 2)
    42.25
    """
    check_budget(epsilon, delta)
    return _calibrate(event, float(epsilon), float(delta))


@lru_cache(maxsize=1024)
def _calibrate(event: Event, epsilon: float, delta: float) -> float:
    form = normal_form(event)
    if math.isinf(form.mu):
        raise ValueError("event has a part without noise, which no factor can scale")
    if epsilon == math.inf or delta >= 1:
        return 0.0
    rest = delta
    if form.distance:
        epsilon = min(epsilon, LARGEST_EPSILON)
        rest = _precise_delta(form.distance, epsilon, delta)
    if form.size == 0:
        return 0.0
    ceiling = form.pure_epsilon / epsilon * (1 + 1e-15) if epsilon > 0 else math.inf
    if delta == 0:
        if math.isinf(ceiling):
            raise ValueError("delta = 0 needs pure-DP events and epsilon > 0")
        return _verified(event, epsilon, delta, ceiling)
    target = gaussian_mu(epsilon, rest)
    if form.is_gaussian:
        return _verified(event, epsilon, delta, form.mu / target)
    if rest < SMALLEST_DELTA:
        raise ValueError(f"delta must be 0 or at least {SMALLEST_DELTA:g} for this event, got {delta!r}")
    guess = min(_first_guess(event, target) * _cost_of_blocks(form), ceiling)
    _refuse_curvature(event, form, epsilon, delta, guess)
    return _search(event, epsilon, delta, guess, ceiling)


def _precise_delta(distance: float, epsilon: float, delta: float) -> float:
    """Return the part of delta that a distance from the exact laws leaves."""
    rest = delta * (1 - 1e-15) - imprecise_delta(distance, epsilon)
    if rest <= 0:
        raise ValueError(
            f"delta = {delta:g} cannot pay for the sampler's distance from the exact laws, which adds "
            f"{imprecise_delta(distance, epsilon):.3g} at epsilon = {epsilon:g}"
        )
    return rest


def calibrate_beside(fixed: Event, event: Event, epsilon: float, delta: float) -> float:
    """Return the least factor for the noise of an event that is composed with another one, which stays.

    Parameters
    ----------
    fixed : Event
        What is composed with the event; it must cost less than the budget.
    event : Event
        A template whose noise is to be scaled.
    epsilon, delta : float
        The budget of both together.

    Returns
    -------
    float
        A factor with ``compose(Composed((fixed, event.scaled(factor)))).delta(epsilon) <= delta``, verified,
        within 1e-3 of the least.

    Examples
    --------
    >>> from dpglm.accounting import Gaussian
    >>> round(calibrate_beside(Gaussian(5.0), Gaussian(1.0), 1.0, 1e-6), 1)
    7.9
    """
    check_budget(epsilon, delta)
    return _calibrate_beside(fixed, event, float(epsilon), float(delta))


@lru_cache(maxsize=256)
def _calibrate_beside(fixed: Event, event: Event, epsilon: float, delta: float) -> float:
    def enough(factor: float) -> bool:
        return compose(Composed((fixed, event.scaled(factor)))).delta(epsilon) <= delta

    epsilon = min(epsilon, LARGEST_EPSILON)
    _precise_delta(normal_form(Composed((fixed, event))).distance, epsilon, delta)
    size, taken = normal_form(event).size, normal_form(fixed).size
    left = gaussian_mu(epsilon, delta) ** 2 - taken**2
    guess = size / math.sqrt(left) if left > 0 else size
    low = high = guess
    step = 1.0 + 8 * _BESIDE
    if enough(guess):
        while low > guess / _FARTHEST and enough(low):
            high, low, step = low, low / step, step**2
    else:
        while not enough(high):
            low, high, step = high, high * step, step**2
            if high > guess * _FARTHEST:
                raise ValueError("the budget is spent: no noise is enough together with the fixed event")
    while high > low * (1 + _BESIDE):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def _refuse_curvature(event: Event, form: NormalForm, epsilon: float, delta: float, guess: float) -> None:
    curvatures = [largest_curvature(e) for e in form.singles if isinstance(e, ObjectivePerturbation)]
    if curvatures and compose(event.scaled(_MOST_NOISE * guess)).delta(epsilon) > delta:
        raise ValueError(
            f"no reasonable noise is enough for epsilon = {epsilon:g}: a record's curvature is up to "
            f"{max(curvatures):.3g} times that of the quadratic term; a stronger quadratic term is needed"
        )


def _verified(event: Event, epsilon: float, delta: float, factor: float) -> float:
    while compose(event.scaled(factor)).delta(epsilon) > delta:
        factor *= 1 + 1e-15
    return factor


def _first_guess(event: Event, target: float) -> float:
    """Return the factor at which the composition resembles the Gaussian mechanism of the budget."""

    def size(factor: float) -> float:
        return normal_form(event.scaled(factor)).size

    # most sizes are in proportion to 1 / factor
    high = 1.0
    for _ in range(2):
        ratio = size(high) / target
        if abs(ratio - 1) < _NEAR:
            return high
        high *= min(max(ratio, 1e-9), 1e9)
    low, high = 1.0, 1.0
    while size(low) < target:
        low /= 2
        if low < 1e-9:
            break
    while size(high) > target:
        high *= 2
    for _ in range(12):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if size(middle) > target else (low, middle)
    return high


def _cost_of_blocks(form: NormalForm) -> float:
    """Return about how much more noise long compositions of selections are priced at than their size tells.

    It is what was found for many budgets. It is part of a first guess: the result does not depend on it.
    """
    rounds = [(item, count) for item, count in form.rounds.items() if count >= _LONG]
    share = sum(count * (item.eta / 2) ** 2 for item, count in rounds) / form.size**2
    return 1 + _MORE * share**3


def _search(event: Event, epsilon: float, delta: float, guess: float, ceiling: float) -> float:
    """Bracket the least factor within the tolerance by secant steps on the equivalent Gaussian noise.

    The price of factor s is read as the log of mu(s) / mu*, where N(mu(s), 1) has the same delta at
    epsilon: nearly a straight line of slope -1 in log s. A factor that is enough is returned without a price
    on the other side of the root where the last secant puts the root within the tolerance, with a margin.
    """
    target = math.log(gaussian_mu(epsilon, delta))
    low, high = 0.0, ceiling
    points: list[tuple[float, float]] = []
    factor = guess
    for step in range(200):
        reached = compose(event.scaled(factor)).delta(epsilon)
        if reached <= delta:
            high = min(high, factor)
        else:
            low = max(low, factor)
        if high <= low * (1 + _TOLERANCE) or high <= _FLOOR * guess:
            return high
        if 0 < reached < 1:
            points.append((math.log(factor), math.log(gaussian_mu(epsilon, reached)) - target))
            if reached <= delta and _near(points):
                return high
        halve = step % 4 == 3 or not 0 < reached < 1
        factor = max(_next(points, low, high, halve), _FLOOR * guess)
    raise ArithmeticError("calibration did not converge")


def _near(points: list[tuple[float, float]]) -> bool:
    """Return whether a secant that falls as prices do puts the root just below the last factor."""
    slope = _slope(points)
    return slope is not None and slope < -0.5 and points[-1][1] >= 0.8 * _TOLERANCE * slope


def _slope(points: list[tuple[float, float]]) -> float | None:
    """The slope of the secant through the last two points."""
    if len(points) < 2 or points[-1][0] == points[-2][0]:
        return None
    return (points[-1][1] - points[-2][1]) / (points[-1][0] - points[-2][0])


def _next(points: list[tuple[float, float]], low: float, high: float, halve: bool) -> float:
    """Return a secant step, aimed a little above the root, or below it from a point that is just above."""
    if not halve and points:
        x, value = points[-1]
        slope = min(-0.1, _slope(points) or -1.0)
        aim = math.exp(x - value / slope + (-_AIM if -0.5 * _TOLERANCE < value <= 0 else _AIM))
        if low < aim < high:
            return aim
    if low == 0 or math.isinf(high):
        return high / 2 if low == 0 else low * 2
    return math.sqrt(low * high)
