"""Coordinate descent over the columns of a table.

One call runs a block of steps. Noise and coordinates are drawn before, so a block and a loop of single steps
use the same draws. For the squared loss, whose slope is z - y, z holds that difference during a block, which
saves a read of y at every entry.
"""

from __future__ import annotations

import numpy as np

from .arguments import Compressed, Entries, Floats, Form, NoiseBlock, Rule
from .compiled import compiled, part
from .exact import grid_of, steps
from .forms import SQUARED, slope
from .lanes import request_one
from .primitives import add_line, cut, on_grid, prox

_COLUMNS_AHEAD = 2
_INDICES_A_LINE, _ENTRIES_A_LINE = np.uint64(16), np.uint64(8)
_MATH = frozenset({"reassoc", "contract", "nsz", "nnan"})


@compiled()
def _dense_steps(column: Entries, form: Form, z: Floats, y: Floats, limit: float, rounding: float) -> int:
    """The sum of cut terms in steps of their grid."""
    total = 0
    if form.code == SQUARED:
        for i in range(z.size):
            total += steps(cut(z[i] * column[i], limit), rounding)
    else:
        for i in range(z.size):
            total += steps(cut(slope(form, z[i], y[i]) * column[i], limit), rounding)
    return total


@part
def _squared_steps(table: Compressed, j: int, z: Floats, limit: float, rounding: float) -> int:
    """The same for column j of a table without its zeros, and the squared loss."""
    total = 0
    for t in range(table.indptr[j], table.indptr[j + 1]):
        total += steps(cut(z[table.indices[t]] * table.entries[t], limit), rounding)
    return total


@compiled()
def _sparse_steps(
    table: Compressed, j: int, form: Form, z: Floats, y: Floats, limit: float, rounding: float
) -> int:
    """The same for any loss. A call passes so many numbers that a short column would notice it."""
    indptr, indices, entries = table
    total = 0
    for t in range(indptr[j], indptr[j + 1]):
        i = indices[t]
        total += steps(cut(slope(form, z[i], y[i]) * entries[t], limit), rounding)
    return total


@compiled(fastmath=_MATH)
def _dense_sum(column: Entries, form: Form, z: Floats, y: Floats) -> float:
    """The sum of terms that are not cut: not private."""
    total = 0.0
    if form.code == SQUARED:
        for i in range(z.size):
            total += z[i] * column[i]
    else:
        for i in range(z.size):
            total += slope(form, z[i], y[i]) * column[i]
    return total


@compiled(fastmath=_MATH)
def _sparse_sum(table: Compressed, j: int, form: Form, z: Floats, y: Floats) -> float:
    """The same for column j of a table without its zeros."""
    indptr, indices, entries = table
    total = 0.0
    for t in range(indptr[j], indptr[j + 1]):
        i = indices[t]
        total += (z[i] if form.code == SQUARED else slope(form, z[i], y[i])) * entries[t]
    return total


@part
def _dense_total(column: Entries, form: Form, z: Floats, y: Floats, limit: float, rounding: float) -> float:
    """The sum of cut terms, which a double holds exactly (see ``data.sums``); no limit has no grid."""
    if rounding == 0.0:
        return _dense_sum(column, form, z, y)
    return _dense_steps(column, form, z, y, limit, rounding) * grid_of(rounding)


@part
def _sparse_total(
    table: Compressed, j: int, form: Form, z: Floats, y: Floats, limit: float, rounding: float
) -> float:
    """The same for column j of a table without its zeros."""
    if rounding == 0.0:
        return _sparse_sum(table, j, form, z, y)
    if form.code == SQUARED:
        return _squared_steps(table, j, z, limit, rounding) * grid_of(rounding)
    return _sparse_steps(table, j, form, z, y, limit, rounding) * grid_of(rounding)


@compiled(fastmath=_MATH)
def _add(move: float, column: Entries, z: Floats) -> None:
    if move != 0.0:
        for i in range(z.size):
            z[i] += move * column[i]


@part
def _request_column(table: Compressed, j: int) -> None:
    """Have a column, if j is not the constant feature, brought to the cache: the next one may be far away."""
    if j == table.indptr.size - 1:
        return
    begin, end = table.indptr[j], table.indptr[j + 1]
    for t in range(begin, end, _INDICES_A_LINE):
        request_one(table.indices[t:])
    for t in range(begin, end, _ENTRIES_A_LINE):
        request_one(table.entries[t:])


@part
def _moved(k: int, total: float, w: Floats, releases: NoiseBlock, rule: Rule) -> float:
    """Release the sum number k, take the step that follows from it, and return the move."""
    j = releases.coordinates[k]
    released = on_grid(total, releases.grid[j]) + releases.noise[k]
    value = prox(
        w[j] - rule.rate[j] * released, rule.step[j], rule.l1[j], rule.l2[j], rule.low[j], rule.high[j]
    )
    move = value - w[j]
    w[j] = value
    return float(move)


@compiled()
def descend_dense(
    X: Entries, tail: Floats, form: Form, y: Floats, z: Floats, w: Floats, releases: NoiseBlock, rule: Rule,
    moves: Floats,
) -> None:  # fmt: skip
    """Run one step for each of the releases; z, w and moves are updated.

    ``tail`` is the constant feature, the last one if there is one. ``rule`` has the rate, the step and the
    penalty (l1, l2, low, high) of each coordinate.
    """
    p = X.shape[1]
    if form.code == SQUARED:
        z -= y
    for k in range(moves.size):
        j = releases.coordinates[k]
        if j < p:
            total = _dense_total(X[:, j], form, z, y, releases.clip[j], releases.rounding[j])
        else:
            total = _dense_total(tail, form, z, y, releases.clip[j], releases.rounding[j])
        moves[k] = _moved(k, total, w, releases, rule)
        if j < p:
            _add(moves[k], X[:, j], z)
        else:
            _add(moves[k], tail, z)
    if form.code == SQUARED:
        z += y


@compiled()
def descend_sparse(
    table: Compressed, tail: Floats, form: Form, y: Floats, z: Floats, w: Floats, releases: NoiseBlock,
    rule: Rule, moves: Floats,
) -> None:  # fmt: skip
    """The same for a table stored by columns; only the rows that hold a column are read."""
    p = table.indptr.size - 1
    if form.code == SQUARED:
        z -= y
    for k in range(moves.size):
        _request_column(table, releases.coordinates[min(k + _COLUMNS_AHEAD, moves.size - 1)])
        j = releases.coordinates[k]
        if j == p:
            total = _dense_total(tail, form, z, y, releases.clip[j], releases.rounding[j])
        else:
            total = _sparse_total(table, j, form, z, y, releases.clip[j], releases.rounding[j])
        moves[k] = _moved(k, total, w, releases, rule)
        if j == p:
            _add(moves[k], tail, z)
        else:
            add_line(table, j, moves[k], z)
    if form.code == SQUARED:
        z += y
