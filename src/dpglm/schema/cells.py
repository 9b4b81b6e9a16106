"""The cells of a raw column, each read by itself: what one cell holds changes no other record.

A cell is missing (null, NaN, empty text, or a text that stands for a missing value), or it holds a number, a
text or a moment. Whether a program has read a column as numbers or as text makes no difference: a text that
is a number counts as that number, and truth values count as 1 and 0.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .. import strict
from ..arrays import Vector
from ..data.bounded_numbers import FINE, MISSING, OUTSIDE, UNKNOWN, UNREADABLE
from ..data.frames import column_type, get_column, in_doubles, type_kind, type_name

Mask = NDArray[np.bool_]

MISSING_TEXTS = frozenset(
    ["", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "<NA>", "N/A",
     "NA", "NULL", "NaN", "None", "n/a", "nan", "null"]
)  # fmt: skip
"""Texts that count as missing in every schema: those that pandas reads as missing."""

_NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,9})?", re.ASCII)
NUMBER_WORDS = {"true": 1.0, "false": 0.0, "inf": math.inf, "infinity": math.inf} | {
    sign + word: float(sign + word) for sign in "+-" for word in ("inf", "infinity")
}
"""Numbers in words, of any case."""

_ARROW_TIME = re.compile(r"timestamp\[(s|ms|us|ns)|date(32|64)")
_SIMPLE = frozenset([str, int, float, type(None)])
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECONDS = 86_400_000_000
_UNITS_A_DAY = {
    "D": 1, "h": 24, "m": 1440, "s": 86_400, "ms": 86_400_000, "us": _MICROSECONDS, "ns": 1000 * _MICROSECONDS
}  # fmt: skip


class _Bad:
    """What is neither missing nor a number, a text or a moment."""


class Moment(NamedTuple):
    """A moment, cut to microseconds, in days since 1970 began in UTC."""

    days: float


BAD = _Bad()
NO_LEVEL, ABSENT, UNREAD = -1, -2, -3
"""Codes of a cell whose level has none, of a missing cell, and of one that cannot be read."""

Value = None | float | str | Moment | _Bad
"""What a cell holds; None if it is missing."""


class Read(NamedTuple):
    """What cells mean as numbers: NaN where a cell is missing or bad."""

    values: Vector
    missing: Mask
    bad: Mask


class Texts(NamedTuple):
    """What cells mean as texts: different texts, None for what is none, and the place of each cell's."""

    texts: list[str | None]
    places: NDArray[np.intp]
    missing: Mask
    bad: Mask


