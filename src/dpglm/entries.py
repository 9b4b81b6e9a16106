"""Entries of tables as numbers, and sparse tables as compiled code needs them.

Compiled code does not look where an index leads, so every index must have a place in the table. What is
refused here depends on the structure of a table only, which is public; the error quotes nothing of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from .arrays import Vector
from .errors import silent

Sparse: TypeAlias = sp.sparray | sp.spmatrix

_Indices: TypeAlias = Sequence[int] | NDArray[np.intp]
_FORMATS = ("csr", "csc", "bsr", "coo")


def numbers(entries: Iterable[object]) -> Vector:
    """Each entry as a float; NaN for one that is missing, too large, or no real number."""
    with silent(), np.errstate(all="ignore"):
        return np.array([_number(entry) for entry in entries], dtype=np.float64)


def _number(entry: Any) -> float:
    if issubclass(type(entry), np.ndarray | np.complexfloating):
        return np.nan
    try:
        return float(entry)
    except Exception:  # an object may raise anything; whatever it is, its record is null
        return np.nan


@np.errstate(all="ignore")  # a warning about a cast would tell of an entry
def well_formed(X: Sparse) -> Sparse:
    """The sparse table in a format that is stored in arrays of floats, if its indices fit its shape."""
    if X.ndim != 2:
        raise ValueError(f"X must have two dimensions, a row for each record, got {X.ndim}")
    if X.dtype.kind not in "biufc":
        raise ValueError(
            f"X must be numeric, it is a sparse table of type {X.dtype}: turn it into numbers first"
        )
    if X.format == "lil":
        X = _from_lists(X)
    elif X.format == "dok":
        X = _from_keys(X)
    elif X.format not in _FORMATS:
        X = X.tocoo()
    if X is None or not (_coordinates_fit(X) if X.format == "coo" else _lines_fit(X)):
        raise ValueError("X is a malformed sparse table: its indices do not fit its shape")
    X = _native(X)
    # Before doubled entries are added up: small integers would overflow.
    return X if X.dtype.kind == "c" or X.dtype in (np.float32, np.float64) else X.astype(np.float64)


def _from_lists(X: Sparse) -> Sparse | None:
    """A table stored as lists of columns and entries, or None if these do not belong together."""
    n = X.shape[0]
    if not (np.shape(X.rows) == np.shape(X.data) == (n,)):
        return None
    pairs = list(zip(X.rows, X.data, strict=True))
    if not all(type(part) is list for pair in pairs for part in pair):
        return None
    if not all(len(index) == len(entries) for index, entries in pairs):
        return None
    rows = np.repeat(np.arange(n), [len(index) for index, _ in pairs])
    return _stored(X, rows, [j for index, _ in pairs for j in index],
                   numbers([entry for _, entries in pairs for entry in entries]))  # fmt: skip


def _from_keys(X: Sparse) -> Sparse | None:
    """A table stored by its keys, or None if one is no pair of indices."""
    keys = list(X.keys())
    if not all(type(key) is tuple and len(key) == 2 for key in keys):
        return None
    return _stored(X, [i for i, _ in keys], [j for _, j in keys], numbers(list(X.values())))


def _stored(X: Sparse, rows: _Indices, columns: _Indices, entries: Vector) -> Sparse | None:
    """A table of the same shape and precision with these entries, or None if an index has no place in it."""
    if not all(_all_indices(index, length) for index, length in zip((rows, columns), X.shape, strict=True)):
        return None
    place = tuple(np.array(index, dtype=np.intp) for index in (rows, columns))
    precision = np.float32 if X.dtype == np.float32 else np.float64
    return sp.coo_array((entries.astype(precision), place), shape=X.shape)


def _all_indices(index: _Indices, length: int) -> bool:
    return all(issubclass(type(k), int | np.integer) and 0 <= k < length for k in index)


def _lines_fit(X: Sparse) -> bool:
    lines, width = X.shape if X.format != "csc" else X.shape[::-1]
    parts = (X.indptr, X.indices, X.data)
    if not all(map(_plain, parts)):
        return False
    ends, indices, entries = parts
    if X.format == "bsr":
        if entries.ndim != 3 or 0 in entries.shape[1:]:
            return False
        if lines % entries.shape[1] or width % entries.shape[2]:
            return False
        lines, width = lines // entries.shape[1], width // entries.shape[2]
    elif entries.ndim != 1:
        return False
    return (
        ends.ndim == 1
        and ends.dtype.kind in "iu"
        and len(ends) == lines + 1
        and ends[0] == 0
        and bool((ends[1:] >= ends[:-1]).all())
        and ends[-1] <= min(len(indices), len(entries))
        and _fit(indices, width)
    )


def _coordinates_fit(X: Sparse) -> bool:
    parts = (X.row, X.col, X.data)
    if not all(_plain(part) and part.ndim == 1 for part in parts):
        return False
    return len(X.row) == len(X.col) == len(X.data) and _fit(X.row, X.shape[0]) and _fit(X.col, X.shape[1])


def _plain(part: object) -> bool:
    return isinstance(part, np.ndarray) and not isinstance(part, np.ma.MaskedArray)


def _fit(index: NDArray[np.integer], length: int) -> bool:
    if index.ndim != 1 or index.dtype.kind not in "iu":
        return False
    return index.size == 0 or bool(index.min() >= 0 and index.max() < length)


def _native(X: Sparse) -> Sparse:
    """The table in the byte order of the machine, which compiled code takes for granted."""
    coordinates = X.format == "coo"
    parts = (X.data, X.row, X.col) if coordinates else (X.data, X.indices, X.indptr)
    if all(part.dtype.isnative for part in parts):
        return X
    entries, *index = (part.astype(part.dtype.newbyteorder("="), copy=False) for part in parts)
    return type(X)((entries, tuple(index)) if coordinates else (entries, *index), shape=X.shape)
