"""Sums over the records of products of numbers of a record: second moments, and gradients in a metric.

Numbers of a record are rounded to grids so coarse that a matrix product of doubles is exact, whatever its
order of operations. So BLAS computes the products, and sums do not depend on how the table is cut.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, replace
from functools import cache
from threading import local
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from ..arrays import COORDINATE_BITS, ROUNDING, Total, Vector, finer_grid, grid_of_terms
from ..bounds import Coordinates
from ..kernels.arguments import Box, Form, Soft
from ..losses import Loss, Multinomial
from .resident import LANES, LEAST_NORM, Dense
from .terms import FixedFactors, Gradient, Term

if TYPE_CHECKING:
    from .records import Records

_ROWS_A_CHUNK, _ENTRIES_A_CHUNK = 1 << 12, 1 << 17
_MOST_BITS, _WORD_BITS = 20, 61
_LARGEST_MARGIN = 1e50  # the square of a product with a moderate matrix does not overflow
LARGEST_ENTRY = 1e30
"""No entry of a metric is larger: rows in it are kept as float32, where they must not overflow."""
_ROWS, _ROWS_FINELY = 1 << 20, 1 << 12
_NOBODY = np.zeros(0, dtype=np.bool_)


def bits_of_factors(n_records: int) -> int:
    """How many binary digits a factor may have so that products of two, summed over n records, are exact.

    A chunk of 2**12 products of two factors of 20 digits is exact in doubles, and n of them in 64 bits.
    """
    return min(_MOST_BITS, (_WORD_BITS - int(max(n_records - 1, 1)).bit_length()) // 2)


def grid_of_factors(limit: float, n_records: int) -> float:
    """The grid of factors up to a limit: a power of two."""
    return math.ldexp(1.0, math.frexp(limit * (1 + 2.0**-20))[1] - bits_of_factors(n_records))


class _Scratch(local):
    """Memory of a thread: a chunk that is written where the last one was finds its pages in the cache."""

    space: Vector = np.empty(0)

    def array(self, rows: int, columns: int) -> Vector:
        """An array of any content; the next one takes its place."""
        if self.space.size < rows * columns:
            self.space = np.empty(rows * columns)
        return self.space[: rows * columns].reshape(rows, columns)


_scratch, _products = _Scratch(), _Scratch()


def box_of(coordinates: Coordinates) -> Box:
    """The coordinates, as compiled code takes them."""
    rounding = ROUNDING * 2.0**-COORDINATE_BITS
    return Box(coordinates.middle, 1.0 / coordinates.half, rounding, coordinates.dimension)


def coordinates_of(rows: Records, coordinates: Coordinates, width: int = 0) -> Vector:
    """The coordinates of each record, rounded to a grid; 0 for a null record.

    Zeros follow if the width is larger. The array is overwritten by the next call in this thread.
    """
    from ..kernels.products import coordinates as write  # compiled code is loaded by those who use it

    out = _scratch.array(rows.n_records, max(width, coordinates.dimension))
    write(rows.dense, rows.scale, box_of(coordinates), out)
    return out


def products_of(rows: Records, coordinates: Coordinates, matrix: Vector) -> Vector:
    """These coordinates times a matrix. The array is overwritten by the next call in this thread."""
    out = _products.array(rows.n_records, matrix.shape[1])
    return np.matmul(coordinates_of(rows, coordinates, len(matrix)), matrix, out=out)


def squares_of(rows: Records, coordinates: Coordinates) -> Vector:
    """Squared norms of these coordinates, the constant not included."""
    from ..kernels.products import squares  # compiled code is loaded by those who use it

    out, row = np.empty(rows.n_records), np.empty(len(coordinates.middle))
    squares(rows.dense, rows.scale, box_of(replace(coordinates, intercept=False)), row, out)
    return out


class CrossProducts(Term):
    """Sums of products of the factors of a record, for all pairs, and of factors themselves.

    Each term lists its fields itself, among them the public size of the table, by which grids are chosen.
    """

    n_records: int

    @property
    def limit(self) -> float:
        """None that `RecordSet.total` could use: the grids of the factors are their own."""
        return math.inf

    @property
    def width(self) -> int:
        """Numbers of a record that are computed at once."""
        return 1

    @property
    def rows_at_once(self) -> int:
        """Records of a chunk."""
        return rows_a_chunk(self.width)

    @abstractmethod
    def entries(self, n_features: int) -> int: ...

    @abstractmethod
    def total(self, steps: NDArray[np.int64]) -> Total:
        """The sum in its units, from whole steps."""

    @abstractmethod
    def add(self, rows: Records, out: NDArray[np.int64]) -> None:
        """Add what the records of a chunk add, in whole steps."""

    def factors(self, rows: Records) -> Vector:
        raise TypeError(f"{type(self).__name__} adds products of factors, not multiples of rows")


class OuterRows(CrossProducts):
    """z z' for numbers z of a record, scaled to norm at most ``norm``."""

    coordinates: Coordinates
    norm: float

    @property
    def width(self) -> int:
        return self.coordinates.dimension

    @property
    @abstractmethod
    def size(self) -> int:
        """Length of z."""

    @abstractmethod
    def numbers(self, rows: Records) -> Vector:
        """The z of each record, rounded, and zeros up to any width; 0 for a null record."""

    @property
    def grid(self) -> float:
        """The grid of the factors."""
        return grid_of_factors(self.norm, self.n_records)

    @property
    def _rounding(self) -> float:
        """What rounding can add to the norm of z, over its limit."""
        return math.sqrt(self.size) * self.grid / (2 * self.norm)

    def entries(self, n_features: int) -> int:
        return triangle(self.size)

    def total(self, steps: NDArray[np.int64]) -> Total:
        return Total(steps, 1.0, unit=_symmetric_units(self.size, self.grid**2))

    def add(self, rows: Records, out: NDArray[np.int64]) -> None:
        out += _upper(self.numbers(rows), self.grid, self.size)


