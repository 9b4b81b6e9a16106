"""Facts of a schema learnt from raw records: ranges of columns, norms of rows, counts of levels."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from ..arrays import Vector
from ..data.raw_counts import Counts, RawRecords
from ..mechanisms import Exponential, Levels, Thresholded
from ..privacy import Neighbours
from .base import Opening, Query, WorstCase

_LEAST_TAIL, _LARGEST_TAIL = 64, 8
"""Of so many records one lies below a learnt range and one above it: little noise, and much noise."""

_TAIL_SCALES = 8
"""A tail has at least so many records for each unit of the mechanism's scale: noise does not hide it."""

_NARROWER, _NARROW = 1.5, 2.0**-10
"""A width that is halved is 2^1.5 times as likely, down to this part of the widest range."""

_COMMON = 1 / 16
"""Share of a width that 0 stands for, at least."""

_TIE = 0.4

_LEAST_SCORE = -(2.0**30)
"""No score is less: so doubles have digits left for the public weight in tables of any length."""


def tail_of(n_records: int, scale: float) -> int:
    """How many records should lie outside of each end: public."""
    wanted = max(n_records / _LEAST_TAIL, _TAIL_SCALES * scale)
    return int(min(wanted, n_records / _LARGEST_TAIL))


@lru_cache(maxsize=8)
def pairs(count: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Indices of all pairs of different candidates: the lower, the upper."""
    lower, upper = np.triu_indices(count, 1)
    for index in (lower, upper):
        index.flags.writeable = False
    return lower, upper


def preference(measure: Vector, widths: Vector, scale: float) -> Vector:
    """What is added to scores for the widths of candidates: public, so it moves no score of a neighbour.

    In units of the mechanism's scale it is log(measure) - 1.5 log(width). ``measure`` is how much a candidate
    stands for, relative to its own width: so it does not matter where candidates are dense, and how much too
    wide the widest range is matters little. Below a thousandth of the widest range, narrow is narrow enough:
    else a column with mostly equal values would seem to have no other ones. Without noise the narrower of two
    candidates with equal scores is preferred; scores are multiples of 1/2.
    """
    relative = widths / float(widths.max())
    if scale == 0:
        return np.asarray(-_TIE * relative)
    narrower = _NARROWER * np.log(np.maximum(relative, _NARROW))
    return np.asarray(scale * (np.log(measure) - narrower), dtype=np.float64)


def share_of_width(candidates: Vector, chosen: NDArray[np.intp], widths: Vector) -> Vector:
    """How much of a width a candidate for its end stands for: half the distance between its neighbours.

    It is at most the whole width: else two candidates that happen to lie close together, and far from all
    others, would have most of the weight. Many records may have the value 0, so it stands for more.
    """
    padded = np.concatenate([candidates[:1], candidates, candidates[-1:]])
    apart = (padded[2:] - padded[:-2]) / 2
    least = np.where(candidates == 0, _COMMON, 0.0)
    return np.asarray(np.clip(apart[chosen] / widths, least[chosen], 1.0))


@dataclass(frozen=True, eq=False)
class ColumnRanges(Query):
    """For each learnt number and each pair of candidates low < high, how well they are its quantiles.

    The score is -(abs(below - tail) + abs(above - tail)) / 2, for the numbers of values below low and above
    high.

    Parameters
    ----------
    scales : array of shape (columns, candidates)
        Candidates in increasing order, on the scale on which a range should be narrow.
    tail : int
        How many records should lie below low, and above high.

    Guarantee
    ---------
    Every column is released, and accounted for, alone. A record is below low, above high or neither, and a
    null record or one without a value is neither, so taking a record out changes one of the two numbers by 1
    at most and a score by 1/2. Zeroing a record out moves a score by at most 1/2, replacing it by at most 1.
    Scores are whole multiples of 1/2: exact. A public least score takes the place of lesser ones, which moves
    no two scores apart.
    """

    name: ClassVar[str] = "range of a column"
    scales: Vector
    tail: int

    def __call__(self, data: RawRecords, *public: Vector) -> Vector:
        return np.concatenate([self.scores(cells) for cells in data.census().cells])

    def sensitivity(self, neighbours: Neighbours) -> Vector:
        count = len(self.scales) * len(pairs(self.scales.shape[1])[0])
        return np.full(count, self.of_a_score(neighbours))

    @staticmethod
    def of_a_score(neighbours: Neighbours) -> float:
        """How far neighbours move any one score."""
        return neighbours.records_moved / 2

    def scores(self, cells: Counts) -> Vector:
        """The score of each pair of candidates, from the counts of a column."""
        lower, upper = pairs(self.scales.shape[1])
        so_far = np.cumsum(cells)
        below, above = so_far[0:-1:2], so_far[-1] - so_far[1::2]
        off = np.abs(below - self.tail)[lower] + np.abs(above - self.tail)[upper]
        return np.asarray(np.maximum(-off / 2, _LEAST_SCORE))

    def worst_case(self, n_features: int, radius: float, constant: float) -> WorstCase:
        far = np.full(n_features, 1e3 * radius)
        return WorstCase((-far, 1.0), (far, 1.0), ())

    def open(self, opening: Opening) -> OpenRanges:
        """Count the records in one pass."""
        return OpenRanges(self, opening)


class OpenRanges:
    """Private state (the counts) behind ``select``."""

    def __init__(self, query: ColumnRanges, opening: Opening) -> None:
        if not isinstance(opening.mechanism, Exponential):
            raise opening.wrong_kind(query, "selects")
        self._query, self._releases, self._mechanism = query, opening.releases, opening.mechanism
        self._sensitivity = query.of_a_score(opening.neighbours)
        data: RawRecords = opening.data  # type: ignore[assignment]  # it is handed raw records
        self._cells = data.census().cells

    def select(self, column: int) -> tuple[int, int]:
        """Indices of the candidates chosen as low and high of a column: costs one event."""
        ends = self._query.scales[column]
        lower, upper = pairs(len(ends))
        widths = ends[upper] - ends[lower]
        measure = share_of_width(ends, lower, widths) * share_of_width(ends, upper, widths)
        public = preference(measure, widths, self._mechanism.noise * self._sensitivity)
        scores = self._query.scores(self._cells[column]) + public
        chosen = self._releases.give(scores, self._sensitivity, self._mechanism)
        return int(lower[chosen]), int(upper[chosen])


@dataclass(frozen=True, eq=False)
class RowNorms(Query):
    """For each candidate norm, how well it is a quantile of the norms of rows: -abs(longer - tail) / 2.

    Parameters
    ----------
    candidates : array
        Norms in increasing order.
    tail : int
        How many rows should be longer.

    Guarantee
    ---------
    A row is longer than a candidate or not, and a null record is not. So a record that is zeroed out or
    replaced changes the number of longer rows by 1 at most, and a score by 1/2.
    """

    name: ClassVar[str] = "norm of rows"
    candidates: Vector
    tail: int

    def __call__(self, data: RawRecords, *public: Vector) -> Vector:
        so_far = np.cumsum(data.norms(self.candidates))
        return np.asarray(np.maximum(-np.abs(so_far[-1] - so_far[1::2] - self.tail) / 2, _LEAST_SCORE))

    def sensitivity(self, neighbours: Neighbours) -> Vector:
        return np.full(len(self.candidates), self.of_a_score)

    of_a_score: ClassVar[float] = 0.5
    """How far neighbours of either relation move any one score."""

    def worst_case(self, n_features: int, radius: float, constant: float) -> WorstCase:
        return WorstCase((np.full(n_features, 1e3 * radius), 1.0), (np.zeros(n_features), 1.0), ())

    def open(self, opening: Opening) -> OpenNorms:
        """Count the norms in one pass."""
        return OpenNorms(self, opening)


class OpenNorms:
    """Private state (the counts of norms) behind ``select``."""

    def __init__(self, query: RowNorms, opening: Opening) -> None:
        if not isinstance(opening.mechanism, Exponential):
            raise opening.wrong_kind(query, "selects")
        self._query, self._releases, self._mechanism = query, opening.releases, opening.mechanism
        self._scores = query(opening.data)  # type: ignore[arg-type]  # it is handed raw records

    def select(self) -> float:
        """The norm chosen: costs one event."""
        norms, sensitivity = self._query.candidates, self._query.of_a_score
        public = preference(1 / norms, norms, self._mechanism.noise * sensitivity)
        chosen = self._releases.give(self._scores + public, sensitivity, self._mechanism)
        return float(self._query.candidates[chosen])


def entries_of_a_range(candidates: int) -> int:
    """How many pairs of candidates there are."""
    return math.comb(candidates, 2)


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
