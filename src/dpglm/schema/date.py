"""Columns of dates and times with a declared range."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import ClassVar

import scipy.sparse as sp

from .. import strict
from ..arrays import Vector
from .cells import Cells, Moment, Read, value_of
from .column import Column, Slots
from .date_format import ISO
from .kinds import Kinds
from .number import Number
from .spelling import DateSpelling, Spelling, date_formats

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
class Date(Column):
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
    refused: ClassVar[re.Pattern[str]] = re.compile(r"u?int|bool", re.IGNORECASE)

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
        kept = self.missing in ("null", "indicator")
        return Number(low, high, missing=str(self.missing) if kept else self._units("missing", self.missing))

    def _units(self, name: str, day: object) -> float:
        return (days_of(name, day) - self._first) / _DAYS[self.unit]

    @property
    def _first(self) -> float:
        """The origin in days since 1970."""
        return days_of("low", self.low) if self.origin is None else days_of("origin", self.origin)

    def features(self, name: str) -> list[str]:
        return [name, f"{name} (missing)"] if self.missing == "indicator" else [name]

    @property
    def n_features(self) -> int:
        return self._number.n_features

    def ranges(self) -> tuple[Vector, Vector]:
        return self._number.ranges()

    def encode(self, cells: Cells, stand_for_missing: frozenset[str]) -> Slots:
        return self._number.encode_numbers(*self.read(cells, stand_for_missing))

    def read(self, cells: Cells, stand_for_missing: frozenset[str]) -> Read:
        """The units since the origin of the cells."""
        days, missing, bad = cells.as_days(stand_for_missing)
        return Read((days - self._first) / _DAYS[self.unit], missing, bad)

    def kinds(self, cells: Cells, stand_for_missing: frozenset[str]) -> Kinds:
        return self._number.kinds_of(self.read(cells, stand_for_missing))

    @property
    def possible_kinds(self) -> tuple[int, ...]:
        return self._number.possible_kinds

    def raw(self) -> sp.csr_array:
        return self._number.raw()


def days_of(name: str, day: object) -> float:
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
