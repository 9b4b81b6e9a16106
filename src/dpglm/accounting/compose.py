"""The one place where prices are composed: sort an event into a normal form, and compose its parts."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
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
    laplace_profile,
    largest,
    poisson_profile,
    pure_profile,
    symmetric,
)
from .events import (
    Composed,
    Event,
    Exponential,
    Gaussian,
    Imprecision,
    Laplace,
    Noisy,
    ObjectivePerturbation,
    Parallel,
    PoissonGaussian,
    Pure,
    Relation,
    Repeated,
    Reserved,
    Search,
    together,
)
from .objective import objective_profile
from .pld import GridLaw, SampledCurve, composed_curve, composed_delta, discretise, selection_rounds
from .tries import search_profile

Leaf = Laplace | Pure | PoissonGaussian | ObjectivePerturbation
Single = Leaf | Parallel | Search

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

_NEWTON_STEPS = 20
_SEARCH_SIZE = 1.7
"""About how much larger the variance of the loss of a search is than that of one try."""


@dataclass(frozen=True)
class Round:
    """A selection and, if any, the release that follows it."""

    selection: Exponential
    release: Gaussian | Laplace | None = None

    @property
    def eta(self) -> float:
        """Range of the privacy loss of the selection."""
        return 2 / self.selection.noise

    @property
    def release_profile(self) -> Profile | None:
        if isinstance(self.release, Gaussian):
            return gaussian_profile(1 / self.release.noise)
        return laplace_profile(1 / self.release.noise) if self.release else None


@dataclass
class NormalForm:
    """A composition as counts of rounds and of single events, and the mu of all plain Gaussians.

    Attributes
    ----------
    mu : float
        Root of the sum of squared mu of the Gaussians outside rounds; ``inf`` if anything has no noise.
    distance : float
        Sum of the distances of samplers from the laws that are priced.
    slack : float
        Sum of what is added to delta, whatever epsilon is.
    """

    mu: float = 0.0
    distance: float = 0.0
    slack: float = 0.0
    rounds: Counter[Round] = field(default_factory=Counter)
    singles: Counter[Single] = field(default_factory=Counter)

    @property
    def is_gaussian(self) -> bool:
        return not self.rounds and not self.singles

    @property
    def sole_parallel(self) -> Parallel | None:
        """The releases on disjoint parts that are all there is; None if there is anything else."""
        if self.mu or self.slack or self.rounds or len(self.singles) != 1:
            return None
        ((event, count),) = self.singles.items()
        return event if isinstance(event, Parallel) and count == 1 else None

    @property
    def pure_epsilon(self) -> float:
        """Basic composition: the sum of all pure-DP parameters, rounded up; infinite with a Gaussian."""
        if self.mu > 0:
            return math.inf
        terms = [count * pure_epsilon(event) for event, count in self.singles.items()]
        for item, count in self.rounds.items():
            terms += [count * item.eta, count * pure_epsilon(item.release)]
        return math.fsum(terms) * (1 + 4e-16)

    @property
    def size(self) -> float:
        """The mu of the Gaussian that the composition resembles when it is long."""
        squares = [self.mu**2]
        squares += [count * _loss_variance(event) for event, count in self.singles.items()]
        for item, count in self.rounds.items():
            squares.append(count * (item.eta / 2) ** 2)
            if isinstance(item.release, Gaussian):
                squares.append(count / item.release.noise**2)
            elif item.release:
                squares.append(count * _loss_variance(item.release))
        return math.sqrt(math.fsum(squares))


def normal_form(event: Event) -> NormalForm:
    """Sort an event tree; an unknown kind of event, or two relations in one tree, is refused."""
    form, parts = NormalForm(), _Parts()
    _collect(event, 1, form, parts)
    for rule, prices in parts.items():
        _add_around(Parallel(tuple(map(together, prices)), rule), 1, 1.0, form)
    if len(set(_relations(form))) > 1:
        raise ValueError("event mixes parts priced for zero-out and for replace-one neighbours")
    return form


class _Parts(defaultdict[str, list[Counter[Event]]]):
    """Events on each part of a table, by the rule of the parts."""

    def __init__(self) -> None:
        super().__init__(list)

    def add(self, event: Parallel, count: int) -> None:
        """Add ``count`` runs of an event, part by part."""
        prices = self[event.rule]
        prices += [Counter() for _ in range(len(event.events) - len(prices))]
        for price, one in zip(prices, event.events, strict=False):
            price[one] += count


def _relations(form: NormalForm) -> Iterator[Relation]:
    for event in form.singles:
        if isinstance(event, PoissonGaussian | ObjectivePerturbation):
            yield event.neighbours
        elif isinstance(event, Parallel | Search):
            for inner in event.events:
                yield from _relations(normal_form(inner))


def _add_around(event: Parallel | Search, count: int, runs: float, form: NormalForm) -> None:
    """Add an event around others, which are run ``runs`` times on average."""
    inner = [normal_form(part) for part in event.events]
    if any(part.slack for part in inner):
        raise ValueError("what is reserved for a choice is no part of a search, nor of a part of a table")
    if any(math.isinf(part.mu) for part in inner):
        form.mu = math.inf
    form.distance += count * runs * max(part.distance for part in inner)
    if any(part.mu or not part.is_gaussian for part in inner):
        form.singles[event] += count


def single_profile(event: Leaf) -> Profile:
    """Return the curve of one event."""
    if isinstance(event, Laplace):
        return laplace_profile(1 / event.noise)
    if isinstance(event, Pure):
        return pure_profile(event.epsilon)
    if isinstance(event, ObjectivePerturbation):
        return objective_profile(event)
    return poisson_profile(event.noise, event.rate, event.neighbours)


def pure_epsilon(event: Event | None) -> float:
    """Return the pure-DP parameter of a single event, infinite if it has none."""
    if event is None:
        return 0.0
    if isinstance(event, Laplace):
        return 1 / event.noise
    if isinstance(event, Exponential):
        return 2 / event.noise
    return event.epsilon if isinstance(event, Pure) else math.inf


def _loss_variance(event: Single) -> float:
    """Return the variance of a weak privacy loss (for Poisson sampling the chi-square divergence)."""
    if isinstance(event, Parallel | Search):
        largest = max(normal_form(part).size for part in event.events) ** 2
        return largest if isinstance(event, Parallel) else _SEARCH_SIZE * largest
    if isinstance(event, ObjectivePerturbation):
        return (1 if event.neighbours == "zero-out" else 4) / event.noise**2
    if not isinstance(event, PoissonGaussian):
        return pure_epsilon(event) ** 2
    square = min(1 / event.noise**2, 100.0)
    if event.neighbours == "zero-out":
        return event.rate**2 * math.expm1(square)
    return event.rate**2 * 4 * math.sinh(square)


def _plain(event: Event) -> Event:
    """Return the Gaussian event that a sample of all records, or an objective without curvature, equals."""
    match event:
        case PoissonGaussian(noise, 1, neighbours):
            return Gaussian(noise if neighbours == "zero-out" else noise / 2)
        case ObjectivePerturbation(noise, 0, "signed" | "logistic", _, "zero-out"):
            return Gaussian(noise)
        case _:
            return event


def _collect(event: Event, count: int, form: NormalForm, parts: _Parts) -> None:
    event = _plain(event)
    match event:
        case Repeated(inner, times):
            _collect(inner, count * times, form, parts)
        case Noisy(noise=0) | Pure(epsilon=math.inf):
            form.mu = math.inf
        case Composed((Exponential() as first, (Gaussian() | Laplace()) as second)) if (
            first.noise and second.noise
        ):
            form.rounds[Round(first, second)] += count
        case Composed(events):
            for inner in events:
                _collect(inner, count, form, parts)
        case Gaussian(noise):
            form.mu = math.hypot(form.mu, math.sqrt(count) / noise)
        case Reserved(mu, slack):
            form.mu, form.slack = math.hypot(form.mu, math.sqrt(count) * mu), form.slack + count * slack
        case Exponential():
            form.rounds[Round(event)] += count
        case Pure(epsilon=0):
            pass
        case Imprecision(distance):
            form.distance += count * distance
        case Laplace() | Pure() | PoissonGaussian() | ObjectivePerturbation():
            form.singles[event] += count
        case Parallel():
            parts.add(event, count)
        case Search():
            _add_around(event, count, event.tries.mean, form)
        case _:
            raise ValueError(f"no price is known for an event of type {type(event).__name__}")


def zcdp_rho(form: NormalForm) -> float:
    """Return rho of a composition; infinite for Poisson samples and perturbed objectives, which have none.

    Zero-concentrated differential privacy is a fast bound, within some percent of the exact price. If the
    privacy loss of a pair has range r (largest minus smallest value), the pair is r^2/8-zCDP: the
    cumulant K(a) = log E_Q e^{a loss} has K(0) = K(1) = 0 and K'' <= r^2/4 (the variance of a variable of
    range r), so the Renyi divergence K(a)/(a-1) is at most a r^2/8. An epsilon-DP mechanism has range 2
    epsilon.
    """
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
    gap = least = min(max((epsilon - rho) / (2 * rho), 1e-3), 1e150)
    for _ in range(_NEWTON_STEPS):
        fall = (2 * gap + 1) * rho - epsilon - math.log1p(1 / gap)
        gap = max(gap - fall / (2 * rho + 1 / (gap * (1 + gap))), gap / 4)
    return min(1.0, math.exp(min(log_delta(gap), log_delta(least), 0.0)))


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
    """The curve of an implementation whose output is within a distance of a mechanism with an exact curve.

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
