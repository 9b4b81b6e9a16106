"""The curator: the only object that holds records."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import copy
from functools import lru_cache
from typing import Any, ClassVar, Protocol, Self, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from . import progress
from .accounting import Event, Imprecision, Parallel, Search, together
from .arrays import Total, Vector, bits_of_terms
from .data.record_set import RecordSet
from .data.records import Records
from .errors import PlanMismatch, UnsupportedProblem
from .mechanisms import Mechanism, Randomness
from .mechanisms.randomness import TRIES_DISTANCE, draw_tries, order_of
from .mechanisms.sampling import Everyone, Sampling
from .privacy import Neighbours
from .queries import Query
from .queries.base import (
    Batch,
    BatchAnswer,
    Draws,
    Keep,
    Openable,
    Opening,
    Releases,
    Sensitivity,
    State,
    require_moderate,
)
from .tables import Split

Opened = TypeVar("Opened")
Outcome = TypeVar("Outcome")
_EVERYONE = Everyone()
_ORDER_DIGITS = 62  # so many that no two of the numbers behind an order are equal


class Curator:
    """Answers queries about the records with noise, and logs what each answer cost.

    Solvers get a curator and nothing else, so all that they compute is post-processing of releases.

    Parameters
    ----------
    records : Summed
    neighbours : Neighbours
    randomness : Randomness
    releases : LoggedReleases, optional
        How every answer leaves the curator; by default `NoisyReleases`. An audit replaces it by one that sees
        each exact answer.
    """

    def __init__(
        self,
        records: RecordSet,
        neighbours: Neighbours,
        randomness: Randomness,
        releases: LoggedReleases | None = None,
    ) -> None:
        self._records = records
        self._neighbours = neighbours
        self._randomness = randomness
        self._releases = releases or NoisyReleases(records, neighbours, randomness)

    @property
    def neighbours(self) -> Neighbours:
        """The relation that prices are for."""
        return self._neighbours

    @property
    def spent(self) -> Counter[Event]:
        """Every event so far, with its count."""
        return Counter(self._releases.log.spent)

    def release(
        self, query: Query, mechanism: Mechanism, *public: Vector, sampling: Sampling | None = None
    ) -> Vector:
        """The query's answer on the (sampled) records, made private."""
        self._require_served(query)
        for value in public:
            require_moderate(value)
        sensitivity = query.sensitivity(self._neighbours)
        if isinstance(sensitivity, np.ndarray):
            raise ValueError(
                f"the entries of {query.name} are released one by one, each with its own sensitivity: open it"
            )
        if sampling is None or isinstance(sampling, Everyone):
            released: Vector = self._releases.give(query(self._records, *public), sensitivity, mechanism)
            return released

        def answer(batch: Batch) -> tuple[Vector | Total, None]:
            return query(self._records if batch is None else self._records.rows(batch), *public), None

        return self._releases.sampled(answer, lambda *_: None, sensitivity, mechanism, sampling)

    def open(self, query: Openable[Opened], w: Vector, mechanism: Mechanism) -> Opened:
        """A query whose private state, started at the public point w, is kept between its releases."""
        self._require_served(query)
        require_moderate(w)
        # What a query needs beyond sums is asked of the table before it is opened.
        records = cast(Records, self._records)
        return query.open(Opening(records, w, self._neighbours, self._releases, mechanism))

    def _require_served(self, query: object) -> None:
        """Refuse a query whose sensitivity is not proven for persons with several records, if these have."""
        served = isinstance(query, Query) and query.takes_units
        if getattr(self._records, "has_units", False) and not served:
            raise UnsupportedProblem(f"{getattr(query, 'name', 'a query')} is not for persons")

    @contextmanager
    def apart(self, split: Split) -> Iterator[tuple[Curator, Curator]]:
        """Curators of the rows for training and of the rows that are held out.

        What they release is logged here as releases on disjoint parts, of which a record pays for one.
        """
        parts = [self._over(self._records.of_part(part)) for part in (split.training, split.held_out)]
        try:
            yield parts[0], parts[1]
        finally:
            self._releases.log.enter(Parallel(tuple(together(part.spent) for part in parts), split.rule))

    def best_of(
        self, search: Search, attempt: Callable[[Curator, int], tuple[float, Outcome]]
    ) -> Outcome | None:
        """The best of a secret number of tries; None if there was none.

        Each try is of a candidate that is drawn uniformly, and must release what ``search`` states for it.
        Whatever a try releases stays here, unless it is the best.

        Parameters
        ----------
        search : Search
        attempt : callable
            ``attempt(curator, k)`` tries candidate k, and returns its released score and its outcome.
        """
        log = self._releases.log
        log.enter(search)
        log.enter(Imprecision(TRIES_DISTANCE))
        best: tuple[float, Outcome] | None = None
        with progress.hidden():
            for _ in range(draw_tries(search.tries, self._randomness)):
                k = int(self._randomness.integers(len(search.events), 1)[0])
                curator = self._over(self._records)
                try:
                    score, outcome = attempt(curator, k)
                except FloatingPointError:  # coefficients diverged: the worst output, and no error
                    continue
                if together(curator.spent) != search.events[k]:
                    raise PlanMismatch("a try released something other than its plan: the search is refused")
                if best is None or score > best[0]:
                    best = score, outcome
        return None if best is None else best[1]

    def _over(self, records: RecordSet) -> Self:
        """A curator of other records, with a log of its own."""
        twin = copy(self)
        twin._records, twin._releases = records, self._releases.over(records)
        return twin

    def pick(self, stop: int, count: int) -> NDArray[np.int64]:
        """Uniform random integers below ``stop``: no record is read."""
        return self._randomness.integers(stop, count)

    def order(self, count: int) -> NDArray[np.int64]:
        """A uniformly random order of the numbers below ``count``: no record is read."""
        return order_of(self.pick(1 << _ORDER_DIGITS, count), _ORDER_DIGITS)


