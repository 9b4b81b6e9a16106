"""What all kinds of columns share: how a raw column becomes features of bounded norm."""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from .. import strict
from ..arrays import Vector
from ..data.bounded_numbers import MISSING as LACKING
from ..data.bounded_numbers import UNREADABLE
from .cells import Cells, Mask
from .kinds import Kinds
from .spelling import Spelling

MOMENTS = re.compile(r"(timestamp|date)", re.IGNORECASE)
"""Names of types whose values are moments."""

NEVER = re.compile(r"(?!)")

MISSING = "missing"


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
    refused: ClassVar[re.Pattern[str]] = MOMENTS
    """Names of types that no cell of such a column can have."""

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

    @abstractmethod
    def encode(self, cells: Cells, stand_for_missing: frozenset[str]) -> Slots | Ragged:
        """The features of each cell, before they are multiplied by the weight."""

    @abstractmethod
    def kinds(self, cells: Cells, stand_for_missing: frozenset[str]) -> Kinds:
        """What each cell is, by the reading that ``encode`` uses."""

    @property
    def possible_kinds(self) -> tuple[int, ...]:
        """What a cell can be besides fine."""
        return LACKING, UNREADABLE

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


class InOneFeature(Column):
    """A column that becomes one feature in [-1, 1], and one of 0 or 1 if ``missing`` is "indicator"."""

    missing: object

    def features(self, name: str) -> list[str]:
        return [name, f"{name} ({MISSING})"] if self._marked else [name]

    @property
    def n_features(self) -> int:
        return 1 + self._marked

    def ranges(self) -> tuple[Vector, Vector]:
        low, high = one_hot(self.n_features)
        low[0] = -1.0
        return low, high

    @property
    def _marked(self) -> bool:
        return self.missing == "indicator"


def one_hot(count: int) -> tuple[Vector, Vector]:
    """Ranges of features that are 0 or 1."""
    return np.zeros(count), np.ones(count)


def single(index: NDArray[np.integer], value: Vector | float, null: Mask) -> Slots:
    """Slots of at most one feature for each record."""
    values = np.broadcast_to(np.asarray(value, dtype=np.float64), index.shape)
    return Slots(index.astype(np.int32)[:, None], values[:, None], null)


def scaled(scale: float, middle: float, indicator: bool) -> sp.csr_array:
    """The raw map of z = (x - middle) / scale, which is 0 where x is missing.

    With an indicator of missing values, z = x / scale - middle / scale + indicator * middle / scale.
    """
    matrix = np.eye(2 + indicator)
    matrix[1] = [-middle / scale, 1 / scale, *([middle / scale] if indicator else [])]
    return sp.csr_array(matrix)


def range_of(low: object, high: object) -> tuple[float, float]:
    """Two ends of a range, checked."""
    ends = []
    for name, end in (("low", low), ("high", high)):
        ends.append(strict.number(name, end, "a number", lambda found: abs(found) <= 1e50))
    if not ends[0] < ends[1]:
        raise ValueError(f"low must be less than high, got {low!r} and {high!r}")
    return ends[0], ends[1]


def checked_range(column: Any) -> tuple[float, float]:
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
        object.__setattr__(column, "widest", range_of(*pair))
        if len(lacking) == 1:
            raise ValueError("a range that is learnt has neither low nor high, or both once it is known")
        if lacking:
            found: tuple[float, float] = column.widest
            return found
    low, high = range_of(column.low, column.high)
    object.__setattr__(column, "low", low)
    object.__setattr__(column, "high", high)
    return low, high


def increasing(name: str, values: object, low: float, high: float) -> tuple[float, ...]:
    """Different numbers in order, all strictly inside of a range."""
    numbers = strict.sequence(name, values)
    found = tuple(strict.number(name, value, "numbers", math.isfinite) for value in numbers)
    inside = (low, *found, high)
    if not found or any(b <= a for a, b in zip(inside[:-1], inside[1:], strict=True)):
        raise strict.wrong(name, values, "increasing numbers between low and high")
    return found


def shown(number: float) -> str:
    """A number in its shortest form."""
    return str(int(number)) if float(number).is_integer() and abs(number) < 1e15 else repr(float(number))


def checked_levels(name: str, levels: object) -> tuple[object, ...]:
    """Levels as they are declared."""
    found = strict.sequence(name, levels)
    if not found:
        raise strict.wrong(name, levels, "at least one level")
    return found
