"""Ids of persons as users give them, and the records of a table in memory person by person."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from fractions import Fraction
from numbers import Integral, Real
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..data.columnar import Levels
from ..data.columns import RecordColumns
from ..data.stream import Source
from ..data.units import grouped
from .inputs import Table, column_of
from .labels import is_missing

LENGTHS = "X, y, units and what else is given for each record must have one entry for each record"


def ranked(units: object) -> tuple[NDArray[np.int64], list[Any]]:
    """The rank of each id among the different ones, -1 for a missing one; and these, in ascending order.

    Ids may be numbers, text, dates, or any objects that differ in their type or text. Numbers, texts and
    times that are equal are one id, whatever their types. Text that is a whole number is sorted as that
    number, before other text, which is sorted by its code points.
    """
    if isinstance(units, Levels):
        known = [[*map(_key, column_of(values)[0]), None] for values, _ in units]
        return _ranked(
            [keys[place] for keys, level in zip(known, units, strict=True) for place in level.places]
        )
    values, _ = column_of(units)
    if values.dtype.kind == "M":
        return _ranked([None if text == "NaT" else ("date", text) for text in values.astype(str).tolist()])
    if values.dtype.kind not in "biuf":
        return _ranked([_key(value) for value in values])
    missing = np.isnan(values) if values.dtype.kind == "f" else np.zeros(len(values), dtype=np.bool_)
    ranks = np.full(len(values), -1, dtype=np.int64)
    different, ranks[~missing] = np.unique(values[~missing], return_inverse=True)
    return ranks, [_key(value) for value in different.tolist()]


def _ranked(keys: list[Any]) -> tuple[NDArray[np.int64], list[Any]]:
    different = sorted({key for key in keys if key is not None})
    ranks: dict[Any, int] = {key: rank for rank, key in enumerate(different)}
    return np.array([-1 if key is None else ranks[key] for key in keys], dtype=np.int64), different


def _key(value: object) -> tuple[str, Any] | None:
    """What an id is known and sorted by; None for a missing one."""
    try:
        if is_missing(value):
            return None
        if isinstance(value, Integral | np.bool_):
            return "", int(value)
        if isinstance(value, Real):
            return "", float(value)  # equal to the integer that it may be
        if isinstance(value, Decimal):
            return "", Fraction(value)
        if isinstance(value, str):
            return _key_of_text(str.__str__(value))  # types of NumPy and enumerations are equal to their text
        if isinstance(value, bytes):
            return "bytes", bytes(value).hex()
        if isinstance(value, datetime):
            moment = value if value.tzinfo is None else value.astimezone(UTC)
            return "datetime", moment.isoformat()
        return type(value).__name__, str(value)
    except Exception:  # an object may raise anything
        return None


def _key_of_text(text: str) -> tuple[str, Any]:
    """A whole number, as Python writes it, is that number."""
    if text.removeprefix("-").isdecimal() and text == str(int(text)):
        return "", int(text)
    return "str", text


def require_shapes(rows: object, several: RecordColumns) -> None:
    """Refuse arrays of wrong shapes without stating them: the number of records is private."""
    if getattr(rows, "ndim", 2) != 2:
        raise ValueError("X must have two dimensions, a row for each record")
    for name, part in several._asdict().items():
        shape: tuple[int, ...] = getattr(part, "shape", (1,))
        if len(shape) > 2 or len(shape) == 2 and shape[1] != 1:
            raise ValueError(f"{name} must have one dimension, an entry for each record")


def sorted_by_unit(source: Source, columns: RecordColumns) -> tuple[Source, RecordColumns]:
    """A memory map with its records in the order of units, as those of an array are brought into."""
    order = np.argsort(columns.unit, kind="stable")  # records without an id are the last
    parts = (None if part is None else part[order] for part in columns)
    return source.reordered(order), RecordColumns(*parts)


def records_by_unit(ids: NDArray[np.int64], most: int, table: Table, *columns: Any) -> tuple[Any, ...]:
    """The records that count, person by person: numbers of the persons, rows, and entries of columns.

    Parameters
    ----------
    ids : array
        A number for each record, negative for none.
    most : int
        How many records of a person count.
    table : array or sparse table
    columns : arrays
        None for one that there is not.
    """
    if any(part is not None and len(part) != len(ids) for part in columns) or table.shape[0] != len(ids):
        raise ValueError(LENGTHS)
    kept = grouped(ids, most)
    rows: Any = table
    if sp.issparse(rows):
        rows = rows.tocsr()
    found = ids[kept]
    number = np.cumsum(np.append(0, found[1:] != found[:-1]))[: len(found)].astype(np.float64)
    return number, rows[kept], *(None if part is None else part[kept] for part in columns)
