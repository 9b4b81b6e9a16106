"""Formulas of one number, of one row, and of losses, chosen by the code that a loss declares (``form``)."""

from __future__ import annotations

import math

import numpy as np

from .arguments import LARGEST_SLOPE, Compressed, Entries, Floats, Form
from .compiled import compiled, inlined, part

EXACT = 2.0**53
"""Numbers of at least this many steps of a grid lie on it."""

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
    """The term of a record in a column's sum: cut to the limit, then rounded to a grid of exact sums.

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


SQUARED, LOGISTIC, HUBER, SMOOTHED_HINGE, POISSON, HINGE, EPSILON_INSENSITIVE, LOG_COSH = range(8)
TWEEDIE, NEGATIVE_BINOMIAL, QUANTILE = 8, 9, 10
_LARGEST_EXPONENT = 700.0
_LOG2 = 0.6931471805599453
_LEAST_WEIGHT = 1e-300


@part
def slope(form: Form, z: float, y: float) -> float:
    """The derivative of the loss with that form."""
    if form.code == SQUARED:
        return z - y
    if form.code == LOGISTIC:
        return -y / (1.0 + exp(min(y * z, _LARGEST_EXPONENT)))
    if form.code == HUBER:
        return cut(z - y, form.parameter)
    if form.code == SMOOTHED_HINGE:
        return -y * within((1.0 - y * z) / form.parameter, 0.0, 1.0)
    if form.code == HINGE:
        return -y if y * z < 1.0 else 0.0
    if form.code == EPSILON_INSENSITIVE:
        return math.copysign(1.0, z - y) if abs(z - y) > form.parameter else 0.0
    if form.code == LOG_COSH:
        return form.parameter * tanh((z - y) / form.parameter)
    if form.code == TWEEDIE:
        kept, count = within(z, form.low, form.high), min(y, form.top)
        return exp((2.0 - form.parameter) * kept) - count * exp((1.0 - form.parameter) * kept)
    if form.code == NEGATIVE_BINOMIAL:
        mean = exp(within(z, form.low, form.high))
        return (mean - min(y, form.top)) / (1.0 + form.parameter * mean)
    if form.code == QUANTILE:
        return tanh((z - y) / form.top) / 2.0 + (0.5 - form.parameter)
    return exp(min(z, form.parameter)) - y


@part
def to_slopes(form: Form, y: Floats, values: Floats) -> None:
    """Turn margins into the derivatives of the loss with that form.

    The compiler makes vectors of a loop if it knows the code: those with an exponential have their own loops,
    and the squared loss, whose fits take few passes.
    """
    if form.code == SQUARED:
        _to_slopes(_with(SQUARED, form), y, values)
    elif form.code == LOGISTIC:
        _to_slopes(_with(LOGISTIC, form), y, values)
    elif form.code == POISSON:
        _to_slopes(_with(POISSON, form), y, values)
    elif form.code == LOG_COSH:
        _to_slopes(_with(LOG_COSH, form), y, values)
    elif form.code == TWEEDIE:
        _to_slopes(_with(TWEEDIE, form), y, values)
    else:
        _to_slopes(form, y, values)


@part
def _with(code: int, form: Form) -> Form:
    """The form with a code that the compiler knows."""
    return Form(code, form.parameter, form.low, form.high, form.top, form.smoothness)


@part
def _to_slopes(form: Form, y: Floats, values: Floats) -> None:
    for k in range(values.size):
        values[k] = slope(form, values[k], y[k])


@part
def curvature(form: Form, z: float, y: float, here: float) -> float:
    """The second derivative of the loss with that form, whose slope at z is ``here``."""
    if form.code == LOGISTIC:
        return abs(here) * (1.0 - abs(here))
    if form.code == SQUARED:
        return 1.0
    if form.code == HUBER:
        return 1.0 if abs(z - y) <= form.parameter else 0.0
    if form.code == SMOOTHED_HINGE:
        return 1.0 / form.parameter if 0.0 <= 1.0 - y * z <= form.parameter else 0.0
    if form.code == POISSON:
        return exp(z) if z <= form.parameter else 0.0
    if form.code == LOG_COSH:
        return 1.0 - (here / form.parameter) * (here / form.parameter)
    if form.code == QUANTILE:
        t = 2.0 * (here - (0.5 - form.parameter))
        return (1.0 - t * t) / (2.0 * form.top)
    if form.code == TWEEDIE and form.low <= z <= form.high:
        a, count = form.parameter - 1.0, min(y, form.top)
        return (1.0 - a) * exp((1.0 - a) * z) + a * count * exp(-a * z)
    if form.code == NEGATIVE_BINOMIAL and form.low <= z <= form.high:
        a, mean = form.parameter, exp(z)
        return mean * (1.0 + a * min(y, form.top)) / ((1.0 + a * mean) * (1.0 + a * mean))
    return 0.0


@part
def value(form: Form, z: float, y: float) -> float:
    """The logistic or the log-cosh loss."""
    if form.code == LOGISTIC:
        return max(-y * z, 0.0) + log1p(exp(-min(abs(z), _LARGEST_EXPONENT)))
    size = abs(z - y) / form.parameter
    return form.parameter * form.parameter * (size - _LOG2 + log1p(exp(-min(2.0 * size, _LARGEST_EXPONENT))))


@part
def dual_step(form: Form, alpha: float, z: float, y: float, weight: float) -> float:
    """The dual step of the loss with that form (see `Loss.dual_step`)."""
    if form.code == HUBER:
        return cut((y - z + weight * alpha) / (1.0 + weight), form.parameter) - alpha
    if form.code == SMOOTHED_HINGE:
        free = (1.0 - y * z + weight * y * alpha) / (form.parameter + weight)
        return y * within(free, 0.0, 1.0) - alpha
    if form.code == HINGE:
        weight = max(weight, _LEAST_WEIGHT)
        return y * within((1.0 - y * z + weight * y * alpha) / weight, 0.0, 1.0) - alpha
    if form.code == EPSILON_INSENSITIVE:
        weight = max(weight, _LEAST_WEIGHT)
        return cut(soft(weight * alpha + y - z, form.parameter) / weight, 1.0) - alpha
    full = -slope(form, z, y) - alpha
    if form.code == SQUARED or form.code == LOG_COSH:
        return full / (1.0 + weight)
    if form.code == LOGISTIC:
        return full / (1.0 + weight / 4.0)
    if form.code == TWEEDIE or form.code == NEGATIVE_BINOMIAL or form.code == QUANTILE:
        return full / (1.0 + weight * form.smoothness)
    return full / (1.0 + weight * exp(min(max(z, z + weight * full), form.parameter)))


@part
def bounded_dual_step(form: Form, alpha: float, z: float, y: float, weight: float) -> float:
    """The dual step, at most `LARGEST_SLOPE` long; 0 where overflow leaves no number."""
    step = dual_step(form, alpha, z, y, weight)
    return cut(step, LARGEST_SLOPE) if step == step else 0.0


@compiled(nogil=True)
def write_slopes(form: Form, z: Floats, y: Floats, out: Floats) -> None:
    """The derivative of the loss with that form, for each margin and target."""
    for i in range(out.size):
        out[i] = z[i]
    to_slopes(form, y, out)


@compiled(allocates=True)
def slopes_and_curvatures(form: Form, z: Floats, y: Floats) -> tuple[Floats, Floats]:
    """The compiled derivatives of a loss, for comparison with those of NumPy."""
    slopes, curvatures = np.empty_like(z), np.empty_like(z)
    for i in range(z.size):
        slopes[i] = slope(form, z[i], y[i])
        curvatures[i] = curvature(form, z[i], y[i], slopes[i])
    return slopes, curvatures


@part
def to_dual_steps(form: Form, alpha: Floats, y: Floats, weight: Floats, values: Floats) -> None:
    """Turn margins into the bounded dual steps of the loss with that form.

    Those of losses with a bend are the faster for loops of their own: the compiler makes vectors of them, and
    processors would not foresee on which side of the bend a record is.
    """
    if form.code == HINGE:
        _to_dual_steps(_with(HINGE, form), alpha, y, weight, values)
    elif form.code == SMOOTHED_HINGE:
        _to_dual_steps(_with(SMOOTHED_HINGE, form), alpha, y, weight, values)
    elif form.code == HUBER:
        _to_dual_steps(_with(HUBER, form), alpha, y, weight, values)
    elif form.code == EPSILON_INSENSITIVE:
        _to_dual_steps(_with(EPSILON_INSENSITIVE, form), alpha, y, weight, values)
    else:
        _to_dual_steps(form, alpha, y, weight, values)


@part
def _to_dual_steps(form: Form, alpha: Floats, y: Floats, weight: Floats, values: Floats) -> None:
    for k in range(values.size):
        values[k] = bounded_dual_step(form, alpha[k], values[k], y[k], weight[k])


@compiled(nogil=True)
def write_dual_steps(form: Form, alpha: Floats, z: Floats, y: Floats, weight: Floats, out: Floats) -> None:
    """The bounded dual step of the loss with that form, for each record."""
    for i in range(out.size):
        out[i] = z[i]
    to_dual_steps(form, alpha, y, weight, out)


@compiled(allocates=True)
def dual_steps(form: Form, alpha: Floats, z: Floats, y: Floats, weight: Floats) -> Floats:
    """The compiled dual step of a loss, for comparison with that of NumPy."""
    steps = np.empty_like(z)
    for i in range(z.size):
        steps[i] = dual_step(form, alpha[i], z[i], y[i], weight[i])
    return steps
