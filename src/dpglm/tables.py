"""What a stored table offers: passes over all rows, rows at random, columns at random, or both.

Every table offers `Passes`, and more by its methods. ``Query.needs`` states what a query needs beyond passes,
and ``Solver.needs`` what a plan does; a table that lacks it is refused before a record is read.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from .arrays import Vector
from .errors import UnsupportedProblem
from .kernels.arguments import BothWays, DualSteps

Index = NDArray[np.signedinteger] | NDArray[np.unsignedinteger] | slice
"""Some of the rows, or all of them as a slice."""


class Passes(Protocol):
    """A table that is read from the first row to the last."""

    @property
    def shape(self) -> tuple[int, int]: ...


@runtime_checkable
class Rows(Protocol):
    """A table of which any rows can be read alone, and changed by dual steps (see ``kernels.dual``)."""

    def rows(self, index: NDArray[np.intp]) -> Passes: ...
    def ascend(self, scale: Vector, tail: Vector, *steps: *DualSteps) -> int: ...


@runtime_checkable
class Columns(Protocol):
    """A table of which any column can be read alone: the rows that hold it, and their entries."""

    def column(self, j: int) -> tuple[Index, NDArray[np.floating]]: ...
    def scaled_columns(self, scale: Vector) -> Passes: ...


@runtime_checkable
class RowsAndColumns(Rows, Columns, Protocol):
    """A table of which rows and columns can be read alone by the same method, without zeros in between."""

    def both_ways(self) -> BothWays: ...


Capability = type[Rows] | type[Columns] | type[RowsAndColumns]

_IN_WORDS: dict[Capability, str] = {
    Rows: "rows at random",
    Columns: "columns at random",
    RowsAndColumns: "rows and columns at random",
}


def can(table: Passes, needs: Collection[Capability]) -> bool:
    """Whether a table offers all that is needed beyond passes. No record is read."""
    return all(isinstance(table, need) for need in needs)


def is_resident(table: Passes) -> bool:
    """Whether a table is in memory: any of its rows and columns can be read alone."""
    return can(table, (Rows, RowsAndColumns))


def refusal(
    table: Passes, needs: Collection[Capability], who: str, others: Sequence[str] = ()
) -> UnsupportedProblem:
    """The error for a solver or query that needs more than a table offers, with those that run on it."""
    offered = {need: words for need, words in _IN_WORDS.items() if isinstance(table, need)}
    missing = [words for need, words in _IN_WORDS.items() if need in needs and need not in offered]
    return UnsupportedProblem(
        f"{who} needs a table that offers {' and '.join(missing)}, {type(table).__name__} offers "
        f"{' and '.join(['passes', *offered.values()])} only"
        + (f": use {' or '.join(filter(None, [', '.join(others[:-1]), others[-1]]))}" if others else "")
    )
