"""The plan of a fit: everything that happens to the records, decided before any is read."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, lru_cache, partial
from typing import Annotated, Any, ClassVar, Self

import numpy as np

from .. import accounting, codec, display, strict
from ..accounting import (
    Composed,
    Event,
    Imprecision,
    Repeated,
    Reserved,
    calibrate,
    calibrate_covered,
    reserved,
    together,
)
from ..errors import UnsupportedProblem
from ..privacy import UNITS, Budget, Neighbours, StatedRelease, rounded_up
from .private_size import (
    MAY_LEARN,
    OWN_PASS,
    RECORD_COUNT,
    REST_SLACK,
    require_reserved,
    share_before,
    spare_of,
)
from .release import Releasable, Release

Setting = bool | int | float | str | tuple[float, ...] | None
"""Value of a setting of a plan."""


@dataclass(frozen=True)
class PassCount:
    """Number of passes over the table: exact, or an estimate and an upper bound.

    Attributes
    ----------
    usual : int
        Number of passes in a usual fit.
    most : int
        Largest number of passes.
    """

    usual: int
    most: int

    @classmethod
    def exactly(cls, count: int) -> PassCount:
        """Return a count that is known before the fit."""
        return cls(count, count)

    @property
    def is_exact(self) -> bool:
        """Whether the count is known before the fit; if not, it depends on the records."""
        return self.usual == self.most

    def times(self, count: int) -> PassCount:
        """Return the passes of ``count`` fits."""
        return PassCount(self.usual * count, self.most * count)

    def __str__(self) -> str:
        return f"{self.most:,}" if self.is_exact else f"about {self.usual:,}, at most {self.most:,}"


_LEAST_DELTA = 1e-300

_EPSILON_SLACK = 1e-9
"""Relative tolerance: the last digits of a price may differ between machines."""


@dataclass(frozen=True)
class Plan:
    """What a solver will release, and what that costs. Solvers add their own public settings.

    With the problem and a curator a plan is all that a run needs: ``plan["clipped gradient"]`` is the release
    of the query of that name, and everything else that the solver was given or derived is a setting: a bool,
    a count, a number that is not negative, text, finite numbers, or None, as its annotation says. Text that
    must be one of a few names has them in ``choices``. A kind of plan states in ``may_release`` which queries
    it releases by which mechanisms. A plan that contradicts itself is refused, and one that is read from a
    file must also keep to its budget.

    Attributes
    ----------
    n_records, n_features : int
        Size of the table: public. Where the number of records is private, n_records is a released count.
    budget : Budget
        What may be spent.
    neighbours : Neighbours
        The relation that the price is for.
    fits : int
        How many times the releases are made: once for each class of a one-vs-rest fit.
    releases : tuple of Release
        All that will be released in one of these fits, each query once.
    steps : int
        How many steps a fit takes; without noise the largest number of steps.
    learning : tuple of Release
        All that will be released before the fits: facts of the raw records that a schema leaves to be learnt,
        and how many records each class has.
    parts : tuple of Plan
        Plans of other fits that this one consists of, if it does.
    unit : str
        What the promise protects: "record", or "person" if ``n_records`` counts persons, with all of their
        records.
    """

    solver: ClassVar[str]
    kinds: ClassVar[dict[str, type[Plan]]] = {}
    choices: ClassVar[Mapping[str, Collection[str]]] = {}
    may_release: ClassVar[Releasable] = {}

    n_records: int
    n_features: int
    budget: Budget
    neighbours: Neighbours
    fits: int
    releases: tuple[Release, ...]
    steps: int
    learning: tuple[Release, ...] = field(default=(), kw_only=True)
    parts: tuple[Plan, ...] = field(default=(), kw_only=True)
    unit: Annotated[str, strict.named(UNITS)] = field(default="record", kw_only=True)

    def __init_subclass__(cls) -> None:
        Plan.kinds[cls.solver] = cls
        cls.__repr__ = Plan.__repr__  # type: ignore[method-assign]  # or ``dataclass`` makes another

    def __post_init__(self) -> None:
        strict.keep(self, **_shared_checks())
        if self.budget.private and not self.releases and not self.parts:
            raise strict.wrong("releases", self.releases, "at least one, unless epsilon is infinite")
        if len(set(self._queries)) < len(self._queries):
            raise strict.wrong("releases", self._queries, "of different queries")
        kind: Any = type(self)
        strict.keep(self, **_setting_checks(kind, self.budget.private))
        _ = self.price  # refuses releases that have none
        _require_known(self.releases, self.may_release)
        _require_known(self.learning, MAY_LEARN)

    def __getitem__(self, query: str) -> Release:
        """Return the release of a query."""
        for release in (*self.learning, *self.releases):
            if release.query == query:
                return release
        raise KeyError(f"the plan has no release of {query!r}: its releases are of {self._queries}")

    @property
    def _queries(self) -> list[str]:
        return [release.query for release in (*self.learning, *self.releases)]

    @cached_property
    def price(self) -> Counter[Event]:
        """Every event of the plan with its count: what the curator's log must equal."""
        price = Counter({event: count * self.fits for event, count in self.price_of_a_fit.items()})
        return price + _priced(self.learning, self.neighbours)

    @property
    def price_of_a_fit(self) -> Counter[Event]:
        """Every event of one of the fits with its count."""
        return _priced(self.releases, self.neighbours)

    @cached_property
    def event(self) -> Event:
        """The whole plan as one event.

        A plan that follows from a released count costs what was reserved for all that could have followed.
        """
        if self.budget.private and not self.neighbours.size_is_public:
            return reserved(self.budget.epsilon, self.budget.delta)
        return self.composed

    @property
    def composed(self) -> Event:
        """The releases as one event, for a plan that does not depend on a released count."""
        return Composed(tuple(Repeated(event, count) for event, count in self.price.items()))

    @property
    def count(self) -> Release | None:
        """The release of the number of records that the plan follows from; None if that is public."""
        return next((r for r in (*self.learning, *self.releases) if r.query == RECORD_COUNT), None)

    @property
    def table_size(self) -> int:
        """Upper bound on the number of records: public, sets the grid of sums."""
        return self.n_records + (0 if self.count is None else spare_of(self.count))

    @property
    def epsilon(self) -> float:
        """The epsilon that holds at the plan's delta: never more than the budget's."""
        return _spent_epsilon(self.event, self.budget) if self.budget.private else math.inf

    @property
    def passes(self) -> PassCount | None:
        """How often the table is read from its first row to its last, in all fits together.

        None if the plan needs a resident table, of which it reads rows or columns, and without noise, where
        a fit ends when it has converged. A resident table may be read less often than this. Others are read
        once more before the fit is charged, which is not counted here.
        """
        if not self.budget.private:
            return None
        each = self._passes_of_a_fit()
        if each is None:
            return None
        whole = each.times(self.fits)
        asked = {release.query for release in self.learning} - {RECORD_COUNT}
        before = len({query if query in OWN_PASS else "raw" for query in asked})
        return PassCount(whole.usual + before, whole.most + before)

    @property
    def learning_share(self) -> float:
        """Share of the budget, in squared mu, that learning takes: the fit alone would cost the rest."""
        if not self.learning:
            return 0.0
        if self.count is not None:
            return share_before(self.budget, self._parts_of_reserve())
        epsilon = self.budget.epsilon
        alone = max(accounting.compose(self.without_learning.event).delta(epsilon), _LEAST_DELTA)
        whole = accounting.gaussian_mu(epsilon, self.budget.delta)
        return max(0.0, 1 - (accounting.gaussian_mu(epsilon, alone) / whole) ** 2)

    @property
    def without_learning(self) -> Self:
        """The same plan without what is released before the fits, its noise unchanged."""
        return replace(self, learning=())

    @property
    def learning_in_words(self) -> str:
        """The budget share of learning as text."""
        share = f"{rounded_up(100 * self.learning_share, 3)} % of the budget, in squared mu"
        if self.count is not None:
            return share
        return f"{share}; the fit alone would spend epsilon {rounded_up(self.without_learning.epsilon, 4)}"

    @property
    def _counts(self) -> list[int]:
        """Counts of the releases, one of which is the number of steps."""
        return [release.count for release in self.releases]

    @property
    def forecast(self) -> str | None:
        """A forecast of the result from public numbers, if the solver makes one."""
        return None

    @property
    def warning(self) -> str | None:
        """Why the fit is not worth its price, if public numbers say so."""
        return None

    @property
    def hopeless(self) -> str | None:
        """Why the fit, or a part of it, cannot give what was asked for, if public numbers say so."""
        return next((part.hopeless for part in self.parts if part.hopeless is not None), None)

    def require_drawable(self) -> None:
        """Refuse noise that cannot be drawn: the budget, or a share of it, is too small."""
        for release in (*self.learning, *self.releases) if self.budget.private else ():
            try:
                release.mechanism.require_drawable(release.entries)
            except UnsupportedProblem:
                raise UnsupportedProblem(
                    f"the noise of the release {release.query!r} would be too large to sample: its share "
                    f"of epsilon = {self.budget.epsilon:g} is too small"
                ) from None
        for part in self.parts:
            part.require_drawable()

    def _passes_of_a_fit(self) -> PassCount | None:
        """The passes of one fit with noise: by default one for each release."""
        return PassCount.exactly(sum(release.count for release in self.releases))

    @property
    def settings_in_words(self) -> str:
        """The public settings of the solver as text."""
        return ", ".join(f"{name} {_shown(value)}" for name, value in self.settings().items())

    @property
    def composition(self) -> str:
        """How the privacy cost is composed, as text."""
        if not self.budget.private:
            return "not at all: there is no noise"
        if isinstance(self.event, Reserved):
            return (
                f"as a filter: the count and any plan that follows from it cost at most mu = "
                f"{rounded_up(self.event.mu, 4)} together, and {rounded_up(self.event.slack, 2)} in delta"
            )
        if all(isinstance(event, accounting.Gaussian | Imprecision) for event in self.price):
            composed = "exactly, as one Gaussian mechanism (closed form)"
        else:
            composed = "numerically, from privacy-loss curves rounded up"
        distance = sum(
            count * event.distance for event, count in self.price.items() if isinstance(event, Imprecision)
        )
        extra = rounded_up(accounting.imprecise_delta(distance, self.budget.epsilon), 2)
        return f"{composed}; noise lies on a public grid, and sampling it adds {extra} to delta"

    def calibrated(self) -> Self:
        """Return the plan with its noise scaled to the smallest that keeps within the budget."""
        factor = 0.0
        if self.budget.private and self.neighbours.size_is_public:
            factor = calibrate(self.event, self.budget.epsilon, self.budget.delta)
        elif self.budget.private:  # what is planned after a count must cost no more than is reserved for it
            reserve = reserved(self.budget.epsilon, self.budget.delta)
            factor = calibrate_covered(self.composed, reserve.mu, REST_SLACK * reserve.slack)
        releases, learning = (
            tuple(release.scaled(factor) for release in some) for some in (self.releases, self.learning)
        )
        return replace(self, releases=releases, learning=learning)

    def protecting(self, unit: str) -> Self:
        """Return the same plan as a guarantee for units of this kind."""
        if unit == self.unit:
            return self
        return replace(self, unit=unit, parts=tuple(part.protecting(unit) for part in self.parts))

    def settings(self) -> dict[str, Setting]:
        """The public settings of the solver."""
        return {name: getattr(self, name) for name in _setting_names(type(self))}

    def to_dict(self) -> dict[str, object]:
        """The plan as JSON-able values; an infinite number is the text "inf"."""
        learning = {"learning": [release.to_dict() for release in self.learning]} if self.learning else {}
        return strict.sealed(
            {
                "solver": self.solver,
                "n_records": self.n_records,
                "n_features": self.n_features,
                "budget": self.budget.to_dict(),
                "neighbours": self.neighbours.value,
                **({} if self.unit == "record" else {"unit": self.unit}),
                "fits": self.fits,
                "releases": [release.to_dict() for release in self.releases],
                **learning,
                "settings": strict.plain("settings", self.settings()),
                **({"parts": [part.to_dict() for part in self.parts]} if self.parts else {}),
            }
        )

    def to_json(self) -> str:
        """The plan as strict JSON text."""
        return strict.to_json(self.to_dict())

    @staticmethod
    def from_dict(values: Mapping[str, object]) -> Plan:
        """The inverse of ``to_dict``; refuses what was edited or spends more than its budget."""
        optional = {"learning", "parts", "unit"} - set(strict.mapping("a plan", values))
        shared = [name for name in _SHARED if name not in optional]
        fields = strict.mapping("a plan", values, ("solver", "settings", "digest", *shared))
        del fields["digest"]
        kind = Plan.kinds[strict.one_of("solver", fields.pop("solver"), Plan.kinds)]
        settings = strict.mapping("settings", fields.pop("settings"), _setting_names(kind))
        plan = kind(**codec.decoded(kind, {**fields, **settings}))
        plan._refuse_overspending()
        strict.require_sealed("the plan", values)
        return plan

    @staticmethod
    def from_json(content: str) -> Plan:
        """The inverse of ``to_json``."""
        return Plan.from_dict(strict.from_json(content))

    def _refuse_overspending(self) -> None:
        """Refuse a stored plan that spends more than its budget, or makes another number of steps."""
        if not self.budget.private:
            return
        try:
            epsilon = self.epsilon
        except ArithmeticError:
            raise ValueError("noise and counts must be such that a price can be computed") from None
        if epsilon > self.budget.epsilon * (1 + _EPSILON_SLACK):
            raise ValueError(
                f"epsilon must be at most {self.budget.epsilon!r}, the budget, got {epsilon!r} "
                f"from the releases of the plan"
            )
        if isinstance(self.event, Reserved):
            self.require_reserved()
        if self.steps not in self._counts:
            raise strict.wrong("steps", self.steps, f"the count of a release, which are {self._counts}")

    def require_reserved(self) -> None:
        """Refuse a plan that follows from a count and costs more than was reserved for it."""
        require_reserved(self.budget, self._parts_of_reserve())

    def _parts_of_reserve(self) -> list[Event]:
        """Events of the count, of learning and of the fits."""
        counts = (self.count,) if self.count else ()
        fits = tuple(release for release in self.releases if release.query != RECORD_COUNT) * self.fits
        learning = tuple(release for release in self.learning if release.query != RECORD_COUNT)
        return [together(_priced(some, self.neighbours)) for some in (counts, learning, fits)]

    def __str__(self) -> str:
        lines = [f"{self.solver}: {_table(self)}, {self.neighbours.value}"]
        lines.append(f"budget    {_budget(self)}; spends epsilon {_spends(self)}")
        lines += [f"{name:<10}{value}" for name, value in _facts(self)]
        lines += _release_lines(self)
        for part, count in Counter(map(_as_part, self.parts)).items():
            lines.append(f"{f'{count} parts' if count > 1 else 'part':<10}{part}")
        return "\n".join(lines)

    def stated_releases(self) -> list[StatedRelease]:
        """All releases as a guarantee states them, including those of the parts."""
        own = [line for release in self.learning for line in release.stated(1)]
        own += [line for release in self.releases for line in release.stated(self.fits)]
        lines = [line for part in self.parts for line in part.stated_releases()]
        return own + [line for k, line in enumerate(lines) if line not in lines[:k]]

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """The plan as a notebook shows it."""
        private = self.budget.private
        return display.card(
            "plan" if private else "not private",
            private,
            f"{self.solver}: spends epsilon {_spends(self)} at delta {rounded_up(self.budget.delta, 3)}",
            display.releases(
                (
                    f"{release.count * (1 if release in part.learning else part.fits)}",
                    f"{'then ' if line.follows else ''}{line.query}",
                    line.mechanism.name,
                    f"{line.mechanism.noise:.4g}",
                    line.sensitivity,
                    release.sampling.words,
                )
                for part in (self, *self.parts)
                for release in (*part.learning, *part.releases)
                for line in release.lines
            ),
            display.facts(
                [
                    ("table", _table(self)),
                    *([("fits", f"{self.fits}, one for each class")] if self.fits > 1 else []),
                    ("budget", _budget(self)),
                    ("neighbours", f"{self.neighbours.value} ({self.neighbours.of(self.unit)})"),
                    *_facts(self),
                    ("composed", self.composition),
                ]
            ),
        )


