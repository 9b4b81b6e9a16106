"""Dual coordinate ascent over the rows of a table, one record after the other, without noise."""

from __future__ import annotations

from typing import Any

from .batch import REORDERED, fast_dot
from .compiled import compiled, part
from .forms import dual_step
from .primitives import cut, soft, sparse_dot, within


@compiled(fastmath=REORDERED)
def _fast_sparse_dot(table: Any, i: int, w: Any) -> float:
    return sparse_dot(table, i, w)


@part
def _step(i: int, z: float, form: Any, variables: Any) -> float:
    """The step of record i with that margin."""
    y, weight, limit, alpha = variables
    return cut(dual_step(form, alpha[i], z, y[i], weight[i]), limit[i])


@part
def _coefficient(j: int, v: Any, point: Any) -> float:
    if point.plain:
        return v[j] * point.inverse[j]
    return within(soft(v[j], point.threshold[j]) * point.inverse[j], point.low[j], point.high[j])


@compiled()
def ascend_dense(
    X: Any, scale: Any, tail: Any, form: Any, variables: Any, v: Any, w: Any, point: Any, order: Any
) -> int:
    """A step for each record of ``order``, which updates its dual variable, v and w.

    Row i has the factor ``scale[i]``; ``tail`` is the constant feature, the last one if there is one. Those
    that moved are put first in ``order``; their number is returned.
    """
    p = X.shape[1]
    moved = 0
    for k in range(order.size):
        i = order[k]
        z = scale[i] * fast_dot(X[i], w)
        if w.size > p:
            z += tail[i] * w[p]
        step = _step(i, z, form, variables)
        if step == 0.0:
            continue
        order[k], order[moved] = order[moved], i
        moved += 1
        variables.alpha[i] += step
        move = step * scale[i]
        for j in range(p):
            v[j] += move * X[i, j]
            w[j] = _coefficient(j, v, point)
        if w.size > p:
            v[p] += step * tail[i]
            w[p] = point.centre + v[p] * point.inverse[p]
    return moved


@compiled()
def ascend_sparse(
    table: Any, scale: Any, tail: Any, form: Any, variables: Any, v: Any, w: Any, point: Any, order: Any
) -> int:
    """The same for a table stored by rows without its zeros."""
    indptr, indices, entries = table
    p = w.size - min(tail.size, 1)
    moved = 0
    for k in range(order.size):
        i = order[k]
        z = scale[i] * _fast_sparse_dot(table, i, w)
        if w.size > p:
            z += tail[i] * w[p]
        step = _step(i, z, form, variables)
        if step == 0.0:
            continue
        order[k], order[moved] = order[moved], i
        moved += 1
        variables.alpha[i] += step
        move = step * scale[i]
        for t in range(indptr[i], indptr[i + 1]):
            j = indices[t]
            v[j] += move * entries[t]
            w[j] = _coefficient(j, v, point)
        if w.size > p:
            v[p] += step * tail[i]
            w[p] = point.centre + v[p] * point.inverse[p]
    return moved
