"""What a table offers: passes over all rows, rows or columns at random, or both; and its disjoint parts.

Every table offers `Passes`, and more by its methods. ``Query.needs`` states what a query needs beyond passes,
and ``Solver.needs`` what a plan does; a table that lacks it is refused before a record is read.
Parts are by a public rule: a record's position alone decides on its part.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from .arrays import Vector
from .errors import UnsupportedProblem
from .kernels.arguments import BothWays, DualSteps

Index = NDArray[np.signedinteger] | NDArray[np.unsignedinteger] | slice
"""Some of the rows, or all of them as a slice."""

_GOLDEN = 2654435769
"""2**32 over the golden ratio: its multiples, modulo 2**32, are spread evenly over any stretch."""
_ROUND = 1 << 32


class Passes(Protocol):
    """A table that is read from the first row to the last."""

    @property
    def shape(self) -> tuple[int, int]: ...


@runtime_checkable
class Rows(Protocol):
    """A table of which any rows can be read alone, and changed by dual steps (see ``kernels.coordinate``)."""

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


@dataclass(frozen=True)
class Part:
    """The positions of one part of a table.

    Attributes
    ----------
    limit : int
        Position i is held out if i * 2654435769 mod 2**32 is below the limit.
    held_out : bool
        Whether this is the part that is held out, or the rest.
    """

    limit: int
    held_out: bool

    def taken(self, start: int, stop: int) -> NDArray[np.intp]:
        """Positions in [start, stop) that belong to this part, relative to ``start``."""
        positions = np.arange(start, stop, dtype=np.uint64) * np.uint64(_GOLDEN) % np.uint64(_ROUND)
        return np.flatnonzero((positions < np.uint64(self.limit)) == self.held_out)

    def before(self, stop: int) -> int:
        """The number of positions below ``stop`` that belong to this part."""
        # x mod m is below l if, and only if, floor(x / m) - floor((x - l) / m) is 1, else that is 0
        below = _floor_sum(stop, _ROUND, _GOLDEN, 0) - _floor_sum(stop, _ROUND, _GOLDEN, -self.limit)
        return below if self.held_out else stop - below


@dataclass(frozen=True)
class Split:
    """A table split into rows to train on and rows that are held out for scores.

    Neighbouring tables have the same rows but one, at the same position, so both have it in the same part.

    Parameters
    ----------
    share : float
        The share of rows that are held out.
    """

    share: float

    @property
    def training(self) -> Part:
        """The part for training."""
        return Part(round(self.share * _ROUND), held_out=False)

    @property
    def held_out(self) -> Part:
        """The part for scores."""
        return Part(round(self.share * _ROUND), held_out=True)

    @property
    def rule(self) -> str:
        """The rule in words; events on parts by the same rule are added up part by part."""
        return f"row i is held out if {_GOLDEN} i mod 2^32 < {self.training.limit}"


def _floor_sum(n: int, m: int, a: int, b: int) -> int:
    """The sum of floor((a i + b) / m) over i = 0, ..., n - 1, by Euclid's algorithm."""
    total = 0
    while n > 0:
        total += n * (n - 1) // 2 * (a // m) + n * (b // m)
        a, b = a % m, b % m
        last = a * n + b
        n, b, m, a = last // m, last % m, a, m
    return total
