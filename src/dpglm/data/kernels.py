"""Compiled coordinate descent over the columns of a table.

One call runs a block of steps. Noise and coordinates are drawn outside and handed in, so a block and
a loop of single steps see the same draws. The kernels read arrays and numbers only; the slope of a
loss is chosen by the code that the loss declares (its ``form``). For form 0, whose slope is z - y, the
margins hold that difference during a block, which spares a read of y at every entry.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit

_MATH = {"reassoc", "contract", "nsz", "nnan"}


@njit(cache=True, error_model="numpy")
def _slope(form: int, parameter: float, z: float, y: float) -> float:
    if form == 1:
        return -y / (1.0 + math.exp(min(y * z, 700.0)))
    if form == 2:
        return min(max(z - y, -parameter), parameter)
    if form == 3:
        return -y * min(max((1.0 - y * z) / parameter, 0.0), 1.0)
    if form == 5:
        return -y if y * z < 1.0 else 0.0
    if form == 6:
        return math.copysign(1.0, z - y) if abs(z - y) > parameter else 0.0
    return math.exp(min(z, parameter)) - y


@njit(cache=True, error_model="numpy")
def slopes(form: int, parameter: float, z: Any, y: Any) -> Any:
    """The compiled derivative of a loss, for comparison with its NumPy form."""
    if form == 0:
        return z - y
    out = np.empty_like(z)
    for i in range(z.size):
        out[i] = _slope(form, parameter, z[i], y[i])
    return out


@njit(cache=True, error_model="numpy", fastmath=_MATH)
def _dense_sum(column: Any, form: int, parameter: float, z: Any, y: Any, limit: float) -> float:
    total = 0.0
    if form == 0:
        for i in range(z.size):
            total += min(max(z[i] * column[i], -limit), limit)
    else:
        for i in range(z.size):
            total += min(max(_slope(form, parameter, z[i], y[i]) * column[i], -limit), limit)
    return total


@njit(cache=True, error_model="numpy", fastmath=_MATH)
def _sparse_sum(
    indices: Any,
    entries: Any,
    start: int,
    stop: int,
    form: int,
    parameter: float,
    z: Any,
    y: Any,
    limit: float,
) -> float:
    total = 0.0
    if form == 0:
        for t in range(start, stop):
            total += min(max(z[indices[t]] * entries[t], -limit), limit)
    else:
        for t in range(start, stop):
            i = indices[t]
            total += min(max(_slope(form, parameter, z[i], y[i]) * entries[t], -limit), limit)
    return total


@njit(cache=True, error_model="numpy", fastmath=_MATH)
def _add(move: float, column: Any, z: Any) -> None:
    if move != 0.0:
        for i in range(z.size):
            z[i] += move * column[i]


@njit(cache=True, error_model="numpy")
def _prox(value: float, step: float, l1: float, l2: float, low: float, high: float) -> float:
    shrunk = math.copysign(max(abs(value) - step * l1, 0.0), value) / (1.0 + step * l2)
    return min(max(shrunk, low), high)


@njit(cache=True, error_model="numpy")
def _on_grid(total: float, grid: float) -> float:
    if abs(total) < 2.0**53 * grid:
        return np.rint(total / grid) * grid
    return total


@njit(cache=True, error_model="numpy")
def descend_dense(
    X: Any, tail: Any, form: int, parameter: float, y: Any, z: Any, w: Any,
    coordinates: Any, clip: Any, noise: Any, grid: Any,
    rate: Any, step: Any, l1: Any, l2: Any, low: Any, high: Any,
) -> Any:  # fmt: skip
    """Run one step for each entry of ``coordinates``; z and w are updated, the moves are returned."""
    moves = np.empty(coordinates.size)
    p = X.shape[1]
    if form == 0:
        z -= y
    for k in range(coordinates.size):
        j = coordinates[k]
        if j < p:
            total = _dense_sum(X[:, j], form, parameter, z, y, clip[j])
        else:
            total = _dense_sum(tail, form, parameter, z, y, clip[j])
        moved = _prox(
            w[j] - rate[j] * (_on_grid(total, grid[k]) + noise[k]), step[j], l1[j], l2[j], low[j], high[j]
        )
        moves[k] = moved - w[j]
        w[j] = moved
        if j < p:
            _add(moves[k], X[:, j], z)
        else:
            _add(moves[k], tail, z)
    if form == 0:
        z += y
    return moves


@njit(cache=True, error_model="numpy")
def descend_sparse(
    indptr: Any, indices: Any, entries: Any, tail: Any, form: int, parameter: float, y: Any, z: Any, w: Any,
    coordinates: Any, clip: Any, noise: Any, grid: Any,
    rate: Any, step: Any, l1: Any, l2: Any, low: Any, high: Any,
) -> Any:  # fmt: skip
    """The same for a table stored by columns; only the rows that hold a column are read."""
    moves = np.empty(coordinates.size)
    p = indptr.size - 1
    if form == 0:
        z -= y
    for k in range(coordinates.size):
        j = coordinates[k]
        if j == p:
            total = _dense_sum(tail, form, parameter, z, y, clip[j])
        else:
            total = _sparse_sum(indices, entries, indptr[j], indptr[j + 1], form, parameter, z, y, clip[j])
        moved = _prox(
            w[j] - rate[j] * (_on_grid(total, grid[k]) + noise[k]), step[j], l1[j], l2[j], low[j], high[j]
        )
        move = moved - w[j]
        moves[k] = move
        w[j] = moved
        if j == p:
            _add(move, tail, z)
        else:
            for t in range(indptr[j], indptr[j + 1]):
                z[indices[t]] += move * entries[t]
    if form == 0:
        z += y
    return moves
