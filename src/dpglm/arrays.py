"""What all parts share of arrays: their type, exact sums, rows aligned to cache lines, soft thresholding."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

Vector = NDArray[np.float64]
"""An array of double precision."""

ROUNDING = 1.5 * 2.0**52
"""So many steps of a grid, added to a number, round it to the grid; to take them away again is exact."""

COORDINATE_BITS = 23
"""Binary digits of a record's public coordinates, which lie in [-1, 1]."""

_MOST_BITS, _WORD_BITS, _EXACT_BITS = 50, 61, 53
_SPLIT = 2.0**27 + 1.0


@dataclass(frozen=True, eq=False)
class Total:
    """A sum over records whose terms were rounded to a public grid: it is exact, in whole steps of that grid.

    Attributes
    ----------
    steps : array of int64
        One number for each entry of the sum.
    grid : float
        The step, a power of two.
    rest : array of int64, optional
        What rounding to the grid has left of the terms: a row of steps of a grid that is ``finer`` times the
        first, a row for what that has left, on a grid finer by the same factor, and so on.
    finer : float
    unit : array, optional
        What a step counts for in each entry, times the grid; 1 if there is none. Noise is the same in all
        entries after that.
    """

    steps: NDArray[np.int64]
    grid: float
    rest: NDArray[np.int64] | None = None
    finer: float = 0.0
    unit: Vector | None = None

    @property
    def size(self) -> int:
        return self.steps.size

    @property
    def shape(self) -> tuple[int, ...]:
        return self.steps.shape

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> Vector:
        value = self.steps.astype(np.float64) * self.grid if self.rest is None else self.twofold()[0]
        if self.unit is not None:
            value = value * self.unit
        return value if dtype is None else value.astype(dtype)

    def twofold(self) -> tuple[Vector, Vector]:
        """The sum as that of two doubles; off by a few units of the last place of the second."""
        grid, high, low = self.grid, np.zeros(self.shape), np.zeros(self.shape)
        for steps in (self.steps, *(() if self.rest is None else self.rest)):
            first = steps.astype(np.float64)
            high, left = exact_sum(high, first * grid)
            low += left
            # A double of at most 2**62 is a whole number that 64 bits hold.
            low += (steps - first.astype(np.int64)) * grid
            grid *= self.finer
        return exact_sum(high, low)

    def on(self, coarser: float | Vector) -> NDArray[np.int64]:
        """The sum in steps of a coarser grid, a power of two times its own: each entry the nearest number.

        There may be a grid for each entry.
        """
        if isinstance(coarser, float):  # at every release: NumPy would take longer for one number
            by = math.frexp(coarser)[1] - math.frexp(self.grid)[1]
            if by > _WORD_BITS:
                return np.zeros_like(self.steps)
            if not by:
                return self.steps
            rounded = self.steps + (1 << by - 1)
            rounded >>= by
            return rounded
        shift = np.frexp(coarser)[1].astype(np.int64) - math.frexp(self.grid)[1]
        few = np.clip(shift, 1, _WORD_BITS)
        if not np.any(shift):
            return self.steps
        rounded = (self.steps + (np.int64(1) << few - 1)) >> few
        return rounded * (shift <= _WORD_BITS) if np.all(shift) else np.where(shift, rounded, self.steps)


def exact_sum(a: Vector, b: Vector | float) -> tuple[Vector, Vector]:
    """The rounded sum, and what rounding leaves of the sum (Knuth): exact."""
    total = a + b
    share = total - a
    return total, (a - (total - share)) + (b - share)


def exact_product(a: Vector, b: Vector | float) -> tuple[Vector, Vector]:
    """The same of a product (Dekker), if nothing overflows or underflows."""
    product = a * b
    a_high, b_high = (_SPLIT * c - (_SPLIT * c - c) for c in (a, b))
    a_low, b_low = a - a_high, b - b_high
    return product, ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low


def bits_of_terms(n_records: int) -> int:
    """How many binary digits a term may have so that n of them add up in 64 bits, and rounding is exact."""
    return min(_MOST_BITS, _WORD_BITS - int(max(n_records - 1, 1)).bit_length())


def grid_of_terms(limit: float, n_records: int) -> float:
    """The grid of a sum over n records of terms up to a limit: a power of two."""
    # The limit itself may be exceeded by rounding.
    return math.ldexp(1.0, math.frexp(limit * (1 + 2.0**-20))[1] - bits_of_terms(n_records))


def finer_grid(grid: float, n_records: int) -> float:
    """The grid of what rounding n terms to a grid leaves of them."""
    return math.ldexp(grid, -bits_of_terms(n_records))


def on_column_grids(matrix: Vector) -> Vector:
    """A matrix whose product with public coordinates is exact: each column is on a grid of its own."""
    bits = _EXACT_BITS - COORDINATE_BITS - len(matrix).bit_length()
    largest = np.abs(matrix).max(axis=0, initial=0.0)
    grid = np.ldexp(1.0, np.frexp(np.where(largest > 0, largest, 1.0))[1] - bits)
    rounded: Vector = np.rint(matrix / grid) * grid
    return rounded


def cache_lines(count: int) -> Vector:
    """Rows of eight zeros, each in one line of 64 bytes of the processor's cache."""
    memory = np.zeros(8 * count + 7)
    begin = -memory.ctypes.data // 8 % 8
    return memory[begin : begin + 8 * count].reshape(count, 8)


def soft_threshold(values: Vector, threshold: Vector | float) -> Vector:
    """sign(v) max(abs(v) - threshold, 0), for each value v."""
    return np.copysign(np.maximum(np.abs(values) - threshold, 0.0), values)


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Let BLAS use one thread: for small matrices, and where others run in threads already."""
    blas = _blas()
    if all(library.num_threads == 1 for library in blas.lib_controllers):
        yield  # as it is: a limit would take longer than a small product
        return
    with blas.limit(limits=1):
        yield


@cache
def _blas() -> Any:
    from threadpoolctl import ThreadpoolController  # slow to import, and seldom needed

    return ThreadpoolController().select(user_api="blas")
