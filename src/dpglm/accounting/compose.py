"""The one place where prices are composed."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Protocol

import numpy as np

from ..arrays import Vector
from .curves import (
    Profile,
    bounded_range_profile,
    check_budget,
    gaussian_delta,
    gaussian_epsilon,
    gaussian_profile,
    largest,
    symmetric,
)
from .events import Event, Parallel, Search
from .normal_form import NormalForm, Round, Single, normal_form, single_profile
from .pld import GridLaw, SampledCurve, composed_curve, composed_delta, discretise, selection_rounds
from .search import search_profile
from .zcdp import zcdp_delta, zcdp_rho

# Below this a grid that cuts its tails at 1e-30 would charge the cut, not the mechanism.
SMALLEST_DELTA = 1e-20

# Granted to rounding in curves and masses, whose observed effect on delta is below 1e-9 relative.
_DELTA_SLACK = 1e-6
# Grid step over the size of one loss; it costs about 0.03 % of noise.
_FINENESS = 0.06
_MOST_POINTS = 60_000
_MOST_POINTS_COMPOSED = 260_000
# Rounds priced exactly before blocks are composed, and grid cells per range of a selection.
_BLOCK = 64
_CELLS = 32
# How far, in sizes of a composition, its curve is followed where it is part of another event.
_FAR, _FAR_ENOUGH = 10.0, 1e-18
_EPSILON_TOLERANCE = 1e-6
_MOST_ROUNDS = 50

# Imprecise samplers are priced at this epsilon also for larger ones.
LARGEST_EPSILON = 600.0


class Curve(Protocol):
    """The whole privacy guarantee of an event: delta for every epsilon, and back."""

    def delta(self, epsilon: float) -> float:
        """Return a delta, never below the true one, at which ``epsilon`` holds."""
        ...

    def epsilon(self, delta: float) -> float:
        """Return an epsilon, never below the true one, at which ``delta`` holds; inf if there is none."""
        ...


def compose(event: Event) -> Curve:
    """Price an event.

    Parameters
    ----------
    event : Event
        A tree of events.

    Returns
    -------
    Curve
        Exact up to 1e-11 for Gaussians alone. Otherwise an upper bound, close to the exact adaptive
        composition (docs/proofs/composition.md says what separates them).

    Examples
    --------
    >>> from dpglm.accounting import Gaussian, Repeated
    >>> round(compose(Repeated(Gaussian(42.25), 100)).epsilon(1e-6), 3)
    1.0
    """
    return _compose(event)


@lru_cache(maxsize=256)
def _compose(event: Event) -> Curve:
    form = normal_form(event)
    if math.isinf(form.mu):
        return GaussianCurve(form.mu)
    if form.sole_parallel is not None:
        return LargestCurve(tuple(map(compose, form.sole_parallel.events)))
    exact: Curve = GaussianCurve(form.mu)
    if not form.is_gaussian:
        exact = composed_curve_of(form)
    if form.distance:
        exact = ImpreciseCurve(exact, form.distance)
    return SlackCurve(exact, form.slack) if form.slack else exact


def composed_curve_of(form: NormalForm) -> ComposedCurve:
    """Return the curve of a sorted composition, its samplers taken as exact."""
    return ComposedCurve(_parts(form), form.pure_epsilon, zcdp_rho(form))


@dataclass(frozen=True)
class GaussianCurve:
    """The trade-off of N(mu, 1) against N(0, 1); mu = inf is a release without noise."""

    mu: float

    def delta(self, epsilon: float) -> float:
        check_budget(epsilon, 0.0)
        return 1.0 if math.isinf(self.mu) else gaussian_delta(self.mu, epsilon)

    def epsilon(self, delta: float) -> float:
        return gaussian_epsilon(self.mu, delta)


@dataclass(frozen=True)
class LargestCurve:
    """The largest of some curves: that of releases on disjoint parts of a table."""

    curves: tuple[Curve, ...]

    def delta(self, epsilon: float) -> float:
        return max(curve.delta(epsilon) for curve in self.curves)

    def epsilon(self, delta: float) -> float:
        return max(curve.epsilon(delta) for curve in self.curves)


@dataclass(frozen=True)
class ComposedCurve:
    """Curves composed on one grid, or basic composition or zCDP where that is smaller.

    Attributes
    ----------
    parts : tuple of (Profile, int)
        Dominating curves and how often each occurs.
    pure : float
        The sum of pure-DP parameters, infinite if some part has none.
    rho : float
        A zCDP parameter, infinite if some part has none.
    """

    parts: tuple[tuple[Profile, int], ...]
    pure: float
    rho: float

    def delta(self, epsilon: float) -> float:
        check_budget(epsilon, 0.0)
        if epsilon >= self.pure or epsilon == math.inf:
            return 0.0
        if len(self.parts) == 1 and self.parts[0][1] == 1:
            value = self.parts[0][0].at(epsilon)
        else:
            value = max(composed_delta(laws, epsilon) for laws in self._directions)
        return min(1.0, value * (1 + _DELTA_SLACK), zcdp_delta(self.rho, epsilon) * (1 + _DELTA_SLACK))

    def epsilon(self, delta: float) -> float:
        check_budget(0.0, delta)
        if delta < SMALLEST_DELTA:
            return self.pure
        if self.delta(0.0) <= delta:
            return 0.0
        low, high = 0.0, min(1.0, self.pure)
        while self.delta(high) > delta:
            low, high = high, min(2 * high, self.pure)
            if high > 1e5:
                return math.inf
        return _falling_root(self.delta, delta, low, high)

    @property
    def step(self) -> float:
        """Distance of the grid points on which the parts are composed."""
        return self._directions[0][0][0].step

    def at_grid_points(self, last: int) -> Vector:
        """Return delta, never below the true one, at the epsilons 0, step, ..., last * step."""
        bounds = [composed_curve(laws, last) for laws in self._directions]
        value: Vector = np.minimum(1.0, np.max(bounds, axis=0) * (1 + _DELTA_SLACK))
        return value

    @cached_property
    def _directions(self) -> list[list[tuple[GridLaw, int]]]:
        """The laws to compose, in both directions where these differ: a record is in, or out, throughout."""
        step = _grid_step(self.parts)
        there = [(discretise(profile, step), count) for profile, count in self.parts]
        if all(profile.is_symmetric for profile, _ in self.parts):
            return [there]
        return [there, [(discretise(profile.swapped(), step), count) for profile, count in self.parts]]


@dataclass(frozen=True)
class ImpreciseCurve:
    """What an implementation promises whose output is within a distance of a mechanism with that curve.

    P'(S) <= P(S) + eta <= e^epsilon Q(S) + delta + eta <= e^epsilon Q'(S) + delta + (1 + e^epsilon) eta.
    """

    exact: Curve
    distance: float

    def delta(self, epsilon: float) -> float:
        if epsilon == math.inf:
            return 0.0
        # What holds at a smaller epsilon holds at a larger one, where the distance would cost more.
        epsilon = min(epsilon, LARGEST_EPSILON)
        extra = imprecise_delta(self.distance, epsilon)
        return min(1.0, math.nextafter(self.exact.delta(epsilon) + extra, math.inf))

    def epsilon(self, delta: float) -> float:
        # What the distance costs rises with epsilon: a rising sequence whose limit, if any, is the least one.
        epsilon = 0.0
        for _ in range(_MOST_ROUNDS):
            rest = delta * (1 - 1e-15) - imprecise_delta(self.distance, epsilon * (1 + _EPSILON_TOLERANCE))
            if rest <= 0:
                return math.inf
            epsilon = self.exact.epsilon(rest)
            if self.delta(epsilon) <= delta:
                return epsilon
        return math.inf


@dataclass(frozen=True)
class SlackCurve:
    """A curve with a slack above it, which costs at most itself (docs/proofs/ledger.md)."""

    exact: Curve
    slack: float

    def delta(self, epsilon: float) -> float:
        if epsilon == math.inf:
            return self.slack
        return min(1.0, math.nextafter(self.exact.delta(epsilon) + self.slack, math.inf))

    def epsilon(self, delta: float) -> float:
        check_budget(0.0, delta)
        rest = delta * (1 - 1e-15) - self.slack
        return self.exact.epsilon(rest) if rest > 0 else math.inf


def imprecise_delta(distance: float, epsilon: float) -> float:
    """Return what a distance between a sampler and its law adds to delta, rounded up."""
    return (1 + math.exp(min(epsilon, LARGEST_EPSILON))) * distance * (1 + 1e-12)


def _parts(form: NormalForm) -> tuple[tuple[Profile, int], ...]:
    parts = [(_profile(event), count) for event, count in form.singles.items()]
    for item, count in form.rounds.items():
        parts += _blocks(item, count)
    if form.mu > 0:
        parts.append((gaussian_profile(form.mu), 1))
    return tuple(parts)


def _profile(event: Single) -> Profile:
    """Return the curve of one event, also of one around others."""
    if isinstance(event, Parallel):
        return largest([profile_of(part) for part in event.events])
    if isinstance(event, Search):
        return search_profile(largest([profile_of(part) for part in event.events]), event.tries)
    return single_profile(event)


@lru_cache(maxsize=64)
def profile_of(event: Event) -> Profile:
    """Return the curve of an event as a profile, its samplers taken as exact."""
    form = normal_form(event)
    if form.is_gaussian:
        return gaussian_profile(form.mu) if form.mu else symmetric(np.zeros_like)
    curve = composed_curve_of(form)
    if len(curve.parts) == 1 and curve.parts[0][1] == 1:
        return curve.parts[0][0]
    last = math.ceil(_FAR * max(form.size, curve.step) / curve.step)
    values = curve.at_grid_points(last)
    while values[-1] > _FAR_ENOUGH and len(values) <= _MOST_POINTS:
        before, last = values[-1], 2 * last
        values = curve.at_grid_points(last)
        if values[-1] > 0.5 * before:
            break
    values[curve.step * np.arange(len(values)) >= curve.pure] = 0.0
    return symmetric(SampledCurve(curve.step, values))


def _blocks(item: Round, count: int) -> list[tuple[Profile, int]]:
    """Return the curves of blocks of rounds: exact within a block, dominating between blocks."""
    if count == 1 and item.release is None:
        return [(bounded_range_profile(item.eta), 1)]
    whole, rest = divmod(count, _BLOCK)
    sizes = {_BLOCK: whole, rest: 1}
    counts = {size: times for size, times in sizes.items() if size and times}
    cells = _CELLS * max(1, 8 // count)
    curves = selection_rounds(item.eta, item.release_profile, counts, cells)
    return [(curves[size], times) for size, times in counts.items()]


def _grid_step(parts: tuple[tuple[Profile, int], ...]) -> float:
    """Return a step fine against the losses, but with a bounded number of points for any one and for all."""
    total = sum(count for _, count in parts)
    size = math.sqrt(sum(count * profile.size**2 for profile, count in parts) / total)
    spread = math.sqrt(2 * sum(count * profile.divergence for profile, count in parts))
    longest = max(profile.reach for profile, _ in parts)
    step = max(_FINENESS * size, longest / _MOST_POINTS, 20 * spread / _MOST_POINTS_COMPOSED)
    atom = max((count * profile.atom**2, profile.atom) for profile, count in parts)[1]
    return atom / math.ceil(atom / step) if atom > step else step


def _falling_root(curve: Callable[[float], float], target: float, low: float, high: float) -> float:
    """Return the upper end of a narrow bracket of curve(x) = target, for a falling curve."""
    while high - low > _EPSILON_TOLERANCE * high:
        middle = (low + high) / 2
        if curve(middle) <= target:
            high = middle
        else:
            low = middle
    return high
