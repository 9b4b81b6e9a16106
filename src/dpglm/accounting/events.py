"""Mechanisms as values: what was run and how noisy it was, nothing else.

Every noise level is relative to the sensitivity, so an event knows neither data nor neighbours (but for
Poisson sampling and objective perturbation, whose price is a different curve for each relation).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, Protocol, cast, runtime_checkable

Neighbours = Literal["zero-out", "replace-one"]
RELATIONS: tuple[Neighbours, ...] = ("zero-out", "replace-one")
Slopes = Literal["any", "signed", "logistic"]
SLOPES: tuple[Slopes, ...] = ("any", "signed", "logistic")


@runtime_checkable
class Event(Protocol):
    """A frozen, hashable description of a mechanism."""

    kind: ClassVar[str]

    def __hash__(self) -> int: ...

    def scaled(self, factor: float) -> Event:
        """Return the same mechanism with all its noise multiplied by ``factor``."""
        ...

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-able description; `event_from_dict` is its inverse."""
        ...


@dataclass(frozen=True)
class Gaussian:
    """Gaussian release.

    Parameters
    ----------
    noise : float
        Standard deviation over L2 sensitivity. 0 means an infinite price.
    """

    noise: float
    kind: ClassVar[str] = "gaussian"

    def __post_init__(self) -> None:
        _require_level(self, "noise")

    def scaled(self, factor: float) -> Gaussian:
        return Gaussian(self.noise * _factor(factor))

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, "noise": self.noise}


@dataclass(frozen=True)
class Laplace:
    """Laplace release.

    Parameters
    ----------
    scale : float
        Scale of the noise over L1 sensitivity; the release is 1/scale-DP. 0 means an infinite price.
    """

    scale: float
    kind: ClassVar[str] = "laplace"

    def __post_init__(self) -> None:
        _require_level(self, "scale")

    def scaled(self, factor: float) -> Laplace:
        return Laplace(self.scale * _factor(factor))

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, "scale": self.scale}


@dataclass(frozen=True)
class Exponential:
    """Exponential mechanism: add Gumbel noise to every score, choose the largest.

    Its privacy loss has bounded range 2/scale. Laplace noisy-max and permute-and-flip do not: they are
    `Pure` events.

    Parameters
    ----------
    scale : float
        Scale of the Gumbel noise over the sensitivity of one score. 0 means an infinite price.
    """

    scale: float
    kind: ClassVar[str] = "exponential"

    def __post_init__(self) -> None:
        _require_level(self, "scale")

    def scaled(self, factor: float) -> Exponential:
        return Exponential(self.scale * _factor(factor))

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, "scale": self.scale}


@dataclass(frozen=True)
class PoissonGaussian:
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

    noise: float
    rate: float
    neighbours: Neighbours
    kind: ClassVar[str] = "poisson-gaussian"

    def __post_init__(self) -> None:
        _require_level(self, "noise")
        if not 0 < self.rate <= 1:
            raise ValueError(f"rate must be in (0, 1], got {self.rate!r}")
        _in_double_precision(self, "rate")
        _require_relation(self.neighbours)

    def scaled(self, factor: float) -> PoissonGaussian:
        return PoissonGaussian(self.noise * _factor(factor), self.rate, self.neighbours)

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, "noise": self.noise, "rate": self.rate, "neighbours": self.neighbours}


@dataclass(frozen=True)
class ObjectivePerturbation:
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

    noise: float
    curvature: float
    slopes: Slopes
    reach: float
    neighbours: Neighbours
    kind: ClassVar[str] = "objective-perturbation"

    def __post_init__(self) -> None:
        _require_level(self, "noise")
        _require_level(self, "curvature")
        if self.slopes not in SLOPES:
            raise ValueError(f"slopes must be one of {SLOPES}, got {self.slopes!r}")
        if not (self.reach >= 1 and math.isfinite(self.reach)):
            raise ValueError(f"reach must be finite and >= 1, got {self.reach!r}")
        _in_double_precision(self, "reach")
        _require_relation(self.neighbours)

    def scaled(self, factor: float) -> ObjectivePerturbation:
        return replace(self, noise=self.noise * _factor(factor))

    def to_dict(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "noise": self.noise,
            "curvature": self.curvature,
            "slopes": self.slopes,
            "reach": self.reach,
            "neighbours": self.neighbours,
        }


