"""Bounded numbers of each record, rounded to grids on which their sums are exact."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from ..arrays import ROUNDING, Total, Vector, bits_of_terms
from ..bounds import Coordinates
from ..kernels.arguments import Form
from ..losses import Loss
from ..scores import CellsOf, PublicModel, Score
from .products import CrossProducts, box_of, coordinates_of, grid_of_factors, squares_of

if TYPE_CHECKING:
    from .records import Records

FINE, MISSING, UNREADABLE, OUTSIDE, UNKNOWN = 0, 1, 2, 3, 4
"""What a cell is: nothing is wrong with it, or it is missing, cannot be read, is out of the declared range,
or has a level that is not declared."""

Codes = tuple[tuple[int, ...], ...]
"""For each column the codes that are counted."""

SIZE_WEIGHT = 0.8
"""What the size of a record counts for beside its place: with this weight it costs nothing under replace-one
(docs/proofs/bounded_sums.md)."""

INNER_RADIUS = 0.6
"""Every point so near to 0 is a mean of what records of norm 1 add."""

_MOST_BITS = 40  # so that a chunk of 2**12 terms is added up exactly in doubles

_SIZES_AT_ONCE = 1 << 14


class RecordNumbers(CrossProducts):
    """Numbers of each record up to ``largest`` in absolute value, on a grid; 0 for a null record."""

    @property
    def largest(self) -> float:
        """The largest absolute value of a number: it is on the grid."""
        return 1.0

    @property
    def grid(self) -> float:
        """The grid of the numbers: finer than counts need, since noise lies on it."""
        return grid_of_factors(self.largest, self.n_records)

    def total(self, steps: NDArray[np.int64]) -> Total:
        return Total(steps, self.grid)

    def numbers(self, rows: Records) -> Iterable[Vector]:
        """Each number for all records; not for terms with an ``add`` of their own."""
        raise NotImplementedError

    def shares(self, rows: Records, values: Vector) -> Vector:
        """A number of the records that count, each times the part of the record in its unit."""
        return rows.parted(np.where(rows.scale > 0, values, 0.0))

    def add(self, rows: Records, out: NDArray[np.int64]) -> None:
        for k, values in enumerate(self.numbers(rows)):
            out[k] += rows.on_grid(self.shares(rows, values), self.grid).sum()


class SizedRows(RecordNumbers):
    """2 v - 1 for v = norm² / radius² of a row, cut to [0, 1], and numbers in [-1, 1] of its target.

    The norm is that of the coordinates, or of the row itself if there are none.
    """

    coordinates: Coordinates | None  # wide rows are not written as coordinates
    radius: float

    @property
    def needs_norms(self) -> bool:  # type: ignore[override]  # it depends on the coordinates
        return self.coordinates is None

    @property
    def rows_at_once(self) -> int:
        return _SIZES_AT_ONCE  # no product of matrices is to be exact

    @abstractmethod
    def targets(self, rows: Records) -> list[Vector]:
        """Numbers in [-1, 1] for the target of each record."""

    def numbers(self, rows: Records) -> Iterable[Vector]:
        with np.errstate(all="ignore"):
            shares = np.minimum(_zero_for_nan(self._squares(rows) / self.radius**2), 1.0)
        return 2.0 * shares - 1.0, *self.targets(rows)

    def shares(self, rows: Records, values: Vector) -> Vector:
        return rows.parted(np.where(rows.scale > 0, values, 0.0), less=3.0 * self.grid)

    def _squares(self, rows: Records) -> Vector:
        if self.coordinates is None:
            return np.square(rows.norms)
        return squares_of(rows, self.coordinates)


@dataclass(frozen=True, eq=False)
class RowSizes(SizedRows):
    """(2 v - 1, t) for the size v of a row and t, target_scale * (y - target_middle) cut to [-1, 1]."""

    coordinates: Coordinates | None
    radius: float
    target_middle: float
    target_scale: float
    n_records: int

    def entries(self, n_features: int) -> int:
        return 2

    def targets(self, rows: Records) -> list[Vector]:
        with np.errstate(all="ignore"):  # an absurd range has an infinite scale, and 0 times it is NaN
            targets = self.target_scale * (rows.y - self.target_middle)
        return [np.minimum(np.maximum(_zero_for_nan(targets), -1.0), 1.0)]


@dataclass(frozen=True, eq=False)
class RowAndTargetSizes(RowSizes):
    """(2 v - 1, t, 2 t² - 1) for the size v of a row and its target t as in `RowSizes`."""

    def entries(self, n_features: int) -> int:
        return 3

    def targets(self, rows: Records) -> list[Vector]:
        (t,) = super().targets(rows)
        return [t, 2.0 * np.square(t) - 1.0]


@dataclass(frozen=True, eq=False)
class ClassSizes(SizedRows):
    """(2 v - 1, e) for the size v of a row, and e: 1 for its class, 0 for the others."""

    coordinates: Coordinates | None
    radius: float
    classes: int
    n_records: int

    def entries(self, n_features: int) -> int:
        return 1 + self.classes

    def targets(self, rows: Records) -> list[Vector]:
        return [np.where(rows.y == k, 1.0, 0.0) for k in range(self.classes)]


@dataclass(frozen=True, eq=False)
class MeanRows(RecordNumbers):
    """(z, 0.8 norm (2 v - 1)) for the coordinates z of a record, scaled to norm at most ``norm``.

    v is the squared norm of z over norm². A null record adds nothing, and weights do not count.
    """

    coordinates: Coordinates
    norm: float
    n_records: int

    @property
    def width(self) -> int:
        return self.coordinates.dimension

    @property
    def grid(self) -> float:
        bits = min(_MOST_BITS, bits_of_terms(self.n_records))
        return math.ldexp(1.0, math.frexp(self.norm * (1 + 2.0**-20))[1] - bits)

    @property
    def rounding(self) -> float:
        """Largest distance of what a record adds from where it was before it was rounded."""
        return math.sqrt(self.coordinates.dimension + 1) * self.grid / 2

    def entries(self, n_features: int) -> int:
        return n_features + 1

    def add(self, rows: Records, out: NDArray[np.int64]) -> None:
        from ..kernels.products import mean_rows  # compiled code is loaded by those who use it

        counts = np.where(rows.scale > 0, 1.0, 0.0)
        # Rounding takes no person with several records out of the mean of what its records may add.
        shares = rows.parted(counts, less=self.rounding / (INNER_RADIUS * self.norm))
        sums, row = np.zeros(out.size), np.empty(self.coordinates.dimension)
        mean_rows(
            rows.dense, rows.scale, box_of(self.coordinates), shares, self.norm, SIZE_WEIGHT * self.norm,
            ROUNDING * self.grid, row, sums,
        )  # fmt: skip
        out += (sums / self.grid).astype(np.int64)


@dataclass(frozen=True, eq=False)
class LossValues(RecordNumbers):
    """The loss of each record at w, cut to at most ``most``."""

    loss: Loss
    coordinates: Coordinates
    most: float
    n_records: int
    w: Vector

    @property
    def width(self) -> int:
        return self.coordinates.dimension

    @property
    def largest(self) -> float:
        return self.most

    def entries(self, n_features: int) -> int:
        return 1

    def add(self, rows: Records, out: NDArray[np.int64]) -> None:
        from ..kernels.products import loss_values

        values = np.empty(rows.n_records)
        z = coordinates_of(rows, self.coordinates) @ self.w
        beside, rounding = rows.beside_less(self.grid / (2 * self.most)), ROUNDING * self.grid
        loss_values(z, rows.y, rows.scale, beside, Form.of(self.loss), self.most, rounding, values)
        out += (values.sum() / self.grid).astype(np.int64)


class Valued(Protocol):
    """What has a value for a margin and a target, elementwise."""

    def value(self, z: Vector, y: Vector) -> Vector: ...


@dataclass(frozen=True, eq=False)
class CutValues(RecordNumbers):
    """Minus the loss of each record at each of some points, cut to [-most, 0]; 0 for a null record.

    ``points`` has one column for each model. What a record adds is multiplied by its share, from 0 to 1.
    """

    loss: Valued
    most: float
    n_records: int
    points: Vector

    @property
    def width(self) -> int:
        return int(self.points.shape[1])

    @property
    def largest(self) -> float:
        return self.most

    def entries(self, n_features: int) -> int:
        return self.width

    def shares(self, rows: Records, values: Vector) -> Vector:
        return rows.shared(np.where(rows.scale > 0, values, 0.0))

    def numbers(self, rows: Records) -> Iterable[Vector]:
        for loss in self._losses(rows):
            yield -np.clip(np.nan_to_num(loss, nan=self.most), 0.0, self.most)

    def _losses(self, rows: Records) -> Iterator[Vector]:
        for k in range(self.points.shape[1]):
            with np.errstate(all="ignore"):
                yield self.loss.value(rows.margins(np.ascontiguousarray(self.points[:, k])), rows.y)


@dataclass(frozen=True, eq=False)
class CutGains(CutValues):
    """How much less the loss of each record is than at the first point, cut to [-most, most].

    There is one number for each further point; all are 0 for a null record.
    """

    @property
    def width(self) -> int:
        return super().width - 1

    def numbers(self, rows: Records) -> Iterable[Vector]:
        losses = self._losses(rows)
        first = next(losses)
        for loss in losses:
            with np.errstate(all="ignore"):
                gain = np.nan_to_num(first - loss, nan=-self.most)
            yield np.clip(gain, -self.most, self.most)


@dataclass(frozen=True, eq=False)
class ScoreRows(RecordNumbers):
    """(counted, v, weight (1 - v²)) for the score v in [-1, 1] of a record under a public model."""

    score: Score
    model: PublicModel
    n_records: int
    counted: float
    weight: float

    def entries(self, n_features: int) -> int:
        return 3

    def total(self, steps: NDArray[np.int64]) -> Total:
        return Total(steps, 1.0, unit=self.grid * np.array([self.counted, 1.0, self.weight]))

    def numbers(self, rows: Records) -> Iterable[Vector]:
        v = np.where(rows.scale > 0, self.score.scaled(self.model.margins(rows), rows.y), 0.0)
        return np.ones(rows.n_records), v, 1.0 - np.square(v)


@dataclass(frozen=True, eq=False)
class CellRows(RecordNumbers):
    """``counted`` for the cell of a record, and, after all cells, the amount of the record in its cell."""

    of: CellsOf
    model: PublicModel
    n_records: int
    counted: float

    def entries(self, n_features: int) -> int:
        return self.of.count * (2 if self.of.has_amounts else 1)

    def total(self, steps: NDArray[np.int64]) -> Total:
        kinds = [self.counted, 1.0] if self.of.has_amounts else [self.counted]
        return Total(steps, 1.0, unit=self.grid * np.repeat(kinds, self.of.count))

    def add(self, rows: Records, out: NDArray[np.int64]) -> None:
        margins, counts, size = self.model.margins(rows), rows.scale > 0, self.of.count
        with np.errstate(all="ignore"):
            cells, amounts = self.of.cells(margins, rows.y)
            amounts = np.clip(np.nan_to_num(amounts), -1.0, 1.0)
        here = cells[counts]
        out[:size] += round(1.0 / self.grid) * np.bincount(here, minlength=size)
        if self.of.has_amounts:
            np.add.at(out, size + here, rows.on_grid(amounts, self.grid)[counts])


@dataclass(frozen=True, eq=False)
class ClassTally(RecordNumbers):
    """1 for the class of a record, 0 for the others; targets are codes."""

    classes: int
    n_records: int

    def entries(self, n_features: int) -> int:
        return self.classes

    def numbers(self, rows: Records) -> Iterable[Vector]:
        return (np.where(rows.y == k, 1.0, 0.0) for k in range(self.classes))


@dataclass(frozen=True, eq=False)
class CellTally(RecordNumbers):
    """For each column, and each code that is counted there, 1 for a record that has it and 0 for others.

    A null record is counted as one whose cells are all missing: here it adds something.
    """

    codes: Codes
    n_records: int

    @property
    def width(self) -> int:
        return len(self.codes)

    def entries(self, n_features: int) -> int:
        return sum(map(len, self.codes))

    def numbers(self, rows: Records) -> Iterable[Vector]:
        table = np.where(rows.scale[:, None] > 0, rows.dense, float(MISSING))
        places = ((column, code) for column, codes in enumerate(self.codes) for code in codes)
        return (np.where(table[:, column] == code, 1.0, 0.0) for column, code in places)

    def shares(self, rows: Records, values: Vector) -> Vector:
        return rows.parted(values)


def _zero_for_nan(values: Vector) -> Vector:
    """The values, with 0 in place of NaN."""
    values[np.isnan(values)] = 0.0
    return values
