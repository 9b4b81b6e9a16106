"""Slopes of the multinomial loss, one for each class of a record, clipped together."""

from __future__ import annotations

import math

from .arguments import Floats
from .compiled import compiled
from .primitives import exp

_LEAST_SQUARE = 1e-300  # squares of smaller slopes may underflow, and their norm would be too small


@compiled(nogil=True)
def to_class_slopes(z: Floats, y: Floats, scale: Floats, norms: Floats, clip: float, scratch: Floats) -> None:
    """Turn predictions z, of shape (classes, rows), into factors of the rows in the gradient of each class.

    The factors of a record times its row have a norm, over all classes, of at most ``clip``; they are 0 for a
    null record, which has the scale 0. Every number is a function of one record, from additions, products,
    quotients and roots alone: the same bits on every processor. ``scratch`` has shape (2, rows). The loops
    over records are innermost since the compiler makes vectors of them.
    """
    classes, n = z.shape
    top, total = scratch[0], scratch[1]
    for i in range(n):
        top[i], total[i] = z[0, i], 0.0
    for k in range(1, classes):
        for i in range(n):
            top[i] = max(top[i], z[k, i])
    for k in range(classes):
        for i in range(n):
            share = exp(z[k, i] - top[i])
            z[k, i] = share
            total[i] += share
    squares = top
    for i in range(n):
        squares[i] = _LEAST_SQUARE
    for k in range(classes):
        for i in range(n):
            slope = z[k, i] / total[i] - (1.0 if y[i] == k else 0.0)
            z[k, i] = slope
            squares[i] += slope * slope
    factors = total
    for i in range(n):
        factor = min(clip / (norms[i] * math.sqrt(squares[i])), 1.0)
        factors[i] = factor if scale[i] != 0.0 else 0.0
    for k in range(classes):
        for i in range(n):
            z[k, i] *= factors[i]
