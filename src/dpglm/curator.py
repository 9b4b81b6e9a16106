"""The curator: the only object that holds records."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from functools import lru_cache
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from .accounting import Composed, Event
from .arrays import Vector
from .errors import UnsupportedProblem
from .mechanisms import Exponential, Mechanism, Randomness
from .mechanisms.base import Kept
from .privacy import Neighbours
from .queries import Query
from .queries.base import Openable, Releaser, require_moderate
from .records import Records
from .sampling import Everyone, Sampling

Opened = TypeVar("Opened")
_EVERYONE = Everyone()
_FEWEST_STEPS = 8


class Curator:
    """Answers queries about the records with noise, and logs what each answer cost.

    Solvers get a curator and nothing else, so whatever they compute is post-processing of releases.
    """

    def __init__(self, records: Records, neighbours: Neighbours, randomness: Randomness) -> None:
        self._records = records
        self._neighbours = neighbours
        self._randomness = randomness
        self._spent: Counter[Event] = Counter()
        self._last: Event | None = None  # the latest release, which the next one may make a round of
        self._rounding = rounding_factor(records.n_records, records.n_features)

    @property
    def spent(self) -> Counter[Event]:
        """Every event so far, with its count."""
        return Counter(self._spent) if self._last is None else self._spent + Counter([self._last])

    def release(
        self, query: Query, mechanism: Mechanism, *public: Any, sampling: Sampling | None = None
    ) -> Any:
        """The query's answer on the (sampled) records, made private."""
        for value in public:
            require_moderate(value)
        sampling = sampling or _EVERYONE
        batch = self._batch(sampling)
        data = self._records if batch is None else self._records.rows(batch)
        return self._noisy(query(data, *public), query.sensitivity(self._neighbours), mechanism, sampling)

    def open(self, query: Openable[Opened], w: NDArray[np.float64]) -> Opened:
        """A query whose private state, kept at the public point w, lives on between its releases."""
        require_moderate(w)
        return query.open(self._records, w, self._neighbours, self._releaser)

    def pick(self, stop: int, count: int) -> NDArray[np.int64]:
        """Uniform random integers below ``stop``: no record is read."""
        return self._randomness.integers(stop, count)

    @property
    def _releaser(self) -> Releaser:
        """What opened queries release through."""
        return _Releases(self)

    def _batch(self, sampling: Sampling) -> NDArray[np.intp] | None:
        """The records that take part, or None for all; those that add nothing to any sum are left out."""
        batch = sampling.draw(self._records.n_records, self._randomness)
        return None if batch is None else batch[self._records.scale[batch] > 0]

    def _noisy(
        self, answer: Any, sensitivity: Any, mechanism: Mechanism, sampling: Sampling, follows: bool = False
    ) -> Any:
        """The answer, made private and logged.

        Every released number passes here, or its noise passes `_noise`, or its choice `_chosen`.
        """
        self._log(np.size(answer), sensitivity, mechanism, sampling, follows)
        return mechanism.release(answer, sensitivity * self._rounding, self._randomness)

    def _sampled(
        self,
        answer: Callable[..., Any],
        keep: Callable[..., None],
        sensitivity: Any,
        mechanism: Mechanism,
        sampling: Sampling,
    ) -> Any:
        """An answer on a batch that is drawn here, released; private state keeps what the batch changes."""
        batch = self._batch(sampling)
        exact, changes = answer(batch)
        released = self._noisy(exact, sensitivity, mechanism, sampling)
        keep(batch, changes)
        return released

    def _noise(self, sensitivity: Vector, mechanism: Mechanism) -> tuple[Vector, Vector] | None:
        """The noise of a block of releases, logged, and the grids that the exact answers are rounded to.

        None tells the query to release its numbers one by one through `_noisy`.
        """
        self._log(np.size(sensitivity), sensitivity, mechanism, _EVERYONE)
        return mechanism.draw(sensitivity * self._rounding, np.shape(sensitivity), self._randomness)

    def _keep(
        self, scores: Vector, sensitivity: float, mechanism: Mechanism, structure: str = "auto"
    ) -> Kept | None:
        """Scores kept where a choice among them takes less than a look at each of them.

        None tells the query to hand all of its scores to `_noisy`.
        """
        return mechanism.keep(scores, sensitivity * self._rounding, structure)

    def _chosen(
        self,
        kept: Kept,
        score: Callable[[int], float],
        entries: int,
        sensitivity: float,
        mechanism: Mechanism,
    ) -> int:
        """A choice among kept scores, logged."""
        self._log(entries, sensitivity, mechanism, _EVERYONE)
        return kept.draw(self._randomness, score)

    def _choices(
        self, draw: Callable[..., Any], count: int, entries: int, sensitivity: float, mechanism: Exponential
    ) -> Any:
        """So many choices among scores that live in compiled code, which draws them, logged.

        None tells the query to make its choices one by one: noise is so small that the grid shows.
        """
        grid, scale = mechanism.law(sensitivity * self._rounding)
        if scale < _FEWEST_STEPS * grid:
            return None
        self._log(entries, sensitivity, mechanism, _EVERYONE, count=count)
        return draw(self._randomness.run_on, grid, scale)

    def _log(
        self,
        entries: int,
        sensitivity: Any,
        mechanism: Mechanism,
        sampling: Sampling,
        follows: bool = False,
        count: int = 1,
    ) -> None:
        one = isinstance(sensitivity, float)
        if mechanism.noise > 0 and not (
            math.isfinite(sensitivity) if one else np.isfinite(sensitivity).all()
        ):
            raise UnsupportedProblem("a release without a finite sensitivity has no price: set a finite clip")
        event, imprecision = _priced(sampling, mechanism, self._neighbours)  # type: ignore[arg-type]
        before, self._last = self._last, None
        if follows:
            # One round with the release just before it: the price of a round holds in this order only.
            if before is None:
                raise ValueError("a release can only follow a single one, just before it")
            event = _round(before, event)
        elif before is not None:
            self._spent[before] += 1
        # A vector of answers whose sensitivities are given one by one is as many releases.
        if one and not follows and count == 1:
            self._last = event
        else:
            self._spent[event] += count if one else np.size(sensitivity)
        if imprecision is not None:
            self._spent[imprecision] += entries * count


