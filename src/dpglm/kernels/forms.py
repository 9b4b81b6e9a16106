"""Slope, curvature and dual step of losses, each chosen by the code that a loss declares (its ``form``)."""

from __future__ import annotations

import math

import numpy as np

from .arguments import LARGEST_SLOPE, Floats, Form
from .compiled import compiled, part
from .primitives import cut, exp, log1p, soft, tanh, within

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
