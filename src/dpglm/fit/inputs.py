"""Tables and targets as users give them, turned into numbers by rules that reveal nothing about a record.

An error depends on the type and the shape of a container, never on one of its entries, and quotes none. A
container without a type of its own (a list, an array of objects) is read entry by entry: an entry that is no
number becomes NaN, which makes its record a null record and changes no other record.
"""

from __future__ import annotations

import re
import warnings
from array import array
from collections.abc import Iterable, Sequence
from numbers import Real
from typing import Any, Protocol, TypeGuard, cast

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.exceptions import DataConversionWarning
from sklearn.utils.validation import check_array, validate_data

from ..arrays import Vector
from ..data.columns import RecordColumns
from ..data.frames import (
    NUMBERS,
    FrameColumn,
    column_names,
    columns_of,
    is_single,
    library_of,
    type_kind,
    without_column,
)
from ..entries import numbers, well_formed
from ..errors import PrivacyWarning

Labels = NDArray[np.generic]
"""Labels of records, or the classes that they may be: of any type."""

_NUMERIC = "biuf"
_RESHAPE = (
    "Reshape your data with array.reshape(-1, 1) if it has one feature, with array.reshape(1, -1) if it is "
    "one record."
)


class Table(Protocol):
    """An array or a CSR or CSC table of floats, with a row for each record."""

    @property
    def shape(self) -> tuple[int, int]: ...


@np.errstate(all="ignore")
def numeric_table(
    estimator: BaseEstimator, X: object, *, reset: bool, missing: bool, sparse: bool = True, least: int = 1
) -> Table:
    """X as an array, CSR or CSC table of floats; the estimator remembers, or checks, its columns.

    Parameters
    ----------
    estimator : estimator
    X : array, list of rows, sparse table or data frame
    reset : bool
        Whether to remember the number and the names of the columns, as in a fit, or to check them.
    missing : bool
        Whether NaN and infinite entries are accepted.
    sparse : bool
        Whether sparse tables are accepted.
    least : int
        The least number of rows.
    """
    columns = columns_of(X)
    if sp.issparse(X):
        table = well_formed(X)
    elif columns is not None:
        table = _frame(X, columns)
    elif _is_listed(X):
        table = _rows(X)
    else:
        table = _array(X)
        if table.dtype == object and table.ndim == 2:
            if isinstance(X, np.ndarray):  # other containers state the type of their entries
                _warn_of_objects("X")
            table = numbers(table.ravel()).reshape(table.shape)
    require_numbers("X", table.dtype)
    if table.ndim != 2:
        raise ValueError(
            f"X must have two dimensions, a row for each record, got shape {table.shape}. {_RESHAPE}"
        )
    validate_data(estimator, table if columns is None else X, reset=reset, skip_check_array=True)
    checked: Table = check_array(
        table,
        accept_sparse=("csr", "csc") if sparse else False,
        dtype=(np.float64, np.float32),
        ensure_all_finite=not missing,
        ensure_min_samples=least,
        estimator=estimator,
        input_name="X",
    )
    return checked


@np.errstate(all="ignore")
def numeric_target(y: object, name: str = "y") -> Vector:
    """The targets of a regression, or other numbers; NaN for those that are none."""
    values, dtype = column_of(y)
    require_numbers(name, dtype)
    if values.dtype == object:
        if isinstance(dtype, np.dtype) and dtype.kind == "O":
            _warn_of_objects(name)
        return numbers(values)
    return values.astype(np.float64)


def kind_of(dtype: object) -> str:
    """The kind of a type: values of two types can be equal if their kinds are, or one is "anything"."""
    if type(dtype).__name__ == "SparseDtype" and hasattr(dtype, "subtype"):
        dtype = dtype.subtype
    if isinstance(dtype, np.dtype):
        return {"O": "anything", "U": "text", "T": "text"}.get(
            dtype.kind, "number" if dtype.kind in _NUMERIC else dtype.kind
        )
    if hasattr(dtype, "categories"):
        inner = getattr(dtype.categories, "dtype", None)
        return "text" if inner is None else kind_of(inner)
    kind = type_kind(dtype)
    return "number" if kind in NUMBERS else kind if kind in ("text", "nested") else "anything"


