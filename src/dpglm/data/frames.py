"""Data frames of pandas and polars, Arrow tables and dicts of arrays: names, types and columns.

No entry is looked at, and no library is imported: of one that nobody imported there is no table.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

Name = TypeVar("Name")

_KINDS = {
    "boolean": r"bool",
    "integer": r"u?int\d",
    "float": r"float|double|halffloat",
    "decimal": r"decimal",
    "date": r"date|timestamp",
    "nested": r"(large_|fixed_size_)?list|struct|map|array|\w*union",
    "text": r"(large_)?(str|utf8)",
    "null": r"null",
    "object": r"object",
}
_KIND = re.compile("|".join(f"(?P<{kind}>{names})" for kind, names in _KINDS.items()), re.IGNORECASE)
_SINGLE = re.compile(r"float(16|32|\[pyarrow\])?|halffloat", re.IGNORECASE)

NUMBERS = frozenset({"boolean", "integer", "float", "decimal"})
"""Kinds of types whose values are numbers."""


class FrameColumn(NamedTuple):
    """A column of a data frame, of whatever library."""

    name: object
    dtype: object
    entries: object


def type_kind(dtype: object) -> str:
    """The kind of a type, by its name in numpy, pandas, polars, Arrow or DuckDB; "other" for all the rest.

    Kinds are "boolean", "integer", "float", "decimal", "date", "nested", "text", "null" and "object".
    """
    match = _KIND.match(str(dtype))
    return "other" if match is None or match.lastgroup is None else match.lastgroup


def type_name(dtype: object) -> str:
    """The name of a type without what it says of its values, such as the levels of a category."""
    return re.split(r"[(<{\[]", str(dtype))[0]


def is_nested(dtype: object) -> bool:
    """Whether values of a type are lists, structs or objects, neither numbers nor labels."""
    return type_kind(dtype) in ("nested", "object")


def is_single(dtype: object) -> bool:
    """Whether values of a type are floats of at most single precision."""
    return _SINGLE.fullmatch(str(dtype)) is not None


def library_of(X: object) -> str | None:
    """pandas, polars, pyarrow or dict, where a table with named columns comes from; None for others."""
    pandas, polars, arrow = (sys.modules.get(name) for name in ("pandas", "polars", "pyarrow"))
    if pandas is not None and isinstance(X, pandas.DataFrame):
        return "pandas"
    if polars is not None and isinstance(X, polars.DataFrame):
        return "polars"
    if arrow is not None and isinstance(X, arrow.Table | arrow.RecordBatch):
        return "pyarrow"
    return "dict" if isinstance(X, Mapping) else None


def column_names(X: Any) -> list[object]:
    """The names of the columns of a table, which must differ."""
    library = library_of(X)
    return distinct(X.schema.names if library == "pyarrow" else X if library == "dict" else X.columns)


def distinct(names: Iterable[Name]) -> list[Name]:
    """Names of columns, if no two are the same."""
    result = list(names)
    if len(set(result)) < len(result):  # not quoted: in a file without names a record stands there
        raise ValueError("the columns of X must have different names, but one occurs twice")
    return result


def text_names(names: Iterable[object]) -> list[str]:
    """Names of columns, if they are different texts."""
    listed = list(names)
    if not all(isinstance(name, str) for name in listed):
        raise ValueError("the columns of X must have names that are text: they are matched by name")
    return [str(name) for name in distinct(listed)]


def columns_of(X: Any) -> list[FrameColumn] | None:
    """The columns of a data frame or an Arrow table in their order; None if X is neither."""
    library = library_of(X)
    if library == "pandas":
        names = column_names(X)
        return [FrameColumn(name, X.dtypes.iloc[j], X.iloc[:, j]) for j, name in enumerate(names)]
    if library == "polars":
        parts = zip(X.columns, X.dtypes, in_doubles(X).get_columns(), strict=True)
        return [FrameColumn(*part) for part in parts]
    if library == "pyarrow":
        return [FrameColumn(*part) for part in zip(column_names(X), X.schema.types, X.columns, strict=True)]
    return None


def column_type(X: Any, name: str) -> str:
    """The declared type of a column, in the words of its library; "list" for a list, which declares none."""
    if library_of(X) == "pyarrow":
        return str(X.schema.field(name).type)
    return str(getattr(X[name], "dtype", "list"))


def get_column(X: Any, name: str) -> Any:
    """A column of a table."""
    return X.column(name) if library_of(X) == "pyarrow" else X[name]


def column_entries(X: Any, name: str) -> NDArray[np.object_]:
    """The entries of a column as they are, as Python objects: whole numbers keep all of their digits."""
    entries = get_column(X, name)
    for listed in ("to_pylist", "to_list", "tolist"):
        if hasattr(entries, listed):
            entries = getattr(entries, listed)()
            break
    result = np.empty(len(entries), dtype=object)
    result[:] = list(entries)
    return result


def row_count(X: Any) -> int:
    """How many records a table has; columns of different lengths are refused."""
    library = library_of(X)
    if library == "pyarrow":
        return int(X.num_rows)
    if library != "dict":
        return len(X)
    lengths = {len(entries) for entries in X.values()}
    if len(lengths) > 1:
        raise ValueError("the columns of X have different lengths")
    return next(iter(lengths), 0)


def without_column(X: Any, name: str) -> tuple[Any, Any]:
    """A data frame or an Arrow table without one of its columns, and that column."""
    if library_of(X) == "pandas":
        return X.loc[:, X.columns != name], X[name]
    rest = X.select([other for other in column_names(X) if other != name])
    return rest, X.column(name) if library_of(X) == "pyarrow" else X.get_column(name)


def in_doubles(frame: Any) -> Any:
    """A frame of polars with integers of 128 bits, which no other library has, as doubles."""
    polars = sys.modules["polars"]
    wide = [getattr(polars, name) for name in ("Int128", "UInt128") if hasattr(polars, name)]
    return frame.with_columns(polars.col(wide).cast(polars.Float64)) if wide else frame
