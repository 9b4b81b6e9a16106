"""Persons who have several records each: what they add together is at most what one record may add.

A record of a person with m records has the share 1/m of what a record may add, and every sum is over these
parts. Rounding many parts of one person to a grid could add up, so a share of less than 1 is made smaller by
what rounding can add to its part. A person with one record has the share 1, and adds what a record adds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..arrays import Vector, bits_of_terms
from ..bounds import MOST_OUTPUTS
from ..errors import SourceChanged
from .columns import RecordColumns, SourceWrapper

Places = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Units:
    """Whose the records are.

    Attributes
    ----------
    number : array
        For each record the number of its person, from 0; they do not decrease.
    share : array
        Part of each record in its person: 1 for an only record, else 1/m less what rounding can add.
    count : int
        How many persons there are.
    """

    number: Places
    share: Vector
    count: int

    @classmethod
    def of(cls, ids: Vector, n_features: int, table_size: int) -> Units:
        """From an id for each record, those of a person one after the other.

        ``table_size`` is the public number of persons of the whole table, 0 if these are all.
        """
        number = np.cumsum(np.append(0, ids[1:] != ids[:-1]))[: len(ids)]
        count = int(number[-1]) + 1 if len(number) else 0
        many = np.bincount(number, minlength=count)[number]
        added = rounding_of_terms(n_features, table_size or count)
        return cls(number, np.where(many > 1, np.maximum(1.0 / many - added, 0.0), 1.0), count)

    @property
    def several(self) -> NDArray[np.bool_]:
        """Whether the person of each record has more of them."""
        return self.share < 1.0

    def whole(self, edges: Sequence[int]) -> list[int]:
        """Edges of ranges of records, each moved back to the first record of its person."""
        inner = np.asarray(edges[1:-1], dtype=np.intp)
        return [edges[0], *np.searchsorted(self.number, self.number[inner]).tolist(), edges[-1]]

    def sums(self, values: Vector) -> Vector:
        """Sum over the records of each person that is here, of numbers or rows of numbers."""
        found: Vector = np.add.reduceat(values, self._first) if len(values) else values
        return found

    def spread(self, values: Vector) -> Vector:
        """Numbers of the persons that are here, each for all of its records."""
        return np.repeat(values, np.diff(np.append(self._first, len(self.number))))

    @property
    def _first(self) -> Places:
        """Place of the first record of each person that is here."""
        number = self.number
        return np.flatnonzero(np.append(True, number[1:] != number[:-1])[: len(number)])

    def taken(self, rows: slice | Places) -> Units:
        """The same for some of the records."""
        return Units(self.number[rows], self.share[rows], self.count)

    def rows_of(self, persons: Places) -> Places:
        """Places of all records of some persons."""
        among = np.zeros(self.count, dtype=np.bool_)
        among[persons] = True
        return np.flatnonzero(among[self.number])

    def only(self, persons: Places) -> Units:
        """The same for all records of some persons, in ascending order, who are numbered again."""
        rows = self.rows_of(persons)
        return Units(np.searchsorted(persons, self.number[rows]), self.share[rows], len(persons))


def rounding_of_terms(n_features: int, n_persons: int) -> float:
    """What rounding can add to a term of a sum, over its limit: half a step of the grid in every entry.

    It allows for the constant feature, for a limit that rounding exceeds, and for several outputs.
    """
    return math.sqrt(MOST_OUTPUTS * (n_features + 2)) * 2.0 ** -bits_of_terms(n_persons)


def grouped(ids: NDArray[np.int64], most: int) -> Places:
    """Places of the records that count, person by person and in the order of the ids.

    Of each person the first records count, in their own order, and at most ``most`` of them. Records with a
    negative id are nobody's, and do not count.
    """
    order = np.argsort(ids, kind="stable")
    order = order[ids[order] >= 0]
    found = ids[order]
    first = np.flatnonzero(np.append(True, found[1:] != found[:-1])[: len(found)])
    place = np.arange(len(found)) - np.repeat(first, np.diff(np.append(first, len(found))))
    kept: Places = order[place < most]
    return kept


NOT_SORTED = (
    "a table that is read block by block must be sorted by units, in ascending order, so that all records of "
    "a person follow one another: sort it by that column first"
)

Ranked = Callable[[object], tuple[NDArray[np.int64], list[Any]]]
"""From ids as users give them to the rank of each among the different ones, -1 if missing, and these."""


@dataclass(frozen=True, eq=False)
class NumberedUnits(SourceWrapper):
    """A table whose ids are replaced by the number of the person, from 0; NaN for a missing id."""

    ranked: Ranked

    @property
    def gives_offsets(self) -> bool:
        return self.source.gives_offsets

    def blocks(self) -> Iterator[tuple[object, object]]:
        number, last = -1, None
        for rows, found in self.source.blocks():
            given = found if isinstance(found, RecordColumns) else RecordColumns(found)
            if given.unit is None:
                raise SourceChanged("the blocks of X have no ids of persons: give units")
            ranks, keys = self.ranked(given.unit)
            numbers = np.where(ranks < 0, np.nan, ranks + float(number + 1))
            if keys:
                known = ranks[ranks >= 0]
                if (known[1:] < known[:-1]).any() or not _ascend(last, keys[0]):
                    raise SourceChanged(NOT_SORTED)
                numbers -= last is not None and last == keys[0]
                number, last = int(np.nanmax(numbers)), keys[-1]
            yield rows, given._replace(unit=numbers)

    @property
    def n_units(self) -> int:  # type: ignore[override]
        """How many persons there are: as declared, or counted in a pass."""
        declared = self.source.n_units
        if declared is not None:
            return declared
        most = -1.0
        for _, found in self.blocks():
            assert isinstance(found, RecordColumns)
            most = max(most, float(np.nanmax(found.unit, initial=-1.0)))
        return int(most) + 1


def _ascend(first: object, second: object) -> bool:
    """Whether ids do not descend; those of different types do."""
    try:
        return first is None or bool(first <= second)  # type: ignore[operator]
    except TypeError:
        return False


class WholeUnits:
    """Blocks of whole persons: the records of the last person of a block wait for the next one.

    Parameters
    ----------
    most : int
        How many records of a person count: the first ones.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._waiting: tuple[Any, Vector] | None = None

    def through(self, rows: Any, values: Vector) -> tuple[Any, Vector] | None:
        """The persons that are complete, from rows and values whose last column numbers the persons."""
        if self._waiting is not None:
            before, old = self._waiting
            rows = sp.vstack([before, rows], format="csr") if sp.issparse(rows) else np.vstack([before, rows])
            values = np.vstack([old, values])
        number = values[:, -1]
        kept = grouped(np.where(np.isnan(number), -1, number).astype(np.int64), self._most)
        if not len(kept):
            return None
        if sp.issparse(rows):
            rows = rows.tocsr()
        complete = int(np.searchsorted(number[kept], number[kept[-1]]))
        here, waiting = kept[:complete], kept[complete:]
        self._waiting = rows[waiting], values[waiting]
        return (rows[here], values[here]) if complete else None

    def rest(self) -> tuple[Any, Vector] | None:
        """The last person."""
        return self._waiting
