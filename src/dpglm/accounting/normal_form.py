"""An event tree sorted into what can be priced together.

Nothing is priced here: Gaussians are added up (their composition is one Gaussian), rounds of *select, then
release* are recognised and counted, and so is everything else.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

from .curves import Profile, gaussian_profile, laplace_profile, poisson_profile, pure_profile
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

Leaf = Laplace | Pure | PoissonGaussian | ObjectivePerturbation
Single = Leaf | Parallel | Search

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
    """What is released about each part of a table, by the rule of the parts."""

    def __init__(self) -> None:
        super().__init__(list)

    def add(self, event: Parallel, count: int) -> None:
        """Add so many runs of an event, part by part."""
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
    """Add an event of others, which are run so many times on average."""
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


def _collect(event: Event, count: int, form: NormalForm, parts: _Parts) -> None:
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
        case PoissonGaussian(noise, 1, neighbours):
            whole = noise if neighbours == "zero-out" else noise / 2
            _collect(Gaussian(whole), count, form, parts)
        case ObjectivePerturbation(noise, 0, "signed" | "logistic", _, "zero-out"):
            _collect(Gaussian(noise), count, form, parts)
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
