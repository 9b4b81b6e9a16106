"""Sums of clipped gradients whose terms are pairs of doubles, on three grids: what certifies a minimiser.

Coefficients are pairs too, in an array of shape (2, p + 1), the last one that of the constant feature. The
terms of a row's product are added in the order of the columns, so that it is the same by rows and by columns,
with and without the zeros.
"""

from __future__ import annotations

import numpy as np

from .arguments import Beside, Compressed, Entries, Floats, Form, Integers, RowFacts, Signed, Whole
from .compiled import compiled, part
from .exact import row_of, steps
from .twofold import Pair, exact_product, exact_sum, limited, normal, plus, slope, times

_1 = np.uint64(1)


@part
def _added(total: Pair, x: float, high: float, low: float) -> Pair:
    """The total plus x times a coefficient; its second part only collects what the first leaves."""
    product, left = exact_product(x, high)
    more, still = exact_product(x, low)
    value, rounded = exact_sum(total[0], product)
    value, again = exact_sum(value, more)
    return value, total[1] + ((rounded + again) + (left + still))


@part
def _moved(k: Whole, beside: Beside | None, z: Pair) -> Pair:
    """The margin with the offset of the record."""
    return z if beside is None else plus(z, (beside.offset[k], 0.0))


@part
def _shared(k: Whole, beside: Beside | None, factor: Pair) -> Pair:
    """The factor times the share of the record."""
    return factor if beside is None else times(factor, (beside.share[k], 0.0))


@part
def _factor(k: Whole, product: Pair, facts: RowFacts, form: Form, w: Floats, clip: float) -> Pair:
    """Clipped slope of a record from the product of its row with the coefficients of the features."""
    z = times(normal(product[0], product[1]), (facts.scale[k], 0.0))
    p = w.shape[1] - 1
    z = plus(z, times((w[0, p], w[1, p]), (facts.constant, 0.0)))
    here = slope(form, _moved(k, facts.beside, z), facts.y[k])
    return _shared(k, facts.beside, limited(here, clip / facts.norms[k]))


@part
def _add(factor: Pair, x: float, rounding: Floats, out: Integers, j: Whole) -> None:
    """Add factor times x to the sums of column j: on a grid, what that leaves on a finer one, and so on."""
    value, left = exact_product(factor[0], x)
    value, left = exact_sum(value, left + factor[1] * x)
    out[0, j] += steps(value, rounding[0])
    value, left = exact_sum(value - ((value + rounding[0]) - rounding[0]), left)
    out[1, j] += steps(value, rounding[1])
    out[2, j] += steps((value - ((value + rounding[1]) - rounding[1])) + left, rounding[2])


@compiled(nogil=True)
def dense_gradient(
    X: Entries, index: Signed | None, first: int, facts: RowFacts, form: Form, w: Floats, clip: float,
    rounding: Floats, out: Integers,
) -> None:  # fmt: skip
    """Add the clipped gradient of each record that is not null to sums on three grids."""
    p = np.uint64(X.shape[1])
    for k in range(np.uint64(facts.y.size)):
        if facts.scale[k] == 0.0:
            continue
        row, total = X[row_of(k, index, first)], (0.0, 0.0)
        for j in range(p):
            total = _added(total, np.float64(row[j]), w[0, j], w[1, j])
        factor = _factor(k, total, facts, form, w, clip)
        _add(factor, facts.constant, rounding, out, p)
        factor = times(factor, (facts.scale[k], 0.0))
        for j in range(p):
            _add(factor, np.float64(row[j]), rounding, out, j)


@compiled(nogil=True)
def sparse_gradient(
    table: Compressed, index: Signed | None, first: int, facts: RowFacts, form: Form, w: Floats, clip: float,
    rounding: Floats, out: Integers,
) -> None:  # fmt: skip
    """The same for a table stored by rows without its zeros."""
    p = np.uint64(w.shape[1] - 1)
    for k in range(np.uint64(facts.y.size)):
        if facts.scale[k] == 0.0:
            continue
        i, total = row_of(k, index, first), (0.0, 0.0)
        for t in range(table.indptr[i], table.indptr[i + _1]):
            j = table.indices[t]
            total = _added(total, np.float64(table.entries[t]), w[0, j], w[1, j])
        factor = _factor(k, total, facts, form, w, clip)
        _add(factor, facts.constant, rounding, out, p)
        factor = times(factor, (facts.scale[k], 0.0))
        for t in range(table.indptr[i], table.indptr[i + _1]):
            _add(factor, np.float64(table.entries[t]), rounding, out, table.indices[t])
