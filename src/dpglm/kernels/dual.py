"""Dual coordinate ascent over the rows of a table, one record after the other, without noise."""

from __future__ import annotations

from .arguments import Compressed, DualPoint, DualVariables, Entries, Floats, Form, Signed
from .compiled import compiled, part
from .forms import dual_step
from .lanes import request, request_entry
from .primitives import add_line, cut, dense_dot, soft, sparse_dot, within

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