@dataclass(frozen=True, eq=False)
class MomentRows(OuterRows):
    """z = (coordinates, target_scale * (y - target_middle)).

    If ``largest_offset`` is finite, coordinates are multiplied by exp(offset - largest_offset).
    """

    coordinates: Coordinates
    norm: float
    target_middle: float
    target_scale: float
    n_records: int
    largest_offset: float = math.inf

    @property
    def size(self) -> int:
        return self.coordinates.dimension + 1

    def numbers(self, rows: Records) -> Vector:
        from ..kernels.products import moment_rows

        factors = _scratch.array(rows.n_records, in_lanes(self.size))
        moment_rows(
            rows.dense, rows.scale, box_of(self.coordinates),
            self.target_scale * (rows.y - self.target_middle),
            rows.beside_less(self._rounding, root=True), self.largest_offset, self.norm,
            ROUNDING * self.grid, factors,
        )  # fmt: skip
        return factors


@dataclass(frozen=True, eq=False)
class GramRows(OuterRows):
    """z = coordinates @ transform, a product that is exact: the matrix is on column grids."""

    coordinates: Coordinates
    norm: float
    transform: Vector
    n_records: int

    @property
    def size(self) -> int:
        return int(self.transform.shape[1])

    def numbers(self, rows: Records) -> Vector:
        from ..kernels.products import shortened_rows

        matrix = np.pad(self.transform, [(0, in_lanes(size) - size) for size in self.transform.shape])
        factors = products_of(rows, self.coordinates, matrix)
        beside = rows.beside_less(self._rounding, root=True)
        shortened_rows(beside, self.norm, ROUNDING * self.grid, factors)
        return factors


@dataclass(frozen=True, eq=False)
class JointRows(CrossProducts):
    """(v v', q q', q): v a row in the metric times the root of its curvature, q the row times its slope.

    The q of a person is the sum of those of its records.
    A row in the metric is u = coordinates @ transform, weighed by min(1, limit² / norm(u)²). Slopes are in
    units of their bound. The units of the sums are those of the proof page: weights 1, alpha, alpha * C.
    """

    loss: Loss
    coordinates: Coordinates
    leverage: float
    weight: float
    n_records: int
    transform: Vector
    w: Vector

    @property
    def width(self) -> int:
        return self.coordinates.dimension

    @property
    def grids(self) -> tuple[float, float]:
        """The grids of v and of q."""
        return joint_grids(self.leverage, self.loss.joint_constant(), self.n_records)

    def entries(self, n_features: int) -> int:
        d = int(self.transform.shape[1])
        return 2 * triangle(d) + d

    def total(self, steps: NDArray[np.int64]) -> Total:
        d, (bent, pulled) = self.transform.shape[1], self.grids
        unit = np.concatenate(
            [
                _symmetric_units(d, bent**2),
                _symmetric_units(d, self.weight * pulled**2),
                np.full(d, self.weight * self.leverage * pulled),
            ]
        )
        return Total(steps, 1.0, unit=unit)

    def add(self, rows: Records, out: NDArray[np.int64]) -> None:
        from ..kernels.products import joint_rows

        d, (bent, pulled) = self.transform.shape[1], self.grids
        products = self._products(rows)
        v, q, sums = np.empty((len(products), d)), np.empty((len(products), d)), np.empty(d)
        soft = Soft(
            self.leverage, self.loss.slope_unit(), 2.0 * math.sqrt(self.loss.joint_constant()),
            ROUNDING * bent, ROUNDING * pulled, 0.5000001 * math.sqrt(d) * bent,
        )  # fmt: skip
        persons, half_a_step = rows.persons, math.sqrt(d) * pulled / (2 * self.leverage)
        several = _NOBODY if persons is None else persons.several
        beside = rows.beside_less(half_a_step)
        joint_rows(products, rows.y, beside, several, Form.of(self.loss), soft, v, q, sums)
        if persons is not None:
            q = persons.sums(q)
        size = triangle(d)
        out[:size] += _upper(v, bent, d)
        out[size : 2 * size] += _upper(q, pulled, d)
        out[2 * size :] += (sums / pulled).astype(np.int64)

    def _products(self, rows: Records) -> Vector:
        """The row in the metric of each record, and then its margin without the offset."""
        return products_of(rows, self.coordinates, np.column_stack([self.transform, self.w]))


