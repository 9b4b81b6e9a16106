"""What a stored table offers: passes over all rows, rows at random, columns at random, or both.

Every table offers `Passes`, and more by its methods. ``Query.needs`` states what a query needs beyond passes,
and ``Solver.needs`` what a plan does; a table that lacks it is refused before a record is read.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from .arrays import Vector
from .errors import UnsupportedProblem
from .kernels.arguments import BothWays, CoordinateSteps, Cut, DualSteps, Held

Index = NDArray[np.signedinteger] | NDArray[np.unsignedinteger] | slice
"""Some of the rows, or all of them as a slice."""


class Passes(Protocol):
    """A table that is read from the first row to the last."""

    @property
    def shape(self) -> tuple[int, int]: ...


class Products(Passes, Protocol):
    """A table in memory; ``dot`` is the product of each row with w."""

    def dot(self, w: Vector) -> Vector: ...


@runtime_checkable
class Rows(Protocol):
    """A table of which any rows can be read alone.

    ``rows`` is the table of some rows, read in place; ``ascend`` runs compiled dual steps, one row after the
    other, and returns how many moved (see ``kernels.coordinate``).
    """

    def rows(self, index: NDArray[np.intp]) -> Products: ...
    def ascend(self, scale: Vector, tail: Vector, *steps: *DualSteps) -> int: ...


class Column(Protocol):
    """A table stored by columns.

    ``column`` is the rows that hold column j, and their entries; ``descend`` runs a compiled block of
    coordinate steps (see ``kernels.coordinate``).
    """

    def column(self, j: int) -> tuple[Index, NDArray[np.floating]]: ...
    def descend(self, tail: Vector, *steps: *CoordinateSteps) -> None: ...


class ClippedSums(Protocol):
    """Sum over the records of r_i times entry j, each term cut to [-limit_j, limit_j].

    Tables are given with the factor of each row and with the constant feature, an empty array for none; the
    constant feature has the last limit and the last sum.
    """

    @property
    def sums(self) -> Vector:
        """The sums as they are now."""
        ...

    @property
    def scratch(self) -> Vector:
        """Scratch space: two numbers for each feature, in the cache line of its sum."""
        ...

    def shift(self, rows: Index, old: Vector, new: Vector, j: int = 0) -> NDArray[np.signedinteger] | None:
        """Change the factors r of some rows; return the features whose sums leave their tracked range.

        None stands for all features. The list always has feature j, and is valid until the next change.
        """
        ...

    def track(self, features: NDArray[np.signedinteger], slack: Vector) -> None:
        """Track a range around the present sums of features; a sum without one leaves it at any change."""
        ...


@runtime_checkable
class Columns(Protocol):
    """A table of which any column can be read alone.

    ``column`` is the rows that hold column j, and their entries; ``scaled_columns`` is the table by columns
    with row i multiplied by scale_i, copied only where needed; ``sums`` are sums of cut terms, on a grid for
    ``size`` rows.
    """

    def column(self, j: int) -> tuple[Index, NDArray[np.floating]]: ...
    def scaled_columns(self, scale: Vector) -> Column: ...
    def sums(self, scale: Vector, tail: Vector, limit: Vector, reach: Vector, size: int) -> ClippedSums: ...


@dataclass(frozen=True, eq=False)
class Weighed:
    """Sums of cut terms of all columns, and what a kernel needs to keep them.

    Attributes
    ----------
    sums : array of shape (columns, 2)
        For each column the sum of its cut terms, and its weight: the sum of its absolute entries.
    largest, least : float
        The largest absolute entry, and the least one above 0: infinity if there is none.
    cut : Cut
        The limit as a multiple of the grid on which sums are exact, and what rounds a term to that grid.
    grid : float
        That grid.
    count : function
        What finds the counts, in a pass over the table.
    """

    sums: Vector
    largest: float
    least: float
    cut: Cut
    grid: float
    count: Callable[[], NDArray[np.uint32]]

    @cached_property
    def heaviest(self) -> float:
        """The largest weight of a column."""
        return float(self.sums[:, 1].max(initial=0.0))

    @cached_property
    def counts(self) -> NDArray[np.uint32]:
        """The number of entries of each column."""
        return self.count()


class ColumnsOnDemand(Protocol):
    """A table by rows, and some of its columns.

    ``held`` is the table with these columns, and a 1 for each of them; ``hold`` adds those whose entry in
    ``wanted`` is 1, and may be given the number of entries of each column; ``hold_all`` adds all.
    """

    @property
    def held(self) -> Held: ...
    def hold(self, wanted: NDArray[np.uint8], counts: NDArray[np.uint32] | None = None) -> None: ...
    def hold_all(self) -> None: ...


@runtime_checkable
class RowsAndColumns(Columns, Protocol):
    """A table of which rows and columns can be read alone by the same method, without zeros in between.

    ``without_zeros`` is the same table, stored without its zeros; ``both_ways`` is it by rows and by
    columns; ``on_demand`` is it by rows, with the columns that are asked for; ``weighed`` are sums over the
    rows of r_i times entry j, rows scaled, each term cut to [-limit, limit], on a grid for ``size`` rows.
    """

    def without_zeros(self) -> Products: ...
    def both_ways(self) -> BothWays: ...
    def on_demand(self) -> ColumnsOnDemand: ...
    def weighed(self, scale: Vector, r: Vector, limit: float, size: int) -> Weighed: ...


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
