"""What all kinds of records offer: exact sums over all of them."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeAlias

import numpy as np

from .. import progress
from ..arrays import Total, Vector, finer_grid, grid_of_terms
from ..bounds import Bounds
from ..errors import UnsupportedProblem

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .products import CrossProducts
    from .terms import Term


Grid: TypeAlias = float | Vector
"""The grid of a sum, or one for each of its entries."""


class Coins(Protocol):
    """A secret coin for each record, by its position."""

    def taken(self, start: int, stop: int) -> NDArray[np.intp]:
        """The positions from start to stop whose coins say yes, counted from ``start``."""
        ...


class Part(Coins, Protocol):
    """Public positions of one part of a table."""

    def before(self, stop: int) -> int:
        """How many of the first positions are in the part."""
        ...


def taking_part(part: Part | None, coins: Coins | None, start: int, stop: int) -> NDArray[np.intp] | None:
    """The positions from start to stop of the records that take part, counted from ``start``; None for all.

    A coin belongs to a position in the part, if there is one, so that a part is a table of its own.
    """
    taken = None if part is None else part.taken(start, stop)
    if coins is None:
        return taken
    if part is None or taken is None:
        return coins.taken(start, stop)
    before = part.before(start)
    return taken[coins.taken(before, before + len(taken))]


class RecordSet(ABC):
    """Records of which sums can be computed: resident ones, a stream, or blocks on a cluster.

    A sum depends on the set of records alone, not on how and where they are stored.

    Attributes
    ----------
    table_size : int
        The public number of records, or the most that there can be: it decides on the grid of sums.
    constant : float
        The constant feature, 0 if there is none.
    radius : float
        The declared bound on the norm of a row, the constant feature included.
    trusted : str
        Who sees records, or exact sums over them, besides this process.
    """

    trusted: ClassVar[str] = ""
    table_size: int
    constant: float
    radius: float

    @property
    def has_units(self) -> bool:
        """Whether records are those of persons, who may have several."""
        return False

    @property
    @abstractmethod
    def n_features(self) -> int:
        """Features of the table, without the constant one."""

    def require_readable(self) -> None:  # noqa: B027 - records in memory were read already
        """Read records that are not in memory once, and release nothing: what fails then costs no budget."""

    @abstractmethod
    def steps(self, term: Term, grid: Grid, finely: int = 0) -> NDArray[np.int64]:
        """Sum over the records of what each adds, in steps of a grid.

        The last entry of a row is that of the constant feature. Then follow ``finely`` rows for what rounding
        leaves, in steps of finer and finer grids.
        """

    @abstractmethod
    def longest(self, term: Term) -> float:
        """The largest norm of what a record adds: not private."""

    @abstractmethod
    def with_target(self, target: Callable[[Vector], Vector]) -> RecordSet:
        """The same table with other targets, a function of those that it has."""

    @abstractmethod
    def batch(self, coins: Coins) -> Any:
        """What ``rows`` takes for the records whose coins say yes."""

    @abstractmethod
    def rows(self, batch: Any) -> RecordSet:
        """The records of a batch."""

    def of_part(self, part: Part) -> RecordSet:
        """The records of a part, as a table of its own."""
        raise UnsupportedProblem(f"{type(self).__name__} records cannot be cut into parts")

    def split(self, w: Vector) -> tuple[Vector, Vector]:
        """Coefficients of the features, and the intercept: one number or none. Both are views."""
        return w[: self.n_features], w[self.n_features :]

    def total(self, term: Term, finely: int = 0) -> Total:
        """Sum over the records of what each adds, in whole steps of a public grid.

        The grid follows from the limit of the terms and the public number of records. What rounding leaves of
        the terms is kept on ``finely`` finer grids: at most one, two for `PreciseGradient`. Terms without a
        limit have no private sum; theirs is as precise as doubles are.
        """
        limit = term.limit
        if math.isinf(limit):
            limit, finely = self.longest(term) or 1.0, 0 if term.square else 1  # squares have one grid
        grid = grid_of_terms(limit, self.table_size)
        steps = self.steps(term, grid, finely)
        progress.passed()
        if not term.columns:
            steps = steps[:, -1:]
        elif not self.constant or term.square:
            ends = slice(self.n_features, None, self.n_features + 1)
            steps = np.delete(steps, ends, axis=1) if term.sizes else steps[:, :-1]
        return Total(steps[0], grid, steps[1:] if finely else None, finer_grid(1.0, self.table_size))

    def cross_products(self, term: CrossProducts) -> Total:
        """Sums over the records of products of numbers of a record, in whole steps of public grids."""
        if term.n_records < self.table_size:
            raise ValueError(
                f"products on grids for {term.n_records} records are not exact for {self.table_size}"
            )
        steps = self.steps(term, 1.0)[0]
        progress.passed()
        return term.total(steps)

    def cut_sums(self, term: Term, grid: Vector) -> Vector:
        """Sums of terms that are cut column by column, on grids so coarse that doubles hold them exactly."""
        steps = self.steps(term, grid)[0]
        progress.passed()
        sums: Vector = (steps if self.constant else steps[:-1]) * grid
        return sums


class RemoteRecords(RecordSet):
    """Records that are not held here, but clipped into bounds where they are read."""

    bounds: Bounds
    most: int
    """The most that there can be, if their number is private; 0 if it is public."""

    @property
    @abstractmethod
    def n_records(self) -> int:
        """How many there are."""

    @property
    def table_size(self) -> int:  # type: ignore[override]
        return self.most or self.n_records

    @property
    def radius(self) -> float:  # type: ignore[override]
        return math.hypot(self.bounds.radius(self.n_features), self.constant)


@dataclass(frozen=True, eq=False)
class ByClass:
    """From codes of classes to the targets of a loss and to factors of the shares of records.

    Parameters
    ----------
    target : callable
        Maps codes to targets.
    factors : array of shape (classes,)
        From 0 to 1: what the share of a record of each class is multiplied by.
    """

    target: Callable[[Vector], Vector]
    factors: Vector

    def __call__(self, codes: Vector) -> Vector:
        return self.target(codes)

    def of(self, codes: Vector) -> Vector:
        """The factor of each record."""
        found: Vector = self.factors[codes.astype(np.intp)]
        return found
