"""Tables that are read block by block and sorted by person: persons are numbered as they come."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..arrays import Vector
from ..errors import SourceChanged
from .beside import Several
from .mapped import Around
from .persons import grouped

NOT_SORTED = (
    "a table that is read block by block must be sorted by units, in ascending order, so that all records of "
    "a person follow one another: sort it by that column first"
)

Ranked = Callable[[object], tuple[NDArray[np.int64], list[Any]]]
"""From ids as users give them to the rank of each among the different ones, -1 if missing, and these."""


@dataclass(frozen=True, eq=False)
class InOrder(Around):
    """A table whose ids are replaced by the number of the person, from 0; NaN for a missing id."""

    ranked: Ranked

    @property
    def gives_offsets(self) -> bool:
        return self.source.gives_offsets

    def blocks(self) -> Iterator[tuple[object, object]]:
        number, last = -1, None
        for rows, found in self.source.blocks():
            given = found if isinstance(found, Several) else Several(found)
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
            assert isinstance(found, Several)
            most = max(most, float(np.nanmax(found.unit, initial=-1.0)))
        return int(most) + 1


def _ascend(first: object, second: object) -> bool:
    """Whether ids do not descend; those of different types do."""
    try:
        return first is None or bool(first <= second)  # type: ignore[operator]
    except TypeError:
        return False


class Carried:
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
