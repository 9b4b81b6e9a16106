"""Coordinate descent over the columns of a table, and dual coordinate ascent over its rows.

One call runs a block of steps. Noise and coordinates are drawn before, so a block and a loop of single steps
use the same draws. For the squared loss, whose slope is z - y, z holds that difference during a block, which
saves a read of y at every entry.
"""

from __future__ import annotations

import numpy as np

from .arguments import Compressed, DualPoint, DualVariables, Entries, Floats, Form, NoiseBlock, Signed, Whole
from .compiled import compiled, part
from .exact import grid_of, steps
from .formulas import (
    SQUARED,
    add_line,
    cut,
    dense_dot,
    dual_step,
    on_grid,
    prox,
    slope,
    soft,
    sparse_dot,
    within,
)
from .simd import LANES, move_in_lanes, request, request_entry, request_line

_RATE, _THRESHOLD, _DIVISOR, _LOW, _HIGH, _GRID, _CLIP, _ROUNDING = range(8)
_LANES = np.uint64(LANES)
_SHORT = 1 << 15  # rows of a table whose second cache holds several columns
_ENTRIES_AHEAD = 512
_FUSED = frozenset({"contract"})
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


@compiled(fastmath=_FUSED)
def _add_and_count(
    move: float, column: Entries, z: Floats, other: Entries, limit: float, rounding: float, soon: Entries,
    ahead: Whole,
) -> int:  # fmt: skip
    """Add a column to z, then the sum of the other column's cut terms in steps: for the squared loss.

    ``soon`` is a column that is requested, some entries ahead.
    """
    blocks = np.uint64(z.size) // _LANES
    total = move_in_lanes(move, column, z, other, limit, rounding, soon, ahead, blocks)
    for i in range(blocks * _LANES, np.uint64(z.size)):
        z[i] += move * column[i]
        total += steps(cut(z[i] * other[i], limit), rounding)
    return total


@part
def _add_and_request(table: Compressed, j: int, move: float, z: Floats, soon: int) -> None:
    """Add column j, times a move, to z; meanwhile column ``soon`` is requested, which may be far away.

    So many of its entries are requested as column j has: loops of their own would take longer.
    """
    indptr, indices, entries = table
    t, end = np.uint64(indptr[j]), np.uint64(indptr[j + 1])
    later = np.uint64(indptr[soon])
    while t + _LANES <= end:
        request_entry(entries, later)
        request_entry(indices, later)
        for lane in range(_LANES):
            z[indices[t + lane]] += move * entries[t + lane]
        t += _LANES
        later += _LANES
    while t < end:
        z[indices[t]] += move * entries[t]
        t += np.uint64(1)


@part
def _moved(k: int, total: float, w: Floats, releases: NoiseBlock) -> float:
    """Release the sum number k, take the step that follows from it, and return the move."""
    j, lines = releases.coordinates[k], releases.lines
    released = on_grid(total, lines[j, _GRID]) + releases.noise[k]
    moved = w[j] - lines[j, _RATE] * released
    value = prox(moved, lines[j, _THRESHOLD], lines[j, _DIVISOR], lines[j, _LOW], lines[j, _HIGH])
    move = value - w[j]
    w[j] = value
    return float(move)


@compiled(nogil=True)
def descend_dense(
    X: Entries, tail: Floats, form: Form, y: Floats, z: Floats, w: Floats, releases: NoiseBlock,
    moves: Floats,
) -> None:  # fmt: skip
    """Run one step for each of the releases; z, w and moves are updated.

    ``tail`` is the constant feature, the last one if there is one.
    """
    p, last, coordinates, lines = X.shape[1], moves.size - 1, releases.coordinates, releases.lines
    if form.code == SQUARED:
        z -= y
    total, known = 0.0, False
    for k in range(moves.size):
        j, next_j = coordinates[k], coordinates[min(k + 1, last)]
        if not known:
            if j < p:
                total = _dense_total(X[:, j], form, z, y, lines[j, _CLIP], lines[j, _ROUNDING])
            else:
                total = _dense_total(tail, form, z, y, lines[j, _CLIP], lines[j, _ROUNDING])
        moves[k] = _moved(k, total, w, releases)
        known = form.code == SQUARED and max(j, next_j) < p and lines[next_j, _ROUNDING] > 0.0 and k < last
        if known:
            short = z.size <= _SHORT
            soon = min(coordinates[min(k + 2, last)], p - 1) if short else next_j
            rounding, ahead = lines[next_j, _ROUNDING], np.uint64(0 if short else _ENTRIES_AHEAD)
            total = grid_of(rounding) * _add_and_count(
                moves[k], X[:, j], z, X[:, next_j], lines[next_j, _CLIP], rounding, X[:, soon], ahead
            )
        elif j < p:
            _add(moves[k], X[:, j], z)
        else:
            _add(moves[k], tail, z)
    if form.code == SQUARED:
        z += y