@dataclass(frozen=True, eq=False)
class JointMargins(JointRows):
    """The same in the plane of a fit: the row of a record is (z, 1), z its margin at ``fit``."""

    coordinates: None  # type: ignore[assignment]  # rows are not written as coordinates
    fit: Vector

    @property
    def width(self) -> int:
        return 3

    def _products(self, rows: Records) -> Vector:
        with np.errstate(all="ignore"):
            margins = np.clip(rows.dot(self.fit), -_LARGEST_MARGIN, _LARGEST_MARGIN)
        plane = np.column_stack([margins, np.ones(rows.n_records)])
        plane[~(rows.scale > 0)] = 0.0
        matrix = np.column_stack([self.transform, self.w])
        products: Vector = plane[:, :1] * matrix[0] + plane[:, 1:] * matrix[1]
        return products


@dataclass(frozen=True, eq=False)
class MetricRows(CrossProducts):
    """The gradient at w of each record in a metric, times a weight, cut to norm at most ``clip``.

    A record is u = coordinates @ transform, a product that is exact and then rounded to float32. w are
    coefficients of u. The weight of a record is min(1, leverage / norm(u)).
    """

    loss: Loss
    coordinates: Coordinates
    transform: Vector
    w: Vector
    clip: float
    leverage: float
    n_records: int

    @property
    def width(self) -> int:
        return self.coordinates.dimension

    @property
    def gradient(self) -> Gradient:
        """The gradient of records that are in the metric already."""
        return Gradient(self.loss, self.w, self.clip)

    def entries(self, n_features: int) -> int:
        return int(self.transform.shape[1])

    def total(self, steps: NDArray[np.int64]) -> Total:
        return Total(steps, self._grid)

    @property
    def _grid(self) -> float:
        return grid_of_terms(self.clip, self.n_records)

    def add(self, rows: Records, out: NDArray[np.int64]) -> None:
        table = in_metric(rows, self.coordinates, self.transform, self.leverage)
        out += table.steps(self.gradient, self._grid)[0, : out.size]


def in_metric(rows: Records, coordinates: Coordinates, transform: Vector, leverage: float) -> Records:
    """The records u = coordinates @ transform, without a constant feature; the matrix is on column grids.

    They are rounded to float32: passes over them take as long as memory does to move them. Zeros follow up to
    whole lanes. A row that is longer than ``leverage`` counts with weight leverage / norm(u), and as a row of
    that length: what the record adds is cut to the clip as a product of slope, weight and row.
    """
    from ..kernels.products import narrow  # compiled code is loaded by those who use it

    matrix = np.pad(transform, [(0, in_lanes(size) - size) for size in transform.shape])
    table, norms = np.empty((rows.n_records, matrix.shape[1]), dtype=np.float32), np.empty(rows.n_records)

    def write(part: Records, start: int, stop: int) -> None:
        here = slice(start, stop)
        narrow(products_of(part, coordinates, matrix), LEAST_NORM, table[here], norms[here])

    rows.in_chunks(coordinates.dimension, write)
    metric_rows = rows.in_table(Dense(table), np.where(rows.scale > 0, 1.0, 0.0), norms)
    return metric_rows.weighed_by_length(leverage) if math.isfinite(leverage) else metric_rows