@dataclass(frozen=True, eq=False)
class Cells:
    """A raw column: numbers or days, NaN where missing; or different values, and the place of each cell's.

    Parameters
    ----------
    numbers : array of float64, optional
    is_time : bool
        Whether the numbers are days since 1970.
    values : sequence, optional
        What some cells hold, in any order and also twice.
    places : array of int, optional
        For each cell the index of its value; -1 where it is missing.
    missing_texts : set of str
        Texts that stand for a missing value.
    """

    numbers: Vector | None = None
    is_time: bool = False
    values: Sequence[Value] = ()
    places: NDArray[np.intp] | None = None
    missing_texts: frozenset[str] = MISSING_TEXTS

    def __len__(self) -> int:
        return len(self.numbers if self.numbers is not None else self.read_places)

    @property
    def read_places(self) -> NDArray[np.intp]:
        """The place of each cell's value."""
        return np.empty(0, dtype=np.intp) if self.places is None else self.places

    def as_numbers(self) -> Read:
        """Cells as numbers; a moment is none."""
        if self.numbers is not None:
            return _read(self.numbers, np.full(len(self), self.is_time))
        return self._by_value(lambda value: _number(value, self.missing_texts))

    def as_days(self) -> Read:
        """Cells as days since 1970: moments, and texts of ISO 8601."""
        if self.numbers is not None:
            return _read(self.numbers, np.full(len(self), not self.is_time))
        return self._by_value(lambda value: _days(value, self.missing_texts))

    def as_codes(self, codes: dict[float | str, int], declared: bool = True) -> NDArray[np.intp]:
        """The code of each cell's level, or one of NO_LEVEL, ABSENT and UNREAD.

        A declared level comes first: a text that stands for a missing value may be one. Of levels that were
        learnt it is none: which cells are missing does not depend on what is learnt.
        """
        if self.numbers is None:
            level_codes = [_code(value, codes, self.missing_texts, declared) for value in self.values]
            return np.array([*level_codes, ABSENT], dtype=np.intp)[self.read_places]
        levels = np.array(sorted(key for key in codes if isinstance(key, float)))
        if self.is_time or not len(levels):
            return np.where(np.isnan(self.numbers), ABSENT, UNREAD if self.is_time else NO_LEVEL)
        known = np.array([codes[float(level)] for level in levels], dtype=np.intp)
        index = np.minimum(np.searchsorted(levels, self.numbers), len(levels) - 1)
        matched = np.where(levels[index] == self.numbers, known[index], NO_LEVEL)
        return np.where(np.isnan(self.numbers), ABSENT, matched)

    def as_texts(self) -> Texts:
        """Different texts and the place of each cell's; numbers in one spelling."""
        values, places = self.values, self.read_places
        if self.numbers is not None:
            distinct, places = np.unique(self.numbers, return_inverse=True)
            values = [None if np.isnan(value) else Moment(value) if self.is_time else value
                      for value in distinct.tolist()]  # fmt: skip
        texts = [*(_text(value, self.missing_texts) for value in values), None]
        bad = np.array([isinstance(text, _Bad) for text in texts])[places]
        missing = np.array([text is None for text in texts])[places]
        return Texts([text if isinstance(text, str) else None for text in texts], places, missing, bad)

    def _by_value(self, number_of: Any) -> Read:
        """Numbers of all cells, from the number of each different value: None if missing, NaN if bad."""
        results = [number_of(value) for value in self.values]
        missing = np.array([*(number is None for number in results), True])
        numbers = np.array([*(np.nan if number is None else number for number in results), np.nan])
        bad = ~missing & ~np.isfinite(numbers)
        numbers[bad] = np.nan
        places = self.read_places
        return Read(numbers[places], missing[places], bad[places])


def level_key(level: object) -> float | str | None:
    """What a level is compared by: a number, or a text without spaces around it; None if it is neither."""
    value = value_of(level)
    if isinstance(value, str):
        number = parse_number(value.strip())
        return value.strip() if number is None else number
    return value if isinstance(value, float) else None


def codes_of_levels(name: str, levels: Sequence[object]) -> dict[float | str, int]:
    """The code of each level by what it is compared by; two levels that are the same are refused."""
    codes: dict[float | str, int] = {}
    for k, level in enumerate(levels):
        key = level_key(level)
        if key is None or key == "":
            raise strict.wrong(name, level, "texts, numbers or truth values")
        if key in codes:
            raise ValueError(f"{name} has the same level twice: {levels[codes[key]]!r} and {level!r}")
        codes[key] = k
    return codes


def object_cells(entries: Sequence[object]) -> Cells:
    """Cells of Python objects, each judged by itself."""
    if _SIMPLE.issuperset(set(map(type, entries))):  # of these, values that are equal mean the same
        index = {entry: k for k, entry in enumerate(dict.fromkeys(entries))}
        places = np.fromiter(map(index.__getitem__, entries), dtype=np.intp, count=len(entries))
        return Cells(values=[value_of(entry) for entry in index], places=places)
    return Cells(values=[value_of(entry) for entry in entries], places=np.arange(len(entries)))


def read_cells(X: Any, name: str, missing_texts: frozenset[str] = MISSING_TEXTS) -> Cells:
    """The cells of a column; a type that holds no numbers, texts or moments is refused by its name."""
    cells: Cells | None = None
    with suppress(Exception):  # a library may raise anything, and quote a cell
        cells = _cells_of(get_column(X, name))
    if cells is None:
        raise ValueError(
            f"column {name!r} has type {type_name(column_type(X, name))}, which cannot be encoded"
        )
    return replace(cells, missing_texts=missing_texts)