def name_of(dtype: object) -> str:
    """A type without what it says of its values: the width of text, the levels of a category."""
    if isinstance(dtype, np.dtype):
        return {"U": "str", "S": "bytes"}.get(dtype.kind, str(dtype))
    return re.split(r"[(<{]", str(dtype))[0]


def column_of(y: object) -> tuple[Labels, object]:
    """Targets as an array of one dimension, and their declared type: None for a list, which has none.

    Nullable and masked types are read as objects: NumPy would choose another common type if, and only if, a
    value is missing.
    """
    if sp.issparse(y):
        raise ValueError(f"y must be a dense array of one dimension, got a {type(y).__name__}")
    if _is_listed(y):
        return _objects([_alone(entry) for entry in y]), None
    columns = columns_of(y)
    if columns is not None and len(columns) == 1:
        _warn_of_a_column()
        y = columns[0].entries
    dtype = getattr(y, "dtype", getattr(y, "type", None))  # arrays of Arrow have the latter
    if isinstance(y, np.ma.MaskedArray):
        values = _unmasked(y)
    elif isinstance(y, np.ndarray) or isinstance(dtype, np.dtype) or dtype is None:
        values = np.asarray(y)
    else:
        values = _objects(y.to_pylist() if hasattr(y, "to_pylist") else list(cast(Iterable[object], y)))
    if values.ndim == 2 and values.size == len(values):
        _warn_of_a_column()
        values = values.ravel()
    if values.ndim != 1:
        raise ValueError(f"y should be a 1d array, got an array of shape {values.shape} instead.")
    return values, values.dtype if dtype is None else dtype


def _is_listed(X: object) -> TypeGuard[Sequence[object]]:
    """Whether X is a sequence without a type for its entries, such as a list."""
    typed = hasattr(type(X), "__array__") or hasattr(type(X), "__array_interface__")
    return (
        isinstance(X, Sequence)
        and not typed
        and not isinstance(X, str | bytes | bytearray | memoryview | array)
    )


def _alone(entry: object) -> object:
    """The target in a row of its own: judged row by row, so that one odd row is odd alone."""
    try:
        if _is_array(entry) and entry.ndim == 0:
            return entry[()]
    except Exception:  # an object may raise anything
        return None
    row = _row(entry)
    return row[0] if row is not None and len(row) == 1 else entry


def _objects(entries: Sequence[object]) -> Labels:
    """An array of these very objects: NumPy would ask each of them whether it is an array."""
    values = np.empty(len(entries), dtype=object)
    for k, entry in enumerate(entries):
        values[k] = entry
    return values


def _unmasked(array: np.ma.MaskedArray[tuple[int, ...], np.dtype[np.generic]]) -> Labels:
    """The array as one of objects, None under the mask: a fill value would count as a value."""
    values = np.array(array.data, dtype=object)
    values[np.ma.getmaskarray(array)] = None
    return values


def _array(X: object) -> Labels:
    if not isinstance(X, np.ma.MaskedArray):
        return np.asarray(X)
    if X.dtype.kind in _NUMERIC:
        return np.ma.filled(X.astype(np.float64), np.nan)  # a value under a mask is missing
    return _unmasked(X) if X.dtype == object else np.asarray(X)


def _rows(X: Iterable[object]) -> Vector:
    """A list of rows as an array, each entry judged alone; an item that is no row is a missing one."""
    rows = [_row(item) for item in X]
    lengths = {len(row) for row in rows if row is not None}
    if rows and not lengths:
        raise ValueError(
            f"X must have two dimensions, a row for each record, its items are no rows. {_RESHAPE}"
        )
    if len(lengths) > 1:
        raise ValueError("X must have rows of one length, it has rows of different lengths")
    table = np.full((len(rows), *lengths) if rows else (0, 0), np.nan)
    for k, row in enumerate(rows):
        if row is not None:
            table[k] = _as_floats(row) if isinstance(row, np.ndarray) else numbers(row)
    return table


