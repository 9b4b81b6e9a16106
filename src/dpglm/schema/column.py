"""What all kinds of columns share: how a raw column becomes features of bounded norm."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from .. import strict
from ..arrays import Vector
from ..data.bounded_numbers import MISSING, UNREADABLE
from .cells import Cells, Kinds, Mask
from .spelling import Spelling


class Slots(NamedTuple):
    """Features of records: in each slot the place of a feature, -1 for none, and its value.

    The Euclidean norm of the values of a record is at most 1. A null record counts for nothing.
    """

    places: NDArray[np.int32]
    value: Vector
    null: Mask


class Feature(NamedTuple):
    """What a place of an encoded row holds.

    Attributes
    ----------
    name : str
    columns : tuple of str
        The raw columns that it is made of: one, or the two of a product.
    used : bool
        False for a place that is 0 in every row: room for a level that was not found.
    """

    name: str
    columns: tuple[str, ...]
    used: bool


class Ragged(NamedTuple):
    """Features of records, of which each has another number: a CSR table, and the null records."""

    table: sp.csr_array
    null: Mask


@dataclass(frozen=True, kw_only=True)
class Column(ABC):
    """A declared column that becomes one or more features.

    Parameters
    ----------
    weight : float
        Largest norm of this column's features in a row; 1 for every column is a good choice. Noise is scaled
        to the norm of all columns together.
    """

    weight: float = 1.0

    kind: ClassVar[str]
    refused: ClassVar[frozenset[str]] = frozenset({"date"})
    """Kinds of types that no cell of such a column can have."""

    def __post_init__(self) -> None:
        strict.keep(self, weight=strict.positive)
        self.check()

    @property
    def spelling(self) -> Spelling | None:
        """How cells spell what they hold; None if in the usual way."""
        return None

    @property
    def pending(self) -> bool:
        """Whether a fact of the column is still to be learnt; until then nothing can be encoded."""
        return False

    def unused(self, name: str) -> list[str]:
        """Names of features that are 0 in every row: room for levels that were not found."""
        return []

    @abstractmethod
    def check(self) -> None:
        """Refuse what cannot be declared."""

    @abstractmethod
    def features(self, name: str) -> list[str]:
        """Names of the features of a column of this name."""

    @property
    @abstractmethod
    def n_features(self) -> int:
        """How many there are."""

    @property
    def has_indicator(self) -> bool:
        """Whether a missing value has a feature of its own, the last one."""
        return getattr(self, "missing", None) == "indicator"

    def with_indicator(self, name: str, features: list[str]) -> list[str]:
        """Names of features, and that of a missing value if it has one."""
        return [*features, f"{name} (missing)"] if self.has_indicator else features

    @abstractmethod
    def encode(self, cells: Cells) -> Slots | Ragged:
        """The features of each cell, before they are multiplied by the weight."""

    @abstractmethod
    def kinds(self, cells: Cells) -> Kinds:
        """What each cell is, by the reading that ``encode`` uses."""

    @property
    def possible_kinds(self) -> tuple[int, ...]:
        """What a cell can be besides fine."""
        return MISSING, UNREADABLE

    @abstractmethod
    def ranges(self) -> tuple[Vector, Vector]:
        """Smallest and largest value of each feature, before the weight; they contain 0."""

    def raw(self) -> sp.csr_array:
        """The matrix that takes (1, raw features) to (1, features): the identity if they are the same.

        Raw features are those that people read coefficients for: a number in its own unit instead of one that
        is scaled to [-1, 1].
        """
        return sp.csr_array(sp.eye_array(1 + self.n_features))

    @property
    def neighbours(self) -> int:
        """How many of the features, the first ones, form a chain of neighbours; 0 for none."""
        return 0

    @property
    def slots(self) -> int | None:
        """Largest number of features that a record has; None if it has no limit."""
        return 1


class SingleFeatureColumn(Column):
    """A column that becomes one feature in [-1, 1], and one of 0 or 1 if ``missing`` is "indicator"."""

    missing: object

    def features(self, name: str) -> list[str]:
        return self.with_indicator(name, [name])

    @property
    def n_features(self) -> int:
        return 1 + self.has_indicator

    def ranges(self) -> tuple[Vector, Vector]:
        low, high = one_hot(self.n_features)
        low[0] = -1.0
        return low, high


def one_hot(count: int) -> tuple[Vector, Vector]:
    """Ranges of features that are 0 or 1."""
    return np.zeros(count), np.ones(count)


def single_slot(index: NDArray[np.integer], value: Vector | float, null: Mask) -> Slots:
    """Slots of at most one feature for each record."""
    values = np.broadcast_to(np.asarray(value, dtype=np.float64), index.shape)
    return Slots(index.astype(np.int32)[:, None], values[:, None], null)


def scaled_raw_map(scale: float, middle: float, indicator: bool) -> sp.csr_array:
    """The raw map of z = (x - middle) / scale, which is 0 where x is missing.

    With an indicator of missing values, z = x / scale - middle / scale + indicator * middle / scale.
    """
    matrix = np.eye(2 + indicator)
    matrix[1] = [-middle / scale, 1 / scale, *([middle / scale] if indicator else [])]
    return sp.csr_array(matrix)


def check_ends(low: object, high: object) -> tuple[float, float]:
    """Two ends of a range, checked."""
    ends = []
    for name, end in (("low", low), ("high", high)):
        ends.append(strict.number(name, end, "a number", lambda found: abs(found) <= 1e50))
    if not ends[0] < ends[1]:
        raise ValueError(f"low must be less than high, got {low!r} and {high!r}")
    return ends[0], ends[1]


def check_range(column: Any) -> tuple[float, float]:
    """Check, and keep as floats, the range of a column; the widest one if it is still to be learnt."""
    strict.flag("learn", column.learn)
    ends = [("low", column.low), ("high", column.high)]
    lacking = [name for name, end in ends if end is None]
    if not column.learn:
        if lacking:
            raise ValueError(f"a {column.kind} needs {' and '.join(lacking)}, or learn = true and widest")
        if column.widest is not None:
            raise ValueError("widest is for a range that is learnt: learn must be true")
    else:
        pair = strict.sequence("widest", column.widest if column.widest is not None else ())
        if len(pair) != 2:
            raise ValueError("learn needs widest, the two ends of the widest range that can be learnt")
        object.__setattr__(column, "widest", check_ends(*pair))
        if len(lacking) == 1:
            raise ValueError("a range that is learnt has neither low nor high, or both once it is known")
        if lacking:
            widest: tuple[float, float] = column.widest
            return widest
    low, high = check_ends(column.low, column.high)
    object.__setattr__(column, "low", low)
    object.__setattr__(column, "high", high)
    return low, high


def increasing(name: str, values: object, low: float, high: float) -> tuple[float, ...]:
    """Different numbers in order, all strictly inside of a range."""
    numbers = strict.sequence(name, values)
    increasing_numbers = tuple(strict.number(name, value, "numbers", math.isfinite) for value in numbers)
    inside = (low, *increasing_numbers, high)
    if not increasing_numbers or any(b <= a for a, b in zip(inside[:-1], inside[1:], strict=True)):
        raise strict.wrong(name, values, "increasing numbers between low and high")
    return increasing_numbers


def format_number(number: float) -> str:
    """A number in its shortest form."""
    return str(int(number)) if float(number).is_integer() and abs(number) < 1e15 else repr(float(number))


def checked_levels(name: str, levels: object) -> tuple[object, ...]:
    """Levels as they are declared."""
    declared = strict.sequence(name, levels)
    if not declared:
        raise strict.wrong(name, levels, "at least one level")
    return declared


Group = tuple[Slots | Ragged, float]
"""The features of a column, and what they are multiplied by."""


def encoded_table(
    groups: Sequence[Group], edges: Sequence[int], count: int, sparse: bool, null: bool
) -> Vector | sp.csr_array:
    """The table of all features, the first of each group at its edge; NaN in the rows of null records."""
    null_rows = np.zeros(count, dtype=bool)
    for part, _ in groups:
        null_rows |= part.null
    if not sparse:
        return _dense(groups, edges, null_rows, null)
    if all(isinstance(part, Slots) for part, _ in groups):
        return _from_slots(groups, edges, edges[-1], null_rows if null else None)
    parts = []
    for k, group in enumerate(groups):
        hidden = null_rows if null and not k else None
        if isinstance(group[0], Ragged):
            parts.append(_from_ragged(group[0], group[1], hidden))
        else:
            parts.append(_from_slots([group], [0], edges[k + 1] - edges[k], hidden))
    return sp.csr_array(sp.hstack(parts, format="csr"))


def _dense(groups: Sequence[Group], edges: Sequence[int], null_rows: Mask, null: bool) -> Vector:
    table = np.zeros((len(null_rows), edges[-1]))
    for k, (part, weight) in enumerate(groups):
        assert isinstance(part, Slots)  # a table with other parts is sparse
        rows, slots = np.nonzero(part.places >= 0)
        table[rows, edges[k] + part.places[rows, slots]] = weight * part.value[rows, slots]
    if null:
        table[null_rows, 0] = np.nan
    return table


def _from_slots(
    groups: Sequence[Group], edges: Sequence[int], width: int, null_rows: Mask | None
) -> sp.csr_array:
    """A CSR table, its columns in ascending order in every row; a null row has NaN as its only entry."""
    slots = [part for part, _ in groups if isinstance(part, Slots)]
    index = np.concatenate(
        [np.where(part.places >= 0, part.places + edges[k], -1) for k, part in enumerate(slots)], axis=1
    )
    value = np.concatenate(
        [weight * part.value for part, weight in groups if isinstance(part, Slots)], axis=1
    )
    if null_rows is not None and null_rows.any():
        index[null_rows], index[null_rows, 0] = -1, 0
        value[null_rows, 0] = np.nan
    stored = index >= 0
    ends = np.concatenate([[0], np.cumsum(stored.sum(axis=1))])
    return _csr(value[stored], index[stored], ends, (len(index), width))


def _from_ragged(part: Ragged, weight: float, null_rows: Mask | None) -> sp.csr_array:
    table = part.table.copy()
    table.data = weight * table.data
    if null_rows is None or not null_rows.any():
        return table
    rows = np.flatnonzero(null_rows)
    marks = sp.csr_array((np.full(len(rows), np.nan), (rows, np.zeros_like(rows))), shape=table.shape)
    return sp.csr_array(table + marks)


def _csr(
    value: Vector, index: NDArray[np.int32], ends: NDArray[np.int64], shape: tuple[int, int]
) -> sp.csr_array:
    small = ends[-1] < 2**31
    return sp.csr_array((value, index, ends.astype(np.int32) if small else ends), shape=shape)


Index = NDArray[np.intp]


def product(first: Slots, second: Slots, width: int) -> Slots:
    """All products of a feature of the first column with one of the second, which has ``width`` features.

    The norm of the products is the product of the norms.
    """
    n = len(first.null)
    a, b = first.places[:, :, None], second.places[:, None, :]
    index = np.where((a >= 0) & (b >= 0), a * width + b, -1)
    value = first.value[:, :, None] * second.value[:, None, :]
    return Slots(index.reshape(n, -1), value.reshape(n, -1), first.null | second.null)


def product_ranges(first: Column, second: Column) -> tuple[Vector, Vector]:
    """Smallest and largest products."""
    (a, b), (c, d) = first.ranges(), second.ranges()
    corners = np.array([np.outer(x, y).ravel() for x in (a, b) for y in (c, d)])
    return corners.min(axis=0), corners.max(axis=0)


def product_raw_map(
    first: Column, second: Column, first_places: Index, second_places: Index, places: Index
) -> sp.coo_array:
    """Entries of the raw map for the products: raw products, raw features of both columns, and 1.

    Parameters
    ----------
    first_places, second_places, places : arrays of int
        Places of (1, features) of each column among all, and of the products.
    """
    table = sp.coo_array(sp.kron(first.raw(), second.raw()))
    width = len(second_places)
    i, j = np.divmod(np.arange(len(first_places) * width), width)
    inner = np.full(len(i), 0)
    inner[(i > 0) & (j > 0)] = places
    index = np.where(j == 0, first_places[i], np.where(i == 0, second_places[j], inner))
    rows = (i[table.row] > 0) & (j[table.row] > 0)
    entries = table.data[rows], (index[table.row[rows]], index[table.col[rows]])
    return sp.coo_array(entries)


class RawCoefficients(NamedTuple):
    """Coefficients in the units of the raw columns, by the names of features, and the intercept."""

    values: dict[str, float]
    intercept: float


def raw_map(
    columns: Mapping[str, Column], interactions: Sequence[Sequence[str]], edges: Sequence[int]
) -> sp.csr_array:
    """The matrix that takes raw features, then 1, to encoded features, then 1.

    Parameters
    ----------
    columns : mapping of str to Column
        The columns that become features, in their order.
    interactions : sequence of pairs of str
    edges : sequence of int
        Where the features of each column, then those of each pair, begin; and how many there are.
    """
    last = edges[-1]
    places = {name: np.array([last, *range(edges[k], edges[k + 1])]) for k, name in enumerate(columns)}
    parts = [sp.coo_array(([1.0], ([last], [last])))]
    for name, column in columns.items():
        table = sp.coo_array(column.raw())
        inner = table.row > 0
        index = places[name][table.row[inner]], places[name][table.col[inner]]
        parts.append(sp.coo_array((column.weight * table.data[inner], index)))
    for k, (a, b) in enumerate(interactions, start=len(columns)):
        columns_of_pair = np.arange(edges[k], edges[k + 1])
        part = product_raw_map(columns[a], columns[b], places[a], places[b], columns_of_pair)
        part.data *= columns[a].weight * columns[b].weight
        parts.append(part)
    rows, cols = (np.concatenate([part.coords[axis] for part in parts]) for axis in range(2))
    entries = np.concatenate([part.data for part in parts])
    return sp.csr_array((entries, (rows, cols)), shape=(last + 1, last + 1))
