"""Counts of the levels of columns, all columns together."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..arrays import Vector
from ..data.raw_counts import RawRecords
from ..mechanisms import Levels, Thresholded
from ..privacy import Neighbours
from .base import Opening, Query, WorstCase


@dataclass(frozen=True)
class LevelCounts(Query):
    """How many records have each level, for every learnt category at once.

    Parameters
    ----------
    columns : int
        Number of learnt categories.

    Guarantee
    ---------
    Of the levels that both tables have: a record adds 1 to one count of each column, or nothing where its
    cell is missing, and a null record adds nothing. Zeroing it out moves the counts by at most sqrt(columns)
    in the L2 norm, replacing it by at most sqrt(2 columns). Counts are whole numbers: exact. A level that
    only one table has is there in one record; `Thresholded` accounts for it.
    """

    name: ClassVar[str] = "levels of columns"
    columns: int

    def __call__(self, data: RawRecords, *public: Vector) -> Vector:
        """Counts of the given levels in each column."""
        (levels,) = public
        counts = data.census().levels
        return np.array([float(table[level]) for table in counts for level in levels.tolist()])

    def sensitivity(self, neighbours: Neighbours) -> float:
        return math.sqrt(neighbours.records_moved * self.columns)

    def worst_case(self, n_features: int, radius: float, constant: float) -> WorstCase:
        levels = np.arange(1.0, n_features + 1)
        return WorstCase((np.full(n_features, 1.0), 1.0), (np.full(n_features, 2.0), 1.0), (levels,))

    def open(self, opening: Opening) -> OpenLevels:
        """Count the records in one pass."""
        return OpenLevels(self, opening)


class OpenLevels:
    """Private state (the counts) behind ``release``."""

    def __init__(self, query: LevelCounts, opening: Opening) -> None:
        if not isinstance(opening.mechanism, Thresholded):
            raise opening.wrong_kind(query, "keeps counts above a threshold")
        self._releases, self._mechanism = opening.releases, opening.mechanism
        self._sensitivity = query.sensitivity(opening.neighbours)
        data: RawRecords = opening.data  # type: ignore[assignment]  # it is handed raw records
        counts = tuple({level: float(n) for level, n in table.items()} for table in data.census().levels)
        self._answer = Levels(counts, data.table_size)

    def release(self) -> Levels:
        """Levels with large counts, and their noisy counts: costs one event."""
        released: Levels = self._releases.give(self._answer, self._sensitivity, self._mechanism)
        return released