def _row(item: object) -> Labels | list[object] | None:
    """The entries of an item in order; None if its type is no sequence."""
    kind = type(item)
    try:
        if _is_array(item):
            return item if item.ndim == 1 else None
        series = hasattr(kind, "__array__") and hasattr(kind, "iloc")  # one of pandas
        if series or issubclass(kind, Sequence | array) and not issubclass(kind, str | bytes | bytearray):
            return list(cast(Iterable[object], item))
    except Exception:  # an object may raise anything
        pass
    return None


def _is_array(entry: object) -> TypeGuard[Labels]:
    return issubclass(type(entry), np.ndarray)


def _as_floats(row: Labels) -> Vector:
    row = _array(row)
    return row.astype(np.float64) if row.dtype.kind in _NUMERIC else numbers(row)


def _frame(X: object, columns: list[FrameColumn]) -> Labels | sp.coo_matrix:
    """A data frame as an array, or as a sparse table if all of its columns leave out zeros."""
    if columns and hasattr(X, "sparse") and all(_leaves_out_zeros(dtype) for _, dtype, _ in columns):
        return X.sparse.to_coo()
    for name, dtype, _ in columns:
        require_numbers(f"column {name!r} of X", dtype)
    if all(isinstance(dtype, np.dtype) and dtype.kind in _NUMERIC for _, dtype, _ in columns):
        return np.asarray(X)
    return _converted(columns)


def _converted(columns: list[FrameColumn]) -> Labels:
    """Columns of several types as an array of floats, each entry by itself."""
    if any(isinstance(dtype, np.dtype) and dtype.kind == "O" for _, dtype, _ in columns):
        _warn_of_objects("X")
    parts = [np.asarray(entries) for _, _, entries in columns]
    precision = np.float32 if all(is_single(dtype) for _, dtype, _ in columns) else np.float64
    table = np.empty((len(parts[0]), len(parts)), dtype=precision, order="F")
    for j, part in enumerate(parts):
        table[:, j] = part if part.dtype.kind in _NUMERIC else numbers(part)
    return table


def _leaves_out_zeros(dtype: object) -> bool:
    """Whether a type of pandas is sparse, and what is not stored is 0."""
    left_out = getattr(dtype, "fill_value", None) if type(dtype).__name__ == "SparseDtype" else None
    return isinstance(left_out, Real | np.bool_) and left_out == 0


def require_numbers(name: str, dtype: object) -> None:
    """Refuse a type whose values are never real numbers; None stands for a list, which may hold some."""
    if getattr(dtype, "kind", None) == "c":
        raise ValueError(f"Complex data not supported in {name}")
    kind = "anything" if dtype is None else kind_of(dtype)
    if kind == "anything" and not (dtype is None or type_kind(dtype) in ("null", "object")):
        kind = "something else"
    if kind not in ("number", "anything"):
        raise ValueError(f"{name} must be numeric, its type is {name_of(dtype)}: turn it into numbers first")


def _warn_of_objects(name: str) -> None:
    warnings.warn(
        f"{name} holds Python objects: a record with an entry that is no number contributes nothing. Convert "
        f"{name} to a numeric type to rule that out",
        PrivacyWarning,
        stacklevel=4,
    )


def _warn_of_a_column() -> None:
    warnings.warn(
        "A column-vector y was passed when a 1d array was expected. Please change the shape of y to "
        "(n_samples,), for example using ravel().",
        DataConversionWarning,
        stacklevel=5,
    )


def columns_apart(X: Any, several: RecordColumns) -> tuple[object, RecordColumns]:
    """The table without the columns that are named, and these columns."""
    parts = {}
    for name, part in several._asdict().items():
        X, parts[name] = column_apart(X, part)
    return X, RecordColumns(**parts)


def column_apart(X: Any, y: object) -> tuple[object, object]:
    """The table without the column that y names, and that column; both as they are if y is no name."""
    if not isinstance(y, str):
        return X, y
    if library_of(X) in (None, "dict"):
        raise ValueError(
            f"y should be a 1d array, got a text, and a {type(X).__name__} has no columns by name"
        )
    names = column_names(X)
    if y not in names:
        raise ValueError(f"y must be an array or name one column of X, whose columns are {names}")
    return without_column(X, y)