class _Releases:
    """A curator's releases, as opened queries see them."""

    def __init__(self, curator: Curator) -> None:
        self._curator = curator

    def __call__(self, answer: Any, sensitivity: Any, mechanism: Any, follows: bool = False) -> Any:
        return self._curator._noisy(answer, sensitivity, mechanism, _EVERYONE, follows)

    def sampled(
        self,
        answer: Callable[..., Any],
        keep: Callable[..., None],
        sensitivity: Any,
        mechanism: Any,
        sampling: Any,
    ) -> Any:
        return self._curator._sampled(answer, keep, sensitivity, mechanism, sampling)

    def noise(self, sensitivity: Vector, mechanism: Any) -> tuple[Vector, Vector] | None:
        return self._curator._noise(sensitivity, mechanism)

    def keep(self, scores: Vector, sensitivity: float, mechanism: Any, structure: str = "auto") -> Any:
        return self._curator._keep(scores, sensitivity, mechanism, structure)

    def choose(
        self, kept: Any, score: Callable[[int], float], entries: int, sensitivity: float, mechanism: Any
    ) -> int:
        return self._curator._chosen(kept, score, entries, sensitivity, mechanism)

    def choices(
        self, draw: Callable[..., Any], count: int, entries: int, sensitivity: float, mechanism: Any
    ) -> Any:
        return self._curator._choices(draw, count, entries, sensitivity, mechanism)


@lru_cache(maxsize=256)
def _priced(sampling: Any, mechanism: Mechanism, neighbours: Neighbours) -> tuple[Event, Event | None]:
    """The event of a release, and that of the imprecision of each number: built once, not at every step."""
    return sampling.price(mechanism, neighbours), mechanism.imprecision


@lru_cache(maxsize=256)
def _round(first: Event, second: Event) -> Event:
    return Composed((first, second))


def rounding_factor(n_records: int, n_features: int) -> float:
    """How much the rounding of double-precision sums can add to a sensitivity, as a factor.

    A sum of n terms of size at most C, in any order, is off by at most (n - 1) u n C with u = 2**-53.
    Two neighbours may be off in opposite directions, which is 2 n² u in units of C; the norm of a row of
    p features is off by at most (p + 8) u relative, and so is a contribution that is clipped by it.
    """
    return 1.0 + (2.0 * n_records**2 + n_features + 16.0) * 2.0**-53