@dataclass(frozen=True, eq=False)
class ClassGradients(CrossProducts):
    """The gradients of each record at w, scaled down together to a norm of at most ``clip``.

    Attributes
    ----------
    w : array of shape (d, classes)
        Coefficients of the features and, last, of the constant feature if there is an intercept.
    most : float
        Largest norm of what a record adds: the clip, unless that is infinite.
    constant : float or None
        The constant feature, that of the records unless another one is given.
    longest : float or None
        A row with a norm above it has the weight longest / norm, before the clip.
    """

    needs_norms: ClassVar[bool] = True

    loss: Multinomial
    w: Vector
    clip: float
    most: float
    n_records: int
    constant: float | None = None
    longest: float | None = None

    @property
    def rows_at_once(self) -> int:
        return _ROWS_FINELY if self._finely else _ROWS  # compiled code takes few at a time

    @property
    def grid(self) -> float:
        """The grid of the sums."""
        return grid_of_terms(self.most, self.n_records)

    @property
    def _finely(self) -> int:
        """Sums that are not private are as precise as doubles are."""
        return int(math.isinf(self.clip))

    def entries(self, n_features: int) -> int:
        return (1 + self._finely) * self.loss.outputs * (n_features + 1)

    def total(self, steps: NDArray[np.int64]) -> Total:
        d, classes = self.w.shape
        by_class = steps.reshape(1 + self._finely, classes, -1)[:, :, :d]
        by_feature = np.swapaxes(by_class, 1, 2).reshape(1 + self._finely, -1)
        rest = by_feature[1:] if self._finely else None
        return Total(by_feature[0], self.grid, rest, finer_grid(1.0, self.n_records))

    def add(self, rows: Records, out: NDArray[np.int64]) -> None:
        if self.constant is not None:
            rows = rows.with_constant(self.constant)
        if self.longest is not None:
            rows = rows.weighed_by_length(self.longest)
        by_class = out.reshape(1 + self._finely, self.loss.outputs, -1)
        if not self._finely:
            rows.add_class_gradient(self.w, self.clip, self.grid, by_class[0])
            return
        for k, factors in enumerate(self._slopes(rows)):
            by_class[:, k] += rows.steps(FixedFactors(factors, self.most), self.grid, self._finely)

    def _slopes(self, rows: Records) -> Vector:
        """Slopes of shape (classes, rows), each times the share of its record."""
        from ..kernels.softmax import to_class_slopes  # compiled code is loaded by those who use it

        z = np.array([rows.margins(np.ascontiguousarray(w)) for w in self.w.T])
        scratch = np.empty((2, rows.n_records))
        to_class_slopes(z, rows.y, rows.scale, rows.row_norms, self.clip, scratch)
        return rows.shared(z)


@dataclass(frozen=True, eq=False)
class MetricClassRows(MetricRows):
    """The same for records in a metric: u = coordinates @ transform. w has shape (d, classes)."""

    loss: Multinomial

    @property
    def gradient(self) -> ClassGradients:  # type: ignore[override]  # another kind of sum
        return ClassGradients(self.loss, self.w, self.clip, self.clip, self.n_records)

    def entries(self, n_features: int) -> int:
        return self.gradient.entries(in_lanes(self.transform.shape[1]))

    def total(self, steps: NDArray[np.int64]) -> Total:
        return self.gradient.total(steps)

    def add(self, rows: Records, out: NDArray[np.int64]) -> None:
        self.gradient.add(in_metric(rows, self.coordinates, self.transform, self.leverage), out)


def joint_grids(leverage: float, constant: float, n_records: int) -> tuple[float, float]:
    """The grids of rows times the root of their curvature, and times their slope, in units of its bound."""
    bent = leverage * math.sqrt(2.0 * math.sqrt(constant))
    return grid_of_factors(bent, n_records), grid_of_factors(leverage, n_records)


def triangle(d: int) -> int:
    """Entries of a symmetric matrix, each once."""
    return d * (d + 1) // 2


def rows_a_chunk(d: int) -> int:
    """Rows that are multiplied at once: so few that a chunk stays in the cache, and sums are exact."""
    return max(1, min(_ROWS_A_CHUNK, _ENTRIES_A_CHUNK // max(d, 1)))


def in_lanes(width: int) -> int:
    """So many numbers, and zeros up to a multiple of the eight that are worked on at once."""
    return width + -width % LANES


def _symmetric_units(d: int, unit: float) -> Vector:
    """Units of the upper triangle: those of the diagonal are smaller by sqrt(2)."""
    i, j = _places(d)
    return np.where(i == j, unit / math.sqrt(2.0), unit)


@cache
def _places(d: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Rows and columns of the upper triangle."""
    return np.triu_indices(d)


def symmetric(values: Vector, d: int) -> Vector:
    """The matrix whose upper triangle has these values, its diagonal divided by sqrt(2)."""
    matrix, (i, j) = np.zeros((d, d)), _places(d)
    matrix[i, j] = matrix[j, i] = np.where(i == j, math.sqrt(2.0) * values, values)
    return matrix


def _upper(factors: Vector, grid: float, d: int) -> NDArray[np.int64]:
    """Upper triangle of the products of the first d factors on a grid, in steps of its square."""
    products = factors.T @ factors
    return (products[_places(d)] / grid**2).astype(np.int64)
