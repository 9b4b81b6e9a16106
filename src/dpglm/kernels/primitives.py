"""Formulas of one number, and products of one row, that kernels share."""

from __future__ import annotations

import math

import numpy as np

from .arguments import Compressed, Entries, Floats
from .compiled import inlined, part

EXACT = 2.0**53
"""Numbers of at least so many steps of a grid lie on it."""

_1_OVER_LOG2 = 1.4426950408889634
_WHOLE = 1.5 * 2.0**52
_NO_EXPONENTS = np.float64(_WHOLE).view(np.uint64) - np.uint64(2 * 1023)
_LOG2_HIGH, _LOG2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10


@inlined
def within(value: float, low: float, high: float) -> float:
    """The value, or the end of an interval that is nearest to it."""
    return min(max(value, low), high)


@inlined
def cut(value: float, limit: float) -> float:
    """The value cut to [-limit, limit]."""
    return min(max(value, -limit), limit)


@inlined
def term(value: float, limit: float, rounding: float) -> float:
    """What a record adds to a column's sum: cut to the limit, then rounded to a grid of exact sums.

    Adding and taking away 1.5 * 2**52 grid steps rounds to the grid; 0 leaves the value as it is.
    """
    return (cut(value, limit) + rounding) - rounding


@part
def exp(value: float) -> float:
    """The exponential function from additions and products alone: the same bits on every processor.

    2**k times a polynomial of degree 13 on [-log(2)/2, log(2)/2]. Off by at most 2 units in the last place
    where the result is a normal number. The value is at most 709. k is read from the digits of a sum that
    rounds to whole numbers: processors without AVX-512 have no vectors of conversions to 64-bit integers.
    """
    value = max(value, -746.0)
    shifted = value * _1_OVER_LOG2 + _WHOLE
    k = shifted - _WHOLE
    x = (value - k * _LOG2_HIGH) - k * _LOG2_LOW
    series = 1.0 / 6227020800.0
    series = series * x + 1.0 / 479001600.0
    series = series * x + 1.0 / 39916800.0
    series = series * x + 1.0 / 3628800.0
    series = series * x + 1.0 / 362880.0
    series = series * x + 1.0 / 40320.0
    series = series * x + 1.0 / 5040.0
    series = series * x + 1.0 / 720.0
    series = series * x + 1.0 / 120.0
    series = series * x + 1.0 / 24.0
    series = series * x + 1.0 / 6.0
    series = series * x + 0.5
    # Two factors: 2**k itself may be too small for a double. Their exponents, with the 1023 of each, add up.
    exponents = np.float64(shifted).view(np.uint64) - _NO_EXPONENTS
    half = exponents >> np.uint64(1)
    power = np.uint64(half << np.uint64(52)).view(np.float64)
    rest = np.uint64((exponents - half) << np.uint64(52)).view(np.float64)
    return float((1.0 + (series * (x * x) + x)) * power * rest)


@part
def log1p(value: float) -> float:
    """log(1 + value) for a value from 0 to 1, the same bits on every processor; off by a few 2**-53."""
    x = value / (2.0 + value)  # at most 1/3: the logarithm is 2 artanh(x)
    square = x * x
    series = 0.0
    for k in range(35, 0, -2):
        series = series * square + 1.0 / k
    return 2.0 * x * series


@part
def tanh(value: float) -> float:
    """The hyperbolic tangent, the same bits on every processor; off by a few units of 2**-53."""
    return math.copysign(1.0 - 2.0 / (1.0 + exp(min(2.0 * abs(value), 700.0))), value)


@inlined
def soft(value: float, threshold: float) -> float:
    """The value, nearer to 0 by the threshold, or 0."""
    return math.copysign(max(abs(value) - threshold, 0.0), value)


@inlined
def prox(value: float, threshold: float, divisor: float, low: float, high: float) -> float:
    """The proximal step s of l1 abs(u) + l2/2 u² on [low, high]: threshold s l1, divisor 1 + s l2."""
    return within(soft(value, threshold) / divisor, low, high)


@inlined
def on_grid(value: float, grid: float) -> float:
    """The multiple of the grid that is nearest to a value; the value itself if the grid is 0.

    The grid is a power of two: the product with its inverse is the quotient, and faster in a loop.
    """
    return np.rint(value * (1.0 / grid)) * grid if abs(value) < EXACT * grid else value


@inlined
def dense_dot(row: Entries, w: Floats) -> float:
    """Product of a row with w."""
    total = 0.0
    for j in range(row.size):
        total += row[j] * w[j]
    return total


@inlined
def sparse_dot(table: Compressed, i: int, w: Floats) -> float:
    """Product of line i of a compressed table with w."""
    total = 0.0
    for t in range(table.indptr[i], table.indptr[i + 1]):
        total += table.entries[t] * w[table.indices[t]]
    return total


@inlined
def add_line(table: Compressed, i: int, factor: float, out: Floats) -> None:
    """Add line i of a compressed table, times a factor."""
    for t in range(table.indptr[i], table.indptr[i + 1]):
        out[table.indices[t]] += factor * table.entries[t]
