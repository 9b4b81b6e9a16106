"""The plan of a fit: everything that happens to the records, decided before any is read."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property, lru_cache
from typing import Any, ClassVar, Self

from . import mechanisms, sampling
from .accounting import (
    Composed,
    Event,
    Gaussian,
    Imprecision,
    Repeated,
    calibrate,
    compose,
    imprecise_delta,
)
from .mechanisms import Mechanism
from .privacy import Budget, Neighbours, rounded_up
from .sampling import Everyone, Sampling


@dataclass(frozen=True)
class Release:
    """One kind of release: which query, by which mechanism, how often, on which records.

    ``entries`` is how many numbers are drawn for one release: the entries of a vector, or the
    candidates of a selection. A release that ``follows`` is made right after each of those before it in the
    plan, and priced as one round with it.
    """

    query: str
    mechanism: Mechanism
    count: int
    sensitivity: str
    sampling: Sampling = Everyone()
    entries: int = 1
    follows: bool = False

    def event(self, neighbours: Neighbours) -> Event:
        """What one such release costs, its noise being exactly that of its law."""
        return self.sampling.price(self.mechanism, neighbours)

    def scaled(self, factor: float) -> Release:
        """The same release with all noise multiplied."""
        return replace(self, mechanism=replace(self.mechanism, noise=self.mechanism.noise * factor))

    def to_dict(self) -> dict[str, Any]:
        """The release as JSON-able values."""
        return {
            "query": self.query,
            "mechanism": type(self.mechanism).__name__,
            "noise": self.mechanism.noise,
            "parameters": {
                item.name: getattr(self.mechanism, item.name)
                for item in fields(self.mechanism)
                if item.name != "noise"
            },
            "count": self.count,
            "sensitivity": self.sensitivity,
            "sampling": {"kind": type(self.sampling).__name__, **vars(self.sampling)},
            "entries": self.entries,
            "follows": self.follows,
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Release:
        """The inverse of ``to_dict``."""
        arguments = dict(values["sampling"])
        kind = arguments.pop("kind")
        return cls(
            values["query"],
            getattr(mechanisms, values["mechanism"])(values["noise"], **values["parameters"]),
            values["count"],
            values["sensitivity"],
            getattr(sampling, kind)(**arguments),
            values["entries"],
            values["follows"],
        )


@dataclass(frozen=True)
class Plan:
    """What a solver will release, and what that costs. Solvers add their own public settings.

    Attributes
    ----------
    n_records, n_features : int
        Size of the table: public.
    budget : Budget
        What may be spent.
    neighbours : Neighbours
        The relation that the price is for.
    fits : int
        How many times the releases are made: once for each class of a one-vs-rest fit.
    releases : tuple of Release
        All that will be released in one of these fits.
    """

    solver: ClassVar[str]
    kinds: ClassVar[dict[str, type[Plan]]] = {}

    n_records: int
    n_features: int
    budget: Budget
    neighbours: Neighbours
    fits: int
    releases: tuple[Release, ...]

    def __init_subclass__(cls) -> None:
        Plan.kinds[cls.solver] = cls

    @cached_property
    def price(self) -> Counter[Event]:
        """Every event of the plan with its count: what the curator's log must equal."""
        price: Counter[Event] = Counter()
        event: Event | None = None
        for release in self.releases:
            before, event = event, release.event(self.neighbours)
            count = release.count * self.fits
            if release.follows:
                assert before is not None, "the first release follows none"
                price[before] -= count
                event = Composed((before, event))
            price[event] += count
            if release.mechanism.imprecision is not None:
                price[release.mechanism.imprecision] += count * release.entries
        return +price

    @property
    def event(self) -> Event:
        """The whole plan as one event."""
        return Composed(tuple(Repeated(event, count) for event, count in self.price.items()))

    @property
    def epsilon(self) -> float:
        """The epsilon that holds at the plan's delta: never more than the budget's."""
        return _spent_epsilon(self.event, self.budget) if self.budget.private else math.inf

    @property
    def settings_in_words(self) -> str:
        """The public settings of the solver, in words."""
        return ", ".join(f"{name} {_shown(value)}" for name, value in self.settings().items())

    @property
    def composition(self) -> str:
        """How the price is added up, in words."""
        if not self.budget.private:
            return "not at all: there is no noise"
        if all(isinstance(event, Gaussian | Imprecision) for event in self.price):
            composed = "exactly, as one Gaussian mechanism (closed form)"
        else:
            composed = "numerically, by privacy-loss curves rounded against us"
        distance = sum(
            count * event.distance for event, count in self.price.items() if isinstance(event, Imprecision)
        )
        extra = rounded_up(imprecise_delta(distance, self.budget.epsilon), 2)
        return f"{composed}; noise lies on a public grid, and how it is drawn takes {extra} of delta"

    def calibrated(self) -> Self:
        """The same plan with all noise scaled to the least that keeps within the budget."""
        factor = calibrate(self.event, self.budget.epsilon, self.budget.delta) if self.budget.private else 0.0
        return replace(self, releases=tuple(release.scaled(factor) for release in self.releases))

    def settings(self) -> dict[str, Any]:
        """The public settings of the solver."""
        shared = {field.name for field in fields(Plan)}
        return {field.name: getattr(self, field.name) for field in fields(self) if field.name not in shared}

    def to_dict(self) -> dict[str, Any]:
        """The plan as JSON-able values."""
        return {
            "solver": self.solver,
            "n_records": self.n_records,
            "n_features": self.n_features,
            "budget": {"epsilon": self.budget.epsilon, "delta": self.budget.delta},
            "neighbours": self.neighbours.value,
            "fits": self.fits,
            "releases": [release.to_dict() for release in self.releases],
            "settings": self.settings(),
        }

    def to_json(self) -> str:
        """The plan as JSON text."""
        return json.dumps(self.to_dict(), indent=2)

    @staticmethod
    def from_dict(values: Mapping[str, Any]) -> Plan:
        """The inverse of ``to_dict``."""
        kind = Plan.kinds.get(values["solver"])
        if kind is None:
            raise ValueError(f"no solver is called {values['solver']!r}: known are {sorted(Plan.kinds)}")
        return kind(
            n_records=values["n_records"],
            n_features=values["n_features"],
            budget=Budget(**values["budget"]),
            neighbours=Neighbours(values["neighbours"]),
            fits=values["fits"],
            releases=tuple(Release.from_dict(release) for release in values["releases"]),
            **values["settings"],
        )

    def __str__(self) -> str:
        lines = [
            f"{self.solver}: {self.n_records} records x {self.n_features} features, {self.neighbours.value}",
            f"budget    epsilon {self.budget.epsilon:g}, delta {rounded_up(self.budget.delta, 3)}; "
            f"spends epsilon {rounded_up(self.epsilon, 6) if self.budget.private else 'inf'}",
            f"settings  {self.settings_in_words}",
        ]
        for release in self.releases:
            times = f"{release.count * self.fits} x " + (f"({self.fits} classes) " if self.fits > 1 else "")
            head = "then" if release.follows else "release"
            lines.append(
                f"{head:<10}{times}{release.query}, {release.mechanism.name} noise "
                f"{release.mechanism.noise:.4g} x sensitivity {release.sensitivity}, {release.sampling.words}"
            )
        return "\n".join(lines)


@lru_cache(maxsize=256)
def _spent_epsilon(event: Event, budget: Budget) -> float:
    curve = compose(event)
    epsilon = curve.epsilon(budget.delta)
    # The search for epsilon rounds up; that the budget's own epsilon holds is checked directly.
    return min(epsilon, budget.epsilon) if curve.delta(budget.epsilon) <= budget.delta else epsilon


def _shown(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