def _require_known(releases: tuple[Release, ...], may_release: Releasable) -> None:
    """Refuse releases whose query or mechanism is not allowed."""
    for release in releases:
        if not isinstance(release.mechanism, may_release.get(release.query, ())):
            known = {query: [kind.__name__ for kind in kinds] for query, kinds in may_release.items()}
            raise strict.wrong(
                "mechanism", f"{release.query} by {type(release.mechanism).__name__}", f"one of {known}"
            )


def _priced(releases: tuple[Release, ...], neighbours: Neighbours) -> Counter[Event]:
    """Count the events of releases."""
    price: Counter[Event] = Counter()
    for release in releases:
        price[release.event(neighbours)] += release.count
        for event, times in release.mechanism.imprecision(release.entries).items():
            price[event] += release.count * times
    return price


@lru_cache(maxsize=256)
@np.errstate(all="ignore")  # noise and counts of a stored plan may be absurd
def _spent_epsilon(event: Event, budget: Budget) -> float:
    curve = accounting.compose(event)
    epsilon = curve.epsilon(budget.delta)
    # The search for epsilon rounds up; that the budget's own epsilon holds is checked directly.
    return min(epsilon, budget.epsilon) if curve.delta(budget.epsilon) <= budget.delta else epsilon


def _facts(plan: Plan) -> list[tuple[str, str]]:
    """Names and values that text and HTML have in common."""
    facts = [("settings", plan.settings_in_words)]
    if plan.passes is not None:
        facts.append(("passes", str(plan.passes)))
    if plan.forecast is not None:
        facts.append(("forecast", plan.forecast))
    if plan.learning:
        facts.append(("learning", plan.learning_in_words))
    return facts