@dataclass(frozen=True)
class Pure:
    """Any epsilon-DP mechanism, charged as randomized response.

    Parameters
    ----------
    epsilon : float
        Its pure-DP parameter; ``inf`` is an infinite price.
    """

    epsilon: float
    kind: ClassVar[str] = "pure"

    def __post_init__(self) -> None:
        if not self.epsilon >= 0:
            raise ValueError(f"epsilon must be >= 0, got {self.epsilon!r}")
        _in_double_precision(self, "epsilon")

    def scaled(self, factor: float) -> Pure:
        if _factor(factor) == 0:
            return Pure(math.inf if self.epsilon else 0.0)
        return Pure(self.epsilon / factor)

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, "epsilon": "inf" if math.isinf(self.epsilon) else self.epsilon}


@dataclass(frozen=True)
class Imprecision:
    """A sampler whose output is not exactly, but nearly, that of the mechanism priced beside it.

    It adds (1 + e^epsilon) * distance to delta, however much noise there is.

    Parameters
    ----------
    distance : float
        Total-variation distance between what is drawn and the exact law, at most this much.
    """

    distance: float
    kind: ClassVar[str] = "imprecision"

    def __post_init__(self) -> None:
        _require_level(self, "distance")

    def scaled(self, factor: float) -> Imprecision:
        _factor(factor)
        return self

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, "distance": self.distance}


@dataclass(frozen=True)
class Repeated:
    """``count`` adaptive runs of one event."""

    event: Event
    count: int
    kind: ClassVar[str] = "repeated"

    def __post_init__(self) -> None:
        _require_event("event", self.event)
        if isinstance(self.count, bool) or not isinstance(self.count, int) or self.count < 1:
            raise ValueError(f"count must be an integer >= 1, got {self.count!r}")

    def scaled(self, factor: float) -> Repeated:
        return Repeated(self.event.scaled(factor), self.count)

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, "event": self.event.to_dict(), "count": self.count}


@dataclass(frozen=True)
class Composed:
    """Adaptive composition of several events.

    ``Composed((Exponential(b), release))`` with a `Gaussian` or `Laplace` release is one round of
    *select, then release* and priced in that order; every other composition is priced for any order.
    """

    events: tuple[Event, ...]
    kind: ClassVar[str] = "composed"

    def __post_init__(self) -> None:
        if not isinstance(self.events, tuple):
            raise ValueError(f"events must be a tuple, got {type(self.events).__name__}")
        for event in self.events:
            _require_event("events", event)

    def scaled(self, factor: float) -> Composed:
        return Composed(tuple(event.scaled(factor) for event in self.events))

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, "events": [event.to_dict() for event in self.events]}


def event_from_dict(description: Mapping[str, Any]) -> Event:
    """Rebuild an event from `Event.to_dict`; an unknown kind or field is refused."""
    fields = dict(description)
    kind = fields.pop("kind", None)
    if kind not in _KINDS:
        raise ValueError(f"unknown kind of event {kind!r}; known: {sorted(_KINDS)}")
    if "event" in fields:
        fields["event"] = event_from_dict(fields["event"])
    if "events" in fields:
        fields["events"] = tuple(event_from_dict(event) for event in fields["events"])
    if fields.get("epsilon") == "inf":
        fields["epsilon"] = math.inf
    try:
        return cast(Event, _KINDS[kind](**fields))
    except TypeError as error:
        raise ValueError(f"wrong fields for an event of kind {kind!r}: {sorted(fields)}") from error


_KINDS: dict[str, type] = {
    cls.kind: cls
    for cls in (
        Gaussian,
        Laplace,
        Exponential,
        PoissonGaussian,
        ObjectivePerturbation,
        Pure,
        Imprecision,
        Repeated,
        Composed,
    )
}


def _require_level(event: object, name: str) -> None:
    value = getattr(event, name)
    if not (value >= 0 and math.isfinite(value)):
        raise ValueError(f"{name} must be finite and >= 0, got {value!r}")
    _in_double_precision(event, name)


def _require_relation(neighbours: str) -> None:
    if neighbours not in RELATIONS:
        raise ValueError(f"neighbours must be one of {RELATIONS}, got {neighbours!r}")


def _in_double_precision(event: object, name: str) -> None:
    """Store a number as a float: single precision would spread into the price."""
    object.__setattr__(event, name, float(getattr(event, name)))


def _require_event(name: str, value: object) -> None:
    if not isinstance(value, Event):
        raise ValueError(f"{name} must hold accounting events, got {type(value).__name__}")


def _factor(value: float) -> float:
    if not (value >= 0 and math.isfinite(value)):
        raise ValueError(f"factor must be finite and >= 0, got {value!r}")
    return value
