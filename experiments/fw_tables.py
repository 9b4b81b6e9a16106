"""Sparse classification tables of published shapes, drawn at random: what is published is too large to ship.

Column k in the order of popularity is drawn with probability about 1 / (k + shift). The shift is such that
the most popular column is held by a stated share of the rows. Popular columns are scattered over the table.
Rows have norm 1. Their lengths are log-normal around the published mean. Labels follow the sign of a linear
model on some of the most popular columns, with normal noise and a threshold that gives the stated share of
positive ones.

Rows are written straight into the arrays of a CSR table, with nothing beside them that grows with the
entries. A row depends on the seed and its own number alone, and not on how many threads draw them.
"""

from __future__ import annotations

import math
import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numba import njit
from numpy.typing import NDArray

PLANTED, AMONG = 100, 1_000
"""So many columns carry the labels, among so many of the most popular ones."""
NOISE = 0.5
"""Standard deviation of the noise of labels, in units of that of the margins."""
CHUNK = 1 << 12


@dataclass(frozen=True)
class Shape:
    """What a table looks like.

    Parameters
    ----------
    name : str
    n, p : int
        Published numbers of rows and columns.
    entries_a_row : float
        Mean.
    top_share : float
        Share of the rows that hold the most popular column.
    positive : float
        Share of positive labels.
    spread : float
        Standard deviation of the logarithm of a row's length.
    weights : float
        The same of an entry, before its row is scaled to norm 1; 0 makes the entries of a row equal.
    dense, dense_share : int, float
        So many columns, the first ones, are each held by this share of the rows, and carry the labels.
    rows : int, optional
        Rows that are drawn, where n are too many for memory.
    """

    name: str
    n: int
    p: int
    entries_a_row: float
    top_share: float
    positive: float = 0.5
    spread: float = 0.4
    weights: float = 0.0
    dense: int = 0
    dense_share: float = 0.0
    rows: int | None = None

    @property
    def shift(self) -> float:
        """The shift of the power law, by bisection."""
        drawn = self.entries_a_row - self.dense * self.dense_share
        rate = -math.log1p(-self.top_share) / drawn
        low, high = 1e-3, float(self.p)
        for _ in range(60):
            middle = math.sqrt(low * high)
            too_popular = math.log1p(1 / middle) / math.log1p((self.p - self.dense) / middle) > rate
            low, high = (middle, high) if too_popular else (low, middle)
        return high


SHAPES = {
    shape.name: shape
    for shape in (
        Shape("rcv1", 20_242, 47_236, 74, top_share=0.5, weights=0.5),
        Shape("news20", 19_996, 1_355_191, 455, top_share=0.5, weights=0.5),
        Shape("url", 2_396_130, 3_231_961, 116, top_share=0.3, positive=0.33, dense=200, dense_share=0.4),
        # All 1.3 billion entries would take 21 GB by rows and by columns; these take 11.6 GB.
        Shape("webspam", 350_000, 16_609_143, 3_730, top_share=0.9, positive=0.6, rows=195_000),
        Shape("kdda", 8_407_752, 20_216_830, 36.3, top_share=0.08, positive=0.85),
    )
}


def make(shape: Shape, seed: int = 0, rows: int | None = None) -> tuple[sp.csr_array, NDArray[np.float64]]:
    """A table with float32 entries, and labels -1 and 1.

    Fewer ``rows`` than the shape has keep its columns.
    """
    n = rows or shape.rows or shape.n
    rng = np.random.default_rng(seed)
    indptr = _lengths(shape, n, rng)
    indices = np.empty(indptr[-1], dtype=np.int32)
    entries = np.empty(indptr[-1], dtype=np.float32)
    scattered = shape.p - shape.dense
    step = _step(scattered)

    def fill(start: int) -> None:
        _fill(
            indptr, indices, entries, start, min(start + CHUNK, n), *map(np.uint64, (seed, scattered, step)),
            shape.shift, shape.weights, shape.dense, shape.dense_share / shape.entries_a_row,
        )  # fmt: skip

    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        list(pool.map(fill, range(0, n, CHUNK)))
    table = sp.csr_array((entries, indices, indptr), shape=(n, shape.p))

    if shape.dense:
        planted = rng.choice(shape.dense, min(PLANTED, shape.dense), replace=False)
    else:
        planted = rng.choice(min(AMONG, shape.p), PLANTED, replace=False) * step % scattered
    w = np.zeros(shape.p, dtype=np.float32)
    w[planted] = rng.standard_normal(len(planted))
    margins = table @ w
    margins += NOISE * margins.std() * rng.standard_normal(n, dtype=np.float32)
    return table, np.where(margins > np.quantile(margins, 1 - shape.positive), 1.0, -1.0)


