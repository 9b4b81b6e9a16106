"""Formulas of one number, and products of one row, that kernels share."""

from __future__ import annotations

import math

import numpy as np

from .arguments import Compressed, Entries, Floats
from .compiled import inlined

EXACT = 2.0**53
"""Numbers of at least so many steps of a grid lie on it."""


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


@inlined
def soft(value: float, threshold: float) -> float:
    """The value, nearer to 0 by the threshold, or 0."""
    return math.copysign(max(abs(value) - threshold, 0.0), value)


@inlined
def prox(value: float, step: float, l1: float, l2: float, low: float, high: float) -> float:
    """The proximal step of l1 abs(u) + l2/2 u² on [low, high]."""
    return within(soft(value, step * l1) / (1.0 + step * l2), low, high)


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
