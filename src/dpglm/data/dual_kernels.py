"""Compiled dual coordinate ascent over the rows of a table, one record after the other, without noise.

The step of a loss is chosen by the code that the loss declares (its ``form``).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit


@njit(cache=True, error_model="numpy")
def _step(form: int, parameter: float, alpha: float, z: float, y: float, weight: float) -> float:
    if form == 0:
        return (y - z - alpha) / (1.0 + weight)
    if form == 1:
        return (y / (1.0 + math.exp(min(y * z, 700.0))) - alpha) / (1.0 + weight / 4.0)
    if form == 2:
        return min(max((y - z + weight * alpha) / (1.0 + weight), -parameter), parameter) - alpha
    if form == 3:
        free = (1.0 - y * z + weight * y * alpha) / (parameter + weight)
        return y * min(max(free, 0.0), 1.0) - alpha
    if form == 4:
        full = y - math.exp(min(z, parameter)) - alpha
        return full / (1.0 + weight * math.exp(min(max(z, z + weight * full), parameter)))
    weight = max(weight, 1e-300)
    if form == 5:
        return y * min(max((1.0 - y * z + weight * y * alpha) / weight, 0.0), 1.0) - alpha
    pull = weight * alpha + y - z
    free = math.copysign(max(abs(pull) - parameter, 0.0), pull)
    return min(max(free / weight, -1.0), 1.0) - alpha


@njit(cache=True, error_model="numpy")
def steps(form: int, parameter: float, alpha: Any, z: Any, y: Any, weight: Any) -> Any:
    """The compiled dual step of a loss, for comparison with its NumPy form."""
    out = np.empty_like(z)
    for i in range(z.size):
        out[i] = _step(form, parameter, alpha[i], z[i], y[i], weight[i])
    return out


@njit(cache=True, error_model="numpy")
def _point(v: float, inverse: float, threshold: float, low: float, high: float) -> float:
    return min(max(math.copysign(max(abs(v) - threshold, 0.0), v) * inverse, low), high)


@njit(cache=True, error_model="numpy", fastmath={"reassoc", "contract"})
def _dense_dot(row: Any, w: Any) -> float:
    total = 0.0
    for j in range(row.size):
        total += row[j] * w[j]
    return total


@njit(cache=True, error_model="numpy", fastmath={"reassoc", "contract"})
def _sparse_dot(indices: Any, entries: Any, start: int, stop: int, w: Any) -> float:
    total = 0.0
    for t in range(start, stop):
        total += entries[t] * w[indices[t]]
    return total


@njit(cache=True, error_model="numpy")
def ascend_dense(
    X: Any, scale: Any, tail: Any, form: int, parameter: float, y: Any, weight: Any, limit: Any,
    alpha: Any, v: Any, w: Any, centre: float, inverse: Any, threshold: Any, low: Any, high: Any, plain: bool,
    order: Any,
) -> int:  # fmt: skip
    """A step for each record of ``order``, which updates alpha, v and w.

    Coefficient j is v_j beyond the threshold times the inverse, kept in [low, high]; where it is ``plain``,
    there is neither threshold nor interval. An intercept is the last one and has none of both.

    Those that moved are put first in ``order``; their number is returned.
    """
    p = X.shape[1]
    moved = 0
    for k in range(order.size):
        i = order[k]
        z = scale[i] * _dense_dot(X[i], w)
        if w.size > p:
            z += tail[i] * w[p]
        step = min(max(_step(form, parameter, alpha[i], z, y[i], weight[i]), -limit[i]), limit[i])
        if step == 0.0:
            continue
        order[k], order[moved] = order[moved], i
        moved += 1
        alpha[i] += step
        move = step * scale[i]
        for j in range(p):
            v[j] += move * X[i, j]
            if plain:
                w[j] = v[j] * inverse[j]
            else:
                w[j] = _point(v[j], inverse[j], threshold[j], low[j], high[j])
        if w.size > p:
            v[p] += step * tail[i]
            w[p] = centre + v[p] * inverse[p]
    return moved


@njit(cache=True, error_model="numpy")
def ascend_sparse(
    indptr: Any, indices: Any, entries: Any, scale: Any, tail: Any, form: int, parameter: float, y: Any,
    weight: Any, limit: Any, alpha: Any, v: Any, w: Any, centre: float, inverse: Any, threshold: Any,
    low: Any, high: Any, plain: bool, order: Any,
) -> int:  # fmt: skip
    """The same for a table stored by rows without its zeros."""
    p = w.size - min(tail.size, 1)
    moved = 0
    for k in range(order.size):
        i = order[k]
        z = scale[i] * _sparse_dot(indices, entries, indptr[i], indptr[i + 1], w)
        if w.size > p:
            z += tail[i] * w[p]
        step = min(max(_step(form, parameter, alpha[i], z, y[i], weight[i]), -limit[i]), limit[i])
        if step == 0.0:
            continue
        order[k], order[moved] = order[moved], i
        moved += 1
        alpha[i] += step
        move = step * scale[i]
        for t in range(indptr[i], indptr[i + 1]):
            j = indices[t]
            v[j] += move * entries[t]
            if plain:
                w[j] = v[j] * inverse[j]
            else:
                w[j] = _point(v[j], inverse[j], threshold[j], low[j], high[j])
        if w.size > p:
            v[p] += step * tail[i]
            w[p] = centre + v[p] * inverse[p]
    return moved