def _lengths(shape: Shape, n: int, rng: np.random.Generator) -> NDArray[Any]:
    """Where each row begins."""
    lengths = rng.lognormal(-(shape.spread**2) / 2, shape.spread, n) * shape.entries_a_row
    ends = np.cumsum(np.clip(np.rint(lengths), 1, shape.p // 4).astype(np.int64))
    return np.concatenate([[0], ends]).astype(np.int32 if ends[-1] < 2**31 else np.int64)


def _step(p: int) -> int:
    """A multiplier without a common divisor with p, so that k -> k * step mod p scatters the columns."""
    step = int(p * (math.sqrt(5) - 1) / 2)
    while math.gcd(step, p) > 1:
        step += 1
    return step


@njit(cache=True, error_model="numpy", nogil=True)
def _next(state: Any) -> Any:
    # SplitMix64: the next state, and a uniform number in [0, 1).
    state += np.uint64(0x9E3779B97F4A7C15)
    z = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return state, np.float64((z ^ (z >> np.uint64(31))) >> np.uint64(11)) * 2.0**-53


@njit(cache=True, error_model="numpy", nogil=True)
def _column(state: Any, p: Any, step: Any, shift: float, reach: float, dense: int) -> Any:
    state, u = _next(state)
    rank = np.uint64(min(shift * math.exp(u * reach) - shift, p - 1.0))
    return state, np.int32(dense + np.int64(rank * step % p))


@njit(cache=True, error_model="numpy", nogil=True)
def _fill(
    indptr: Any, indices: Any, entries: Any, start: int, stop: int, seed: Any, p: Any, step: Any,
    shift: float, weights: float, dense: int, dense_share: float,
) -> None:  # fmt: skip
    reach = math.log1p(p / shift)
    for i in range(start, stop):
        row, values = indices[indptr[i] : indptr[i + 1]], entries[indptr[i] : indptr[i + 1]]
        state, _ = _next((seed << np.uint64(40)) ^ np.uint64(i))
        state = (state ^ (state >> np.uint64(29))) * np.uint64(0xD6E8FEB86659FD93)
        first = 0
        for j in range(dense):
            state, u = _next(state)
            if first < row.size and u < dense_share * row.size:
                row[first] = j
                first += 1
        for t in range(first, row.size):
            state, row[t] = _column(state, p, step, shift, reach, dense)
        row[first:].sort()
        count = first
        for t in range(first, row.size):
            if count == first or row[t] != row[count - 1]:
                row[count] = row[t]
                count += 1
        while count < row.size:
            state, column = _column(state, p, step, shift, reach, dense)
            place = np.searchsorted(row[:count], column)
            if place == count or row[place] != column:
                for t in range(count, place, -1):
                    row[t] = row[t - 1]
                row[place] = column
                count += 1
        squares = 0.0
        for t in range(row.size):
            value = 1.0
            if weights > 0:
                state, u = _next(state)
                state, v = _next(state)
                value = math.exp(weights * math.sqrt(-2.0 * math.log(1.0 - u)) * math.cos(2.0 * math.pi * v))
            values[t] = value
            squares += np.float64(values[t]) ** 2
        # Rounding to float32 makes no row longer than 1, so that a bound of 1 alters none.
        norm = math.sqrt(squares) * (1.0 + 2.0**-23)
        for t in range(row.size):
            values[t] = values[t] / norm
