"""Gradients of the multinomial loss: slopes for each class of a record, clipped together."""

from __future__ import annotations

import math

import numpy as np

from .arguments import Entries, Floats, Integers, RowFacts, Signed, Whole
from .compiled import compiled, part
from .exact import add_offsets, add_rows, margin, row_of, shared, steps
from .formulas import exp
from .simd import four_dots, request_row

_0, _1, _2, _3, _4 = (np.uint64(n) for n in range(5))


# Several sums in one pass: rows are widened to doubles once, a few at a time, and stay in the nearest cache
# for all sums. They are padded with zeros to whole lanes, and a block of rows with rows of zeros to a
# multiple of four: these change no product and no sum.
@part
def in_fours(rows: Whole) -> Whole:
    """Round a number of rows up to a multiple of four; rows of zeros fill the block."""
    return (rows + _3) // _4 * _4


@part
def widen(X: Entries, index: Signed | None, first: Whole, rows: Whole, left: Whole, block: Floats) -> None:
    """Write rows to a block of doubles; ``left`` rows from the first on are in the table."""
    p, size = np.uint64(X.shape[1]), np.uint64(block.shape[0])
    for k in range(rows):
        request_row(X[row_of(min(k + size, left - _1), index, first)])
        row, wide = X[row_of(k, index, first)], block[k]
        for j in range(p):
            wide[j] = row[j]
    for k in range(rows, in_fours(rows)):
        block[k] = 0.0


@part
def products(block: Floats, rows: Whole, w: Floats, out: Floats) -> None:
    """Product of each row of a block with w."""
    for k in range(_0, rows, _4):
        four_dots(block[k], block[k + _1], block[k + _2], block[k + _3], w, out, k)


_LEAST_SQUARE = 1e-300  # squares of smaller slopes may underflow, and their norm would be too small


@compiled(nogil=True)
def to_class_slopes(z: Floats, y: Floats, scale: Floats, norms: Floats, clip: float, scratch: Floats) -> None:
    """Turn predictions z, of shape (classes, rows), into factors of the rows in the gradient of each class.

    The factors of a record times its row have a norm, over all classes, of at most ``clip``; they are 0 for a
    null record, which has the scale 0. ``scratch`` has shape (2, rows).
    """
    _to_class_slopes(z, y, scale, norms, clip, scratch)


@part
def _to_class_slopes(
    z: Floats, y: Floats, scale: Floats, norms: Floats, clip: float, scratch: Floats
) -> None:
    """The same for compiled code.

    Every number is a function of one record, from additions, products, quotients and roots alone: the same
    bits on every processor. The loops over records are innermost since the compiler makes vectors of them.
    """
    classes, n = z.shape[0], y.size
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


@part
def _to_class_factors(
    first: Whole, rows: Whole, facts: RowFacts, w: Floats, clip: float, rounding: float, z: Floats,
    scratch: Floats, out: Integers,
) -> None:  # fmt: skip
    """Turn products of rows with the coefficients of each class into factors of these rows.

    The intercepts are the last column of w, and what they add is added to the last one of ``out``.
    """
    p, last = np.uint64(w.shape[1] - 1), np.uint64(out.shape[1] - 1)
    classes, end = range(np.uint64(z.shape[0])), first + rows
    for c in classes:
        for k in range(rows):
            z[c, k] = margin(first + k, z[c, k], facts, w[c, p])
        add_offsets(first, rows, facts.beside, z[c])
    _to_class_slopes(z, facts.y[first:end], facts.scale[first:end], facts.norms[first:end], clip, scratch)
    for c in classes:
        total = 0
        for k in range(rows):
            r = shared(first + k, facts.beside, z[c, k])
            total += steps(r * facts.constant, rounding)
            z[c, k] = r * facts.scale[first + k]
        out[c, last] += total


@compiled(nogil=True)
def to_class_factors(
    facts: RowFacts, w: Floats, clip: float, rounding: float, z: Floats, scratch: Floats, out: Integers
) -> None:
    """The same for all records; ``scratch`` has two rows."""
    _to_class_factors(_0, np.uint64(facts.y.size), facts, w, clip, rounding, z, scratch, out)


@compiled(nogil=True)
def dense_class_gradient(
    X: Entries, index: Signed | None, first: int, facts: RowFacts, w: Floats, clip: float, rounding: float,
    block: Floats, z: Floats, scratch: Floats, out: Integers,
) -> None:  # fmt: skip
    """Add the gradients of each record for all classes, scaled down together to norm at most ``clip``.

    w has a row for each class: coefficients, zeros up to whole lanes, and the intercept. So has ``out``: sums
    for the features, and last that of the intercept. ``block``, ``z`` and ``scratch`` are memory for some
    rows, a multiple of four: their entries, their numbers for each class, and two more.
    """
    n, size, p = np.uint64(facts.y.size), np.uint64(block.shape[0]), np.uint64(X.shape[1])
    width, classes = np.uint64(block.shape[1]), range(np.uint64(z.shape[0]))
    for start in range(_0, n, size):
        rows, here = min(size, n - start), np.uint64(first) + start
        widen(X, index, here, rows, n - start, block)
        for c in classes:
            products(block, rows, w[c, :width], z[c])
        _to_class_factors(start, rows, facts, w, clip, rounding, z, scratch, out)
        for c in classes:
            add_rows(block, None, _0, rows, z[c], rounding, out[c, :p])
