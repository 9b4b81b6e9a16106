"""Columns of numbers and dates with a declared range."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from functools import lru_cache
from typing import ClassVar, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from .. import strict
from ..arrays import Vector
from .cells import Cells, Kinds, Mask, Moment, Read, number_kinds, value_of
from .column import (
    Column,
    SingleFeatureColumn,
    Slots,
    check_range,
    format_number,
    increasing,
    one_hot,
    scaled_raw_map,
)
from .spelling import ISO, DateSpelling, NumberCells, Spelling, date_formats

_TRANSFORMS = ("log", "log1p")


@dataclass(frozen=True)
class Number(NumberCells, Column):
    """A number in a declared range, scaled to [-1, 1]; what lies outside of the range is cut to it.

    Parameters
    ----------
    low, high : float
        The range, from the meaning of the column, never from its values. A range that is to be learnt is left
        out.
    missing : "null", "indicator" or float
        What a missing value means: its record counts for nothing; or a feature of its own is 1; or it is this
        number.
    transform : "log" or "log1p", optional
        The logarithm of x, or of 1 + x, takes the place of x.
    cuts : sequence of float, optional
        Cut points: each bin between them becomes a feature that is 0 or 1.
    fused : bool
        Whether `Schema.penalty` draws neighbouring bins to equal coefficients.
    knots : sequence of float, optional
        Inner knots: cubic B-splines take the place of x.
    learn : bool
        Whether the range is learnt in the fit, privately and as part of its price; see
        `make_private_pipeline`.
    widest : (float, float), optional
        The widest range that can be learnt, which must be declared; it may be too wide by far.
    decimal : str
        The decimal mark of cells that are strings, such as ",".
    thousands : str, optional
        What separates groups of digits in cells that are strings, such as "." or " ".
    strip : str or sequence of str
        Characters, or strings, that are removed from both ends of cells that are strings, such as "€%".
    weight : float
        As in all columns: largest norm of the features.

    Examples
    --------
    >>> from dpglm.schema import Number
    >>> Number(17, 90, cuts=[30, 50]).features("age")
    ['age [17, 30)', 'age [30, 50)', 'age [50, 90]']
    """

    low: float = None  # type: ignore[assignment]  # None until it is learnt
    high: float = None  # type: ignore[assignment]
    missing: str | float = "null"
    transform: str | None = None
    cuts: tuple[float, ...] = ()
    knots: tuple[float, ...] = ()
    learn: bool = False
    widest: tuple[float, float] | None = None
    fused: bool = False

    kind: ClassVar[str] = "number"

    def check(self) -> None:
        self.check_numbers()
        low, high = check_range(self)
        if self.learn and (len(self.cuts) or len(self.knots)):
            raise ValueError(
                "cuts and knots lie within a declared range: give low and high, and do not learn"
            )
        object.__setattr__(self, "missing", missing_number(self.missing, *(self.widest or (low, high))))
        if self.transform is not None:
            strict.one_of("transform", self.transform, _TRANSFORMS)
            least = 0.0 if self.transform == "log" else -1.0
            if low <= least:
                raise ValueError(f"low must be more than {least:g} for the transform {self.transform!r}")
        for name in ("cuts", "knots"):
            if len(values := strict.sequence(name, getattr(self, name))):
                object.__setattr__(self, name, increasing(name, values, low, high))
            else:
                object.__setattr__(self, name, ())
        if bool(self.cuts) + bool(self.knots) + (self.transform is not None) > 1:
            raise ValueError("give one of transform, cuts and knots")
        if strict.flag("fused", self.fused) and not self.cuts:
            raise ValueError("fused is for bins: give cuts")

    @property
    def pending(self) -> bool:
        return self.low is None

    @property
    def _parts(self) -> int:
        """Features without the indicator of missing values."""
        return len(self.cuts) + 1 if self.cuts else spline_size(self.knots) if self.knots else 1

    @property
    def n_features(self) -> int:
        return self._parts + self.has_indicator

    @property
    def neighbours(self) -> int:
        return self._parts if self.fused else 0

    @property
    def slots(self) -> int:
        return DEGREE + 1 if self.knots else 1

    def features(self, name: str) -> list[str]:
        if self.cuts:
            names = [f"{name} {part}" for part in bin_names(self.low, self.cuts, self.high)]
        elif self.knots:
            names = [f"{name} spline {k + 1}" for k in range(self._parts)]
        else:
            inner = f"1 + {name}" if self.transform == "log1p" else name
            names = [name if self.transform is None else f"log({inner})"]
        return self.with_indicator(name, names)

    def ranges(self) -> tuple[Vector, Vector]:
        low, high = one_hot(self.n_features)
        if self._parts == 1:
            low[0] = -1.0
        return low, high

    def encode(self, cells: Cells) -> Slots:
        return self.encode_numbers(*cells.as_numbers())

    def encode_numbers(self, values: Vector, missing: Mask, bad: Mask) -> Slots:
        """The features of numbers, NaN where they are missing or bad."""
        null = (bad | missing) if self.missing == "null" else bad
        filled = self.missing if isinstance(self.missing, float) else (self.low + self.high) / 2
        x = np.clip(np.where(np.isnan(values), filled, values), self.low, self.high)
        if self.knots:
            index, value = spline(x, self.low, self.knots, self.high)
        elif self.cuts:
            index, value = bins(x, self.cuts)[:, None].astype(np.int32), np.ones((len(x), 1))
        else:
            z = self._scaled(x)
            index, value = np.zeros((len(x), 1), dtype=np.int32), z[:, None]
        hidden = null | (missing & (not isinstance(self.missing, float)))
        if hidden.any():
            index[hidden] = -1
        if self.has_indicator:
            index[missing, 0], value[missing, 0] = self._parts, 1.0
        return Slots(index, value, null)

    def _scaled(self, x: Vector) -> Vector:
        middle, half = self._middle_and_half
        return np.clip((self.transformed(x) - middle) / half, -1.0, 1.0)

    def transformed(self, x: Vector) -> Vector:
        """The numbers on the scale on which they are features."""
        if self.transform is None:
            return x
        logarithms: Vector = np.log(x) if self.transform == "log" else np.log1p(x)
        return logarithms

    def back(self, z: Vector) -> Vector:
        """The inverse of ``transformed``."""
        if self.transform is None:
            return z
        numbers: Vector = np.exp(z) if self.transform == "log" else np.expm1(z)
        return numbers

    @property
    def _middle_and_half(self) -> tuple[float, float]:
        low, high = self.transformed(np.array([self.low, self.high])).tolist()
        return (low + high) / 2, (high - low) / 2

    def raw(self) -> sp.csr_array:
        if self.cuts or self.knots:
            return super().raw()
        middle, half = self._middle_and_half
        return scaled_raw_map(half, middle, self.has_indicator)


def missing_number(missing: object, low: float, high: float) -> str | float:
    """What a missing value means: "null", "indicator" or a number of the range."""
    if isinstance(missing, str):
        return strict.one_of("missing", missing, ("null", "indicator"))
    return strict.number(
        "missing", missing, '"null", "indicator" or a number from low to high', lambda x: low <= x <= high
    )


DEGREE = 3


def bin_names(low: float, cuts: Sequence[float], high: float) -> list[str]:
    """A name for each bin."""
    ends = [format_number(end) for end in (low, *cuts, high)]
    names = [f"[{a}, {b})" for a, b in zip(ends[:-1], ends[1:], strict=True)]
    return [*names[:-1], names[-1][:-1] + "]"]


def bins(x: Vector, cuts: Sequence[float]) -> NDArray[np.intp]:
    """The bin of each number: a cut point belongs to the bin above it."""
    return np.searchsorted(np.asarray(cuts), x, side="right")


def spline(x: Vector, low: float, knots: Sequence[float], high: float) -> tuple[NDArray[np.int32], Vector]:
    """Cubic B-splines: four indices and values for each number of [low, high].

    Their values are not negative and add up to 1, so that their norm is at most 1.
    """
    from scipy.interpolate import BSpline  # slow to import

    ends = np.array([low] * (DEGREE + 1)), np.array([high] * (DEGREE + 1))
    grid = np.concatenate([ends[0], np.asarray(knots), ends[1]])
    table = BSpline.design_matrix(x, grid, DEGREE)
    shape = (len(x), DEGREE + 1)
    return table.indices.reshape(shape).astype(np.int32), table.data.reshape(shape)


def spline_size(knots: Sequence[float]) -> int:
    """Number of splines."""
    return len(knots) + DEGREE + 1


COUNT = 512
"""How many candidates a column has."""

_PER_OCTAVE = 12


class Candidates(NamedTuple):
    """Candidates in increasing order: as values of the column, and on the scale of its features."""

    values: Vector
    scale: Vector


def candidates_of(column: Number) -> Candidates:
    """The candidates for the range of a column that is to be learnt."""
    low, high = column.widest or (column.low, column.high)
    ends = column.transformed(np.array([low, high])).tolist()
    scale = _spread(float(ends[0]), float(ends[1]))
    values = np.clip(column.back(scale), low, high)
    if (np.diff(values) <= 0).any():
        raise ValueError("widest is too narrow for doubles to tell its parts apart")
    return Candidates(values, scale)


@lru_cache(maxsize=256)
def _spread(low: float, high: float) -> Vector:
    """Half of the candidates evenly between the ends, half in twelfths of octaves around 0.

    If 0 is outside, octaves are counted from the end that is nearer to it. So neither a range that is too
    wide by far nor one that is far from 0 leaves a column without candidates near its values.
    """
    if low < 0 < high:
        steps = 2.0 ** (-np.arange(COUNT // 4) / _PER_OCTAVE)
        fixed = np.concatenate([[0.0], low * steps, high * steps])
    else:
        steps = (high - low) * 2.0 ** (-np.arange(COUNT // 2) / _PER_OCTAVE)
        fixed = np.concatenate([[low], low + steps]) if low >= 0 else np.concatenate([[high], high - steps])
    fixed = np.unique(np.clip(fixed, low, high))
    for extra in range(COUNT):
        even = np.linspace(low, high, COUNT - len(fixed) + extra + 2)[1:-1]
        candidates = np.union1d(fixed, even)
        if len(candidates) >= COUNT:
            surplus = np.flatnonzero(~np.isin(candidates, fixed))[: len(candidates) - COUNT]
            result = np.delete(candidates, surplus)
            result.flags.writeable = False
            return result
    raise ValueError("widest is too narrow for doubles to tell its parts apart")


_DAYS = {
    "seconds": 1 / 86_400,
    "minutes": 1 / 1440,
    "hours": 1 / 24,
    "days": 1.0,
    "weeks": 7.0,
    "years": 365.25,
}

Day = str | date | datetime


@dataclass(frozen=True)
class Date(SingleFeatureColumn):
    """A date or a time in a declared range: units since a declared origin, scaled to [-1, 1].

    Cells are dates or times of any library, cut to microseconds, or strings in the declared format; those
    without a time zone count as UTC. Numbers are none: a column of whole numbers is refused by its type.
    Types of fractions are not refused, because pandas gives them to columns whose cells are all missing.

    Parameters
    ----------
    low, high : date, datetime or text of ISO 8601
        The range; what lies outside is cut to it.
    origin : date, datetime or text, optional
        From where units are counted; by default ``low``.
    unit : "seconds", "minutes", "hours", "days", "weeks" or "years"
        What a coefficient is for; a year has 365.25 days.
    missing : "null", "indicator", date, datetime or text of ISO 8601
        What a missing value means: its record counts for nothing; or a feature of its own is 1; or it is this
        date.
    format : str or sequence of str
        How cells that are strings spell dates, such as "%d.%m.%Y": the first format that fits. The directives
        are %Y, %y, %m, %b, %B, %d, %H, %I, %p, %M, %S, %f, %z and %%; names of months are English whatever
        the locale, and zeros in front may be left out. "ISO8601", the default, is any form of ISO 8601.
    weight : float
        As in all columns: largest norm of the features.
    """

    low: Day
    high: Day
    origin: Day | None = None
    unit: str = "days"
    missing: Day = "null"
    format: str | Sequence[str] = ISO

    kind: ClassVar[str] = "date"
    refused: ClassVar[frozenset[str]] = frozenset({"integer", "boolean"})

    def check(self) -> None:
        strict.one_of("unit", self.unit, _DAYS)
        formats = date_formats(self.format)
        if not isinstance(self.format, str):
            object.__setattr__(self, "format", formats)
        self._number  # noqa: B018  # refuses a range that is empty

    @property
    def spelling(self) -> Spelling | None:
        return None if self.format == ISO else DateSpelling(date_formats(self.format))

    @property
    def _number(self) -> Number:
        """The column of the units since the origin."""
        low, high = self._units("low", self.low), self._units("high", self.high)
        named = self.missing in ("null", "indicator")
        return Number(low, high, missing=str(self.missing) if named else self._units("missing", self.missing))

    def _units(self, name: str, day: object) -> float:
        return (declared_days(name, day) - self._first) / _DAYS[self.unit]

    @property
    def _first(self) -> float:
        """The origin in days since 1970."""
        return declared_days("low", self.low) if self.origin is None else declared_days("origin", self.origin)

    def encode(self, cells: Cells) -> Slots:
        return self._number.encode_numbers(*self.read(cells))

    def read(self, cells: Cells) -> Read:
        """The units since the origin of the cells."""
        days, missing, bad = cells.as_days()
        return Read((days - self._first) / _DAYS[self.unit], missing, bad)

    def kinds(self, cells: Cells) -> Kinds:
        return number_kinds(self.read(cells), *self._number.declared_range)

    @property
    def possible_kinds(self) -> tuple[int, ...]:
        return self._number.possible_kinds

    def raw(self) -> sp.csr_array:
        return self._number.raw()


def declared_days(name: str, day: object) -> float:
    """Days since 1970 of a declared date."""
    value = value_of(day)
    if isinstance(value, str):
        try:
            value = value_of(datetime.fromisoformat(value))
        except ValueError:
            value = None
    if not isinstance(value, Moment):
        raise strict.wrong(name, day, "a date, a datetime or a text of ISO 8601")
    return value.days