class Log:
    """What was released so far."""

    def __init__(self, neighbours: Neighbours) -> None:
        self._neighbours = neighbours
        self._spent: Counter[Event] = Counter()
        self._last: tuple[tuple[object, object, int], tuple[tuple[Event, int], ...]] = (None, None, 0), ()
        self._more = 0

    @property
    def spent(self) -> Counter[Event]:
        """Every event with its count."""
        self._enter_last()
        return self._spent

    def add(self, mechanism: Mechanism, entries: int, count: int = 1, sampling: Sampling = _EVERYONE) -> None:
        """Log ``count`` releases of so many entries each."""
        # Most releases are like the one before: these are counted, which is faster than to look them up.
        key, _ = self._last
        if not (key[0] is sampling and key[1] is mechanism and key[2] == entries):
            events = _priced(sampling, mechanism, self._neighbours, entries)  # type: ignore[arg-type]
            self._enter_last()
            self._last = (sampling, mechanism, entries), events
        self._more += count
        progress.released(count)

    def _enter_last(self) -> None:
        """Enter the last releases, which were only counted."""
        for event, times in self._last[1] if self._more else ():
            self._spent[event] += times * self._more
        self._more = 0  # last: an interrupt may count releases twice, and never loses one

    def enter(self, event: Event) -> None:
        """Log an event whose parts are logged elsewhere."""
        self.spent[event] += 1


class LoggedReleases(Releases, Protocol):
    """Releases with a log of all of them."""

    @property
    def log(self) -> Log: ...

    def over(self, records: RecordSet) -> LoggedReleases:
        """Releases about other records, with a log of their own."""
        ...


class NoisyReleases:
    """The releases of a fit: noise is drawn here, or from what ``spend`` hands out.

    The log is written before noise is drawn. Noise is scaled to sensitivities that are enlarged by what
    rounding can add.
    """

    in_blocks: ClassVar[bool] = True

    def __init__(self, records: RecordSet, neighbours: Neighbours, randomness: Randomness) -> None:
        self._records, self._randomness = records, randomness
        self._rounding = rounding_factor(records.table_size, records.n_features)
        self._neighbours = neighbours
        self.log = Log(neighbours)

    def over(self, records: RecordSet) -> NoisyReleases:
        return NoisyReleases(records, self._neighbours, self._randomness)

    def give(self, answer: object, sensitivity: Sensitivity, mechanism: Mechanism) -> Any:
        return self._noisy(answer, sensitivity, mechanism, _EVERYONE)

    def spend(self, mechanism: Mechanism, entries: int, count: int = 1) -> Draws:
        return self._spend(mechanism, entries, count, _EVERYONE)

    def sampled(
        self, answer: BatchAnswer[State], keep: Keep[State], sensitivity: float, mechanism: Mechanism,
        sampling: Sampling,
    ) -> Vector:  # fmt: skip
        coins = sampling.draw(self._randomness)
        batch = None if coins is None else self._records.batch(coins)
        exact, changes = answer(batch)
        released: Vector = self._noisy(exact, sensitivity, mechanism, sampling)
        keep(batch, changes)
        return released

    def _noisy(
        self, answer: object, sensitivity: Sensitivity, mechanism: Mechanism, sampling: Sampling
    ) -> Any:
        draws = self._spend(mechanism, mechanism.entries(answer), 1, sampling)
        return mechanism.release(answer, draws.padded(sensitivity), draws.randomness)

    def _spend(self, mechanism: Mechanism, entries: int, count: int, sampling: Sampling) -> Draws:
        self.log.add(mechanism, entries, count, sampling)
        return Draws(self._randomness, self._rounding, mechanism.noise > 0)


@lru_cache(maxsize=256)
def _priced(
    sampling: Sampling, mechanism: Mechanism, neighbours: Neighbours, entries: int
) -> tuple[tuple[Event, int], ...]:
    """The events of a release, that of its imprecision included: cached, not built at every step."""
    return (sampling.price(mechanism, neighbours), 1), *mechanism.imprecision(entries).items()


def rounding_factor(n_records: int, n_features: int) -> float:
    """How much rounding can add to a sensitivity, as a factor.

    The norm of a row of p features is off by at most (p + 8) u relative with u = 2**-53, and so is what is
    clipped by it. The entries of a record's term are rounded to a grid of at most 2**(1 - k) of its largest
    norm, with k binary digits; sums of rounded terms are exact.
    """
    grid = 2.0 * math.sqrt(n_features + 1) * 2.0 ** -bits_of_terms(n_records)
    return 1.0 + (n_features + 16.0) * 2.0**-53 + grid