def _table(plan: Plan) -> str:
    return f"{plan.n_records} {plan.unit}s x {plan.n_features} features"


def _budget(plan: Plan) -> str:
    return f"epsilon {plan.budget.epsilon:g}, delta {rounded_up(plan.budget.delta, 3)}"


def _spends(plan: Plan) -> str:
    return rounded_up(plan.epsilon, 6) if plan.budget.private else "inf"


def _as_part(plan: Plan) -> str:
    head = f"{plan.solver}, {plan.n_records} {plan.unit}s: {plan.settings_in_words}"
    return "\n".join([head, *_release_lines(plan)])


def _release_lines(plan: Plan) -> list[str]:
    lines = []
    for release in (*plan.learning, *plan.releases):
        fits = 1 if release in plan.learning else plan.fits
        times = f"{release.count * fits} x " + (f"({fits} classes) " if fits > 1 else "")
        for line in release.lines:
            head = "then" if line.follows else "learn" if release in plan.learning else "release"
            lines.append(
                f"{head:<10}{times}{line.query}, {line.mechanism.name} noise {line.mechanism.noise:.4g} "
                f"x sensitivity {line.sensitivity}, {release.sampling.words}"
            )
    return lines


def _shown(value: Setting) -> str:
    if isinstance(value, tuple):
        return f"{len(value)} declared values"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


