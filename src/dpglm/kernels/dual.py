"""Dual coordinate ascent over the rows of a table, one record after the other, without noise."""

from __future__ import annotations

from .arguments import Compressed, DualPoint, DualVariables, Entries, Floats, Form, Signed
from .compiled import compiled, part
from .forms import dual_step
from .primitives import cut, dense_dot, soft, sparse_dot, within

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


@compiled()
def ascend_dense(
    X: Entries, scale: Floats, tail: Floats, form: Form, variables: DualVariables, v: Floats, w: Floats,
    point: DualPoint, order: Signed,
) -> int:  # fmt: skip
    """A step for each record of ``order``, which updates its dual variable, v and w.

    Row i has the factor ``scale[i]``; ``tail`` is the constant feature, the last one if there is one. Those
    that moved are put first in ``order``; their number is returned.
    """
    p = X.shape[1]
    moved = 0
    for k in range(order.size):
        i = order[k]
        step = _step(k, moved, scale[i] * _fast_dot(X[i], w), p, tail, w, form, variables, order)
        if step == 0.0:
            continue
        moved += 1
        move = step * scale[i]
        for j in range(p):
            v[j] += move * X[i, j]
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
    p = w.size - min(tail.size, 1)
    moved = 0
    for k in range(order.size):
        i = order[k]
        step = _step(k, moved, scale[i] * _fast_sparse_dot(table, i, w), p, tail, w, form, variables, order)
        if step == 0.0:
            continue
        moved += 1
        move = step * scale[i]
        for t in range(indptr[i], indptr[i + 1]):
            j = indices[t]
            v[j] += move * entries[t]
            w[j] = _coefficient(j, v, point)
        if w.size > p:
            _set_intercept(step * tail[i], p, v, w, point)
    return moved