def _cells_of(column: Any) -> Cells | None:
    if isinstance(column, np.ndarray):
        return _of_array(column)
    home = type(column).__module__.split(".")[0]
    if home == "polars":
        return _of_polars(column)
    if home == "pyarrow":
        chunks = column.chunks if hasattr(column, "chunks") else [column]
        return _concatenated([_of_arrow(chunk) for chunk in chunks], str(column.type))
    if hasattr(column, "dtype") and hasattr(column, "array"):
        return _of_pandas(column)
    if isinstance(column, Sequence) and not isinstance(column, str | bytes):
        return object_cells(column)
    return None


@np.errstate(all="ignore")
def _of_array(column: Any) -> Cells | None:
    if column.ndim != 1:
        return None
    if isinstance(column, np.ma.MaskedArray):
        mask = np.ma.getmaskarray(column)
        cells = _of_array(np.asarray(column.data))
        return None if cells is None else _mask_missing(cells, ~mask)
    kind = column.dtype.kind
    if kind in "biuf":
        return Cells(column.astype(np.float64))
    if kind == "M":
        return Cells(days_of_moments(column), is_time=True)
    return object_cells(column.tolist()) if kind in "UTO" else None


def _of_pandas(column: Any) -> Cells | None:
    dtype = column.dtype
    if isinstance(dtype, np.dtype):
        return _of_array(column.to_numpy())
    if hasattr(dtype, "categories") and hasattr(column, "cat"):
        levels, places = _cells_of(dtype.categories.to_series()), column.cat.codes.to_numpy().astype(np.intp)
        return None if levels is None else _mask_missing(_look_up(levels, places), places >= 0)
    if type(dtype).__name__ == "ArrowDtype" or getattr(dtype, "storage", None) == "pyarrow":
        return _cells_of(column.array.__arrow_array__())
    if type(dtype).__name__ == "SparseDtype":
        return _of_array(np.asarray(column))
    if getattr(dtype, "tz", None) is not None:
        return _of_array(column.dt.tz_convert("UTC").dt.tz_localize(None).to_numpy())
    kind = getattr(dtype, "kind", "O")
    if kind in "biuf":
        return Cells(column.to_numpy(dtype=np.float64, na_value=np.nan))
    return object_cells(column.to_numpy(dtype=object, na_value=None).tolist()) if kind in "OUT" else None


def _of_polars(column: Any) -> Cells | None:
    if str(column.dtype).startswith("Object"):
        return object_cells(column.to_list())
    level = sys.modules["polars"].CompatLevel.oldest()
    return _cells_of(in_doubles(column.to_frame()).to_series().to_arrow(compat_level=level))


def _of_arrow(column: Any) -> Cells | None:
    kind, name = type_kind(column.type), str(column.type)
    if kind == "null":
        return Cells(np.full(len(column), np.nan))
    if kind in ("boolean", "integer", "float"):
        whole = column.cast("uint8") if kind == "boolean" else column
        return Cells(whole.to_numpy(zero_copy_only=False).astype(np.float64))
    if name.startswith("dictionary"):
        levels = _cells_of(column.dictionary)
        places = column.indices.fill_null(0).to_numpy(zero_copy_only=False).astype(np.intp)
        known = ~column.indices.is_null().to_numpy(zero_copy_only=False)
        return None if levels is None else _mask_missing(_look_up(levels, places), known)
    if kind == "text":
        # nobody has checked that the bytes are UTF-8: each value is decoded by itself
        coded = column.cast("large_binary" if name.startswith("large") else "binary").dictionary_encode()
        places = coded.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.intp)
        texts = [content.decode("utf-8", "replace") for content in coded.dictionary.to_pylist()]
        return Cells(values=texts, places=places)
    if kind == "decimal":
        return object_cells(column.to_pylist())
    unit = _ARROW_TIME.match(name)
    if unit is None:
        return None
    known = ~column.is_null().to_numpy(zero_copy_only=False)
    integer = column.cast("int32").cast("int64") if name.startswith("date32") else column.cast("int64")
    count = integer.fill_null(0).to_numpy(zero_copy_only=False)
    days = days_since_epoch(count, {"32": "D", "64": "ms"}.get(unit[2] or "", unit[1]))
    return _mask_missing(Cells(days, is_time=True), known)


