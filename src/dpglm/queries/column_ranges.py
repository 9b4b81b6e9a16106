"""Ranges of columns: pairs of quantiles by the exponential mechanism, the narrower the better."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from ..arrays import Vector
from ..data.census import Counts, RawRecords
from ..mechanisms import Exponential
from ..privacy import Neighbours
from .base import Opening, Query

TAIL = 64
"""One record in so many lies below a learnt range, and one above it."""

_TIE = 0.4


def tail_of(n_records: int) -> int:
    """How many records may lie outside of each end at no cost."""
    return n_records // TAIL


@lru_cache(maxsize=8)
def pairs(count: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Indices of all pairs of different candidates: the lower, the upper."""
    lower, upper = np.triu_indices(count, 1)
    for index in (lower, upper):
        index.flags.writeable = False
    return lower, upper


def preference(measure: Vector, widths: Vector, noise: float, sensitivity: float, n_records: int) -> Vector:
    """What is added to scores for the widths of candidates: public, so it moves no score of a neighbour.

    In units of the mechanism's scale it is log(measure) - (1 + tail / scale) log(width). ``measure`` is how
    much a candidate stands for, relative to its own width: so it does not matter where candidates are dense,
    and what lies outside of all records is no more likely as a whole than a range that is twice too wide.
    Without noise it decides between candidates of equal scores only, which are multiples of 1/2.
    """
    largest = float(widths.max())
    if noise == 0:
        return np.asarray(-_TIE * widths / largest)
    scale = noise * sensitivity
    return np.asarray(
        scale * np.log(measure) - (scale + tail_of(n_records)) * np.log(widths / largest), dtype=np.float64
    )


def spacing(candidates: Vector) -> Vector:
    """Half the distance between the neighbours of each candidate."""
    padded = np.concatenate([candidates[:1], candidates, candidates[-1:]])
    return np.asarray((padded[2:] - padded[:-2]) / 2)


@dataclass(frozen=True, eq=False)
class ColumnRanges(Query):
    """For each learnt number and each pair of candidates low < high, how well [low, high] holds the values.

    With m values in the column, the score is m / 2 - max(0, below - tail, above - tail), for the numbers of
    values below low and above high.

    Parameters
    ----------
    scales : array of shape (columns, candidates)
        Candidates in increasing order, on the scale on which a range should be narrow.
    n_records : int
        The public size of the table, of which ``tail`` is one in 64.

    Guarantee
    ---------
    Every column is released, and accounted for, alone. A record with a value in the column adds 1/2 to m / 2
    and 0 or 1 to the larger excess, so it adds a number from -1/2 to 1/2 to every score, and a null record or
    one without a value adds 0. Zeroing a record out moves a score by at most 1/2, replacing it by at most 1.
    Scores are whole multiples of 1/2: exact.
    """

    name: ClassVar[str] = "range of a column"
    scales: Vector
    n_records: int

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
        so_far, tail = np.cumsum(cells), tail_of(self.n_records)
        below = np.maximum(so_far[0:-1:2] - tail, 0)
        above = np.maximum(so_far[-1] - so_far[1::2] - tail, 0)
        return np.asarray(so_far[-1] / 2 - np.maximum(below[lower], above[upper]), dtype=np.float64)

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
        query, scale = self._query, self._query.scales[column]
        lower, upper = pairs(len(scale))
        widths, apart = scale[upper] - scale[lower], spacing(scale)
        measure = (apart[lower] / widths) * (apart[upper] / widths)
        public = preference(measure, widths, self._mechanism.noise, self._sensitivity, query.n_records)
        scores = query.scores(self._cells[column]) + public
        chosen = self._releases.give(scores, self._sensitivity, self._mechanism)
        return int(lower[chosen]), int(upper[chosen])


@dataclass(frozen=True, eq=False)
class RowNorms(Query):
    """For each candidate norm, how well it holds the norms of the rows: m / 2 - max(0, longer - tail).

    Parameters
    ----------
    candidates : array
        Norms in increasing order.
    n_records : int
        The public size of the table.

    Guarantee
    ---------
    As for `ColumnRanges`: a record adds a number from -1/2 to 1/2 to every score, a null record adds 0.
    """

    name: ClassVar[str] = "norm of rows"
    candidates: Vector
    n_records: int

    def __call__(self, data: RawRecords, *public: Vector) -> Vector:
        so_far = np.cumsum(data.norms(self.candidates))
        longer = np.maximum(so_far[-1] - so_far[1::2] - tail_of(self.n_records), 0)
        return np.asarray(so_far[-1] / 2 - longer, dtype=np.float64)

    def sensitivity(self, neighbours: Neighbours) -> Vector:
        return np.full(len(self.candidates), ColumnRanges.of_a_score(neighbours))

    def open(self, opening: Opening) -> OpenNorms:
        """Count the norms in one pass."""
        return OpenNorms(self, opening)


class OpenNorms:
    """Private state (the counts of norms) behind ``select``."""

    def __init__(self, query: RowNorms, opening: Opening) -> None:
        if not isinstance(opening.mechanism, Exponential):
            raise opening.wrong_kind(query, "selects")
        self._query, self._releases, self._mechanism = query, opening.releases, opening.mechanism
        self._sensitivity = ColumnRanges.of_a_score(opening.neighbours)
        self._scores = query(opening.data)  # type: ignore[arg-type]  # it is handed raw records

    def select(self) -> float:
        """The norm chosen: costs one event."""
        norms, noise = self._query.candidates, self._mechanism.noise
        public = preference(1 / norms, norms, noise, self._sensitivity, self._query.n_records)
        chosen = self._releases.give(self._scores + public, self._sensitivity, self._mechanism)
        return float(self._query.candidates[chosen])


def entries_of_a_range(candidates: int) -> int:
    """How many pairs of candidates there are."""
    return math.comb(candidates, 2)