@compiled(nogil=True)
def descend_sparse(
    table: Compressed, tail: Floats, form: Form, y: Floats, z: Floats, w: Floats, releases: NoiseBlock,
    moves: Floats,
) -> None:  # fmt: skip
    """The same for a table stored by columns; only the rows that hold a column are read."""
    p, coordinates, lines = table.indptr.size - 1, releases.coordinates, releases.lines
    if form.code == SQUARED:
        z -= y
    for k in range(moves.size):
        j = coordinates[k]
        if j == p:
            total = _dense_total(tail, form, z, y, lines[j, _CLIP], lines[j, _ROUNDING])
        else:
            total = _sparse_total(table, j, form, z, y, lines[j, _CLIP], lines[j, _ROUNDING])
        moves[k] = _moved(k, total, w, releases)
        if j == p:
            _add(moves[k], tail, z)
        else:
            soon = coordinates[min(k + 1, moves.size - 1)]
            request_line(lines, np.uint64(soon))
            _add_and_request(table, j, moves[k], z, soon)
    if form.code == SQUARED:
        z += y


_ROWS_AHEAD = 4
_REORDERED = frozenset({"reassoc", "contract"})


@compiled(fastmath=_REORDERED)
def _fast_dot(row: Entries, w: Floats) -> float:
    return dense_dot(row, w)


@compiled(fastmath=_REORDERED)
def _fast_sparse_dot(table: Compressed, i: int, w: Floats) -> float:
    return sparse_dot(table, i, w)


@part
def _step(
    k: int, moved: int, z: float, p: int, tail: Floats, w: Floats, form: Form, variables: DualVariables,
    order: Signed,
) -> float:  # fmt: skip
    """Take the step of record ``order[k]``, whose p features have the margin z.

    If it is not 0, the record becomes number ``moved`` of the order.
    """
    y, weight, limit, alpha = variables
    i = order[k]
    if w.size > p:
        z += tail[i] * w[p]
    step = cut(dual_step(form, alpha[i], z, y[i], weight[i]), limit[i])
    if step != 0.0:
        order[k], order[moved] = order[moved], i
        alpha[i] += step
    return step


@part
def _coefficient(j: int, v: Floats, point: DualPoint) -> float:
    if point.plain:
        return float(v[j] * point.inverse[j])
    return within(soft(v[j], point.threshold[j]) * point.inverse[j], point.low[j], point.high[j])


@part
def _set_intercept(change: float, p: int, v: Floats, w: Floats, point: DualPoint) -> None:
    v[p] += change
    w[p] = point.centre + v[p] * point.inverse[p]


@part
def _request_facts(i: int, scale: Floats, variables: DualVariables) -> None:
    """Have what is stored of record i brought to the cache: records in random order are far apart."""
    request_entry(scale, i)
    request_entry(variables.y, i)
    request_entry(variables.weight, i)
    request_entry(variables.limit, i)
    request_entry(variables.alpha, i)


@compiled()
def ascend_dense(
    X: Entries, scale: Floats, tail: Floats, form: Form, variables: DualVariables, v: Floats, w: Floats,
    point: DualPoint, order: Signed,
) -> int:  # fmt: skip
    """A step for each record of ``order``, which updates its dual variable, v and w.

    Row i has the factor ``scale[i]``; ``tail`` is the constant feature, the last one if there is one. Those
    that moved are put first in ``order``; their number is returned. Where all features have a common inverse,
    coefficients are that times v, and of w only the intercept is updated.
    """
    p, common = X.shape[1], point.common
    here, factor = (v, common) if common != 0.0 else (w, 1.0)
    moved = 0
    for k in range(order.size):
        ahead = order[min(k + _ROWS_AHEAD, order.size - 1)]
        request(X[ahead])
        _request_facts(ahead, scale, variables)
        i = order[k]
        z = scale[i] * factor * _fast_dot(X[i], here)
        step = _step(k, moved, z, p, tail, w, form, variables, order)
        if step == 0.0:
            continue
        moved += 1
        move = step * scale[i]
        for j in range(p):
            v[j] += move * X[i, j]
        if common == 0.0:
            for j in range(p):
                w[j] = _coefficient(j, v, point)
        if w.size > p:
            _set_intercept(step * tail[i], p, v, w, point)
    return moved


@compiled()
def ascend_sparse(
    table: Compressed, scale: Floats, tail: Floats, form: Form, variables: DualVariables, v: Floats,
    w: Floats, point: DualPoint, order: Signed,
) -> int:  # fmt: skip
    """The same for a table stored by rows without its zeros."""
    indptr, indices, entries = table
    p, common = w.size - min(tail.size, 1), point.common
    here, factor = (v, common) if common != 0.0 else (w, 1.0)
    moved = 0
    for k in range(order.size):
        ahead = order[min(k + _ROWS_AHEAD, order.size - 1)]
        begin = indptr[ahead]
        request(indices[begin:])
        request(entries[begin:])
        _request_facts(ahead, scale, variables)
        i = order[k]
        z = scale[i] * factor * _fast_sparse_dot(table, i, here)
        step = _step(k, moved, z, p, tail, w, form, variables, order)
        if step == 0.0:
            continue
        moved += 1
        move = step * scale[i]
        if common != 0.0:
            add_line(table, i, move, v)
        else:
            for t in range(indptr[i], indptr[i + 1]):
                j = indices[t]
                v[j] += move * entries[t]
                w[j] = _coefficient(j, v, point)
        if w.size > p:
            _set_intercept(step * tail[i], p, v, w, point)
    return moved
