"""Raw tables by the names of their columns: data frames of pandas and polars, Arrow, and dicts of arrays."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arrays import Vector
from ..data.adapters import in_doubles
from ..data.columnar import different
from .cells import Cells, Moment, coded, days_of_moments, days_since_epoch

_ARROW_NUMBER = re.compile(r"(u?int(8|16|32|64)|float|double|halffloat|bool)$")
_ARROW_TEXT = re.compile(r"(large_)?string(_view)?$")
_ARROW_TIME = re.compile(r"timestamp\[(s|ms|us|ns)|date(32|64)")


def is_frame(X: object) -> bool:
    """Whether X is a table in memory whose columns have names."""
    return _library(X) is not None


def column_names(X: Any) -> list[str]:
    """The names of the columns, which must be different texts."""
    names = list(X.schema.names if _library(X) == "pyarrow" else X.columns if _library(X) != "dict" else X)
    return checked_names(names)


def checked_names(names: Sequence[object]) -> list[str]:
    """Names of columns, if they are different texts."""
    if not all(isinstance(name, str) for name in names):
        raise ValueError("the columns of X must have names that are text: they are matched by name")
    return [str(name) for name in different(names)]


def type_of(X: Any, name: str) -> str:
    """The declared type of a column, in the words of its library; "list" for a list, which declares none."""
    library = _library(X)
    if library == "pyarrow":
        return str(X.schema.field(name).type)
    return str(getattr(X[name], "dtype", "list"))


def cells_of(X: Any, name: str) -> Cells:
    """The cells of a column; a type that holds no numbers, texts or moments is refused by its name."""
    column = X.column(name) if _library(X) == "pyarrow" else X[name]
    found: Cells | None = None
    with suppress(Exception):  # a library may raise anything, and quote a cell
        found = _of_any(column)
    if found is None:
        raise ValueError(f"column {name!r} has type {_short(type_of(X, name))}, which cannot be encoded")
    return found


def entries_of(X: Any, name: str) -> NDArray[np.object_]:
    """The entries of a column as they are, as Python objects: whole numbers keep all of their digits."""
    column = X.column(name) if _library(X) == "pyarrow" else X[name]
    for listed in ("to_pylist", "to_list", "tolist"):
        if hasattr(column, listed):
            column = getattr(column, listed)()
            break
    found = np.empty(len(column), dtype=object)
    found[:] = list(column)
    return found


def count_of(X: Any) -> int:
    """How many records a table has; columns of different lengths are refused."""
    library = _library(X)
    if library == "pyarrow":
        return int(X.num_rows)
    if library != "dict":
        return len(X)
    lengths = {name: len(column) for name, column in X.items()}
    if len(set(lengths.values())) > 1:
        raise ValueError("the columns of X have different lengths")
    return next(iter(lengths.values()), 0)


def _library(X: object) -> str | None:
    """Where a table comes from; None if its columns have no names."""
    pandas, polars, arrow = (sys.modules.get(name) for name in ("pandas", "polars", "pyarrow"))
    if pandas is not None and isinstance(X, pandas.DataFrame):
        return "pandas"
    if polars is not None and isinstance(X, polars.DataFrame):
        return "polars"
    if arrow is not None and isinstance(X, arrow.Table | arrow.RecordBatch):
        return "pyarrow"
    return "dict" if isinstance(X, Mapping) else None


def _of_any(column: Any) -> Cells | None:
    if isinstance(column, np.ndarray):
        return _of_array(column)
    home = type(column).__module__.split(".")[0]
    if home == "polars":
        return _of_polars(column)
    if home == "pyarrow":
        chunks = column.chunks if hasattr(column, "chunks") else [column]
        return _joined([_of_arrow(chunk) for chunk in chunks], str(column.type))
    if hasattr(column, "dtype") and hasattr(column, "array"):
        return _of_pandas(column)
    if isinstance(column, Sequence) and not isinstance(column, str | bytes):
        return coded(column)
    return None


@np.errstate(all="ignore")
def _of_array(column: Any) -> Cells | None:
    if column.ndim != 1:
        return None
    if isinstance(column, np.ma.MaskedArray):
        mask = np.ma.getmaskarray(column)
        found = _of_array(np.asarray(column.data))
        return None if found is None else _where(found, ~mask)
    kind = column.dtype.kind
    if kind in "biuf":
        return Cells(column.astype(np.float64))
    if kind == "M":
        return Cells(days_of_moments(column), is_time=True)
    return coded(column.tolist()) if kind in "UTO" else None


def _of_pandas(column: Any) -> Cells | None:
    dtype = column.dtype
    if isinstance(dtype, np.dtype):
        return _of_array(column.to_numpy())
    if hasattr(dtype, "categories") and hasattr(column, "cat"):
        levels, places = _of_any(dtype.categories.to_series()), column.cat.codes.to_numpy().astype(np.intp)
        return None if levels is None else _where(_taken(levels, places), places >= 0)
    if type(dtype).__name__ == "ArrowDtype" or getattr(dtype, "storage", None) == "pyarrow":
        return _of_any(column.array.__arrow_array__())
    if type(dtype).__name__ == "SparseDtype":
        return _of_array(np.asarray(column))
    if getattr(dtype, "tz", None) is not None:
        return _of_array(column.dt.tz_convert("UTC").dt.tz_localize(None).to_numpy())
    kind = getattr(dtype, "kind", "O")
    if kind in "biuf":
        return Cells(column.to_numpy(dtype=np.float64, na_value=np.nan))
    return coded(column.to_numpy(dtype=object, na_value=None).tolist()) if kind in "OUT" else None


def _of_polars(column: Any) -> Cells | None:
    if str(column.dtype).startswith("Object"):
        return coded(column.to_list())
    level = sys.modules["polars"].CompatLevel.oldest()
    return _of_any(in_doubles(column.to_frame()).to_series().to_arrow(compat_level=level))


def _of_arrow(column: Any) -> Cells | None:
    kind = str(column.type)
    if kind == "null":
        return Cells(np.full(len(column), np.nan))
    if _ARROW_NUMBER.match(kind):
        whole = column.cast("uint8") if kind == "bool" else column
        return Cells(whole.to_numpy(zero_copy_only=False).astype(np.float64))
    if kind.startswith("dictionary"):
        levels = _of_any(column.dictionary)
        places = column.indices.fill_null(0).to_numpy(zero_copy_only=False).astype(np.intp)
        known = ~column.indices.is_null().to_numpy(zero_copy_only=False)
        return None if levels is None else _where(_taken(levels, places), known)
    if _ARROW_TEXT.match(kind):
        # nobody has checked that the bytes are UTF-8: each value is decoded by itself
        found = column.cast("large_binary" if kind.startswith("large") else "binary").dictionary_encode()
        places = found.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.intp)
        texts = [content.decode("utf-8", "replace") for content in found.dictionary.to_pylist()]
        return Cells(values=texts, places=places)
    if kind.startswith("decimal"):
        return coded(column.to_pylist())
    unit = _ARROW_TIME.match(kind)
    if unit is None:
        return None
    known = ~column.is_null().to_numpy(zero_copy_only=False)
    integer = column.cast("int32").cast("int64") if kind.startswith("date32") else column.cast("int64")
    count = integer.fill_null(0).to_numpy(zero_copy_only=False)
    days = days_since_epoch(count, {"32": "D", "64": "ms"}.get(unit[2] or "", unit[1]))
    return _where(Cells(days, is_time=True), known)


def _joined(parts: Sequence[Cells | None], kind: str) -> Cells | None:
    """The cells of several chunks of one type."""
    if not parts:
        return Cells(np.empty(0), is_time=bool(_ARROW_TIME.match(kind)))
    known = [part for part in parts if part is not None]
    if len(known) < len(parts):
        return None
    if len(known) == 1:
        return known[0]
    numbers: list[Vector] = [part.numbers for part in known if part.numbers is not None]
    if len(numbers) == len(known):
        # an empty dictionary has no type of its own
        return Cells(np.concatenate(numbers), any(part.is_time for part in known))
    known = [_as_values(part) for part in known]
    edges = np.cumsum([0, *(len(part.values) for part in known)])
    places = [
        np.where(part.read_places < 0, -1, part.read_places + edge)
        for part, edge in zip(known, edges[:-1], strict=True)
    ]
    return Cells(values=[value for part in known for value in part.values], places=np.concatenate(places))


def _as_values(cells: Cells) -> Cells:
    """The same cells by their values."""
    if cells.numbers is None:
        return cells
    values = [Moment(number) if cells.is_time else number for number in cells.numbers.tolist()]
    return Cells(values=values, places=np.where(np.isnan(cells.numbers), -1, np.arange(len(cells))))


def _taken(levels: Cells, places: Any) -> Cells:
    """A cell of these levels for each place; what stands at a place that is none does not matter."""
    if not len(levels):
        return Cells(np.full(len(places), np.nan))
    if levels.numbers is not None:
        return Cells(levels.numbers[places], levels.is_time)
    return Cells(values=levels.values, places=levels.read_places[places])


def _where(cells: Cells, known: Any) -> Cells:
    """The cells, missing where they are not known."""
    if cells.numbers is not None:
        return Cells(np.where(known, cells.numbers, np.nan), cells.is_time)
    return Cells(values=cells.values, places=np.where(known, cells.read_places, -1))


def _short(kind: str) -> str:
    """A type without what it says of its values."""
    return re.split(r"[(<{\[]", kind)[0]
