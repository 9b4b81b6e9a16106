"""Tables in memory with named columns, one of which holds the targets."""

from __future__ import annotations

import sys
from typing import Any

from ..data.columnar import different
from ..data.columns import RecordColumns


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
    pandas, polars, arrow = (sys.modules.get(name) for name in ("pandas", "polars", "pyarrow"))
    is_pandas = pandas is not None and isinstance(X, pandas.DataFrame)
    is_polars = polars is not None and isinstance(X, polars.DataFrame)
    is_arrow = arrow is not None and isinstance(X, arrow.Table | arrow.RecordBatch)
    if not (is_pandas or is_polars or is_arrow):
        raise ValueError(
            f"y should be a 1d array, got a text, and a {type(X).__name__} has no columns by name"
        )
    names = different(X.schema.names if is_arrow else X.columns)
    if names.count(y) != 1:
        raise ValueError(f"y must be an array or name one column of X, whose columns are {names}")
    rest = [name for name in names if name != y]
    if is_pandas:
        return X.loc[:, X.columns != y], X[y]
    return X.select(rest), X.column(y) if is_arrow else X.get_column(y)