_SHARED = tuple(name for name in strict.names(Plan) if name != "steps")
"""Fields of every plan that files store outside the settings."""


@cache
def _shared_checks() -> dict[str, strict.Check]:
    return {name: codec.check_of(name, codec.hints(Plan)[name]) for name in _SHARED}


def _setting_names(kind: type[Plan]) -> tuple[str, ...]:
    """The settings of a kind of plan: the fields that a solver adds, and the number of steps."""
    return tuple(name for name in strict.names(kind) if name not in _SHARED)


@cache
def _setting_checks(kind: Any, private: bool) -> dict[str, strict.Check]:
    """The check for each setting of a kind of plan; without noise a number may be infinite."""
    level = strict.level if private else accounting.NOT_NEGATIVE
    checks = {}
    for name in _setting_names(kind):
        word = strict.named(kind.choices[name]) if name in kind.choices else strict.text
        count = partial(strict.whole, least=int(name == "steps"))
        scalars: dict[object, strict.Check] = {bool: strict.flag, int: count, float: level, str: word}
        hint = codec.hints(kind)[name]
        if not set(codec.parts_of(hint)) <= {*scalars, *codec.parts_of(Setting)}:
            raise TypeError(f"a setting is one of {Setting}, but {name} is of {hint}")
        checks[name] = codec.check_of(name, hint, scalars)
    return checks
