"""Mechanisms as values: what was run and how noisy it was, nothing else.

Every noise level is relative to the sensitivity, so an event knows neither data nor neighbours (but for
Poisson sampling and objective perturbation, whose price is a different curve for each relation).
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, Literal, Protocol, Self, cast, runtime_checkable

from .. import codec, strict
from ..codec import Level
from .tries import NegativeBinomial, PoissonTries, Tries, tries_from_dict

Relation = Literal["zero-out", "replace-one"]
RELATIONS: tuple[Relation, ...] = ("zero-out", "replace-one")
Slopes = Literal["any", "signed", "logistic"]
SLOPES: tuple[Slopes, ...] = ("any", "signed", "logistic")

RATE = strict.within("in (0, 1]", lambda rate: 0 < rate <= 1)
_REACH = strict.within("finite and >= 1", lambda reach: 1 <= reach < math.inf)
_SLACK = strict.within("in [0, 1)", lambda slack: 0 <= slack < 1)
NOT_NEGATIVE = strict.within(">= 0", lambda value: value >= 0)


@runtime_checkable
class Event(Protocol):
    """A frozen, hashable description of a mechanism."""

    kind: ClassVar[str]

    def __hash__(self) -> int: ...

    def scaled(self, factor: float) -> Event:
        """Return the same mechanism with all its noise multiplied by ``factor``."""
        ...

    def to_dict(self) -> dict[str, object]:
        """Return a JSON-able description; `event_from_dict` is its inverse."""
        ...


def require_event(name: str, value: object) -> Event:
    """The value; what is no event is refused."""
    # A protocol is slow to ask: known events come first.
    if not isinstance(value, (_Known, Event)):
        raise ValueError(f"{name} must hold accounting events, got {type(value).__name__}")
    return cast(Event, value)


def _some_events(name: str, value: object) -> tuple[Event, ...]:
    if not isinstance(value, tuple):
        raise ValueError(f"{name} must be a tuple, got {type(value).__name__}")
    return tuple(require_event(name, event) for event in value)


def _at_least_one(name: str, value: object) -> tuple[Event, ...]:
    if not isinstance(value, tuple) or not value:
        raise ValueError(f"{name} must be a tuple of at least one event")
    return _some_events(name, value)


def _known_tries(name: str, value: object) -> Tries:
    if not isinstance(value, NegativeBinomial | PoissonTries):
        raise strict.wrong(name, value, "a NegativeBinomial or PoissonTries")
    return value


class _Known(codec.Tagged):
    """An event of this module."""


@dataclass(frozen=True)
class Noisy(_Known):
    """An event whose price falls as its ``noise`` grows; 0 means an infinite price."""

    noise: Level

    def scaled(self, factor: float) -> Self:
        return replace(self, noise=self.noise * _factor(factor))


@dataclass(frozen=True)
class Gaussian(Noisy):
    """Gaussian release.

    Parameters
    ----------
    noise : float
        Standard deviation over L2 sensitivity. 0 means an infinite price.
    """

    kind: ClassVar[str] = "gaussian"


@dataclass(frozen=True)
class Laplace(Noisy):
    """Laplace release.

    Parameters
    ----------
    noise : float
        Scale of the noise over L1 sensitivity; the release is 1/noise-DP. 0 means an infinite price.
    """

    kind: ClassVar[str] = "laplace"


@dataclass(frozen=True)
class Exponential(Noisy):
    """Exponential mechanism: add Gumbel noise to every score, choose the largest.

    Its privacy loss has bounded range 2/noise. Laplace noisy-max and permute-and-flip do not: they are
    `Pure` events.

    Parameters
    ----------
    noise : float
        Scale of the Gumbel noise over the sensitivity of one score. 0 means an infinite price.
    """

    kind: ClassVar[str] = "exponential"


@dataclass(frozen=True)
class PoissonGaussian(Noisy):
    """Gaussian release of a sum over a Poisson sample: every record is in with probability ``rate``.

    Parameters
    ----------
    noise : float
        Standard deviation over the norm bound of *one* record's contribution, for either relation.
    rate : float
        Sampling probability in (0, 1].
    neighbours : {"zero-out", "replace-one"}
        The relation the price is for.
    """

    rate: Annotated[float, RATE]
    neighbours: Relation
    kind: ClassVar[str] = "poisson-gaussian"


@dataclass(frozen=True)
class ObjectivePerturbation(Noisy):
    """Release of the minimiser of an objective with a quadratic term and a random linear one.

    The objective is ``sum_i loss(x_i . w, y_i) + r(w) + (lambda/2) ||w||^2 + b . w`` with convex losses, a
    convex r and Gaussian b. It is the exact minimiser that is priced.

    Parameters
    ----------
    noise : float
        Standard deviation of b over the largest gradient norm G of *one* record, for either relation. 0 means
        an infinite price.
    curvature : float
        Largest second derivative of a record's loss times its squared row norm, before any clipping, over
        lambda.
    slopes : {"any", "signed", "logistic"}
        What is known of the derivative of a record's loss. Nothing; its sign, from the target; or that it is
        the logistic loss, whose curvature is small where its slope is steep.
    reach : float
        Largest gradient norm of a record over G: 1 unless slopes are clipped. Only "logistic" needs it.
    neighbours : {"zero-out", "replace-one"}
        The relation the price is for.
    """

    curvature: Level
    slopes: Slopes
    reach: Annotated[float, _REACH]
    neighbours: Relation
    kind: ClassVar[str] = "objective-perturbation"


@dataclass(frozen=True)
class Pure(_Known):
    """Any epsilon-DP mechanism, charged as randomized response.

    Parameters
    ----------
    epsilon : float
        Its pure-DP parameter; ``inf`` is an infinite price.
    """

    epsilon: Annotated[float, NOT_NEGATIVE]
    kind: ClassVar[str] = "pure"

    def scaled(self, factor: float) -> Pure:
        if _factor(factor) == 0:
            return Pure(math.inf if self.epsilon else 0.0)
        return Pure(self.epsilon / factor)


@dataclass(frozen=True)
class Imprecision(_Known):
    """A sampler whose output is not exactly, but nearly, that of the mechanism priced beside it.

    It adds (1 + e^epsilon) * distance to delta, however much noise there is.

    Parameters
    ----------
    distance : float
        Total-variation distance between what is drawn and the exact law, at most this much.
    """

    distance: Level
    kind: ClassVar[str] = "imprecision"

    def scaled(self, factor: float) -> Imprecision:
        _factor(factor)
        return self


@dataclass(frozen=True)
class Reserved(_Known):
    """Anything that costs at most mu² and a slack as a filter adds them up, chosen after looking or not.

    Its curve is at most H_mu + slack: docs/proofs/ledger.md, section 2.

    Parameters
    ----------
    mu : float
        Root of the sum of the squared mu of all that is released.
    slack : float
        Sum of the slacks of all that is released; more noise does not lower it.
    """

    mu: Annotated[float, NOT_NEGATIVE]
    slack: Annotated[float, _SLACK]
    kind: ClassVar[str] = "reserved"

    def scaled(self, factor: float) -> Reserved:
        if _factor(factor) == 0:
            return replace(self, mu=math.inf if self.mu else 0.0)
        return replace(self, mu=self.mu / factor)


@dataclass(frozen=True)
class Repeated(_Known):
    """``count`` adaptive runs of one event."""

    event: Annotated[Event, require_event]
    count: int
    kind: ClassVar[str] = "repeated"

    def scaled(self, factor: float) -> Repeated:
        return Repeated(self.event.scaled(factor), self.count)


@dataclass(frozen=True)
class Composed(_Known):
    """Adaptive composition of several events.

    ``Composed((Exponential(b), release))`` with a `Gaussian` or `Laplace` release is one round of
    *select, then release* and priced in that order; every other composition is priced for any order.
    """

    events: Annotated[tuple[Event, ...], _some_events]
    kind: ClassVar[str] = "composed"

    def scaled(self, factor: float) -> Composed:
        return Composed(tuple(event.scaled(factor) for event in self.events))


def _factor(value: float) -> float:
    return strict.level("factor", value)


@dataclass(frozen=True)
class _Alternatives(_Known):
    """An event of others, of which a record pays for one."""

    events: Annotated[tuple[Event, ...], _at_least_one]

    def scaled(self, factor: float) -> Self:
        return replace(self, events=tuple(event.scaled(factor) for event in self.events))


@dataclass(frozen=True)
class Parallel(_Alternatives):
    """Releases on disjoint parts of a table: a record is in one of them, and pays for that one.

    Parameters
    ----------
    events : tuple of Event
        What is released about each part.
    rule : str
        The public rule by which a record's position decides on its part. Events of one rule are added up part
        by part.
    """

    rule: str
    kind: ClassVar[str] = "parallel"


@dataclass(frozen=True)
class Search(_Alternatives):
    """A random number of runs, each of a randomly drawn candidate, of which the best is put out.

    An output has a score, and the output with the best score wins. Nothing else is put out: neither the
    number of runs nor any other output.

    Parameters
    ----------
    events : tuple of Event
        What one run of each candidate costs, its score included.
    tries : NegativeBinomial or PoissonTries
        Law of the number of runs.
    """

    tries: Annotated[Tries, _known_tries]
    kind: ClassVar[str] = "search"


def together(price: Mapping[Event, int]) -> Composed:
    """All events of a price as one, in an order that depends on nothing but the events."""
    ordered = sorted(price.items(), key=lambda item: json.dumps(strict.plain("event", item[0].to_dict())))
    return Composed(tuple(Repeated(event, count) for event, count in ordered if count))


_KINDS: dict[str, type[_Known]] = {
    cls.kind: cls
    for cls in (
        Gaussian, Laplace, Exponential, PoissonGaussian, ObjectivePerturbation, Pure, Imprecision, Reserved,
        Repeated, Composed, Parallel, Search,
    )
}  # fmt: skip


def event_from_dict(description: Mapping[str, object]) -> Event:
    """Rebuild an event from `Event.to_dict`; an unknown kind, and missing or unknown fields, are refused."""
    kind, values = codec.kind_of("event", description, _KINDS)
    readers = {Event: event_from_dict, Tries: tries_from_dict}
    return require_event("event", codec.from_dict(kind, f"event of kind {kind.kind!r}", values, readers))
