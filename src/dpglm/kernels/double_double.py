"""Arithmetic with pairs of doubles, and the sums of gradients in pairs that certify a minimiser.

A number is the sum of two, the second at most half a unit of the first. Sums and products of two doubles are
exact as pairs (Knuth; Dekker, with Veltkamp's split, so that no fused operation is needed and every processor
gives the same bits). Sums, products and quotients of pairs are off by a few units of 2**-104.
"""

from __future__ import annotations

import math

import numpy as np

from .arguments import Beside, Compressed, Entries, Floats, Form, Integers, RowFacts, Signed, Whole
from .compiled import compiled, part
from .exact import row_of, steps
from .formulas import HUBER, LOGISTIC, SMOOTHED_HINGE, SQUARED

Pair = tuple[float, float]

_SPLIT = 2.0**27 + 1.0
_1_OVER_LOG2 = 1.4426950408889634
# log(2) in three parts; the first has 33 digits, so that products with exponents are exact.
_LOG2 = (0.6931471803691238, 1.9082149292705877e-10, 1.1612227229362532e-26)
_LARGEST_EXPONENT = 600.0  # the split of a larger power would overflow
_HALVINGS = 4
_FACTORS = tuple(1.0 / math.factorial(k) for k in range(8, 16))
# 1 / k! for k = 2 to 7 as pairs.
_HIGH = (0.5, 0.16666666666666666, 0.041666666666666664, 0.008333333333333333, 0.001388888888888889,
         0.0001984126984126984)  # fmt: skip
_LOW = (0.0, 9.25185853854297e-18, 2.3129646346357427e-18, 1.1564823173178714e-19, -5.300543954373577e-20,
        1.7209558293420705e-22)  # fmt: skip


@part
def exact_sum(a: float, b: float) -> Pair:
    """The sum of two numbers."""
    total = a + b
    share = total - a
    return total, (a - (total - share)) + (b - share)


@part
def exact_product(a: float, b: float) -> Pair:
    """The product of two numbers, if nothing overflows or underflows."""
    product = a * b
    c = _SPLIT * a
    a_high = c - (c - a)
    a_low = a - a_high
    c = _SPLIT * b
    b_high = c - (c - b)
    b_low = b - b_high
    return product, ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low


@part
def normal(high: float, low: float) -> Pair:
    """The same number with a second part of at most half a unit of the first, which is the larger."""
    total = high + low
    return total, low - (total - high)


@part
def plus(a: Pair, b: Pair) -> Pair:
    """The sum of two pairs."""
    high, low = exact_sum(a[0], b[0])
    more, least = exact_sum(a[1], b[1])
    high, low = normal(high, low + more)
    return normal(high, low + least)


@part
def times(a: Pair, b: Pair) -> Pair:
    """The product of two pairs."""
    high, low = exact_product(a[0], b[0])
    return normal(high, low + (a[0] * b[1] + a[1] * b[0]))


@part
def over(a: float, b: Pair) -> Pair:
    """A number over a pair."""
    first = a / b[0]
    high, low = exact_product(first, b[0])
    second = ((a - high) - low - first * b[1]) / b[0]
    return normal(first, second)


@part
def exp(value: Pair) -> Pair:
    """The exponential function, of at most 709: 2**k times the 16th power of a series near 1."""
    if value[0] < -700.0:
        return 0.0, 0.0
    k = np.rint(value[0] * _1_OVER_LOG2)
    x = plus(exact_sum(value[0], -k * _LOG2[0]), (value[1], 0.0))
    high, low = exact_product(-k, _LOG2[1])
    x = plus(x, (high, low - k * _LOG2[2]))
    x = x[0] * 0.0625, x[1] * 0.0625
    tail = 0.0
    for j in range(7, -1, -1):
        tail = tail * x[0] + _FACTORS[j]
    series = tail * x[0], 0.0
    for j in range(5, -1, -1):
        series = times(plus(series, (_HIGH[j], _LOW[j])), x)
    # exp(x) - 1 = x + x (x/2 + ...): squaring 1 + e is e -> 2 e + e².
    less_one = plus(x, times(series, x))
    for _ in range(_HALVINGS):
        less_one = plus((2.0 * less_one[0], 2.0 * less_one[1]), times(less_one, less_one))
    result = plus((1.0, 0.0), less_one)
    whole = np.int64(k)
    half = whole >> 1
    power = np.int64((half + 1023) << 52).view(np.float64)
    rest = np.int64((whole - half + 1023) << 52).view(np.float64)
    return result[0] * power * rest, result[1] * power * rest


@part
def slope(form: Form, z: Pair, y: float) -> Pair:
    """The derivative of the loss with that form, which must be one of ``PAIRED``."""
    if form.code == SQUARED:
        return plus(z, (-y, 0.0))
    if form.code == LOGISTIC:
        exponent = times(z, (y, 0.0))
        if exponent[0] > _LARGEST_EXPONENT:
            exponent = _LARGEST_EXPONENT, 0.0
        return over(-y, plus((1.0, 0.0), exp(exponent)))
    if form.code == HUBER:
        return limited(plus(z, (-y, 0.0)), form.parameter)
    if form.code == SMOOTHED_HINGE:
        shortfall = plus((1.0, 0.0), times(z, (-y, 0.0)))
        if shortfall[0] <= 0.0:
            return 0.0, 0.0
        if shortfall[0] >= form.parameter:
            return -y, 0.0
        return times(shortfall, over(-y, (form.parameter, 0.0)))
    if z[0] >= form.parameter:
        z = form.parameter, 0.0
    return plus(exp(z), (-y, 0.0))


@part
def limited(value: Pair, limit: float) -> Pair:
    """The value cut to [-limit, limit]."""
    if value[0] > limit or (value[0] == limit and value[1] > 0.0):
        return limit, 0.0
    if value[0] < -limit or (value[0] == -limit and value[1] < 0.0):
        return -limit, 0.0
    return value


@compiled(nogil=True)
def write_slopes(form: Form, z: Floats, y: Floats, out: Floats) -> None:
    """The derivative at pairs z of shape (2, n), as pairs: for comparison with exact arithmetic."""
    for i in range(y.size):
        out[0, i], out[1, i] = slope(form, (z[0, i], z[1, i]), y[i])


_1 = np.uint64(1)


# Sums of clipped gradients on three grids. Coefficients are pairs too, in an array of shape (2, p + 1), the
# last one that of the constant feature. The terms of a row's product are added in the order of the columns,
# so that it is the same by rows and by columns, with and without the zeros.
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