def _concatenated(parts: Sequence[Cells | None], kind: str) -> Cells | None:
    """The cells of several chunks of one type."""
    if not parts:
        return Cells(np.empty(0), is_time=bool(_ARROW_TIME.match(kind)))
    chunks = [part for part in parts if part is not None]
    if len(chunks) < len(parts):
        return None
    if len(chunks) == 1:
        return chunks[0]
    numbers: list[Vector] = [part.numbers for part in chunks if part.numbers is not None]
    if len(numbers) == len(chunks):
        # an empty dictionary has no type of its own
        return Cells(np.concatenate(numbers), any(part.is_time for part in chunks))
    chunks = [_as_values(part) for part in chunks]
    edges = np.cumsum([0, *(len(part.values) for part in chunks)])
    places = [
        np.where(part.read_places < 0, -1, part.read_places + edge)
        for part, edge in zip(chunks, edges[:-1], strict=True)
    ]
    return Cells(values=[value for part in chunks for value in part.values], places=np.concatenate(places))


def _as_values(cells: Cells) -> Cells:
    """The same cells by their values."""
    if cells.numbers is None:
        return cells
    values = [Moment(number) if cells.is_time else number for number in cells.numbers.tolist()]
    return Cells(values=values, places=np.where(np.isnan(cells.numbers), -1, np.arange(len(cells))))


def _look_up(levels: Cells, places: Any) -> Cells:
    """A cell of these levels for each place; what stands at a place that is none does not matter."""
    if not len(levels):
        return Cells(np.full(len(places), np.nan))
    if levels.numbers is not None:
        return Cells(levels.numbers[places], levels.is_time)
    return Cells(values=levels.values, places=levels.read_places[places])


def _mask_missing(cells: Cells, known: Any) -> Cells:
    """The cells, missing where they are not known."""
    if cells.numbers is not None:
        return Cells(np.where(known, cells.numbers, np.nan), cells.is_time)
    return Cells(values=cells.values, places=np.where(known, cells.read_places, -1))


def value_of(entry: Any) -> Value:
    """What an entry holds, by its type."""
    kind = type(entry)
    try:
        if kind is str:
            return str(entry)
        if entry is None or kind.__name__ in ("NaTType", "NAType"):
            return None
        if issubclass(kind, np.datetime64):
            (days,) = days_of_moments(np.array([entry])).tolist()
            return None if np.isnan(days) else Moment(days)
        if issubclass(kind, np.timedelta64):
            return BAD
        if issubclass(kind, np.floating):
            entry, kind = float(entry), float
        if issubclass(kind, np.generic):
            entry = entry.item()
            kind = type(entry)
        if issubclass(kind, str):
            return str(entry)
        if issubclass(kind, bool | int | float | Decimal):
            number = _double(entry)
            return None if np.isnan(number) else number
        if issubclass(kind, datetime):
            return _moment(entry)
        if issubclass(kind, date):
            return _moment(datetime.combine(entry, time()))
    except Exception:  # an object may raise anything; whatever it is, its record alone is concerned
        pass
    return BAD


def days_of_moments(moments: NDArray[np.datetime64]) -> Vector:
    """Days of moments of numpy; NaN for those that are none."""
    unit, step = np.datetime_data(moments.dtype)
    if unit not in _UNITS_A_DAY or step != 1:
        moments, unit = moments.astype("datetime64[us]"), "us"
    days = days_since_epoch(moments.astype(np.int64), unit)
    days_or_nan: Vector = np.where(np.isnat(moments), np.nan, days)
    return days_or_nan


