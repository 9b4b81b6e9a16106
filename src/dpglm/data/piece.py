"""Some rows of a table, left where they are."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from ..arrays import ROUNDING, Total, Vector, finer_grid, grid_of_terms
from ..kernels.arguments import PLAIN, Form, RowFacts
from ..threads import even, in_parts
from .parts import in_sum, parts_of

LEAST_NORM = 1e-150
"""What shorter rows count as. Their squares underflow; a norm too large only clips them more."""

Index = NDArray[np.intp] | None
"""Some rows, or all."""
Steps = NDArray[np.int64]


class Stored(ABC):
    """A table in memory, with compiled passes over any of its rows (see ``kernels.exact``).

    A pass reads rows from ``first`` on, or those that ``index`` names from there on: as many as there are
    factors, facts or results.

    Attributes
    ----------
    rows_of_classes : int
        The most rows of a pass for several classes.
    """

    rows_of_classes: ClassVar[int] = 1 << 12

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int]: ...

    @property
    @abstractmethod
    def entries(self) -> int:
        """How many numbers are stored."""

    @abstractmethod
    def write_dots(self, index: Index, first: int, w: Vector, out: Vector) -> None:
        """Product of each row with w."""

    @abstractmethod
    def write_squares(self, index: Index, first: int, out: Vector) -> None:
        """Squared norm of each row."""

    @abstractmethod
    def add(self, index: Index, first: int, factors: Vector, kind: int, rounding: float, out: Steps) -> None:
        """Add each row times its factor on a grid, or the squares or absolute values of its entries then."""

    @abstractmethod
    def add_cut(
        self, index: Index, first: int, factors: Vector, limit: Vector, rounding: Vector, out: Steps
    ) -> None:
        """Add each row times its factor, each entry cut to the limit of its column."""

    @abstractmethod
    def add_finely(
        self,
        index: Index,
        first: int,
        factors: Vector,
        rounding: float,
        finer: float,
        out: Steps,
        rest: Steps,
    ) -> None:
        """Add each row times its factor, and what rounding leaves of it on a finer grid."""

    @abstractmethod
    def add_gradient(
        self, index: Index, first: int, facts: RowFacts, form: Form, w: Vector, clip: float, rounding: float,
        out: Steps,
    ) -> None:  # fmt: skip
        """Add the clipped gradient of each record; the constant feature is the last entry."""

    def add_class_gradient(
        self, index: Index, first: int, facts: RowFacts, w: Vector, clip: float, rounding: float, out: Steps
    ) -> None:
        """Add the gradients of each record for all classes, clipped together.

        w and ``out`` have a row for each class, and the constant feature is the last entry.
        """
        from ..kernels.softmax import to_class_factors  # compiled code is loaded by those who use it

        z, scratch = np.empty((len(w), facts.y.size)), np.empty((2, facts.y.size))
        for coefficients, margins in zip(w, z, strict=True):
            self.write_dots(index, first, coefficients[:-1], margins)
        to_class_factors(facts, w, clip, rounding, z, scratch, out)
        for factors, sums in zip(z, out, strict=True):
            self.add(index, first, factors, PLAIN, rounding, sums)

    @abstractmethod
    def add_precise_gradient(
        self, index: Index, first: int, facts: RowFacts, form: Form, w: Vector, clip: float,
        rounding: Vector, out: Steps,
    ) -> None:  # fmt: skip
        """The same from terms of twice the precision, on three grids (see ``kernels.double_double``)."""

    @abstractmethod
    def dense(self, index: Index, first: int, count: int) -> Vector:
        """Some rows as an array of doubles, row by row in memory."""

    @abstractmethod
    def copied(self, index: NDArray[np.intp]) -> Self:
        """A table of some of the rows, in their order."""

    @abstractmethod
    def clipped(self, low: Vector, high: Vector) -> Self:
        """The table with entry j of each row cut to [low_j, high_j]."""

    @abstractmethod
    def without(self, dropped: NDArray[np.bool_]) -> Self:
        """The table with some rows set to zero."""

    @abstractmethod
    def times_columns(self, factors: Vector) -> Self:
        """The table with column j multiplied by factor j, rounded to the type of its entries.

        No product is larger than it is before it is rounded, but for the rounding of doubles.
        """

    @property
    def whole(self) -> Piece:
        """All rows. It is not kept: a circle of references would hold the blocks of a stream in memory."""
        return Piece(self, None, 0, self.shape[0])

    def rows(self, index: NDArray[np.intp]) -> Piece:
        """Some rows, read in place."""
        return Piece(self, index, 0, len(index))

    def dot(self, w: Vector) -> Vector:
        """Product of each row with w."""
        return self.whole.dot(w)

    def t_dot(self, r: Vector) -> Vector:
        """Sum over the rows of r_i times row i, as precise as doubles are."""
        n, p = self.shape
        grid = grid_of_terms(float(np.max(np.abs(r) * self.row_norms, initial=0.0)) or 1.0, n)
        finer = finer_grid(grid, n)
        steps = in_sum(
            lambda start, stop, out: self.add_finely(
                None, start, r[start:stop], ROUNDING * grid, ROUNDING * finer, *out
            ),
            even(n, parts_of(self.entries, p)), (2, p),
        )  # fmt: skip
        return np.asarray(Total(steps[0], grid, steps[1:], finer / grid))

    @cached_property
    def row_norms(self) -> Vector:
        """Euclidean norm of each row, or LEAST_NORM if that is more; infinite or NaN where an entry is."""
        return self.whole.row_norms


@dataclass(frozen=True, eq=False)
class Piece:
    """Rows of a stored table: a range of them, or some of an index."""

    table: Stored
    index: Index
    first: int
    count: int

    @property
    def shape(self) -> tuple[int, int]:
        return self.count, self.table.shape[1]

    @property
    def entries(self) -> int:
        """About how many numbers are stored."""
        n = self.table.shape[0]
        return self.table.entries * self.count // n if n else 0

    def part(self, start: int, stop: int) -> Piece:
        """A range of these rows."""
        return Piece(self.table, self.index, self.first + start, stop - start)

    def times_columns(self, factors: Vector) -> Piece:
        """These rows of the table with column j multiplied by factor j, from 0 to 1."""
        return Piece(self.table.times_columns(factors), self.index, self.first, self.count)

    def dot(self, w: Vector) -> Vector:
        """Product of each row with w."""
        w = np.ascontiguousarray(w)
        return self._filled(lambda piece, out: self.table.write_dots(piece.index, piece.first, w, out))

    @property
    def row_norms(self) -> Vector:
        """Norms as those of the table."""
        with np.errstate(all="ignore"):
            squares = self._filled(lambda piece, out: self.table.write_squares(piece.index, piece.first, out))
            return np.maximum(np.sqrt(squares), LEAST_NORM)

    def _filled(self, write: Callable[[Piece, Vector], None]) -> Vector:
        """What is written for each row, in threads."""
        out = np.empty(self.count)
        in_parts(
            lambda _, start, stop: write(self.part(start, stop), out[start:stop]),
            self.count,
            parts_of(self.entries),
        )
        return out


def never_larger(factors: Vector, dtype: np.dtype[np.floating]) -> Vector:
    """Factors that are a little smaller, so that products rounded to single precision exceed no bound.

    Sensitivities allow for the rounding of doubles.
    """
    single = np.finfo(np.float32)
    return factors * (1.0 - float(single.eps)) if dtype == single.dtype else factors


def taken(index: Index, first: int, count: int) -> slice | NDArray[np.intp]:
    """What selects the rows of a pass."""
    here = slice(first, first + count)
    return here if index is None else index[here]
