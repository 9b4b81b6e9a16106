"""Tables in memory with named columns, one of which holds the targets."""

from __future__ import annotations

from typing import Any

from ..data.columns import RecordColumns
from ..data.frames import column_names, library_of, without_column


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
