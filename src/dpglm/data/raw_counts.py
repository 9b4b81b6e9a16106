"""What is released before rows can be encoded: counts of raw records, and their private number."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ..arrays import Vector

Counts = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class RawCounts:
    """Whole numbers that count records; those of two parts of a table add up.

    Attributes
    ----------
    length : int
        How many records were counted, null records included.
    cells : array of shape (columns, 2 * candidates + 1)
        For each learnt number, how many records are below the first candidate, at it, between it and the
        second, and so on. Null records, and records whose cell is missing, are not counted.
    levels : tuple of Counter
        For each learnt category the count of each level, of the same records.
    """

    length: int
    cells: Counts
    levels: tuple[Counter[float | str], ...]

    def joined(self, other: RawCounts) -> RawCounts:
        """The counts of these records and others."""
        levels = tuple(one + two for one, two in zip(self.levels, other.levels, strict=True))
        return RawCounts(self.length + other.length, self.cells + other.cells, levels)


def cells_of(values: Vector, candidates: Vector) -> Counts:
    """Counts of values in the cells that candidates make; NaN are not counted."""
    seen = values[~np.isnan(values)]
    places = np.searchsorted(candidates, seen, side="left") + np.searchsorted(candidates, seen, side="right")
    return np.bincount(places, minlength=2 * len(candidates) + 1).astype(np.int64)


class RawRecords(ABC):
    """Raw records of which counts can be had, in one pass for each method that is called.

    Attributes
    ----------
    table_size : int
        The public number of records, or the most that there can be.
    n_features : int
        Features whose rounding is to be covered: counts have none.
    """

    n_features: ClassVar[int] = 0
    table_size: int

    @abstractmethod
    def census(self) -> RawCounts:
        """Counts of numbers and levels."""

    @abstractmethod
    def with_schema(self, schema: Any) -> RawRecords:
        """The same records with a schema whose columns are known."""

    @abstractmethod
    def norms(self, candidates: Vector) -> Counts:
        """Counts of the norms of encoded rows, in the cells that candidates make."""


@dataclass(frozen=True)
class TableSize:
    """All that a count needs to know of a table; what else is public about it depends on no record.

    Attributes
    ----------
    n_records : int
        How many records there are: private. Null records count.
    table_size, n_features : int
        What rounding of sums would depend on: a count has none.
    """

    n_records: int
    table_size: ClassVar[int] = 1
    n_features: ClassVar[int] = 0
