"""From what users hand over to records inside bounds."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from ..arrays import Vector
from ..bounds import Bounds
from ..kernels.arguments import Beside
from .columns import persons_of
from .records import Records
from .resident import Dense, ResidentTable
from .sparse import CSC, CSR, ScipyTable, canonical
from .units import Units

LARGEST_NORM = 1e100
"""Longer rows and larger targets count as not finite: no product with them overflows or loses precision."""


def as_block(X: Any) -> ResidentTable:
    """Wrap an array, memory map or scipy sparse table; none is copied if it is already float.

    What is such a table already is returned as it is.
    """
    if isinstance(X, ResidentTable):
        return X
    if sp.issparse(X):
        return CSC(canonical(X)) if X.format == "csc" else CSR(canonical(X.tocsr()))
    return Dense(X)


def as_data(
    X: ArrayLike | ScipyTable | ResidentTable,
    y: ArrayLike,
    bounds: Bounds,
    constant: float = 0.0,
    table_size: int = 0,
) -> Records:
    """Records inside ``bounds``; those that are not finite, or absurdly large, contribute nothing.

    Parameters
    ----------
    X : array, memory map, scipy sparse table, or what `as_block` returns
    y : array of shape (n_records,), (n_records, 3) or (n_records, 4)
        Targets; NaN marks a record without one. With three columns: targets, weights and offsets. A fourth
        column has a number for each person, whose records follow one another.
    bounds : Bounds
    constant : float
        Value of the constant feature that carries the intercept; 0 for none.
    table_size : int
        Number of records, or of persons, of the whole table, if these are some of its records.
    """
    block = as_block(X)
    with np.errstate(over="ignore"):
        values = np.array(y, dtype=np.float64)
    target = values if values.ndim == 1 else values[:, 0].copy()
    dropped, inside = _null_records(block, values, target, bounds)
    if dropped.any():
        block = block.without(dropped)
        target[dropped] = 0.0
    if bounds.target is not None:
        np.clip(target, *bounds.target, out=target)
    if bounds.feature is not None and not inside:
        if not isinstance(block, Dense):
            bounds.require_sparse()
        block = block.clipped(*bounds.ranges(block.shape[1]))
    scale = np.ones(len(target)) if inside else bounds.shrink(block.row_norms)
    scale[dropped] = 0.0
    radius = math.hypot(bounds.radius(block.shape[1]), constant)
    beside = None if values.ndim == 1 else _beside(values, dropped, bounds)
    persons = None
    number = persons_of(values)
    if beside is not None and number is not None:
        persons = Units.of(number, block.shape[1], table_size)
        beside = beside._replace(share=beside.share * persons.share)
    norms = None if inside else scale * block.row_norms
    return Records(block, scale, norms, target, constant, radius, table_size, beside, persons)


def _null_records(
    block: ResidentTable, values: Vector, target: Vector, bounds: Bounds
) -> tuple[NDArray[np.bool_], bool]:
    """Which records are not finite, or absurdly large; and whether all rows lie inside the bounds."""
    dropped = ~(np.abs(target) < LARGEST_NORM)
    inside = values.ndim == 1 and not dropped.any() and _is_inside(block, bounds)
    if not inside:
        dropped |= ~(block.row_norms < LARGEST_NORM)
    if values.ndim > 1:
        dropped |= ~(np.abs(values[:, 1:3]) < LARGEST_NORM).all(axis=1)
    return dropped, inside


def _is_inside(block: ResidentTable, bounds: Bounds) -> bool:
    """Whether all rows are as they are inside of bounds of features that are the only ones: and so finite."""
    if bounds.feature is None or bounds.row_norm is not None or not isinstance(block, Dense):
        return False
    p = block.shape[1]
    return bounds.radius(p) < LARGEST_NORM and block.is_within(*bounds.ranges(p))


def _beside(values: Vector, dropped: NDArray[np.bool_], bounds: Bounds) -> Beside:
    """Weights as shares of the largest allowed weight, and offsets, both inside the bounds.

    Without declared bounds weights are at most 1 and offsets are 0, whatever a source gives.
    """
    weights, offsets = (np.where(dropped, 0.0, values[:, k]) for k in (1, 2))
    share = np.clip(weights, 0.0, bounds.largest_weight) / bounds.weight_unit
    return Beside(share, np.clip(offsets, *((0.0, 0.0) if bounds.offset is None else bounds.offset_range)))
