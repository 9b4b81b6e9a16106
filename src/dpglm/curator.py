"""The curator: the only object that holds records."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .accounting import Event
from .data import Records
from .mechanisms import Mechanism, Randomness
from .privacy import Neighbours
from .queries import CoordinateSums, Query
from .queries.coordinate import OpenCoordinates
from .sampling import Everyone, Sampling


class Curator:
    """Answers queries about the records with noise, and logs what each answer cost.

    Solvers get a curator and nothing else, so whatever they compute is post-processing of releases.
    """

    def __init__(self, records: Records, neighbours: Neighbours, randomness: Randomness) -> None:
        self._records = records
        self._neighbours = neighbours
        self._randomness = randomness
        self._spent: Counter[Event] = Counter()

    @property
    def n_records(self) -> int:
        """Number of records: public."""
        return self._records.n_records

    @property
    def n_features(self) -> int:
        """Number of features without the intercept: public."""
        return self._records.n_features

    @property
    def spent(self) -> Counter[Event]:
        """Every event so far, with its count."""
        return Counter(self._spent)

    def release(
        self, query: Query, mechanism: Mechanism, *public: Any, sampling: Sampling | None = None
    ) -> Any:
        """The query's answer on the (sampled) records, made private."""
        sampling = sampling or Everyone()
        batch = sampling.draw(self._records.n_records, self._randomness)
        data = self._records if batch is None else self._records.rows(batch)
        return self._noisy(query(data, *public), query.sensitivity(self._neighbours), mechanism, sampling)

    def open(self, query: CoordinateSums, w: NDArray[np.float64]) -> OpenCoordinates:
        """A query whose private state, kept at the public point w, lives on between its releases."""
        return query.open(self._records, w, self._neighbours, self._noisy)

    def pick(self, stop: int, count: int) -> NDArray[np.int64]:
        """Uniform random integers below ``stop``: no record is read."""
        return self._randomness.integers(stop, count)

    def _noisy(
        self, answer: Any, sensitivity: Any, mechanism: Mechanism, sampling: Sampling | None = None
    ) -> Any:
        # A vector of answers whose sensitivities are given one by one is as many releases.
        count = np.size(sensitivity)
        self._spent[(sampling or Everyone()).price(mechanism, self._neighbours)] += count
        return mechanism.release(answer, sensitivity, self._randomness)