def days_since_epoch(count: NDArray[np.int64], unit: str) -> Vector:
    """Days of a count of shorter units: the same double for the same moment in every unit.

    Nanoseconds are cut off in all of them: Python's moments have none.
    """
    units_a_day = _UNITS_A_DAY[unit]
    if units_a_day > _MICROSECONDS:
        count, units_a_day = count // (units_a_day // _MICROSECONDS), _MICROSECONDS
    full_days, rest = np.divmod(count, units_a_day)
    days: Vector = full_days + rest / units_a_day
    return days


def _moment(moment: datetime) -> Moment:
    stated = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment
    since = stated - _EPOCH
    return Moment(since.days + (since.seconds * 1_000_000 + since.microseconds) / _MICROSECONDS)


def _read(numbers: Vector, wrong: Mask) -> Read:
    missing = np.isnan(numbers)
    bad = (np.isinf(numbers) | wrong) & ~missing
    return Read(np.where(bad, np.nan, numbers), missing, bad)


def _double(number: Any) -> float:
    """The double of a number, infinite if it is too large, as that of a text is."""
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def parse_number(text: str) -> float | None:
    """The number that a text is, also an infinite one; None if it is none."""
    return float(text) if _NUMBER.fullmatch(text) else NUMBER_WORDS.get(text.lower())


def _number(value: Value, missing_texts: frozenset[str]) -> float | None:
    if isinstance(value, str):
        text = value.strip()
        if text in missing_texts:
            return None
        number = parse_number(text)
        return np.nan if number is None else number
    if value is None or isinstance(value, float):
        return value
    return np.nan


def _days(value: Value, missing_texts: frozenset[str]) -> float | None:
    if isinstance(value, str):
        text = value.strip()
        if text in missing_texts:
            return None
        try:
            return _moment(datetime.fromisoformat(text)).days
        except (ValueError, OverflowError):
            return np.nan
    if value is None:
        return None
    return value.days if isinstance(value, Moment) else np.nan


def _code(value: Value, codes: dict[float | str, int], missing_texts: frozenset[str], declared: bool) -> int:
    if not isinstance(value, float | str):
        return ABSENT if value is None else UNREAD
    missing = isinstance(value, str) and value.strip() in missing_texts
    key = level_key(value)
    if key is not None and key in codes and (declared or not missing):
        return codes[key]
    return ABSENT if missing else NO_LEVEL


def _text(value: Value, missing_texts: frozenset[str]) -> str | None | _Bad:
    """The text of a cell, a number in the spelling that all of its spellings share; None if missing."""
    if isinstance(value, Moment):
        return f"{value.days!r} days"
    if value is None or isinstance(value, str) and value.strip() in missing_texts:
        return None
    key = level_key(value) if isinstance(value, float | str) else None
    if isinstance(key, float):
        return str(int(key)) if key.is_integer() else repr(key)
    return BAD if key is None else key


Kinds = NDArray[np.int8]
"""One of FINE, MISSING, UNREADABLE, OUTSIDE and UNKNOWN for each cell."""

KIND_NAMES = {
    MISSING: "missing",
    UNREADABLE: "unreadable",
    OUTSIDE: "out of range",
    UNKNOWN: "unknown level",
}
"""What each kind is called, but for the cells that nothing is wrong with."""


def number_kinds(read: Read, low: float = -math.inf, high: float = math.inf) -> Kinds:
    """Of numbers with a declared range."""
    with np.errstate(invalid="ignore"):
        outside = (read.values < low) | (read.values > high)
    return _kinds(read.missing, read.bad, np.where(outside, OUTSIDE, FINE))


def level_kinds(codes: NDArray[np.intp], unknown: int = UNKNOWN) -> Kinds:
    """Of codes of levels, or of what has none; ``unknown`` is what a level without a code is."""
    return _kinds(codes == ABSENT, codes == UNREAD, np.where(codes == NO_LEVEL, unknown, FINE))


def text_kinds(missing: Mask, bad: Mask) -> Kinds:
    """Of cells that any text suits."""
    return _kinds(missing, bad, np.zeros(len(missing)))


def _kinds(missing: Mask, bad: Mask, others: Vector | NDArray[np.intp]) -> Kinds:
    return np.where(missing, MISSING, np.where(bad, UNREADABLE, others)).astype(np.int8)
