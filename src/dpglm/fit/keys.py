"""Keys of records: labels of a classification and ids of units, each judged alone."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from fractions import Fraction
from functools import partial
from numbers import Integral, Real
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..arrays import Vector
from ..data.columnar import Levels
from ..data.columns import RecordColumns
from ..data.stream import Source
from ..data.units import grouped
from ..errors import silent
from .inputs import Labels, Table, column_of, kind_of, name_of


@np.errstate(all="ignore")
def labels_of(y: object, classes: Labels | None) -> Labels:
    """The labels as they are; declared classes that no label of this type can equal are refused."""
    values, dtype = column_of(y)
    if values.dtype.kind == "c":
        raise ValueError("Complex data not supported in y")
    if classes is None:
        return values
    kinds = {kind_of(values.dtype if dtype is None else dtype), kind_of(classes.dtype)}
    if len(kinds - {"anything"}) > 1:
        raise ValueError(
            f"y holds labels of type {name_of(dtype)}, which never equal classes of type "
            f"{name_of(classes.dtype)}: declare classes of the type that the labels have"
        )
    return values


def class_set(classes: Any) -> Labels:
    """Declared classes in order, each once, in an array of the type that they have."""
    given = list(classes) if isinstance(classes, set | frozenset) else classes
    try:
        declared = np.asarray(given)
    except ValueError:  # lists of different lengths
        declared = np.empty((0, 0))
    alike = declared.dtype.kind not in "US" or all(isinstance(label, str | bytes) for label in given)
    try:
        if alike and declared.ndim == 1 and not any(map(is_missing, declared)):
            found = np.unique(declared)
            if len(found) < len(declared):
                raise ValueError(f"classes must hold each label once, got {classes!r}")
            return found
    except TypeError:  # objects that have no order
        pass
    raise ValueError(f"classes must be labels of one type, none of them missing, got {classes!r}")


@np.errstate(all="ignore")
def codes_of(labels: Labels, classes: Labels) -> Vector:
    """Index of each label among the classes; NaN for a label that is not one of them."""
    if labels.dtype != object:
        codes = np.full(len(labels), np.nan)
        for k, label in enumerate(classes):
            codes[labels == label] = k
        return codes
    times = classes.dtype.kind in "mM"
    values = classes.astype(np.int64).tolist() if times else classes.tolist()
    codes_by_value = {value: k for k, value in enumerate(values)}
    value_of = partial(_time, dtype=classes.dtype) if times else lambda label: label
    with silent():
        return np.array([_code(label, codes_by_value, value_of) for label in labels], dtype=np.float64)


def _code(label: object, codes: dict[object, int], value_of: Callable[[object], object]) -> float:
    try:
        return np.nan if is_missing(label) else codes.get(value_of(label), np.nan)
    except Exception:  # an object that cannot be hashed, or that raises anything else, is no class
        return np.nan


def _time(label: object, dtype: np.dtype[np.generic]) -> int | None:
    """A moment or a duration as a number of units of a type, None if it is no whole number of them."""
    exact = dtype.type(label)
    there = exact.astype(dtype)
    return int(there.astype(np.int64)) if there == exact else None


def is_missing(label: object) -> bool:
    """Whether a label is None, NaN, or an object that refuses to be compared, as pandas' marks do."""
    try:
        return label is None or type(label).__name__ == "NaTType" or bool(label != label)
    except Exception:  # an object may raise anything
        return True


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
