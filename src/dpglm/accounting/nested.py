"""Events around others: releases on disjoint parts of a table, and searches."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, Self

from .. import strict
from .events import Composed, Event, Repeated, require_event
from .tries import NegativeBinomial, PoissonTries, Tries


@dataclass(frozen=True)
class _Around:
    """An event of others, of which a record pays for one."""

    events: tuple[Event, ...]
    kind: ClassVar[str]

    def __post_init__(self) -> None:
        if not isinstance(self.events, tuple) or not self.events:
            raise ValueError("events must be a tuple of at least one event")
        for event in self.events:
            require_event("events", event)

    def scaled(self, factor: float) -> Self:
        return replace(self, events=tuple(event.scaled(factor) for event in self.events))

    def to_dict(self) -> dict[str, object]:
        return {"kind": self.kind, "events": [event.to_dict() for event in self.events]}


@dataclass(frozen=True)
class Parallel(_Around):
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

    def __post_init__(self) -> None:
        super().__post_init__()
        strict.keep(self, rule=strict.text)

    def to_dict(self) -> dict[str, object]:
        return {**super().to_dict(), "rule": self.rule}


@dataclass(frozen=True)
class Search(_Around):
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

    tries: Tries
    kind: ClassVar[str] = "search"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.tries, NegativeBinomial | PoissonTries):
            raise strict.wrong("tries", self.tries, "a NegativeBinomial or PoissonTries")

    def to_dict(self) -> dict[str, object]:
        return {**super().to_dict(), "tries": self.tries.to_dict()}


def together(price: Mapping[Event, int]) -> Composed:
    """All events of a price as one, in an order that depends on nothing but the events."""
    ordered = sorted(price.items(), key=lambda item: json.dumps(strict.plain("event", item[0].to_dict())))
    return Composed(tuple(Repeated(event, count) for event, count in ordered if count))
