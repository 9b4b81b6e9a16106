"""Events from their descriptions in files."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from .. import strict
from .events import (
    Composed,
    Event,
    Exponential,
    Gaussian,
    Imprecision,
    Laplace,
    ObjectivePerturbation,
    PoissonGaussian,
    Pure,
    Repeated,
    Reserved,
)
from .nested import Parallel, Search
from .tries import tries_from_dict

_LEAVES = (
    Gaussian, Laplace, Exponential, PoissonGaussian, ObjectivePerturbation, Pure, Imprecision, Reserved,
)  # fmt: skip
_KINDS: dict[str, type[Event]] = {cls.kind: cls for cls in (*_LEAVES, Repeated, Composed, Parallel, Search)}


def event_from_dict(description: Mapping[str, object]) -> Event:
    """Rebuild an event from `Event.to_dict`; an unknown kind, and missing or unknown fields, are refused."""
    values = strict.mapping("an event", description)
    kind = _KINDS[strict.one_of("kind of event", values.get("kind"), _KINDS)]
    values = strict.mapping(f"an event of kind {kind.kind!r}", values, ("kind", *strict.names(kind)))
    del values["kind"]
    if "event" in values:
        values["event"] = event_from_dict(values["event"])
    if "events" in values:
        values["events"] = tuple(map(event_from_dict, strict.sequence("events", values["events"])))
    if "tries" in values:
        values["tries"] = tries_from_dict(values["tries"])
    build: Callable[..., Event] = kind
    return build(**{name: strict.numeric(value) for name, value in values.items()})
